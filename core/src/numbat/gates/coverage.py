"""Every code of the engine has been raised by a check that expected it."""

from numbat_gates import Check, gate
from numbat_registries import load_registry
from numbat_registries.raise_sites import check_packages


@gate(
    "CORE-G15",
    phase=1,
    discharges=["CORE-R014"],
    title="Every refusal has been seen to work",
    last=True,
)
def coverage(check: Check) -> None:
    faults = check_packages(["numbat"], load_registry("core"))
    check.equal("registry and raise sites agree", faults, [])
    check.covers_registry()
