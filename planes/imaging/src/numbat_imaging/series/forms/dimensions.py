"""The dimensions that an enhanced object says its frames run along."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from pydicom import Dataset
from pydicom.datadict import keyword_for_tag

from numbat_imaging.intake import elements
from numbat_registries import refuse

#: Dimensions that say where a frame lies: the coordinates say it better.
SPATIAL = frozenset(
    {
        "StackID",
        "InStackPositionNumber",
        "ImagePositionPatient",
        "ImageOrientationPatient",
        "PlanePositionSequence",
        "PlaneOrientationSequence",
        "SliceLocation",
    }
)


def dimension_names(ds: Dataset) -> tuple[str, ...]:
    """The dimensions of an object in the order in which it lists them, by keyword or private tag.

    Raises IMG-1012 for a pointer that cannot be read. Source: PS3.3 C.7.6.17.
    """
    names: list[str] = []
    for item in elements.sequence(ds, "DimensionIndexSequence"):
        names.append(_name(item, elements.tags(item, "DimensionIndexPointer")))
    return tuple(names)


def _name(item: Dataset, pointer: Sequence[int]) -> str:
    if not pointer:
        return "unnamed"
    tag = pointer[0]
    keyword = keyword_for_tag(tag)
    if keyword:
        return keyword
    creator = elements.text(item, "DimensionIndexPrivateCreator") or ""
    return f"({tag >> 16:04X},{tag & 0xFFFF:04X}) {creator}".strip()


def dimension_values(
    ds: Dataset, names: Sequence[str], *, frame: int, file: str
) -> tuple[tuple[str, int], ...]:
    """The place of one frame along each dimension that is not a place in space.

    `ds`: the flat data set of the frame. Empty when the frame gives none.

    Raises IMG-1312 when the frame has another number of indices than the object has dimensions.
    """
    values = elements.integers(ds, "DimensionIndexValues")
    if values is None or not names:
        return ()
    if len(values) != len(names):
        raise refuse(
            "IMG-1312", file=file, frame=frame + 1, dimensions=len(names), indices=len(values)
        )
    pairs = zip(names, values, strict=True)
    return tuple((name, value) for name, value in pairs if name not in SPATIAL)


def check_moments(moments: Iterable[tuple[int | None, int | None]], *, file: str) -> None:
    """Refuse an object whose frames state two different moments each.

    `moments`: for each frame, TemporalPositionIndex and its index in DimensionIndexValues, which
    may count from elsewhere but must tell the same frames apart. One that is the same in all frames
    says nothing.

    Raises IMG-1318. Source: PS3.3 C.7.6.17.
    """
    frames = Counter(pair for pair in moments if None not in pair)
    stated, indexed = ({pair[k] for pair in frames} for k in (0, 1))
    if min(len(stated), len(indexed)) > 1 and not len(frames) == len(stated) == len(indexed):
        usual = sum(count for _, count in frames.most_common(min(len(stated), len(indexed))))
        raise refuse(
            "IMG-1318",
            file=file,
            moments=len(stated),
            indices=len(indexed),
            combinations=len(frames),
            frames_astray=frames.total() - usual,
        )
