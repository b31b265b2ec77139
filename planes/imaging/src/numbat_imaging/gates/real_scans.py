"""Real scanner output: voxels and affines as references, or as the coordinates, have them."""

import csv
import json
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
import pydicom
from numpy.typing import NDArray

from numbat_gates import Check, gate
from numbat_imaging.geometry.orientation import LPS_TO_RAS
from numbat_imaging.phantoms import slice_affine_lps_mm
from numbat_imaging.series.gradient import Gradient
from numbat_imaging.volume import Volume, read_volumes
from numbat_registries import Refusal

_MEDIA = Path(pydicom.__file__).parent / "data" / "test_files" / "dicomdirtests"

#: Series in pydicom's wheel: folder, slices.
_BUNDLED = (
    ("98892001/CT2N", 2),
    ("98892001/CT5N", 5),
    ("98892003/MR1", 3),
    ("98892003/MR2", 7),
    ("98892003/MR700", 7),
)


@gate(
    "IMG-G12",
    phase=1,
    discharges=["IMG-R018"],
    title="Real scans have the reference voxels and affines",
)
def real_scans(check: Check) -> None:
    for name, slices in _BUNDLED:
        _by_coordinates(check, name, slices)
    with check.refuses("IMG-1206", "77654033/CT2: 161 slices of a head CT are missing") as caught:
        read_volumes(_MEDIA / "77654033/CT2")
    if caught.diagnostic is not None:
        check.equal("slices missing", caught.diagnostic.fields["missing_slices"], 161)
    scans = check.corpus("imaging/dcm2niix_qa", clauses=["IMG-R018.dcm2niix"])
    if scans is not None:
        for case in sorted(path.parent for path in scans.glob("*/dicom")):
            compare_with_dcm2niix(check, case)
    cases = check.corpus("imaging/dicom2nifti_cases", clauses=["IMG-R018.dicom2nifti"])
    if cases is not None:
        _dicom2nifti(check, cases)


def _by_coordinates(check: Check, name: str, slices: int) -> None:
    """Each file's own position and pixels, read by pydicom, are the truth."""
    folder = check.data(_MEDIA / name)
    try:
        volumes = read_volumes(folder)
    except Refusal as refusal:
        check.unexpected(refusal)
        return
    planes = sum(len(volume.sources) for volume in volumes)
    check.equal(f"slices of {name}", planes, slices)
    for volume in volumes:
        apart_mm, wrong = _against_files(volume)
        check.at_most(f"displacement, {name}", apart_mm, 0.05, "mm")
        check.equal(f"planes that differ from their file, {name}", wrong, 0)


def _against_files(volume: Volume) -> tuple[float, int]:
    worst_mm, wrong = 0.0, 0
    size_i, size_j = volume.voxels.shape[:2]
    corners = np.array([[i, j, 0, 1] for i in (0, size_i - 1) for j in (0, size_j - 1)], float)
    for source in volume.sources:
        ds = pydicom.dcmread(source.ref.path)
        truth = (slice_affine_lps_mm(ds) @ corners.T)[:3]
        placed = (volume.affine_lps_mm @ (corners + np.array([0, 0, source.k, 0])).T)[:3]
        worst_mm = max(worst_mm, float(np.linalg.norm(truth - placed, axis=0).max()))
        index = (
            slice(None),
            slice(None),
            source.k,
            *((source.t,) if volume.voxels.ndim == 4 else ()),
        )
        plane = volume.voxels[index].T
        expected = ds.pixel_array
        if volume.scale.applied:
            expected = expected * float(ds.RescaleSlope) + float(ds.RescaleIntercept)
        wrong += not np.allclose(plane, expected, rtol=1e-6, atol=0)
    return worst_mm, wrong


def compare_with_dcm2niix(check: Check, case: Path) -> None:
    """Voxels and affine as dcm2niix wrote them; a permuted grid is the same grid."""
    name = case.name
    truth = json.loads((case / "truth_dcm2niix.json").read_text())["outputs"]
    volumes = _volumes(check, case / "dicom")
    check.equal(f"volumes of {name}", len(volumes), len(truth))
    left = dict(truth)
    for volume in volumes:
        best = min(left, key=lambda key: _mismatch(volume, left[key]))
        expected = left.pop(best)
        _same_grid(check, f"{name} {best}", volume, expected)
        # dcm2niix also writes a table of zeros alone, which says nothing.
        if any(float(value) for value in str(expected.get("bval") or "").split()):
            _same_gradients(check, name, volume, expected)


#: One scan stored several times under one SeriesInstanceUID: edited under one SOPInstanceUID, or
#: encoded anew. Together the files are refused, one by one they are read.
_VERSIONS_OF_ONE_SCAN = {"signed_12bit": "IMG-1103", "transfer_syntax_9way": "IMG-1302"}


def _volumes(check: Check, folder: Path) -> list[Volume]:
    code = _VERSIONS_OF_ONE_SCAN.get(folder.parent.name)
    if code is None:
        return read_volumes(folder)
    with check.refuses(code, f"{folder.parent.name}: one scan stored several times"):
        read_volumes(folder)
    return [volume for path in sorted(folder.iterdir()) for volume in read_volumes(path)]


def as_nifti(volume: Volume) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Voxels with rows flipped, and their RAS affine: how dcm2niix stores a volume."""
    flip = np.eye(4)
    flip[1, 1], flip[1, 3] = -1.0, volume.voxels.shape[1] - 1.0
    return volume.voxels[:, ::-1], LPS_TO_RAS @ volume.affine_lps_mm @ flip


def _mismatch(volume: Volume, expected: dict[str, Any]) -> int:
    return int(_digest(volume, expected) != expected["raw_sha256"])


def _digest(volume: Volume, expected: dict[str, Any]) -> str:
    """SHA-256 of the voxels in Fortran order on the expected grid."""
    import hashlib

    voxels, affine = as_nifti(volume)
    index = np.linalg.inv(np.array(expected["affine"])) @ affine
    axes = np.rint(index[:3, :3]).astype(int)
    order = [int(np.flatnonzero(axes[row])[0]) for row in range(3)]
    moved = voxels.transpose(*order, *range(3, voxels.ndim))
    backward = [axes[row, order[row]] < 0 for row in range(3)]
    moved = moved[tuple(slice(None, None, -1) if back else slice(None) for back in backward)]
    return hashlib.sha256(moved.tobytes(order="F")).hexdigest()


def _same_grid(check: Check, name: str, volume: Volume, expected: dict[str, Any]) -> None:
    _, affine = as_nifti(volume)
    index = np.linalg.inv(np.array(expected["affine"])) @ affine
    whole = np.rint(index[:3, :3])
    check.close(
        f"{name}: the same lattice", measured=index[:3, :3], required=whole, atol=1e-3, unit="voxel"
    )
    sizes = np.abs(whole.astype(int)) @ np.array(volume.voxels.shape[:3])
    check.equal(f"{name}: shape", [int(n) for n in sizes], list(expected["shape"][:3]))
    start = np.where(whole.sum(axis=1) < 0, sizes - 1, 0)
    check.close(
        f"{name}: the same origin", measured=index[:3, 3], required=start, atol=5e-3, unit="voxel"
    )
    check.equal(f"{name}: voxels", _digest(volume, expected), expected["raw_sha256"])
    # NIfTI-1 keeps both in single precision.
    for part, found, wanted in (
        ("slope", volume.scale.slope, expected["slope"]),
        ("intercept", volume.scale.intercept, expected["inter"]),
    ):
        limit = 1e-6 * max(1.0, abs(wanted))
        check.close(f"{name}: {part}", measured=found, required=wanted, atol=limit)


def _same_gradients(check: Check, name: str, volume: Volume, expected: dict[str, Any]) -> None:
    from numbat_imaging.output.diffusion import fsl_vectors

    gradients: tuple[Gradient, ...] = volume.diffusion or ()
    values = [float(value) for value in str(expected["bval"]).split()]
    check.close(
        f"{name}: b-values",
        measured=[g.b_value_s_mm2 for g in gradients],
        required=values,
        atol=0.5,
        unit="s/mm2",
    )
    rows = [[float(v) for v in row.split()] for row in _lines(expected["bvec"])]
    _, affine = as_nifti(volume)
    check.close(
        f"{name}: b-vectors", measured=fsl_vectors(gradients, affine), required=rows, atol=2e-3
    )


def _lines(table: Any) -> list[str]:
    return (
        table
        if isinstance(table, list)
        else [row for row in str(table).splitlines() if row.strip()]
    )


def _dicom2nifti(check: Check, cases: Path) -> None:
    with (cases / "CASES.tsv").open() as stream:
        names = [
            row["file_or_glob"].split("/")[0] for row in csv.DictReader(stream, delimiter="\t")
        ]
    for name in dict.fromkeys(n for n in names if not n.endswith("_ref")):
        reference = cases / f"{name}_ref" / "001_ground_truth.nii.gz"
        if reference.is_file():
            _ground_truth(check, cases / name, reference)
    with check.refuses("IMG-1206", "failing_sliceincrement_001: a slice is missing"):
        read_volumes(cases / "failing_sliceincrement_001")
    tilted = read_volumes(cases / "failing_gantrytilting_001")[0]
    check.close(
        "failing_gantrytilting_001: sheared",
        measured=tilted.grid.shear_deg,
        required=14.0,
        atol=0.01,
        unit="degrees",
    )
    check.at_most("failing_gantrytilting_001: displacement", _against_files(tilted)[0], 0.05, "mm")
    mixed = read_volumes(cases / "failing_sliceorientation_001")
    check.equal(
        "failing_sliceorientation_001: two series apart", [v.grid.slices for v in mixed], [2, 2]
    )


def _ground_truth(check: Check, folder: Path, reference: Path) -> None:
    name = folder.name
    try:
        volume = read_volumes(folder)[0]
    except Refusal as refusal:
        # The headers do not name the fourth axis; the plan that the refusal offers gives the truth.
        check.equal(f"{name}: refused for want of a fourth axis", refusal.code, "IMG-1302")
        volume = read_volumes(folder, **refusal.diagnostic.plans[0].keywords())[0]
    image: Any = nibabel.load(reference)
    truth = np.asanyarray(image.dataobj)
    index = np.linalg.inv(image.affine) @ LPS_TO_RAS @ volume.affine_lps_mm
    whole = np.rint(index[:3, :3]).astype(int)
    check.close(
        f"{name}: the same lattice", measured=index[:3, :3], required=whole, atol=1e-3, unit="voxel"
    )
    grid = np.stack(
        np.meshgrid(*(np.arange(n) for n in volume.voxels.shape[:3]), indexing="ij"), -1
    )
    there = np.rint(grid @ index[:3, :3].T + index[:3, 3]).astype(int)
    wanted = truth[there[..., 0], there[..., 1], there[..., 2]]
    if volume.voxels.dtype.fields is not None:
        for channel in "RGB":
            check.equal(f"{name}: {channel}", volume.voxels[channel], wanted[channel])
        return
    values = volume.values() if volume.scale.slope != 1 else volume.voxels
    check.equal(f"{name}: voxels", np.asarray(values), wanted)
