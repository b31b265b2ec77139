"""The single-frame fault matrix: no fault gives a silently wrong volume."""

from numbat_gates import Check, gate
from numbat_imaging.phantoms import FAULTS, Fault, agreement
from numbat_imaging.phantoms.reading import read_all_of_fault
from numbat_registries import Refusal


@gate(
    "IMG-G04",
    phase=1,
    discharges=["IMG-R017"],
    title="No fault of the matrix gives a silently wrong volume",
)
def fault_matrix(check: Check) -> None:
    # Those of enhanced objects are judged in a gate of phase 2.
    faults = [fault for fault in FAULTS.values() if not fault.name.startswith("enhanced-")]
    check.at_least("faults in the matrix", len(faults), 150)
    for fault in faults:
        _judge(check, fault)


def _judge(check: Check, fault: Fault) -> None:
    """Each plane is recognised by its content and must lie where its file says."""
    kind, bound = fault.expected
    try:
        volumes = read_all_of_fault(fault.name)
    except Refusal as refusal:
        refused = kind in ("refused", "aside")
        right = refused and bound in (None, refusal.code)
        check.true(fault.name, right, measured=refusal.code, required=[kind, bound])
        return
    if kind in ("refused", "aside"):
        check.true(fault.name, False, measured="a volume", required=[kind, bound])
        return
    if kind == "split":
        check.equal(f"{fault.name}: volumes", len(volumes), bound)
    else:
        check.equal(f"{fault.name}: volumes", len(volumes), 1)
    if any(volume.voxels.dtype.fields for volume in volumes):
        return
    limit_mm = bound if kind == "volume" else 0.001
    datasets = fault.slices()
    seen = [agreement(datasets, v.values(), v.affine_lps_mm) for v in volumes]
    check.at_most(
        f"{fault.name}: displacement", max(a.max_displacement_mm for a in seen), limit_mm, "mm"
    )
    check.equal(f"{fault.name}: planes that no file holds", sum(a.strangers for a in seen), 0)
