"""Every voxel lies where the scanner put it, and every residual is measured."""

import numpy as np

from numbat_gates import Check, gate
from numbat_imaging.phantoms import FAULTS, Phantom, slice_affine_lps_mm
from numbat_imaging.phantoms.reading import inspect_fault, read_fault
from numbat_imaging.volume import Volume

_SOUND = ("clean", "descending", "anisotropic", "oblique", "sagittal", "float-steps", "ds-jitter")


@gate(
    "IMG-G03",
    phase=1,
    discharges=["IMG-R006", "IMG-R008", "IMG-R009"],
    title="Every voxel lies where the scanner put it",
)
def geometry(check: Check) -> None:
    for name in _SOUND:
        _corners(check, name, read_fault(name))
    _residuals(check)
    _refusals(check)
    _what_positions_cannot_show(check)


def _corners(check: Check, name: str, volume: Volume) -> None:
    """All corner voxels against the positions in the files, not the phantom's plan."""
    slices = {ds.SOPInstanceUID: ds for ds in FAULTS[name].build()}
    size_i, size_j = volume.voxels.shape[:2]
    corners = np.array([[i, j, 0, 1] for i in (0, size_i - 1) for j in (0, size_j - 1)], float)
    measured, required = [], []
    for source in volume.sources:
        truth = slice_affine_lps_mm(slices[source.sop_instance_uid])
        index = corners + np.array([0, 0, source.k, 0])
        measured.append((volume.affine_lps_mm @ index.T)[:3])
        required.append((truth @ corners.T)[:3])
    check.close(
        f"corners of all slices, {name}",
        measured=np.array(measured),
        required=np.array(required),
        atol=1e-3,
        unit="mm",
    )
    last = volume.sources[-1]
    check.close(
        f"where one voxel lies, {name}",
        measured=volume.at_lps_mm((3, 2, last.k)),
        required=(slice_affine_lps_mm(slices[last.sop_instance_uid]) @ [3.0, 2.0, 0.0, 1.0])[:3],
        atol=1e-3,
        unit="mm",
    )
    upward = float(volume.grid.step_mm @ volume.grid.normal)
    check.at_least(f"slices ascend along the normal, {name}", upward, 0.0, "mm")


def _residuals(check: Check) -> None:
    volume = read_fault("jitter-0.03")
    sizes = np.linalg.norm(volume.grid.residuals_mm, axis=1)
    check.close(
        "planted jitter is measured",
        measured=float(np.median(sizes)),
        required=0.03,
        atol=2e-3,
        unit="mm",
    )
    check.equal("a residual for every slice", len(sizes), volume.voxels.shape[2])
    report = inspect_fault("jitter-0.03").stacks[0].to_dict()
    check.close(
        "inspect prints the residuals",
        measured=report["geometry"]["residuals_mm"],
        required=sizes,
        atol=1e-9,
        unit="mm",
    )
    with check.refuses("IMG-1207", "0.05 mm up and down over 100 slices") as caught:
        read_fault("jitter-0.05")
    if caught.diagnostic is not None:
        check.close(
            "the refusal gives the residual",
            measured=caught.diagnostic.fields["residual_mm"],
            required=0.05,
            atol=2e-3,
            unit="mm",
        )
    expected = Phantom().truth_affine_lps_mm()
    check.close(
        "affine of the clean phantom",
        measured=read_fault("clean").affine_lps_mm,
        required=expected,
        atol=1e-6,
        unit="mm",
    )


def _refusals(check: Check) -> None:
    for name in ("middle-slice-missing", "two-gaps", "one-of-three-missing", "thin-slice-missing"):
        with check.refuses("IMG-1206", f"gap, {name}") as caught:
            read_fault(name)
        if caught.diagnostic is not None:
            lost = 2 if name == "two-gaps" else 1
            check.equal(f"slices missing, {name}", caught.diagnostic.fields["missing_slices"], lost)
    for name in ("two-slabs", "first-gap-0.09", "drift-0.09"):
        with check.refuses("IMG-1207", f"uneven, {name}"):
            read_fault(name)
    for code, name in (
        ("IMG-1201", "one-without-position"),
        ("IMG-1201", "none-with-position"),
        ("IMG-1201", "none-with-orientation"),
        ("IMG-1202", "cosines-not-unit"),
        ("IMG-1202", "cosines-zero"),
        ("IMG-1203", "cosines-not-orthogonal"),
        ("IMG-1204", "one-other-pixel-spacing"),
        ("IMG-1205", "pixel-spacing-zero"),
        ("IMG-1012", "position-nan"),
        ("IMG-1012", "position-decimal-comma"),
        ("IMG-1012", "position-two-values"),
        ("IMG-1012", "pixel-spacing-one-value"),
    ):
        with check.refuses(code, name):
            read_fault(name)


def _what_positions_cannot_show(check: Check) -> None:
    with check.notices("IMG-1214", "two slices are not checked by a third"):
        read_fault("two-slices")
    with check.notices("IMG-1213", "every second slice missing: the spacing tag disagrees"):
        read_fault("every-second-slice-tagged")
    with check.notices("IMG-1209", "fewer images than announced"):
        read_fault("fewer-than-announced")
    with check.refuses("IMG-1216", "PET with fewer slices than NumberOfSlices"):
        read_fault("last-two-missing-announced")
    with check.refuses("IMG-1210", "one slice of unknown thickness") as caught:
        read_fault("single-slice-without-thickness")
    if caught.diagnostic is not None:
        plan = caught.diagnostic.plans[0].answer(slice_thickness_mm=4.5)
        volume = read_fault("single-slice-without-thickness", **plan.keywords())
        check.close(
            "the repair plan, carried out",
            measured=volume.grid.spacing_mm[2],
            required=4.5,
            atol=1e-9,
            unit="mm",
        )
    volume = read_fault("single-slice")
    check.equal(
        "a single slice says what gave its thickness",
        volume.grid.thickness_source in ("SpacingBetweenSlices", "SliceThickness"),
        True,
    )
