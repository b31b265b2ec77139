"""An enhanced phantom says of each frame what the slice said, wherever the layout puts it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pydicom import Dataset, dcmread
from pydicom.datadict import keyword_for_tag
from pydicom.uid import RLELossless

from numbat_imaging.phantoms import FAULTS, write_datasets
from numbat_imaging.phantoms import enhanced_catalogue as catalogue
from numbat_imaging.phantoms import enhanced_faults as frames
from numbat_imaging.phantoms.enhanced import Layout, enhanced_object
from numbat_imaging.phantoms.phantom import get_pixels


def _group(ds: Dataset, frame: int, name: str) -> Dataset:
    own = ds.PerFrameFunctionalGroupsSequence[frame]
    return (own if name in own else ds.SharedFunctionalGroupsSequence[0])[name].value[0]


@pytest.mark.parametrize("syntax", ["1.2.840.10008.1.2.1", RLELossless])
def test_each_frame_is_its_slice(syntax: str, tmp_path: Path) -> None:
    order = catalogue.shuffle(24)
    layout = Layout(dimensions=catalogue.TIME_FIRST, frame_order=order, transfer_syntax_uid=syntax)
    slices = catalogue.TIMES.slices()
    built = enhanced_object(catalogue.TIMES.slices(), layout)
    (path,) = write_datasets([built], tmp_path)
    ds = dcmread(path)
    assert ds.NumberOfFrames == 24
    for frame, index in enumerate(order):
        one = slices[index]
        np.testing.assert_array_equal(ds.pixel_array[frame], get_pixels(one))
        place = _group(ds, frame, "PlanePositionSequence")
        assert place.ImagePositionPatient == one.ImagePositionPatient
        measures = _group(ds, frame, "PixelMeasuresSequence")
        assert measures.PixelSpacing == one.PixelSpacing
        content = _group(ds, frame, "FrameContentSequence")
        t, k = divmod(index, 8)
        assert content.TemporalPositionIndex == t + 1
        assert content.InStackPositionNumber == k + 1
        assert list(content.DimensionIndexValues) == [t + 1, 1, k + 1]


def test_what_is_the_same_in_all_frames_is_shared() -> None:
    slices = catalogue.DIFFUSION.slices()
    ds = enhanced_object(slices, Layout(per_frame=frozenset({"PixelMeasuresSequence"})))
    own = set(ds.PerFrameFunctionalGroupsSequence[0].dir())
    assert own == {
        "FrameContentSequence",
        "PlanePositionSequence",
        "MRDiffusionSequence",
        "PixelMeasuresSequence",
    }
    shared = set(ds.SharedFunctionalGroupsSequence[0].dir())
    assert not shared & own
    assert {"PlaneOrientationSequence", "MREchoSequence"} <= shared
    everything = enhanced_object(slices, Layout(per_frame="all"))
    assert everything.SharedFunctionalGroupsSequence[0].dir() == []


@pytest.mark.parametrize(
    "dimensions", [catalogue.TIME_FIRST, catalogue.TIME_LAST, catalogue.BY_GRADIENT]
)
def test_dimensions_are_listed_in_the_order_asked_for(dimensions: tuple[str, ...]) -> None:
    ds = enhanced_object(catalogue.DIFFUSION.slices(), Layout(dimensions=dimensions))
    listed = [keyword_for_tag(i.DimensionIndexPointer) for i in ds.DimensionIndexSequence]
    assert tuple(listed) == dimensions
    seen = [
        tuple(f.FrameContentSequence[0].DimensionIndexValues)
        for f in ds.PerFrameFunctionalGroupsSequence
    ]
    assert all(len(indices) == len(dimensions) for indices in seen)
    for column in zip(*seen, strict=True):
        assert set(column) == set(range(1, max(column) + 1))


def test_a_legacy_object_keeps_what_has_no_group() -> None:
    ds = enhanced_object(catalogue.CARDIAC.slices(), Layout(legacy=True, dimensions=()))
    assert ds.SOPClassUID.name.startswith("Legacy Converted")
    assert "DimensionIndexSequence" not in ds
    last = ds.PerFrameFunctionalGroupsSequence[-1]
    (kept,) = last.UnassignedPerFrameConvertedAttributesSequence
    assert kept.TriggerTime == 80


def test_a_concatenation_is_cut_without_loss() -> None:
    whole = enhanced_object(catalogue.MR.slices())
    parts = frames.cut(whole, 3, 3, 2)
    assert b"".join(part.PixelData for part in parts) == whole.PixelData
    assert [part.ConcatenationFrameOffsetNumber for part in parts] == [0, 3, 6]
    assert [part.InConcatenationNumber for part in parts] == [1, 2, 3]
    assert len({part.ConcatenationUID for part in parts}) == 1
    assert len({part.SOPInstanceUID for part in parts}) == 3
    assert sum(len(part.PerFrameFunctionalGroupsSequence) for part in parts) == 8


def test_the_same_phantom_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("enhanced-time-rle", "enhanced-concatenation", "enhanced-pet"):
        first = [path.read_bytes() for path in FAULTS[name].write(tmp_path / f"{name} a")]
        again = [path.read_bytes() for path in FAULTS[name].write(tmp_path / f"{name} b")]
        assert first == again


def test_faults_do_what_they_say() -> None:
    def built(name: str) -> Dataset:
        return FAULTS[f"enhanced-{name}"].build()[0]

    def heights(ds: Dataset) -> list[float]:
        groups = ds.PerFrameFunctionalGroupsSequence
        return [float(f.PlanePositionSequence[0].ImagePositionPatient[2]) for f in groups]

    assert np.diff(heights(built("frame-missing"))).tolist() == [2, 2, 2, 4, 2, 2]
    assert np.diff(heights(built("two-stacks"))).round(6).tolist() == [2, 2, 2, 50, 2, 2, 2]
    assert len(set(heights(built("doubled")))) == 8
    assert len(built("doubled").PerFrameFunctionalGroupsSequence) == 10
    assert len(built("fewer-groups").PerFrameFunctionalGroupsSequence) == 7
    assert "NumberOfFrames" not in built("frames-untold")
    stacks = built("two-stacks").PerFrameFunctionalGroupsSequence
    assert [f.FrameContentSequence[0].StackID for f in stacks] == ["1"] * 4 + ["2"] * 4
    numbers = [
        f.FrameContentSequence[0].InStackPositionNumber
        for f in built("in-stack-contradicts").PerFrameFunctionalGroupsSequence
    ]
    assert sorted(numbers) == list(range(1, 9))
    assert numbers != sorted(numbers)
    times = [
        f.FrameContentSequence[0].FrameAcquisitionDateTime
        for f in built("timed-frames").PerFrameFunctionalGroupsSequence
    ]
    assert len(set(times)) == 8
    without = built("without-position")
    assert not any("PlanePositionSequence" in f for f in without.PerFrameFunctionalGroupsSequence)
    private = built("philips-frames").PerFrameFunctionalGroupsSequence[2]
    (item,) = private.private_block(0x2005, "Philips MR Imaging DD 005")[0x0F].value
    assert item.InstanceNumber == 3
