"""No patient data in errors, accounts, reports or sidecars unless the caller asks."""

import gzip
import json
import logging
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

from numbat_gates import Check, gate
from numbat_imaging.phantoms import FAULTS
from numbat_imaging.phantoms.reading import convert_fault, inspect_fault, read_fault
from numbat_registries import Refusal
from numbat_registries.rendering import to_problem, to_sarif, to_text

#: What the phantoms' patients are called, known by, and when they were born.
_SECRETS = ("PHANTOM-1", "PHANTOM-2", "Phantom^One", "Phantom^Two", "19700101", "19810203")


@gate(
    "IMG-G13",
    phase=1,
    discharges=["IMG-R019"],
    title="No patient data leaves unasked",
)
def privacy(check: Check) -> None:
    planted = {
        str(value)
        for ds in FAULTS["two-patients"].build()
        for value in (ds.PatientID, ds.PatientName)
    }
    check.true(
        "the phantoms carry what is sought", planted <= set(_SECRETS), measured=sorted(planted)
    )
    logged = StringIO()
    handler = logging.StreamHandler(logged)
    logging.getLogger().addHandler(handler)
    try:
        for name in FAULTS:
            check.equal(f"found in what {name} says", _leaks(_everything_said(name)), [])
        check.equal("found in sidecars and accounts", _leaks(_everything_written()), [])
    finally:
        logging.getLogger().removeHandler(handler)
    check.equal("found in logs", _leaks(logged.getvalue()), [])


def _leaks(text: str) -> list[str]:
    folded = text.casefold()
    return [secret for secret in _SECRETS if secret.casefold() in folded]


def _everything_said(name: str) -> str:
    said = (
        [json.dumps(inspect_fault(name).to_dict())] if FAULTS[name].expected[0] != "aside" else []
    )
    try:
        read_fault(name)
    except Refusal as refusal:
        found = refusal.diagnostic
        said += [str(refusal), repr(refusal), to_text(found)]
        said += [json.dumps(to_problem(found)), json.dumps(to_sarif(found))]
    return "\n".join(said)


def _everything_written() -> str:
    with TemporaryDirectory() as folder:
        texts = []
        for name in ("clean", "tilt-20-tag-right", "two-patients", "pet-slope-per-slice"):
            done = convert_fault(name, Path(folder) / name)
            texts.append(json.dumps(done.to_dict()))
        texts += [path.read_text() for path in Path(folder).rglob("*.json")]
        for path in Path(folder).rglob("*.nii.gz"):
            with gzip.open(path) as stream:
                texts.append(stream.read(600).decode("latin-1"))
    return "\n".join(texts)
