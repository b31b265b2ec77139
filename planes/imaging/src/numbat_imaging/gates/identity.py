"""Whose images, which stacks, and what is doubled."""

from numbat_gates import Check, gate
from numbat_imaging.gates._identity_keys import identity_keys
from numbat_imaging.phantoms import FAULTS
from numbat_imaging.phantoms.reading import inspect_fault, read_all_of_fault, read_fault


@gate(
    "IMG-G02",
    phase=1,
    discharges=["IMG-R003", "IMG-R004", "IMG-R005"],
    title="One patient, one study, one stack at a time",
)
def identity(check: Check) -> None:
    _patients(check)
    _doubles(check)
    _splits(check)
    identity_keys(check)


def _patients(check: Check) -> None:
    with check.refuses("IMG-1101", "two patients under one series UID") as caught:
        read_fault("two-patients")
    if caught.diagnostic is not None:
        shown = str(dict(caught.diagnostic.fields)) + caught.diagnostic.message
        check.true(
            "the refusal names no patient",
            "PHANTOM" not in shown.upper(),
            measured=sorted(caught.diagnostic.fields),
        )
        check.equal("patients counted", caught.diagnostic.fields["patients"], 2)
    with check.refuses("IMG-1102", "two studies under one series UID"):
        read_fault("two-studies")


def _doubles(check: Check) -> None:
    with check.refuses("IMG-1103", "one SOPInstanceUID with other pixels"):
        read_fault("same-uid-other-pixels")
    with check.refuses("IMG-1301", "other pixels at one position"):
        read_fault("duplicate-other-pixels")
    with check.notices("IMG-1105", "a twin with the same pixels is set aside"):
        volume = read_fault("duplicate-same-pixels")
    check.equal("slices beside the twin", volume.voxels.shape[2], 10)
    with check.notices("IMG-1104", "a byte-identical copy is set aside"):
        volume = read_fault("byte-identical-copy")
    check.equal("slices beside the copy", volume.voxels.shape[2], 10)


def _splits(check: Check) -> None:
    for name, fault in FAULTS.items():
        if fault.expected[0] != "split":
            continue
        with check.notices("IMG-1306", f"the split of {name} is said"):
            found = inspect_fault(name)
        check.equal(f"stacks of {name}", len(found.stacks), fault.expected[1])
        check.equal(f"images of {name}", sum(s.images for s in found.stacks), len(fault.slices()))
    volumes = read_all_of_fault("localizer-inside")
    check.equal(
        "a localiser is a volume of its own", sorted(v.grid.slices for v in volumes), [1, 10]
    )
    with check.refuses("IMG-1802", "one volume asked for, two there"):
        read_fault("localizer-inside")
