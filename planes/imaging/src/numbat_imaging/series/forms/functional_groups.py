"""Each frame of an enhanced object as if it were a file of its own."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Any

from pydicom import Dataset
from pydicom.datadict import dictionary_VR, tag_for_keyword
from pydicom.dataelem import DataElement, RawDataElement
from pydicom.tag import BaseTag

from numbat_imaging.intake import elements
from numbat_imaging.intake.limits import DEFAULT_LIMITS
from numbat_imaging.intake.structure import remembered
from numbat_registries import refuse

Elements = dict[BaseTag, Any]
Macro = tuple[Elements, list[Elements]]
Known = dict[tuple[BaseTag, bytes], Macro]


def _tag(keyword: str) -> BaseTag:
    tag = tag_for_keyword(keyword)
    assert tag is not None
    return remembered(tag)


_SHARED = _tag("SharedFunctionalGroupsSequence")
_PER_FRAME = _tag("PerFrameFunctionalGroupsSequence")

#: Functional groups whose elements say what the image of a frame is, where and when it was taken.
#: Others (anatomy, derivation, referenced images) describe other objects, and stay unread.
_MACROS = frozenset(
    _tag(keyword)
    for keyword in (
        "PixelMeasuresSequence",
        "PlanePositionSequence",
        "PlaneOrientationSequence",
        "PlanePositionVolumeSequence",
        "PlaneOrientationVolumeSequence",
        "FrameContentSequence",
        "TemporalPositionSequence",
        "PixelValueTransformationSequence",
        "CardiacSynchronizationSequence",
        "RespiratorySynchronizationSequence",
        "MRImageFrameTypeSequence",
        "MRSpectroscopyFrameTypeSequence",
        "CTImageFrameTypeSequence",
        "PETFrameTypeSequence",
        "XAXRFFrameCharacteristicsSequence",
        "ParametricMapFrameTypeSequence",
        "MREchoSequence",
        "MRDiffusionSequence",
        "MRTimingAndRelatedParametersSequence",
        "MRFOVGeometrySequence",
        "MRModifierSequence",
        "MRImagingModifierSequence",
        "MRAveragesSequence",
        "MRVelocityEncodingSequence",
        "CTReconstructionSequence",
        "CTAcquisitionDetailsSequence",
        "CTGeometrySequence",
        "FrameVOILUTSequence",
        "PETFrameCorrectionFactorsSequence",
        "PETReconstructionSequence",
        "UnassignedSharedConvertedAttributesSequence",
        "UnassignedPerFrameConvertedAttributesSequence",
    )
    if tag_for_keyword(keyword) is not None
)

#: Elements of a functional group, and the element of a single-frame object that means the same.
_CLASSIC = {
    _tag(enhanced): (_tag(classic), dictionary_VR(_tag(enhanced)))
    for enhanced, classic in (
        ("FrameType", "ImageType"),
        ("EffectiveEchoTime", "EchoTime"),
        ("TemporalPositionIndex", "TemporalPositionIdentifier"),
        ("NominalCardiacTriggerDelayTime", "TriggerTime"),
        ("FrameAcquisitionNumber", "AcquisitionNumber"),
        ("FrameAcquisitionDateTime", "AcquisitionDateTime"),
    )
}

#: Groups that differ from frame to frame and decide no more than place and moment.
_OWN = frozenset(map(_tag, ("FrameContentSequence", "PlanePositionSequence")))

#: Groups that decide nothing which a slice is told apart by.
_ASIDE = frozenset(
    map(
        _tag,
        (
            "FrameVOILUTSequence",
            "FrameAnatomySequence",
            "ReferencedImageSequence",
            "DerivationImageSequence",
        ),
    )
)

_APART = _OWN | _ASIDE

_POSITION = _tag("ImagePositionPatient")
_DIRECTION = _tag("DiffusionGradientDirectionSequence")


def has_functional_groups(ds: Dataset) -> bool:
    """Whether a data set describes its frames in functional groups."""
    return _PER_FRAME in ds or _SHARED in ds


def frame_datasets(
    ds: Dataset, *, frames: int, file: str
) -> Iterator[tuple[Dataset, Hashable | None]]:
    """For each frame, one flat data set: top level, shared and per-frame functional groups.

    Elements of the groups replace those of the top level, under the keywords of single-frame
    objects (EffectiveEchoTime as EchoTime, and so on). Private groups keep their creators, in
    blocks that are free. With it comes a key: frames of one key differ in position and frame
    content alone; None when that is not known.

    Raises IMG-1310 when the per-frame groups are not as many as the frames, IMG-1012 for groups
    that cannot be read, IMG-1013 for more frames than are told apart. Source: PS3.3 C.7.6.16.
    """
    groups = _items(ds, _PER_FRAME)
    if len(groups) != frames:
        raise refuse("IMG-1310", file=file, frames=frames, groups=len(groups))
    known: Known = {}
    base = _shared(ds, known, frames=frames, file=file)
    check_frames(frames, elements_of_each=len(base), file=file)
    settled, settled_key = base, None
    for group in groups:
        key = _key(group)
        if key is None:
            yield _frame(ds, base, group, known), None
            continue
        # Of frames of one key, all but their own groups are merged once.
        own = {tag: element for tag, element in group.items() if tag in _APART}
        if key != settled_key:
            settled, settled_key = dict(base), key
            _merge(settled, {t: e for t, e in group.items() if t not in own}, known, ds)
        yield _frame(ds, settled, own, known), key


def check_frames(frames: int, *, elements_of_each: int, file: str) -> None:
    """Refuse an object whose frames could not be told apart in any time.

    Raises IMG-1013 beyond `Limits.frames` and `Limits.frame_elements`.
    """
    for what, measured, limit in (
        ("frames", frames, DEFAULT_LIMITS.frames),
        ("data elements of all frames", frames * elements_of_each, DEFAULT_LIMITS.frame_elements),
    ):
        if measured > limit:
            raise refuse("IMG-1013", file=file, what=what, measured=measured, limit=limit)


def frame_dataset(ds: Dataset, *, frame: int, file: str) -> Dataset:
    """The flat data set of one frame, as `frame_datasets` gives it.

    Raises IMG-1310 when the object describes fewer frames, and what `frame_datasets` raises.
    """
    known: Known = {}
    element = ds.get_item(_PER_FRAME, keep_deferred=True) if _PER_FRAME in ds else None
    if isinstance(element, RawDataElement):
        # Of the other frames no more is read than where they lie.
        groups = _raw_groups(element, ds)
        _check_described(frame, len(groups), file)
        frames, group = len(groups), groups[frame][0]
    else:
        items = _items(ds, _PER_FRAME)
        _check_described(frame, len(items), file)
        frames, group = len(items), items[frame]
    base = _shared(ds, known, frames=frames, file=file)
    return _frame(ds, base, group, known)


def _check_described(frame: int, groups: int, file: str) -> None:
    if frame >= groups:
        raise refuse("IMG-1310", file=file, frames=frame + 1, groups=groups)


def _raw_groups(element: RawDataElement, ds: Dataset) -> elements.RawItems:
    # A file of many stacks is asked for a frame of each, one after the other.
    global _latest
    latest = _latest
    if latest is None or latest.element.value is not element.value:
        latest = _latest = elements.RawItems(element, ds)
    return latest


_latest: elements.RawItems | None = None


def _items(ds: Dataset, tag: BaseTag) -> list[Elements]:
    return _items_of(ds.get_item(tag, keep_deferred=True), ds) if tag in ds else []


def _items_of(element: Any, ds: Dataset) -> list[Elements]:
    # Data sets are built only of whole frames: a file has tens of thousands of groups.
    if isinstance(element, RawDataElement):
        return [item for item, _ in elements.raw_items(element, ds)]
    return [dict(_elements(item)) for item in element.value]


def _shared(ds: Dataset, known: Known, *, frames: int, file: str) -> Elements:
    """The top level, and over it the shared groups."""
    shared = _items(ds, _SHARED)
    if len(shared) > 1:
        raise refuse("IMG-1311", file=file, items=len(shared))
    elsewhere = {_SHARED, _PER_FRAME}
    if frames > 1:
        # One place for all frames would be that of one frame at most.
        elsewhere.add(_POSITION)
    base = {tag: element for tag, element in _elements(ds) if tag not in elsewhere}
    for group in shared:
        _merge(base, group, known, ds)
    return base


def _frame(ds: Dataset, base: Elements, group: Elements, known: Known) -> Dataset:
    frame = dict(base)
    _merge(frame, group, known, ds)
    return flat_dataset(frame, like=ds)


def _key(group: Elements) -> Hashable | None:
    found = []
    for tag, element in group.items():
        if tag in _APART:
            continue
        if not isinstance(element, RawDataElement):
            return None
        found.append((tag, element.value))
    return tuple(found)


def flat_dataset(found: Elements, *, like: Dataset) -> Dataset:
    """A data set of these elements, encoded as `like` is."""
    flat = Dataset(found)
    implicit, little = like.original_encoding
    flat.set_original_encoding(implicit, little, like.original_character_set)
    flat.file_meta = like.file_meta
    return flat


def _elements(ds: Dataset) -> Iterable[tuple[BaseTag, Any]]:
    return ((tag, ds.get_item(tag, keep_deferred=True)) for tag in ds.keys())  # noqa: SIM118


def _merge(frame: Elements, group: Elements, known: Known, ds: Dataset) -> None:
    for tag, element in group.items():
        if tag in _MACROS:
            public, private = _macro(element, known, ds)
            frame.update(public)
            for item in private:
                _merge_private_item(frame, item)
        elif tag.is_private and not tag.is_private_creator:
            _merge_private(frame, element, ds)
        elif not tag.is_private:
            frame[tag] = element


def _macro(element: Any, known: Known, ds: Dataset) -> Macro:
    """The elements of a functional group, and the private ones of each of its items."""
    # Most groups of most frames are the same bytes again.
    content = element.value if isinstance(element, RawDataElement) else None
    key = (element.tag, content) if isinstance(content, bytes) else None
    found = known.get(key) if key is not None else None
    if found is None:
        public: Elements = {}
        private: list[Elements] = []
        for item in _items_of(element, ds):
            # Blocks of different items may have one number and different creators.
            own = {tag: part for tag, part in item.items() if tag.is_private}
            public.update(_flat({t: e for t, e in item.items() if t not in own}, ds))
            private += [own] if own else []
        found = (public, private)
        if key is not None:
            known[key] = found
    return found


def _flat(item: Elements, ds: Dataset) -> Elements:
    flat: Elements = {}
    for tag, element in item.items():
        if tag == _DIRECTION:
            for direction in _items_of(element, ds):
                flat.update(_flat(direction, ds))
            continue
        flat[tag] = element
        if tag in _CLASSIC:
            classic, vr = _CLASSIC[tag]
            flat[classic] = _renamed(element, classic, vr)
    return flat


def _renamed(element: Any, tag: BaseTag, vr: str) -> Any:
    if isinstance(element, RawDataElement):
        # An implicit VR would be looked up under the new tag: text where the number is binary.
        return element._replace(tag=tag, VR=element.VR if element.VR not in (None, "UN") else vr)
    return DataElement(tag, element.VR, element.value)


def _merge_private(frame: Elements, element: Any, ds: Dataset) -> None:
    """Bring the items of a private sequence to the top level, each block under a free number."""
    if str(element.VR or "UN") not in ("SQ", "UN"):
        return
    if element.VR != "SQ" and not _looks_like_items(element.value):
        return
    for item in _items_of(element, ds):
        _merge_private_item(frame, item)


def _looks_like_items(value: Any) -> bool:
    return isinstance(value, bytes) and value[:4] in (b"\xfe\xff\x00\xe0", b"\xff\xfe\xe0\x00")


def _merge_private_item(frame: Elements, item: Elements) -> None:
    blocks: dict[int, int] = {}
    for tag, element in item.items():
        if tag.is_private_creator:
            block = _block(frame, tag.group, _text(element))
            if not block:
                continue
            blocks[tag.group << 8 | tag.element] = block
            moved = BaseTag(tag.group << 16 | block)
        elif tag.is_private:
            block = blocks.get(tag.group << 8 | tag.element >> 8, 0)
            if not block:
                continue
            moved = BaseTag(tag.group << 16 | block << 8 | tag.element & 0xFF)
        elif tag in frame:
            # What the standard's own groups say wins.
            continue
        else:
            moved = tag
        frame[moved] = (
            element._replace(tag=moved)
            if isinstance(element, RawDataElement)
            else DataElement(moved, element.VR, element.value)
        )


def _text(element: Any) -> str:
    value = element.value
    text = value.decode("latin-1") if isinstance(value, bytes) else f"{value}"
    return text.strip(" \0")


def _block(frame: Elements, group: int, creator: str) -> int:
    """The block of `creator` in `group`, or the first that is free; 0 when none is."""
    for number in range(0x10, 0x100):
        held = frame.get(BaseTag(group << 16 | number))
        if held is None:
            return _block_beyond(frame, group, number, creator) or number
        if _text(held) == creator:
            return number
    return 0


def _block_beyond(frame: Elements, group: int, gap: int, creator: str) -> int:
    # An archive that renumbers blocks leaves gaps; a second block would hide the first.
    owners = sorted(tag for tag in frame if tag >> 8 == group << 8 and tag & 0xFF > gap)
    return next((tag & 0xFF for tag in owners if _text(frame[tag]) == creator), 0)
