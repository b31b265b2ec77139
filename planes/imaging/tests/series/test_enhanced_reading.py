"""Enhanced objects as slices: whatever the layout, the frames decide."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydicom import Dataset
from pydicom.uid import ExplicitVRLittleEndian, ImplicitVRLittleEndian, RLELossless

from numbat_imaging.intake.files import FileRef
from numbat_imaging.intake.headers import read_header
from numbat_imaging.phantoms import Phantom, write_datasets
from numbat_imaging.phantoms import enhanced_catalogue as catalogue
from numbat_imaging.phantoms.enhanced import Layout, enhanced_object
from numbat_imaging.phantoms.enhanced_faults import doubled
from numbat_imaging.phantoms.reading import folder_of_fault, instance_of_fault
from numbat_imaging.series.forms.dimensions import check_moments
from numbat_imaging.series.identity import pixel_digest, without_twins
from numbat_imaging.series.instance import Instance, instances_from_header, slice_dataset
from numbat_imaging.volume import read_series
from numbat_registries import Refusal

_SMALL = Phantom(shape=(5, 4, 3), volumes=2)
_GROUPS = ("PixelMeasuresSequence", "PlaneOrientationSequence", "MREchoSequence")


def _instances(ds: Dataset, folder: Path) -> tuple[Instance, ...]:
    (path,) = write_datasets([ds], folder)
    header = read_header(FileRef(str(path)))
    assert header is not None
    return instances_from_header(header)


@settings(max_examples=25, deadline=None)
@given(
    order=st.permutations(range(6)),
    dimensions=st.permutations(catalogue.TIME_FIRST),
    per_frame=st.sets(st.sampled_from(_GROUPS)),
    counts_down=st.booleans(),
    syntax=st.sampled_from([ExplicitVRLittleEndian, ImplicitVRLittleEndian, RLELossless]),
    axis=st.sampled_from(["TemporalPositionIdentifier", "DiffusionBValue", "TriggerTime"]),
)
def test_no_layout_changes_the_volume(
    order: list[int],
    dimensions: list[str],
    per_frame: set[str],
    counts_down: bool,
    syntax: str,
    axis: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    phantom = replace(_SMALL, fourth_axis=axis)
    layout = Layout(
        dimensions=tuple(dimensions),
        per_frame=frozenset(per_frame),
        frame_order=tuple(order),
        counts_down=counts_down,
        transfer_syntax_uid=syntax,
    )
    folder = tmp_path_factory.mktemp("layout")
    write_datasets([enhanced_object(phantom.slices(), layout)], folder)
    volume = read_series(folder)
    voxels, affine = phantom.ascending()
    np.testing.assert_array_equal(volume.voxels, _in_stored_order(voxels, order, axis))
    np.testing.assert_allclose(volume.affine_lps_mm, affine, atol=1e-6)


def _in_stored_order(voxels: np.ndarray, order: list[int], axis: str) -> np.ndarray:
    """Diffusion has no order of its own: its volumes come as their first frames are stored."""
    if axis != "DiffusionBValue":
        return voxels
    return voxels[..., list(dict.fromkeys(index // 3 for index in order))]


def test_a_frame_can_be_looked_at_alone() -> None:
    (path,) = folder_of_fault("enhanced-shuffled").iterdir()
    header = read_header(FileRef(str(path)))
    assert header is not None
    for number, instance in enumerate(instances_from_header(header)):
        assert (instance.frame, instance.form) == (number, "enhanced multi-frame")
        flat = slice_dataset(header, instance)
        assert tuple(map(float, flat.ImagePositionPatient)) == instance.position_lps_mm
        assert flat.EchoTime == 30
        assert flat.ImageType == ["ORIGINAL", "PRIMARY", "VOLUME", "NONE"]
        assert "PerFrameFunctionalGroupsSequence" not in flat


def test_a_position_at_the_top_counts_for_one_frame_alone(tmp_path: Path) -> None:
    def at_top(phantom: Phantom) -> Dataset:
        ds = enhanced_object(phantom.slices())
        ds.ImagePositionPatient = ["1", "2", "3"]
        for group in (*ds.SharedFunctionalGroupsSequence, *ds.PerFrameFunctionalGroupsSequence):
            if "PlanePositionSequence" in group:
                del group.PlanePositionSequence
        return ds

    (alone,) = _instances(at_top(catalogue.ONE_FRAME), tmp_path / "one")
    assert alone.position_lps_mm == (1.0, 2.0, 3.0)
    many = _instances(at_top(catalogue.MR), tmp_path / "many")
    assert {instance.position_lps_mm for instance in many} == {None}


def test_frames_of_one_file_have_their_own_digests(tmp_path: Path) -> None:
    for name, syntax in (("native", ExplicitVRLittleEndian), ("RLE", RLELossless)):
        ds = enhanced_object(_SMALL.slices(), Layout(transfer_syntax_uid=syntax))
        found = _instances(ds, tmp_path / name)
        assert len({pixel_digest(instance) for instance in found}) == 6
    native, encoded = (
        pixel_digest(instance_of_fault(f"enhanced-{name}")) for name in ("clean", "rle")
    )
    assert native == encoded


def test_a_frame_is_a_twin_of_one_with_the_same_pixels_alone(tmp_path: Path) -> None:
    phantom = replace(_SMALL, volumes=1)
    same = [*phantom.slices(), phantom.slices()[0]]
    instances = _instances(enhanced_object(same), tmp_path / "same")
    kept, aside = without_twins(instances, [0, 1, 2, 0])
    assert [instance.frame for instance in kept] == [0, 1, 2]
    assert [(instance.frame, why.code) for instance, why in aside] == [(3, "IMG-1105")]
    other = doubled(0)(phantom.slices())
    instances = _instances(enhanced_object(other), tmp_path / "other")
    kept, aside = without_twins(instances, [0, 1, 2, 0])
    assert (len(kept), aside) == (4, [])


def test_two_statements_of_a_moment_must_tell_the_same_frames_apart() -> None:
    check_moments([(1, 3), (2, 1), (1, 3)], file="a")
    check_moments([(1, 1), (1, 2)], file="a")
    with pytest.raises(Refusal, match="IMG-1318"):
        check_moments([(1, 1), (2, 2), (1, 2)], file="a")
