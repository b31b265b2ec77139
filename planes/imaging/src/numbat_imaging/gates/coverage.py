"""Every code of the plane has been raised by a check that expected it."""

from numbat_gates import Check, gate
from numbat_registries import load_registry
from numbat_registries.raise_sites import check_packages


@gate(
    "IMG-G14",
    phase=1,
    discharges=["IMG-R020"],
    title="Every refusal has been seen to work",
    last=True,
)
def coverage(check: Check) -> None:
    faults = check_packages(["numbat_imaging"], load_registry("imaging"))
    check.equal("registry and raise sites agree", faults, [])
    check.covers_registry()
