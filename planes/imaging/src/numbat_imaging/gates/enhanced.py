"""Enhanced objects: every frame at the place and on the scale that its functional groups state."""

import gzip
from collections.abc import Iterator
from io import BytesIO
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from pydicom import Dataset, dcmread

from numbat_gates import Check, gate
from numbat_imaging.gates._frame_offsets import frame_offsets
from numbat_imaging.gates._functional_groups import functional_groups
from numbat_imaging.phantoms import Phantom
from numbat_imaging.phantoms import enhanced_catalogue as catalogue
from numbat_imaging.phantoms.modalities import gradient_direction
from numbat_imaging.phantoms.reading import read_all_of_fault, read_fault
from numbat_imaging.volume import Volume, read_volumes

#: Layouts of one object, and the scan that each of them holds.
_SOUND: dict[str, Phantom] = {
    "clean": catalogue.MR,
    "ct": catalogue.CT,
    "pet": catalogue.PET,
    "pet-shuffled": catalogue.PET,
    "rle": catalogue.MR,
    "implicit": catalogue.CT,
    "undefined-lengths": catalogue.MR,
    "oblique": catalogue.OBLIQUE,
    "descending": catalogue.DESCENDING,
    "shuffled": catalogue.MR,
    "all-per-frame": catalogue.MR,
    "single-frame": catalogue.ONE_FRAME,
    "without-dimensions": catalogue.MR,
    "by-position": catalogue.MR,
    "timed-frames": catalogue.MR,
    "empty-groups": catalogue.MR,
    "decoys-at-top": catalogue.MR,
    "philips-frames": catalogue.MR,
    "legacy-ct": catalogue.CT,
    "legacy-mr": catalogue.MR,
    "legacy-pet": catalogue.PET,
    "concatenation": catalogue.MR,
    "time-first": catalogue.TIMES,
    "time-rle": catalogue.TIMES,
    "diffusion": catalogue.DIFFUSION,
    "cardiac": catalogue.CARDIAC,
    "legacy-time": catalogue.TIMES,
    "legacy-diffusion": catalogue.DIFFUSION,
    "legacy-cardiac": catalogue.CARDIAC,
    "volume-a-file": catalogue.TIMES,
}

#: Real objects of three makers, by corpus set.
_REAL = {
    "imaging/dcm2niix_qa": (
        "siemens_xa10_enhanced_as_slices/dicom",
        "siemens_xa30_gre_fieldmap/dicom",
        "agfa_plain_twin/dicom",
        "canon_enhanced_dwi/dicom",
    ),
    "imaging/encapsulation": (
        "multi/CT0012.explicit_little_endian.dcm",
        "multi/CT0012.not_fragmented_bot_rle.dcm",
    ),
}

#: A scanner writes positions in a few digits; a fitted grid passes between them.
_DIGITS_MM = 2e-3


@gate(
    "IMG-G22",
    phase=2,
    discharges=["IMG-R021"],
    title="Every frame of an enhanced object lies where its functional groups say",
)
def enhanced(check: Check) -> None:
    for name, phantom in _SOUND.items():
        _as_the_phantom(check, f"enhanced-{name}", phantom)
    _scales(check)
    _frame_numbers(check)
    _gradients(check)
    _told_apart(check)
    _refused(check)
    functional_groups(check)
    frame_offsets(check)
    for name, scans in _REAL.items():
        root = check.corpus(name, clauses=["IMG-R021.scans"])
        for scan in scans if root is not None else ():
            _by_its_own_groups(check, f"{name}/{scan}", root / scan)  # type: ignore[operator]


def _as_the_phantom(check: Check, name: str, phantom: Phantom) -> None:
    volume = read_fault(name)
    voxels, affine = phantom.ascending()
    slope = 1.0 if phantom.slope is None else phantom.slope
    values = voxels.astype(float) * slope + (phantom.intercept or 0.0)
    check.equal(f"shape, {name}", volume.voxels.shape, values.shape)
    if volume.voxels.shape == values.shape:
        wrong = int(np.sum(volume.values() != values))
        check.equal(f"voxels that are not the phantom's, {name}", wrong, 0)
    check.close(
        f"affine, {name}", measured=volume.affine_lps_mm, required=affine, atol=1e-6, unit="mm"
    )
    if phantom.volumes == 1:
        check.true(f"one volume has no fourth axis, {name}", volume.fourth_axis is None)


def _scales(check: Check) -> None:
    for name in ("ct", "legacy-ct", "implicit"):
        scale = read_fault(f"enhanced-{name}").scale
        check.equal(f"scale of {name}", (scale.slope, scale.intercept), (1.0, -1024.0))
        check.equal(f"unit of {name}", scale.unit, "HU")
    check.equal(
        "a rescale in each frame's group replaces that of the top level",
        read_fault("enhanced-decoys-at-top").scale.slope,
        1.0,
    )
    with check.notices("IMG-1503", "each frame has its own rescale"):
        volume = read_fault("enhanced-slope-per-frame")
    stored = catalogue.MR.truth_voxels().astype(float)
    slopes = 1.0 + 0.5 * np.arange(stored.shape[2])
    check.close(
        "values by each frame's own rescale",
        measured=volume.values(),
        required=stored * slopes,
        atol=1e-3,
    )
    with check.refuses("IMG-1501", "one frame in another unit"):
        read_fault("enhanced-mixed-units")


def _frame_numbers(check: Check) -> None:
    """Each slice tells the frame that it came from."""
    slices, layout = catalogue.TIMES, catalogue.shuffle(24)
    volume = read_fault("enhanced-time-shuffled")
    found = {(s.k, s.t): s.frame for s in volume.sources}
    required = {
        (k, t): layout.index(k + slices.shape[2] * t)
        for k, t in product(range(slices.shape[2]), range(slices.volumes))
    }
    check.equal("frame of each slice", sorted(found.items()), sorted(required.items()))
    uids = {s.sop_instance_uid for s in volume.sources}
    check.equal("all from one object", len(uids), 1)
    with check.notices("IMG-1213", "the top level says another slice distance"):
        volume = read_fault("enhanced-spacing-tag")
    check.close(
        "the positions are used",
        measured=volume.grid.spacing_mm[2],
        required=2.0,
        atol=1e-6,
        unit="mm",
    )


def _gradients(check: Check) -> None:
    for name in ("diffusion", "diffusion-undimensioned", "legacy-diffusion"):
        volume = read_fault(f"enhanced-{name}")
        found = volume.diffusion or ()
        check.equal(f"b-values, {name}", [g.b_value_s_mm2 for g in found], [0.0] + [1000.0] * 3)
        check.close(
            f"directions, {name}",
            measured=[g.direction_lps for g in found if g.direction_lps is not None],
            required=[gradient_direction(t) for t in (1, 2, 3)],
            atol=1e-9,
        )


def _told_apart(check: Check) -> None:
    for name, key, values in (
        ("two-stacks", "stack", {"1", "2"}),
        ("two-orientations", "orientation", {"1", "2"}),
        ("magnitude-phase", "complex component", {"MAGNITUDE", "PHASE"}),
        ("two-echoes", "echo", {"5 ms", "10 ms"}),
    ):
        volumes = read_all_of_fault(f"enhanced-{name}")
        found = {dict(volume.key.differs_by).get(key) for volume in volumes}
        check.equal(f"{name} are told apart by {key}", found, values)
    volumes = read_all_of_fault("enhanced-with-diffusion-map")
    shapes = sorted(volume.voxels.shape for volume in volumes)
    check.equal(
        "a map behind the images is a volume of its own", shapes, [(16, 12, 8), (16, 12, 8, 4)]
    )


def _refused(check: Check) -> None:
    for code, name in (
        ("IMG-1201", "without-position"),
        ("IMG-1201", "one-without-position"),
        ("IMG-1201", "position-at-top"),
        ("IMG-1201", "without-orientation"),
        ("IMG-1201", "without-measures"),
        ("IMG-1204", "one-other-spacing"),
        ("IMG-1206", "frame-missing"),
        ("IMG-1206", "one-other-orientation"),
        ("IMG-1207", "uneven"),
        ("IMG-1301", "doubled"),
        ("IMG-1311", "two-shared-groups"),
        ("IMG-1316", "concatenation-short"),
    ):
        with check.refuses(code, name):
            read_all_of_fault(f"enhanced-{name}")
    # Two stacks, of which the larger one has a hole: which is meant is asked first.
    with check.refuses("IMG-1802", "one-other-orientation, one volume asked for") as caught:
        read_fault("enhanced-one-other-orientation")
    if caught.diagnostic is not None:
        fields = caught.diagnostic.fields
        told = (fields["volumes"], fields["series"], fields["differing"])
        check.equal("what tells the turned frame apart", told, (2, 1, ["orientation"]))
    for name, frames, groups in (
        ("fewer-groups", 8, 7),
        ("no-groups", 8, 0),
        ("fewer-frames", 7, 8),
        ("frames-untold", 1, 8),
    ):
        with check.refuses("IMG-1310", name) as caught:
            read_fault(f"enhanced-{name}")
        if caught.diagnostic is not None:
            fields = caught.diagnostic.fields
            counts = (fields["frames"], fields["groups"])
            check.equal(f"frames and groups, {name}", counts, (frames, groups))


def _by_its_own_groups(check: Check, name: str, scan: Path) -> None:
    """Each slice of a real object against what plain pydicom reads of its frame."""
    files = sorted(scan.iterdir()) if scan.is_dir() else [scan]
    frames = {key: frame for path in files for key, frame in _frames(path)}
    volumes = read_volumes(scan)
    used = [(s.sop_instance_uid, s.frame) for volume in volumes for s in volume.sources]
    check.equal(f"every frame once, {name}", sorted(used), sorted(frames))
    off_mm = max(_displacement_mm(volume, frames) for volume in volumes)
    check.at_most(f"corners of all frames, {name}", off_mm, _DIGITS_MM, "mm")
    wrong = sum(_other_planes(volume, frames) for volume in volumes)
    check.equal(f"planes that are not their frame's, {name}", wrong, 0)


_Frame = tuple[Dataset, Dataset, np.ndarray[Any, Any]]
_Key = tuple[str, int]


def _frames(path: Path) -> Iterator[tuple[_Key, _Frame]]:
    data = path.read_bytes()
    ds = dcmread(BytesIO(gzip.decompress(data) if path.suffix == ".gz" else data))
    pixels = ds.pixel_array
    shared = ds.SharedFunctionalGroupsSequence[0]
    for number, own in enumerate(ds.PerFrameFunctionalGroupsSequence):
        yield (str(ds.SOPInstanceUID), number), (shared, own, pixels[number])


def _group(frame: _Frame, name: str) -> Dataset:
    shared, own, _ = frame
    return (own if name in own else shared)[name].value[0]  # type: ignore[no-any-return]


def _displacement_mm(volume: Volume, frames: dict[_Key, _Frame]) -> float:
    worst = 0.0
    for source in volume.sources:
        frame = frames[source.sop_instance_uid, source.frame]
        place = np.array(_group(frame, "PlanePositionSequence").ImagePositionPatient, float)
        turn = np.array(_group(frame, "PlaneOrientationSequence").ImageOrientationPatient, float)
        rows_mm, columns_mm = map(float, _group(frame, "PixelMeasuresSequence").PixelSpacing)
        rows, columns = frame[2].shape
        for i, j in product((0, columns - 1), (0, rows - 1)):
            stated = place + i * columns_mm * turn[:3] + j * rows_mm * turn[3:]
            off_mm = float(np.linalg.norm(volume.at_lps_mm((i, j, source.k)) - stated))
            worst = max(worst, off_mm)
    return worst


def _other_planes(volume: Volume, frames: dict[_Key, _Frame]) -> int:
    values = volume.values()
    planes = values[..., None] if values.ndim == 3 else values
    wrong = 0
    for source in volume.sources:
        frame = frames[source.sop_instance_uid, source.frame]
        scale = _group(frame, "PixelValueTransformationSequence")
        stated = frame[2] * float(scale.RescaleSlope) + float(scale.RescaleIntercept)
        wrong += not np.array_equal(planes[:, :, source.k, source.t].T, stated)
    return wrong
