"""What a reader finds in a written NIfTI file: every voxel at its place, with its value."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import nibabel
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from pydicom import Dataset

from numbat_imaging import write_nifti
from numbat_imaging.output.nifti import (
    AFFINE_LIMIT_MM,
    affine_ras_mm,
    check_file,
    corner_distance_mm,
)
from numbat_imaging.series.fourth_axis import FourthAxis
from numbat_imaging.values.pixels import RGB
from numbat_imaging.volume import Volume
from numbat_registries import Refusal

MakeVolume = Callable[..., Volume]
LPS_TO_RAS = np.array([-1.0, -1.0, 1.0])


def _turned(quaternion: tuple[float, float, float, float]) -> NDArray[np.float64]:
    w, x, y, z = np.asarray(quaternion) / np.linalg.norm(quaternion)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


_part = st.floats(-1, 1)
quaternions = st.tuples(_part, _part, _part, _part).filter(lambda q: np.linalg.norm(q) > 0.1)
spacings = st.tuples(*[st.floats(0.1, 10)] * 3)
origins = st.tuples(*[st.floats(-2000, 2000)] * 3)
shapes = st.tuples(st.integers(1, 5), st.integers(1, 6), st.integers(1, 7))
slides = st.one_of(st.just((0.0, 0.0)), st.tuples(st.floats(-3, 3), st.floats(-3, 3)))


@settings(max_examples=60, deadline=None)
@given(quaternions, spacings, origins, shapes, slides, st.booleans(), st.sampled_from([1, 2]))
def test_every_voxel_lies_where_the_patient_coordinates_say(
    make_volume: MakeVolume,
    quaternion: tuple[float, float, float, float],
    spacing: tuple[float, float, float],
    origin: tuple[float, float, float],
    shape: tuple[int, int, int],
    slide: tuple[float, float],
    packed: bool,
    version: int,
) -> None:
    codes = np.arange(np.prod(shape), dtype=np.uint16).reshape(shape[::-1]).T
    volume = make_volume(
        codes, axes=_turned(quaternion), spacing_mm=spacing, origin_mm=origin, slide_mm=slide
    )
    with TemporaryDirectory() as folder:
        path = Path(folder) / ("v.nii.gz" if packed else "v.nii")
        write_nifti(volume, path, nifti_version=version)
        image = nibabel.load(path)
        stored = np.asanyarray(image.dataobj)
        affine, header = image.affine, image.header
    assert sorted(stored.ravel().tolist()) == sorted(codes.ravel().tolist())
    for index in np.ndindex(*shape):
        where = np.argwhere(stored == codes[index])[0]
        found = (affine @ [*where, 1.0])[:3]
        truth = volume.at_lps_mm(index) * LPS_TO_RAS
        assert np.linalg.norm(found - truth) < 1e-3
    assert int(header["sform_code"]) == 1
    if any(slide):
        return
    if int(header["qform_code"]) == 0:
        # Near half a turn three single-precision numbers do not hold a rotation to a micrometre.
        header.set_qform(affine, code=1)
        assert corner_distance_mm(header.get_qform(), affine, shape) > AFFINE_LIMIT_MM
        return
    corners = np.array([*np.ndindex(2, 2, 2)]) * (np.array(shape) - 1)
    points = np.column_stack([corners, np.ones(8)]).T
    assert np.abs((header.get_qform() - header.get_sform()) @ points).max() < 1e-3
    assert np.allclose(header.get_zooms(), spacing, rtol=1e-5)


def test_a_sheared_stack_has_no_qform_that_would_square_it(
    make_volume: MakeVolume, tmp_path: Path
) -> None:
    volume = make_volume(slide_mm=(0.0, 0.7))
    write_nifti(volume, tmp_path / "v.nii")
    header = nibabel.load(tmp_path / "v.nii").header
    assert (int(header["qform_code"]), int(header["sform_code"])) == (0, 1)
    column = header.get_sform()[:3, 2]
    assert column == pytest.approx([0.0, -0.7, 2.0])


def test_rows_are_flipped_as_other_converters_do(make_volume: MakeVolume) -> None:
    volume = make_volume()
    assert np.linalg.det(affine_ras_mm(volume)) < 0
    assert affine_ras_mm(volume)[:3, 1] == pytest.approx([0.0, 1.0, 0.0])


@pytest.mark.parametrize(
    "dtype", ["u1", "i1", "u2", "i2", "u4", "i4", "f4", "f8"], ids=lambda name: str(np.dtype(name))
)
def test_each_type_keeps_its_extreme_values(
    make_volume: MakeVolume, tmp_path: Path, dtype: str
) -> None:
    limits = np.finfo(dtype) if dtype[0] == "f" else np.iinfo(dtype)
    voxels = np.zeros((2, 2, 2), dtype)
    voxels[0, 0, 0], voxels[1, 1, 1] = limits.min, limits.max
    write_nifti(make_volume(voxels), tmp_path / "v.nii.gz")
    image = nibabel.load(tmp_path / "v.nii.gz")
    stored = np.asanyarray(image.dataobj)
    assert stored.dtype == np.dtype(dtype)
    assert stored[0, 1, 0] == limits.min
    assert stored[1, 0, 1] == limits.max


def test_colour(make_volume: MakeVolume, tmp_path: Path) -> None:
    voxels = np.zeros((3, 2, 2), RGB)
    voxels[2, 1, 0] = (10, 20, 30)
    write_nifti(make_volume(voxels), tmp_path / "v.nii.gz")
    image = nibabel.load(tmp_path / "v.nii.gz")
    assert int(image.header["datatype"]) == 128
    assert np.asanyarray(image.dataobj)[2, 0, 0].tolist() == (10, 20, 30)


def test_the_value_scale_is_in_the_header_and_the_voxels_stay(
    make_volume: MakeVolume, tmp_path: Path
) -> None:
    volume = make_volume(slope=0.5, intercept=-1024.0)
    write_nifti(volume, tmp_path / "v.nii")
    image = nibabel.load(tmp_path / "v.nii")
    assert np.array_equal(image.dataobj.get_unscaled()[:, ::-1], volume.voxels)
    assert np.array_equal(image.get_fdata()[:, ::-1], volume.values())


def test_time_from_volume_to_volume(make_volume: MakeVolume, tmp_path: Path) -> None:
    voxels = np.zeros((2, 2, 2, 3), np.int16)
    axis = FourthAxis("cardiac-phase", (0.0, 40.0, 80.0), "ms")
    write_nifti(make_volume(voxels, fourth_axis=axis), tmp_path / "phase.nii")
    header = nibabel.load(tmp_path / "phase.nii").header
    assert (header.get_zooms()[3], header.get_xyzt_units()) == (0.0, ("mm", "unknown"))

    axis = FourthAxis("time", (100.0, 102.5, 105.0), "s")
    write_nifti(make_volume(voxels, fourth_axis=axis), tmp_path / "clock.nii")
    header = nibabel.load(tmp_path / "clock.nii").header
    assert (header.get_zooms()[3], header.get_xyzt_units()) == (2.5, ("mm", "sec"))

    slow = Dataset()
    slow.RepetitionTime = "3000"
    axis = FourthAxis("time", (1.0, 2.0, 3.0))
    write_nifti(make_volume(voxels, fourth_axis=axis, header=slow), tmp_path / "counted.nii")
    assert nibabel.load(tmp_path / "counted.nii").header.get_zooms()[3] == 3.0


def test_the_phase_encoding_axis_is_named(make_volume: MakeVolume, tmp_path: Path) -> None:
    encoded = Dataset()
    encoded.InPlanePhaseEncodingDirection = "ROW"
    write_nifti(make_volume(header=encoded), tmp_path / "v.nii")
    assert nibabel.load(tmp_path / "v.nii").header.get_dim_info() == (1, 0, 2)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"voxels": np.zeros((1, 32768, 1), np.uint8)}, "dimension"),
        ({"origin_mm": (2.5e5, 0.0, 0.0123)}, "coordinates"),
        ({"slope": 1e-50}, "scale"),
    ],
    ids=["dimension", "coordinates", "scale"],
)
def test_nifti_2_where_nifti_1_is_too_small(
    make_volume: MakeVolume, tmp_path: Path, change: dict[str, object], reason: str
) -> None:
    volume = make_volume(**{"voxels": np.ones((2, 3, 4), np.int16), **change})
    if reason == "coordinates":
        volume = make_volume(origin_mm=(2.5e5 + 0.0123, 0.0, 0.0))
    with pytest.raises(Refusal) as caught:
        write_nifti(volume, tmp_path / "v.nii.gz", nifti_version=1)
    assert caught.value.code == "IMG-1705"
    assert reason in str(caught.value.diagnostic.fields["reasons"])
    assert list(tmp_path.iterdir()) == []
    plan = caught.value.diagnostic.plans[0]
    write_nifti(volume, tmp_path / "v.nii.gz", **plan.keywords())
    image = nibabel.load(tmp_path / "v.nii.gz")
    assert isinstance(image, nibabel.Nifti2Image)
    assert np.array_equal(image.dataobj.get_unscaled()[:, ::-1], volume.voxels)
    assert np.abs(image.affine - affine_ras_mm(volume)).max() < 1e-6
    assert write_nifti(volume, tmp_path / "auto.nii.gz").digests
    assert isinstance(nibabel.load(tmp_path / "auto.nii.gz"), nibabel.Nifti2Image)


def test_the_same_volume_gives_the_same_bytes_and_no_trace_of_time_or_name(
    make_volume: MakeVolume, tmp_path: Path
) -> None:
    volume = make_volume(np.random.default_rng(3).integers(0, 99, (9, 8, 7)).astype(np.int16))
    first = write_nifti(volume, tmp_path / "a.nii.gz")
    second = write_nifti(volume, tmp_path / "b.nii.gz")
    packed = (tmp_path / "a.nii.gz").read_bytes()
    assert packed == (tmp_path / "b.nii.gz").read_bytes()
    assert list(first.digests.values()) == list(second.digests.values())
    assert packed[3] == 0  # no name, no comment
    assert packed[4:8] == bytes(4)  # no time
    write_nifti(volume, tmp_path / "a.nii")
    assert gzip.decompress(packed) == (tmp_path / "a.nii").read_bytes()


def test_an_existing_file_stays_unless_the_caller_says_otherwise(
    make_volume: MakeVolume, tmp_path: Path
) -> None:
    path = tmp_path / "v.nii"
    path.write_text("earlier")
    with pytest.raises(Refusal) as caught:
        write_nifti(make_volume(), path)
    assert caught.value.code == "IMG-1701"
    assert path.read_text() == "earlier"
    write_nifti(make_volume(), path, **caught.value.diagnostic.plans[0].keywords())
    assert nibabel.load(path).shape == (5, 4, 3)


@pytest.mark.parametrize("suffix", [".nii", ".nii.gz"])
@pytest.mark.parametrize("fault", ["byte", "cut", "affine", "qform", "shape"])
def test_a_file_that_differs_from_what_was_meant_is_not_passed(
    make_volume: MakeVolume, tmp_path: Path, suffix: str, fault: str
) -> None:
    from isal import isal_zlib

    volume = make_volume()
    path = tmp_path / f"v{suffix}"
    write_nifti(volume, path)
    whole = path.read_bytes() if suffix == ".nii" else gzip.decompress(path.read_bytes())
    meant = {
        "affine": affine_ras_mm(volume),
        "shape": volume.voxels.shape,
        "crc": isal_zlib.crc32(whole),
        "size": len(whole),
    }
    check_file(path, **meant)
    changed = bytearray(whole)
    if fault == "byte":
        changed[-1] ^= 1
    elif fault == "cut":
        del changed[-2:]
    elif fault == "affine":
        meant["affine"] = meant["affine"] + np.eye(4, k=3) * 0.01
    elif fault == "shape":
        meant["shape"] = (5, 4, 2)
    else:
        changed[268:272] = np.float32(900).tobytes()  # qoffset_x
        meant["crc"] = isal_zlib.crc32(bytes(changed))
    path.write_bytes(gzip.compress(changed) if suffix == ".nii.gz" else bytes(changed))
    with pytest.raises(Refusal) as caught:
        check_file(path, **meant)
    assert caught.value.code == "IMG-1704"


def test_a_broken_gzip_stream_is_not_passed(make_volume: MakeVolume, tmp_path: Path) -> None:
    path = tmp_path / "v.nii.gz"
    write_nifti(make_volume(), path)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(Refusal) as caught:
        check_file(path, affine=np.eye(4), shape=(5, 4, 3), crc=0, size=0)
    assert caught.value.diagnostic.fields["differs"] == ["readable"]
