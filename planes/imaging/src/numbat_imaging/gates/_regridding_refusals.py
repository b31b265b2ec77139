"""What resampling refuses, and what it tells."""

from copy import deepcopy
from dataclasses import replace

import numpy as np

from numbat_gates import Check
from numbat_imaging.gates._volumes import GRIDS, numbered, volume_on
from numbat_imaging.geometry.placement import TargetGrid
from numbat_imaging.geometry.reorientation import reorient
from numbat_imaging.geometry.resampling import frame_of, resample, resample_to
from numbat_imaging.values.rescale import ValueScale
from numbat_imaging.volume import Volume

_SCALE = ValueScale(slope=2.0, intercept=5.0, unit="HU", source="RescaleSlope")


def refusals(check: Check) -> None:
    """Each refusal, its repair carried out, and what lies just on the other side."""
    volume = volume_on(numbered((8, 7, 6), np.int16), GRIDS["tipped"], scale=_SCALE)
    _places(check, volume)
    _frames(check, volume)
    _fills(check, volume)
    _requests(check, volume)
    _values(check, volume)
    _told(check, volume)


def _shifted(volume: Volume, by: float, axis: int = 0) -> TargetGrid:
    """The volume's own grid, `by` voxels further along an axis."""
    affine = volume.affine_lps_mm.copy()
    affine[:3, 3] += by * affine[:3, axis]
    size_i, size_j, size_k = volume.voxels.shape[:3]
    return TargetGrid(affine, (size_i, size_j, size_k), frame_of(volume))


def _places(check: Check, volume: Volume) -> None:
    for axis, size in enumerate(volume.voxels.shape):
        for by in (0.49, -0.49, 0.5, -0.5):
            found = resample_to(volume, _shifted(volume, by, axis))
            check.true(f"{by} voxels along axis {axis} is inside", found.padding_mask() is None)
        for by in (0.51, -0.51, size - 0.6, 0.6 - size):
            with check.refuses("IMG-1220", f"{by} voxels along axis {axis}") as caught:
                resample_to(volume, _shifted(volume, by, axis))
            if caught.diagnostic is not None:
                layers = int(abs(by) + 0.5)
                expected = volume.voxels.size // size * layers
                check.equal(
                    f"voxels outside, {by} along {axis}",
                    caught.diagnostic.fields["count"],
                    expected,
                )
        for by in (size - 0.4, 0.4 - size, 1e6):
            with check.refuses("IMG-1221", f"{by} voxels along axis {axis} share none"):
                resample_to(volume, _shifted(volume, by, axis), fill=0.0)


def _frames(check: Check, volume: Volume) -> None:
    own = _shifted(volume, 0.0)
    for name, uid, unknown in (
        ("another", "2.25.1", []),
        ("an unknown one", None, ["the grid"]),
    ):
        other = replace(own, frame_of_reference_uid=uid)
        with check.refuses("IMG-1222", f"{name} frame of reference") as caught:
            resample_to(volume, other)
        if caught.diagnostic is not None:
            check.equal(f"{name}: who does not say", caught.diagnostic.fields["unknown"], unknown)
            plan = caught.diagnostic.plans[0].keywords()
            found = resample_to(volume, other, **plan)
            check.close(
                f"{name}: registered", measured=found.values(), required=volume.values(), atol=1e-3
            )
    bare = volume_on(volume.voxels, volume.affine_lps_mm)
    header = deepcopy(bare.header)
    del header.FrameOfReferenceUID
    bare = replace(bare, header=header)
    with check.refuses("IMG-1222", "a volume without a frame") as caught:
        resample_to(bare, bare)
    if caught.diagnostic is not None:
        check.equal("neither says", caught.diagnostic.fields["unknown"], ["the volume", "the grid"])
    with check.refuses("IMG-1222", "a volume without a frame onto a grid with one"):
        resample_to(bare, own)
    found = resample_to(volume, volume)
    check.close("its own grid", measured=found.values(), required=volume.values(), atol=1e-3)


def _fills(check: Check, volume: Volume) -> None:
    far = _shifted(volume, 2.0)
    for fill, kind in (
        (float("nan"), "linear"),
        (float("inf"), "nearest"),
        (1e39, "linear"),
        (6.0, "nearest"),  # stored 0.5
        (5.0 + 2.0 * 32768, "nearest"),
        (5.0 - 2.0 * 32769, "nearest"),
    ):
        with check.refuses("IMG-1225", f"{fill}, {kind}"):
            resample_to(volume, far, fill=fill, interpolation=kind)  # type: ignore[arg-type]
    for fill in (5.0 + 2.0 * 32767, 5.0 - 2.0 * 32768):
        found = resample_to(volume, far, fill=fill, interpolation="nearest")
        check.equal(f"{fill} can be held", float(found.values()[-1, 0, 0]), fill)
    for fill in (-1, 256, 0.5):
        colours = volume_on(np.zeros((8, 7, 6), [(c, "u1") for c in "RGB"]), volume.affine_lps_mm)
        with check.refuses("IMG-1225", f"colours, {fill}"):
            resample_to(colours, far, fill=fill)
    with check.notices("IMG-1219", "fill is told"):
        found = resample_to(volume, far, fill=-1000.0)
    told = found.notices[-1].fields
    check.equal(
        "how much is filled", (told["count"], told["voxels"], told["fill"]), (84, 336, -1000.0)
    )
    check.equal("and with what", np.unique(found.voxels[6:]).tolist(), [-1000.0])
    check.true(
        "no fill, no notice", resample_to(volume, volume, fill=3.0).notices[-1].code == "IMG-1217"
    )


def _requests(check: Check, volume: Volume) -> None:
    for spacing in (0.0, -1.0, float("nan"), float("inf"), (1.0, 2.0), (1.0, 0.0, 1.0)):
        with check.refuses("IMG-1224", f"spacing {spacing}"):
            resample(volume, spacing_mm=spacing)
    own = _shifted(volume, 0.0)
    flat, bent, lost = (own.affine_lps_mm.copy() for _ in range(3))
    flat[:3, 2] = flat[:3, 0] + flat[:3, 1]
    bent[3, 0], lost[0, 0] = 0.1, np.nan
    for name, affine in (("flat", flat), ("bent", bent), ("lost", lost), ("small", np.eye(3))):
        with check.refuses("IMG-1224", f"{name} affine"):
            resample_to(volume, replace(own, affine_lps_mm=affine))
    for shape in ((3, 3), (3, 3, 0), (3, 3, 3, 3)):
        with check.refuses("IMG-1224", f"shape {shape}"):
            resample_to(volume, replace(own, shape=shape))  # type: ignore[arg-type]
    small = np.diag([0.01, 0.01, 0.01, 1.0])
    small[:3, 3] = volume.at_lps_mm((3, 3, 3))
    found = resample_to(volume, TargetGrid(small, (2, 2, 2), frame_of(volume)))
    check.close(
        "small voxels are no flat ones",
        measured=found.grid.spacing_mm,
        required=[0.01] * 3,
        atol=1e-12,
    )
    for spacing in (1e-3, 1e-300):
        with check.refuses("IMG-1223", f"voxels of {spacing} mm"):
            resample(volume, spacing_mm=spacing)
    volume = replace(volume, voxels=np.stack([volume.voxels] * 3, axis=-1))
    for kind, size in (("linear", 3 * 8 * 7 * 6 * 4), ("nearest", 3 * 8 * 7 * 6 * 2)):
        options = {"interpolation": kind}
        resample_to(volume, own, max_volume_bytes=size, **options)  # type: ignore[arg-type]
        with check.refuses("IMG-1223", f"one byte less, {kind}") as caught:
            resample_to(volume, own, max_volume_bytes=size - 1, **options)  # type: ignore[arg-type]
        if caught.diagnostic is not None:
            check.equal(f"size told, {kind}", caught.diagnostic.fields["size_bytes"], size)
    with check.refuses("IMG-1226", "lanczos"):
        resample(volume, spacing_mm=1.0, interpolation="lanczos")  # type: ignore[arg-type]
    for axes in ("RA", "RASS", "RAL", "ras", "", "XYZ", "RRS"):
        with check.refuses("IMG-1227", f"axes {axes!r}"):
            reorient(volume, axes)


def _values(check: Check, volume: Volume) -> None:
    colours = volume_on(np.zeros((8, 7, 6), [(c, "u1") for c in "RGB"]), volume.affine_lps_mm)
    with check.refuses("IMG-1228", "cubic colours"):
        resample(colours, spacing_mm=2.0, interpolation="cubic")
    broken = volume.voxels.astype(np.float32)
    broken[2, 2, 2], broken[3, 3, 3] = np.nan, np.inf
    bad = replace(volume, voxels=broken)
    for kind in ("linear", "cubic"):
        with check.refuses("IMG-1229", f"no number, {kind}") as caught:
            resample(bad, spacing_mm=2.0, interpolation=kind)
        if caught.diagnostic is not None:
            check.equal(f"how many, {kind}", caught.diagnostic.fields["count"], 2)
    near = resample(bad, spacing_mm=bad.grid.spacing_mm.tolist(), interpolation="nearest")
    check.true(
        "nearest takes what is there", bool(np.array_equal(near.voxels, broken, equal_nan=True))
    )
    masked = replace(bad, padded=~np.isfinite(broken))
    found = resample(masked, spacing_mm=masked.grid.spacing_mm.tolist())
    check.equal(
        "as padding they are left out", int(np.isfinite(found.voxels).sum()), found.voxels.size
    )
    for dtype, scale, expected in (
        ("int16", _SCALE, "float32"),
        ("uint16", replace(_SCALE, slope=1e-6, intercept=100.0), "float64"),
        ("int32", _SCALE, "float64"),
        ("int16", replace(_SCALE, slope=1e35), "float64"),
        ("float32", _SCALE, "float32"),
        ("float64", _SCALE, "float64"),
    ):
        typed = replace(volume, voxels=volume.voxels.astype(dtype), scale=scale)
        found = resample(typed, spacing_mm=typed.grid.spacing_mm.tolist())
        check.equal(f"{dtype} × {scale.slope:g}", str(found.voxels.dtype), expected)


def _told(check: Check, volume: Volume) -> None:
    with check.notices("IMG-1217", "resampling is told"):
        found = resample(volume, spacing_mm=(2.0, 1.5, 2.5), interpolation="nearest")
    told = found.notices[-1].fields
    check.equal("from and to", (told["from_shape"], told["shape"]), ([8, 7, 6], [4, 7, 6]))
    check.close(
        "spacings", measured=told["from_spacing_mm"], required=[1.0, 1.5, 2.5], atol=1e-6, unit="mm"
    )
    check.close(
        "new spacings", measured=told["spacing_mm"], required=[2.0, 1.5, 2.5], atol=1e-6, unit="mm"
    )
    check.equal("labels are not smoothed", told["sigma_mm"], [0.0, 0.0, 0.0])
    check.true("the grid of the sources is kept", found.as_read is volume.grid)
    check.equal("and stays at the next step", reorient(found, "RAS").as_read is volume.grid, True)
    check.equal("sources are kept", found.sources, volume.sources)
    check.equal("the grid says so", found.grid.thickness_source, "resampled")
    check.close(
        "no residuals", measured=found.grid.residuals_mm, required=np.zeros((6, 3)), atol=0.0
    )
    lowered = resample(volume, spacing_mm=(1.0, 3.0, 2.5)).notices[-1].fields["sigma_mm"]
    required = [0.0, 1.5 * np.sqrt(3 / (8 * np.log(2))), 0.0]
    check.close("the low-pass in mm", measured=lowered, required=required, atol=1e-6, unit="mm")
    onto = resample_to(volume, reorient(volume, "RAS"))
    check.equal("the axes of the other volume", onto.axes, "RAS")
    check.equal(
        "the affine of the other volume", onto.affine_lps_mm, reorient(volume, "RAS").affine_lps_mm
    )
