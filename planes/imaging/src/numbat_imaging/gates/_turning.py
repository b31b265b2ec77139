"""Volumes turned to other axes: every voxel keeps its value, its place and its type."""

from dataclasses import replace
from typing import Any

import nibabel
import numpy as np
from numpy.typing import NDArray

from numbat_gates import Check
from numbat_imaging.gates._volumes import (
    CODES,
    GRIDS,
    affine_of,
    numbered,
    places,
    turn_about,
    volume_on,
)
from numbat_imaging.geometry.reorientation import reorient, turn_since_read
from numbat_imaging.values.rescale import ValueScale
from numbat_imaging.volume import Volume, square

Array = NDArray[np.float64]

#: DICOM LPS to nibabel's RAS.
RAS = np.diag([-1.0, -1.0, 1.0, 1.0])
PLAIN = ValueScale(1.0, 0.0, None, "a test", applied=True)
RGB = np.dtype([("R", "u1"), ("G", "u1"), ("B", "u1")])

_AXIS_CODES: Any = nibabel.aff2axcodes


def turning(check: Check) -> None:
    """All turns of grids of every kind, and of voxels of every kind."""
    for name, affine in GRIDS.items():
        _turned(check, name, affine)
    _turned_kinds(check)
    _squared_after_turn(check)


def code_of(affine_ras_mm: Array) -> str:
    """The axes of an affine as nibabel names them."""
    return "".join(_AXIS_CODES(affine_ras_mm))


def _turned(check: Check, name: str, affine: Array) -> None:
    """Every voxel of every turn is looked up at its place in the volume it came from."""
    voxels = numbered((4, 5, 3))
    volume = volume_on(voxels, affine)
    codes, off_mm, wrong, shear_deg, back = [], [], 0, [], 0
    for code in CODES:
        found = reorient(volume, code)
        codes.append(code_of(RAS @ found.affine_lps_mm))
        at = places(found.affine_lps_mm, found.voxels.shape) - affine[:3, 3]
        index = np.rint(at @ np.linalg.inv(affine[:3, :3]).T)
        off_mm.append(np.abs(index @ affine[:3, :3].T - at).max())
        off_mm.append(np.abs(found.grid.affine_lps_mm - found.affine_lps_mm).max())
        there = voxels[tuple(np.moveaxis(index.astype(int), -1, 0))]
        wrong += int(np.count_nonzero(there != found.voxels))
        shear_deg.append(found.grid.shear_deg)
        again = reorient(found, code_of(RAS @ affine))
        same = (again.affine_lps_mm - affine, again.grid.residuals_mm - volume.grid.residuals_mm)
        back += bool(
            np.array_equal(again.voxels, voxels) and max(np.abs(x).max() for x in same) < 1e-9
        )
    check.equal(f"{name}: axes as asked for", codes, list(CODES))
    check.at_most(f"{name}: where voxels lie", max(off_mm), 1e-9, "mm")
    check.equal(f"{name}: voxels with another value at their place", wrong, 0)
    check.equal(f"{name}: turned there and back", back, len(CODES))
    check.close(
        f"{name}: shear of every turn",
        measured=shear_deg,
        required=[volume.grid.shear_deg] * len(CODES),
        atol=1e-6,
        unit="degrees",
    )


def _turned_kinds(check: Check) -> None:
    colours = numbered((4, 5, 3, 3), np.uint8).view(RGB)[..., 0]
    mask = numbered((4, 5, 3)) % 7 == 0
    for name, voxels in (
        ("colours", colours),
        ("volumes", numbered((4, 5, 3, 2))),
        ("doubles", numbered((4, 5, 3), np.float64) + 1e-9),
    ):
        volume = volume_on(voxels, GRIDS["axial"])
        turned = reorient(volume, "SRA").voxels
        # Sixteen ways to get it wrong: k first and upwards, i against itself, j against itself.
        order = (2, 0, 1, *range(3, voxels.ndim))
        check.equal(f"{name} are turned", turned, voxels.transpose(order)[:, ::-1, ::-1])
        check.equal(f"{name} keep their type", turned.dtype, voxels.dtype)
        check.true(f"{name} are not copied", np.shares_memory(turned, voxels))
    volume = volume_on(numbered((4, 5, 3)), GRIDS["axial"], padded=mask)
    with check.notices("IMG-1218", "a turn is told"):
        found = reorient(volume, "SRA")
    check.equal("the mask is turned", found.padded, mask.transpose(2, 0, 1)[:, ::-1, ::-1])
    check.equal("k is the first axis now", turn_since_read(found), ((1, -1), (2, -1), (0, 1)))
    check.equal("the axes are told", found.axes, "SRA")
    check.equal("sources stay", found.sources, volume.sources)
    same = reorient(volume, "LPS")
    check.true("no turn, no notice", same.notices == volume.notices and same.as_read is None)
    check.true("no turn, the same voxels", same.voxels is volume.voxels)
    upwards = reorient(volume, "LPI")
    check.equal(
        "residuals go with their slices", upwards.grid.residuals_mm, volume.grid.residuals_mm[::-1]
    )
    check.equal("those of the read slices stay", upwards.as_read is volume.grid, True)
    # 45 degrees: both axes are as near, and no axis moves.
    even = volume_on(numbered((4, 5, 3)), affine_of(turn_about(2, 45.0)))
    check.equal(
        "a tie moves no axis", turn_since_read(reorient(even, "LPS")), ((0, 1), (1, 1), (2, 1))
    )
    slices = timed(volume)
    check.equal(
        "slice times go with the slices",
        reorient(slices, "LPI").timing.slice_times_s,
        (2.0, 1.0, 0.0),
    )
    check.equal("and with the third axis only", reorient(slices, "SLP").timing.slice_times_s, None)


def timed(volume: Volume) -> Volume:
    """A volume that knows when its slices were acquired."""
    times = tuple(float(k) for k in range(volume.voxels.shape[2]))
    return replace(volume, timing=replace(volume.timing, slice_times_s=times))


def _squared_after_turn(check: Check) -> None:
    for name in ("sheared", "sheared oblique"):
        volume = volume_on(numbered((6, 7, 5), np.float32), GRIDS[name], scale=PLAIN)
        flat = square(volume)
        for code in ("LPS", "SLP", "PSR", "LSA"):
            measured = square(reorient(volume, code))
            required = reorient(flat, code)
            check.close(
                f"{name}: squared after a turn to {code}",
                measured=measured.affine_lps_mm,
                required=required.affine_lps_mm,
                atol=1e-9,
                unit="mm",
            )
            check.equal(f"{name}: voxels, {code}", measured.voxels, required.voxels)
