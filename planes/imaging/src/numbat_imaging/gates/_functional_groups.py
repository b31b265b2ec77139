"""How functional groups become the elements of one frame; part of IMG-G22."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydicom import Dataset
from pydicom.dataset import FileMetaDataset
from pydicom.tag import BaseTag

from numbat_gates import Check
from numbat_imaging.intake import elements
from numbat_imaging.series.forms.functional_groups import (
    check_frames,
    frame_dataset,
    frame_datasets,
    has_functional_groups,
)

_GROUP, _OWNER = 0x0021, "AN OWNER"


def functional_groups(check: Check) -> None:
    """Which element wins, which stay out, and where private ones go."""
    _described(check)
    _precedence(check)
    _position_of_one_frame(check)
    _names(check)
    _private(check)
    _limits(check)


def _object(top: Dataset, shared: Sequence[Dataset], frames: Sequence[Dataset]) -> Dataset:
    top.file_meta = FileMetaDataset()
    top.set_original_encoding(False, True, "iso8859")
    top.SharedFunctionalGroupsSequence = list(shared)
    top.PerFrameFunctionalGroupsSequence = list(frames)
    return top


def _with(**values: Any) -> Dataset:
    ds = Dataset()
    for keyword, value in values.items():
        setattr(ds, keyword, value)
    return ds


def _flat(ds: Dataset) -> list[Dataset]:
    """The frames one after the other, and each by itself: both must be the same."""
    count = len(ds.PerFrameFunctionalGroupsSequence)
    together = [flat for flat, _ in frame_datasets(ds, frames=count, file="a file")]
    for number, flat in enumerate(together):
        if flat != frame_dataset(ds, frame=number, file="a file"):
            raise AssertionError(f"frame {number} by itself is another")
    return together


def _described(check: Check) -> None:
    shared = _with(SharedFunctionalGroupsSequence=[Dataset()])
    per_frame = _with(PerFrameFunctionalGroupsSequence=[Dataset()])
    for says, ds, required in (
        ("shared groups", shared, True),
        ("groups of frames", per_frame, True),
        ("no groups", Dataset(), False),
    ):
        check.equal(f"described by {says}", has_functional_groups(ds), required)
    for groups, frames in ((2, 3), (2, 1), (0, 1)):
        ds = _object(Dataset(), [], [Dataset() for _ in range(groups)])
        with check.refuses("IMG-1310", f"{groups} groups for {frames} frames"):
            list(frame_datasets(ds, frames=frames, file="a file"))
    with check.refuses("IMG-1311", "two shared items") as caught:
        list(frame_datasets(_object(Dataset(), [Dataset()] * 2, [Dataset()]), frames=1, file="a"))
    if caught.diagnostic is not None:
        check.equal("shared items counted", caught.diagnostic.fields["items"], 2)


def _measures(thickness: float) -> Dataset:
    return _with(PixelMeasuresSequence=[_with(SliceThickness=thickness)])


def _precedence(check: Check) -> None:
    """The frame's own group over the shared one, and that over the top level."""
    top = _with(SliceThickness=1.0, EchoTime=9.0, PatientID="one")
    shared = _measures(2.0)
    shared.MREchoSequence = [_with(EffectiveEchoTime=20.0)]
    shared.ReferencedImageSequence = [_with(PatientID="another")]
    frames = [_measures(3.0), Dataset(), _measures(4.0)]
    frames[1].MREchoSequence = [_with(EffectiveEchoTime=30.0)]
    frames[2].add_new("ImageComments", "LT", "of the group itself")
    found = _flat(_object(top, [shared], frames))
    thicknesses = [elements.decimal(flat, "SliceThickness") for flat in found]
    check.equal("thickness of each frame", thicknesses, [3.0, 2.0, 4.0])
    echoes = [elements.decimal(flat, "EchoTime") for flat in found]
    check.equal("echo time of each frame", echoes, [20.0, 30.0, 20.0])
    owners = [elements.text(flat, "PatientID") for flat in found]
    check.equal("what other objects are described by stays out", owners, ["one"] * 3)
    comments = [elements.text(flat, "ImageComments") for flat in found]
    check.equal("elements of the group itself", comments, [None, None, "of the group itself"])
    groups = ("SharedFunctionalGroupsSequence", "PerFrameFunctionalGroupsSequence")
    left = [keyword for flat in found for keyword in groups if elements.has(flat, keyword)]
    check.equal("groups that are left in a frame", left, [])


def _position_of_one_frame(check: Check) -> None:
    """A position at the top level is that of one frame, where there is one."""
    for count, required in ((1, (1.0, 2.0, 3.0)), (2, None)):
        top = _with(ImagePositionPatient=[1, 2, 3])
        found = _flat(_object(top, [], [Dataset() for _ in range(count)]))
        places = [elements.decimals(flat, "ImagePositionPatient") for flat in found]
        check.equal(f"a position above {count} frames", places, [required] * count)


def _names(check: Check) -> None:
    """Elements of enhanced objects under the names of single-frame ones."""
    group = Dataset()
    group.MRImageFrameTypeSequence = [_with(FrameType=["ORIGINAL", "PRIMARY", "DIFFUSION"])]
    group.TemporalPositionSequence = [Dataset()]
    group.CardiacSynchronizationSequence = [_with(NominalCardiacTriggerDelayTime=40.5)]
    group.FrameContentSequence = [
        _with(
            TemporalPositionIndex=7,
            FrameAcquisitionNumber=5,
            FrameAcquisitionDateTime="20200102101112.5",
        )
    ]
    direction = _with(DiffusionGradientOrientation=[0.6, 0.0, 0.8])
    weighted = _with(DiffusionBValue=1000.0, DiffusionGradientDirectionSequence=[direction])
    group.MRDiffusionSequence = [weighted]
    (flat,) = _flat(_object(_with(ImageType=["DERIVED"], TriggerTime=1.0), [], [group]))
    check.equal("image type of a frame", elements.texts(flat, "ImageType")[2:], ("DIFFUSION",))
    for keyword, required in (
        ("TriggerTime", 40.5),
        ("TemporalPositionIdentifier", 7.0),
        ("AcquisitionNumber", 5.0),
        ("DiffusionBValue", 1000.0),
    ):
        check.equal(f"{keyword} of a frame", elements.decimal(flat, keyword), required)
    moment = elements.text(flat, "AcquisitionDateTime")
    check.equal("moment of a frame", moment, "20200102101112.5")
    along = elements.decimals(flat, "DiffusionGradientOrientation")
    check.equal("direction of a frame", along, (0.6, 0.0, 0.8))


def _owned(value: str, *, creator: str = _OWNER, block: int = 0x10) -> Dataset:
    item = Dataset()
    item.add_new(BaseTag(_GROUP << 16 | block), "LO", creator)
    item.add_new(BaseTag(_GROUP << 16 | block << 8 | 0x05), "LO", value)
    return item


def _in_private_group(item: Dataset, *, vr: str = "SQ") -> Dataset:
    group = Dataset()
    group.add_new(BaseTag(_GROUP << 16 | 0x10), "LO", _OWNER)
    group.add_new(BaseTag(_GROUP << 16 | 0x10FE), vr, [item] if vr == "SQ" else b"\1\2\3\4")
    return group


def _owner_of(flat: Dataset, creator: str = _OWNER) -> Any:
    return elements.private(flat, _GROUP, creator, 0x05, vr="LO")


def _private(check: Check) -> None:
    item = _owned("in the item")
    item.EchoTime, item.FlipAngle, item.RescaleSlope = 77.0, 15.0, "3"
    (flat,) = _flat(_object(_with(EchoTime=9.0), [], [_in_private_group(item)]))
    check.equal("a private item's private element", _owner_of(flat), "in the item")
    check.equal(
        "a private item fills in and replaces nothing",
        (elements.decimal(flat, "EchoTime"), elements.decimal(flat, "FlipAngle")),
        (9.0, 15.0),
    )
    (flat,) = _flat(_object(_with(EchoTime=9.0), [], [_in_private_group(item, vr="UN")]))
    check.equal("bytes that are no items", _owner_of(flat), None)
    orphan = Dataset()
    orphan.add_new(BaseTag(_GROUP << 16 | 0x1005), "LO", "nobody's")
    orphan.RescaleSlope = "3"
    (flat,) = _flat(_object(Dataset(), [], [_in_private_group(orphan)]))
    stray = [tag for tag in flat.keys() if tag.is_private]  # noqa: SIM118
    check.equal("an element of no owner stays out", stray, [])
    check.equal("what stands after it", elements.decimal(flat, "RescaleSlope"), 3.0)
    # The owner's own block of the top level is used, and the value of the frame wins.
    above = _owned("above", block=0x33)
    above.add_new(BaseTag(_GROUP << 16 | 0x3306), "LO", "above alone")
    above.add_new(BaseTag(_GROUP << 16 | 0x44), "LO", "ANOTHER OWNER")
    (flat,) = _flat(_object(above, [], [_in_private_group(item)]))
    check.equal("one owner above and below", _owner_of(flat), "in the item")
    names = [flat[tag].value for tag in flat.keys() if tag.is_private_creator]  # noqa: SIM118
    check.equal("one owner has one block", sorted(names), [_OWNER, "ANOTHER OWNER"])
    kept = elements.private(flat, _GROUP, _OWNER, 0x06, vr="LO")
    check.equal("what the frame says nothing of", kept, "above alone")
    _same_number_elsewhere(check, item)
    _full(check, item)


def _same_number_elsewhere(check: Check, item: Dataset) -> None:
    """The owner's block in another group says nothing of its block in this one."""
    top = _owned("another's", creator="ANOTHER OWNER", block=0x33)
    top.add_new(BaseTag((_GROUP + 2) << 16 | 0x33), "LO", _OWNER)
    (flat,) = _flat(_object(top, [], [_in_private_group(item)]))
    found = (_owner_of(flat), _owner_of(flat, "ANOTHER OWNER"))
    check.equal("one owner in two groups", found, ("in the item", "another's"))


def _full(check: Check, item: Dataset) -> None:
    """A group without a free block has no room for another owner; the rest is still taken."""
    for taken, required in ((range(0x10, 0x100), None), (range(0x10, 0xFF), "in the item")):
        standard = Dataset()
        standard.MRImageFrameTypeSequence = [item]
        for kind, group in (("standard", standard), ("private", _in_private_group(item))):
            top = Dataset()
            for block in taken:
                top.add_new(BaseTag(_GROUP << 16 | block), "LO", f"OTHER {block:02X}")
            (flat,) = _flat(_object(top, [], [group]))
            name = f"in a {kind} group beside {len(taken)} others"
            check.equal(f"an owner {name}", _owner_of(flat), required)
            check.equal(
                f"public elements before and behind an owner {name}",
                (elements.decimal(flat, "FlipAngle"), elements.decimal(flat, "RescaleSlope")),
                (15.0, 3.0),
            )


def _limits(check: Check) -> None:
    for frames, each in ((1 << 17, 1), (1 << 17, 1 << 9), (1 << 16, 1 << 10), (1, 1 << 26)):
        check_frames(frames, elements_of_each=each, file="a file")
        check.true(f"{frames} frames of {each} elements", True)
    for frames, each, what, measured in (
        ((1 << 17) + 1, 1, "frames", (1 << 17) + 1),
        (1 << 17, (1 << 9) + 1, "data elements of all frames", (1 << 26) + (1 << 17)),
        (1, (1 << 26) + 1, "data elements of all frames", (1 << 26) + 1),
    ):
        with check.refuses("IMG-1013", f"{frames} frames of {each} elements") as caught:
            check_frames(frames, elements_of_each=each, file="a file")
        if caught.diagnostic is not None:
            fields = caught.diagnostic.fields
            found = (fields["what"], fields["measured"])
            check.equal(f"{frames} frames of {each} elements: told", found, (what, measured))
