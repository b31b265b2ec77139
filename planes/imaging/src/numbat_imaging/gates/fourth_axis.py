"""A fourth axis has a name, a unit and values that the files state."""

import numpy as np

from numbat_gates import Check, gate
from numbat_imaging.phantoms import FAULTS, Phantom
from numbat_imaging.phantoms.reading import read_fault

_NAMED = (
    ("two-time-points", "time"),
    ("two-volumes-by-DiffusionBValue", "diffusion"),
    ("two-volumes-by-AcquisitionNumber", "acquisition"),
    ("two-volumes-by-TriggerTime", "cardiac-phase"),
    ("two-volumes-by-AcquisitionTime", "time"),
)


@gate(
    "IMG-G06",
    phase=1,
    discharges=["IMG-R010"],
    title="A fourth axis is named by the files or refused",
)
def fourth_axis(check: Check) -> None:
    for fault, name in _NAMED:
        volume = read_fault(fault)
        axis = volume.fourth_axis
        check.equal(f"axis, {fault}", None if axis is None else axis.name, name)
        if axis is not None:
            check.equal(
                f"a value for each volume, {fault}", len(axis.values), volume.voxels.shape[3]
            )
            check.true(
                f"values ascend, {fault}",
                list(axis.values) == sorted(axis.values),
                measured=axis.values,
            )
        slices = {ds.SOPInstanceUID: ds for ds in FAULTS[fault].build()}
        wrong = sum(
            not np.array_equal(
                volume.voxels[:, :, s.k, s.t].T, slices[s.sop_instance_uid].pixel_array
            )
            for s in volume.sources
        )
        check.equal(f"planes that are not their file's, {fault}", wrong, 0)
    _unnamed(check)
    _incomplete(check)
    check.true("one volume has no fourth axis", read_fault("clean").fourth_axis is None)
    check.equal("two times", read_fault("two-time-points").voxels.shape, (*Phantom().shape, 2))


def _unnamed(check: Check) -> None:
    name = "two-volumes-by-InstanceNumber"
    with check.refuses("IMG-1302", "nothing but InstanceNumber tells the volumes apart") as caught:
        read_fault(name)
    if caught.diagnostic is not None:
        plan = caught.diagnostic.plans[0]
        with check.notices("IMG-1305", "the repair plan, carried out"):
            volume = read_fault(name, **plan.keywords())
        check.equal(
            "its axis is called what it is",
            volume.fourth_axis and volume.fourth_axis.name,
            "instance-order",
        )
    with check.refuses("IMG-1304", "an axis that the files do not support"):
        read_fault("two-time-points", fourth_axis="diffusion")


def _incomplete(check: Check) -> None:
    with check.refuses("IMG-1303", "one image of two volumes missing"):
        read_fault("two-time-points-one-missing")
    with check.refuses("IMG-1208", "the second volume moved"):
        read_fault("second-volume-moved")
