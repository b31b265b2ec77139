"""The fault matrix of enhanced objects, and public issues of other readers about such files."""

import numpy as np

from numbat_gates import Check, gate
from numbat_imaging.phantoms import Fault, agreement
from numbat_imaging.phantoms import enhanced_catalogue as catalogue
from numbat_imaging.phantoms.reading import inspect_fault, read_all_of_fault, read_fault
from numbat_registries import Refusal

#: The published matrix (four readers, eight layouts), by the names that its rows have here.
_MATRIX = {
    "clean": "clean",
    "temporal before in-stack": "time-first",
    "temporal last": "time-last",
    "frames shuffled, in-stack reversed": "shuffled",
    "a slope for each frame": "slope-per-frame",
    "one frame missing": "frame-missing",
    "first two positions doubled": "doubled",
    "two stacks 50 mm apart": "two-stacks",
}


@gate(
    "IMG-G36",
    phase=2,
    discharges=["IMG-R035"],
    title="No enhanced object of the matrix gives a silently wrong volume",
)
def enhanced_issues(check: Check) -> None:
    check.at_least("faults of enhanced objects", len(catalogue.FAULTS), 60)
    missing = [row for row, name in _MATRIX.items() if f"enhanced-{name}" not in catalogue.FAULTS]
    check.equal("rows of the matrix without a case", missing, [])
    for fault in catalogue.FAULTS.values():
        _judge(check, fault)
    _orders(check)
    _geometry(check)
    _frames(check)
    _forms(check)
    _values(check)


def _judge(check: Check, fault: Fault) -> None:
    """Every frame must be in a volume, where and with the values that the object says."""
    kind, bound = fault.expected
    try:
        volumes = read_all_of_fault(fault.name)
    except Refusal as refusal:
        check.equal(fault.name, refusal.code, bound if kind == "refused" else "a volume")
        return
    if kind == "refused":
        check.equal(fault.name, "a volume", bound)
        return
    check.equal(f"{fault.name}: volumes", len(volumes), bound if kind == "split" else 1)
    slices = fault.slices()
    seen = [agreement(slices, volume.values(), volume.affine_lps_mm) for volume in volumes]
    worst_mm = max(found.max_displacement_mm for found in seen)
    check.at_most(f"{fault.name}: displacement", worst_mm, 0.001, "mm")
    used = sum(len(volume.sources) for volume in volumes)
    check.equal(f"{fault.name}: frames in volumes", used, len(slices))


def _orders(check: Check) -> None:
    """Nibabel demands one order of dimensions, and loses the slice axis in another."""
    for name in ("time-first", "time-between", "time-last"):
        volume = read_fault(f"enhanced-{name}")
        check.equal(f"nibabel 1388: {name}", volume.voxels.shape, (16, 12, 8, 3))
        check.close(
            f"nibabel 1388: the slice axis of {name}",
            measured=volume.affine_lps_mm[:3, 2],
            required=[0.0, 0.0, 2.0],
            atol=1e-6,
            unit="mm",
        )
    volume = read_fault("enhanced-shuffled")
    check.close(
        "nibabel 1340: in-stack numbers that run downwards turn nothing",
        measured=volume.affine_lps_mm,
        required=catalogue.MR.ascending()[1],
        atol=1e-6,
        unit="mm",
    )
    for name in ("short-index", "long-index"):
        with check.refuses("IMG-1312", f"nibabel 1245: {name}"):
            read_fault(f"enhanced-{name}")
    volume = read_fault("enhanced-pet-shuffled")
    check.equal(
        "dcm2niix 853: PET frames in another order than their places",
        bool(np.array_equal(volume.voxels, catalogue.PET.ascending()[0])),
        True,
    )


def _geometry(check: Check) -> None:
    with check.refuses("IMG-1201", "MONAI 8468: no geometry anywhere is no identity affine"):
        read_fault("enhanced-without-position")
    volume = read_fault("enhanced-ct")
    check.close(
        "MONAI 8468: geometry in functional groups alone",
        measured=volume.affine_lps_mm,
        required=catalogue.CT.ascending()[1],
        atol=1e-6,
        unit="mm",
    )
    with check.notices("IMG-1306", "two stacks in one file are said to be two"):
        stacks = _inspected("enhanced-two-stacks")
    check.equal("two stacks of four frames", stacks, [4, 4])


def _inspected(name: str) -> list[int]:
    return [stack.images for stack in inspect_fault(name).stacks]


def _frames(check: Check) -> None:
    with check.refuses("IMG-1206", "a missing frame is a gap, not a shorter volume"):
        read_fault("enhanced-frame-missing")
    with check.refuses("IMG-1301", "doubled positions are not more slices") as caught:
        read_fault("enhanced-doubled")
    if caught.diagnostic is not None:
        fields = caught.diagnostic.fields
        counts = (fields["positions"], fields["images"], fields["crowded_positions"])
        check.equal("doubled positions are counted", counts, (8, 10, 2))
    with check.refuses("IMG-1310", "pydicom 1666: NumberOfFrames that is wrong"):
        read_fault("enhanced-fewer-frames")
    with check.refuses("IMG-1310", "pydicom 2035: NumberOfFrames that is absent"):
        read_fault("enhanced-frames-untold")


def _forms(check: Check) -> None:
    volume = read_fault("enhanced-says-mosaic")
    check.equal(
        "dcm2niix 553: an enhanced object that calls itself a mosaic",
        bool(np.array_equal(volume.voxels, catalogue.MR.ascending()[0])),
        True,
    )
    with check.refuses("IMG-1607", "dcm2niix 364, 550, 348: a mosaic without its header"):
        read_fault("mosaic-without-csa")


def _values(check: Check) -> None:
    bare, mapped = read_fault("philips-two-scales"), read_fault("philips-with-real-world")
    check.close(
        "dcm2niix 493, 575: a scan is the same with and without its real-world map",
        measured=bare.values(),
        required=mapped.values(),
        atol=1e-6,
    )
