"""Gantry tilt: the sheared affine is kept, or the stack resampled; never written as if square."""

import numpy as np
from numpy.typing import NDArray

from numbat_gates import Check, gate
from numbat_imaging.phantoms import FAULTS, agreement
from numbat_imaging.phantoms.reading import read_fault
from numbat_imaging.volume import Volume, square

_ANGLES_DEG = (1.0, 2.0, 2.5, 5.0, 20.0)


@gate(
    "IMG-G05",
    phase=1,
    discharges=["IMG-R007"],
    title="A tilted stack is never written as if it were square",
)
def tilt(check: Check) -> None:
    for angle in _ANGLES_DEG:
        name = f"tilt-{angle:g}-tag-right"
        with check.notices("IMG-1211", f"shear is said, {angle:g} degrees"):
            volume = read_fault(name)
        check.close(
            f"shear measured, {angle:g} degrees",
            measured=volume.grid.shear_deg,
            required=angle,
            atol=0.01,
            unit="degrees",
        )
        _kept(check, name, volume)
    _tags(check)
    _squared(check)
    with check.refuses("IMG-1215", "colour cannot be resampled"):
        square(read_fault("tilted-colour"))


def _kept(check: Check, name: str, volume: Volume) -> None:
    found = agreement(FAULTS[name].build(), volume.values(), volume.affine_lps_mm)
    check.at_most(
        f"displacement with the sheared affine, {name}", found.max_displacement_mm, 0.05, "mm"
    )


def _tags(check: Check) -> None:
    for name in ("tilt-20-tag-zero", "square-with-tilt-tag"):
        with check.notices("IMG-1212", f"a tilt tag that disagrees, {name}"):
            read_fault(name)
    reference = read_fault("tilt-20-tag-right").affine_lps_mm
    for tag in ("absent", "opposite"):
        volume = read_fault(f"tilt-20-tag-{tag}")
        check.close(
            f"the tag has no say, {tag}",
            measured=volume.affine_lps_mm,
            required=reference,
            atol=1e-6,
            unit="mm",
        )


def _squared(check: Check) -> None:
    """A ramp in space resamples exactly under linear interpolation: truth is known everywhere."""
    from numbat_imaging.phantoms.ramp import read_tilted_ramp

    volume, ramp = read_tilted_ramp(angle_deg=20.0)
    flat = square(volume)
    check.true("the result is square", not flat.grid.is_sheared)
    check.close(
        "its step is along the normal",
        measured=np.linalg.norm(np.cross(flat.grid.step_mm, flat.grid.normal)),
        required=0.0,
        atol=1e-9,
        unit="mm",
    )
    values = flat.values()
    index = np.stack(np.meshgrid(*(np.arange(n) for n in values.shape), indexing="ij"), axis=-1)
    points = index @ flat.affine_lps_mm[:3, :3].T + flat.affine_lps_mm[:3, 3]
    inside = _reached(volume, points)
    check.at_least("voxels that a slice reaches", int(inside.sum()), 1000)
    check.close(
        "a ramp in space, resampled",
        measured=values[inside],
        required=ramp(points)[inside],
        atol=0.05,
        unit="HU",
    )


def _reached(volume: Volume, points: NDArray[np.float64]) -> NDArray[np.bool_]:
    inverse = np.linalg.inv(volume.affine_lps_mm)
    index = points @ inverse[:3, :3].T + inverse[:3, 3]
    upper = np.array(volume.voxels.shape[:3]) - 1
    within: NDArray[np.bool_] = np.all((index >= 0) & (index <= upper), axis=-1)
    return within
