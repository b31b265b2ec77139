"""An invented report of every kind of content, for examples, gates and a look at the renderings.

Nothing in it was measured: its plane is called "specimen", which no installation has.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from numbat_gates.report import SCHEMA
from numbat_gates.verdicts import Verdict, combine

_TITLES = (
    "Every file of a folder is accounted for",
    "Two patients are never merged into one series",
    "Every voxel lies where the scanner put it",
    "Missing and duplicate slices are refused by number",
    "A tilted gantry keeps its shear or is resampled on request",
    "The fourth axis has a name and an order",
    "NIfTI is written whole or not at all",
    "qform and sform say the same thing",
    "Diffusion gradients turn with the image",
    "A damaged file is set aside with its code",
    "The converter agrees with an independent peer",
    "Every code of the registry is raised by a check",
)
_REQUIREMENTS = (
    (
        "Any folder, archive, DICOMDIR or list of files is read; DICOM is found by content.",
        "PS3.10 §7",
    ),
    ("Every file is accounted for as used, set aside with a code, or not DICOM.", ""),
    ("Series that share an identifier and hold different patients are refused.", "PS3.3 C.7.3.1"),
    ("The volume's affine follows from orientation and position alone.", "PS3.3 C.7.6.2.1.1"),
    ("Residuals of every slice against the fitted grid are measured in millimetres.", ""),
    ("Missing, duplicate and uneven slices are refused, with the place of the gap.", ""),
    ("A sheared grid is never written as if it were square.", "NIfTI-1, nifti1.h"),
    ("The fourth axis of a series is named, ordered and complete.", ""),
    ("Nothing is published under its name before every check has passed.", ""),
    ("Gradient directions are given in the axes of the written image.", ""),
    ("A damaged or hostile file ends in a refusal, never in a crash.", ""),
    ("Tolerances for geometry hold on patient data of three manufacturers.", ""),
    ("A year of routine use shows no silent error.", ""),
    ("The orientation of enhanced multi-frame objects follows the same rules.", "PS3.3 A.36"),
)
_DECLARED = {
    12: ("clinical-data", "no patient data of three manufacturers is held here"),
    13: ("elapsed-time", "the software has not been in use for a year"),
    14: ("later-phase", "enhanced objects are refused by a code so far"),
}
_MODULES = ("account", "geometry", "grouping", "nifti", "reading", "sidecar", "volume")


def specimen_report(*, passing: bool = False) -> dict[str, Any]:
    """A report with twelve gates and some 150 checks; all of them pass when `passing`."""
    gates = [_gate(index, title, passing) for index, title in enumerate(_TITLES, start=1)]
    numbers = range(1, len(_REQUIREMENTS) + 1)
    requirements = [_requirement(number, gates, passing) for number in numbers]
    phases = [_phase(number, gates, requirements) for number in (1, 2)]
    verdict = combine(Verdict(phase["verdict"]) for phase in phases)
    codes = [f"SPC-{1200 + index}" for index in range(1, 19)]
    return {
        "schema": SCHEMA,
        "plane": "specimen",
        "version": "0.1.0",
        "started_at": "2026-03-02T14:05:06.000Z",
        "duration_s": 41.72,
        "phase": None,
        "selected_gates": [],
        "not_run": [],
        "verdict": str(verdict),
        "exit_code": int(verdict.exit_code),
        "phases": phases,
        "gates": gates,
        "requirements": requirements,
        "undischarged": _undischarged(passing),
        "coverage": {
            "registry": "specimen",
            "registered": len(codes),
            "covered": {
                code: [[f"SPC-G{1 + index % 11:02d}", f"refuses {code}"]]
                for index, code in enumerate(codes if passing else codes[:-2])
            },
            "uncovered": [] if passing else codes[-2:],
            "unregistered": [],
        },
        "ledger": {
            "head": _digest(f"ledger of a run, passing: {passing}"),
            "length": 412,
            "file": "ledger.jsonl",
        },
        "digests": _digests(gates),
        "environment": {
            "python": "3.11.7",
            "implementation": "CPython",
            "platform": "Linux-6.1-x86_64",
            "machine": "x86_64",
            "distributions": {
                "click": "8.1.8",
                "nibabel": "5.3.2",
                "numbat-gates": "0.1.0",
                "numbat-ledger": "0.1.0",
                "numbat-registries": "0.1.0",
                "numpy": "2.2.3",
                "pydicom": "3.0.1",
            },
        },
    }


def specimen_bytes(*, passing: bool = False) -> bytes:
    """The invented report as it would be stored."""
    report = specimen_report(passing=passing)
    return (json.dumps(report, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode("utf-8")


def _digest(name: str) -> str:
    return "sha256:" + hashlib.sha256(name.encode()).hexdigest()


def _digests(gates: list[dict[str, Any]]) -> dict[str, Any]:
    frameworks = ("numbat_gates/checks", "numbat_ledger/chain", "numbat_registries/raising")
    return {
        "code": {f"numbat_specimen/{name}.py": _digest(name) for name in _MODULES},
        "frameworks": {f"{name}.py": _digest(name) for name in frameworks},
        "requirements": _digest("requirements"),
        "gates": {gate["id"]: _digest(gate["id"]) for gate in gates},
        "registry": _digest("registry"),
        "inputs": {
            "corpus:specimen/qa": _digest("qa"),
            "installed:pydicom/data/test_files/CT_small.dcm": _digest("CT_small"),
        },
    }


def _gate(index: int, title: str, passing: bool) -> dict[str, Any]:
    checks = _checks(index)
    not_run: list[str] = []
    error = None
    if not passing and index == 3:
        checks[4] |= {
            "verdict": "FAIL",
            "measured": 0.0131415926,
            "detail": "largest difference 0.0131416 at [1, 3]: the slices are spaced 2.49 mm apart",
        }
        checks[7] |= {"verdict": "FAIL", "measured": [1, 0, 0], "required": [1, 0, -1]}
    if not passing and index == 9:
        reason = "the reference tables are not on this machine"
        checks.append(_check("three shells", "skip", verdict="NOT_RUN", detail=reason))
        not_run.append(f"three shells: {reason}")
    if not passing and index == 11:
        checks = checks[:2]
        error = {
            "type": "builtins.KeyError",
            "text": "'PixelSpacing' (at numbat_specimen.nifti:88)",
        }
    verdicts = [Verdict(check["verdict"]) for check in checks]
    verdicts += [Verdict.ERROR] if error else []
    return {
        "id": f"SPC-G{index:02d}",
        "title": title,
        "phase": 2 if index in (5, 9) else 1,
        "verdict": str(combine(verdicts)),
        "duration_s": round(0.37 * index, 3),
        "discharges": [f"SPC-R{index:03d}"] if index < 12 else ["SPC-R002", "SPC-R011"],
        "passed": verdicts.count(Verdict.PASS),
        "total": len(checks),
        "source": f"numbat_specimen.gates.gate_{index:02d}:{10 + index}",
        "error": error,
        "not_run": not_run,
        "inputs": ["corpus:specimen/qa"] if index == 3 else [],
        "checks": checks,
    }


def _checks(index: int) -> list[dict[str, Any]]:
    checks = []
    for number in range(1, 14):
        case = f"case {index:02d}-{number:02d}"
        made = (
            _check(f"{case}: affine", "close", 1.2e-7 * number, 0.0, tolerance=1e-3, unit="mm"),
            _check(f"{case}: slices", "equal", 24 + number, 24 + number),
            _check(f"{case}: residual", "at_most", 0.0004 * number, 0.01, unit="mm"),
            _check(f"{case}: overlap with the peer", "at_least", 0.9991, 0.99),
            _check(f"refuses SPC-{1200 + number}", "refuses", f"SPC-{1200 + number}"),
            _check(f"{case}: nothing published", "true", True, True),
        )
        checks.append(made[(number + index) % len(made)])
    return checks


def _check(
    name: str,
    kind: str,
    measured: Any = None,
    required: Any = None,
    *,
    tolerance: float | None = None,
    unit: str = "",
    verdict: str = "PASS",
    detail: str = "",
) -> dict[str, Any]:
    return {
        "name": name,
        "kind": kind,
        "verdict": verdict,
        "measured": measured,
        "required": measured if kind == "refuses" else required,
        "tolerance": tolerance,
        "unit": unit,
        "detail": detail,
    }


def _requirement(index: int, gates: list[dict[str, Any]], passing: bool) -> dict[str, Any]:
    text, source = _REQUIREMENTS[index - 1]
    name = f"SPC-R{index:03d}"
    naming = [gate for gate in gates if name in gate["discharges"]]
    awaits, because = _DECLARED.get(index, (None, ""))
    if index == 14 and not passing:
        awaits, because = None, ""
    if awaits:
        status = "declared"
    else:
        worst = combine(Verdict(gate["verdict"]) for gate in naming)
        status = {Verdict.PASS: "discharged", Verdict.NOT_RUN: "open"}.get(worst, "failed")
    return {
        "id": name,
        "phase": 2 if index in (5, 9, 14) else 1,
        "text": text,
        "rationale": "A wrong answer here would be carried silently into every later measurement.",
        "source": source,
        "status": status,
        "awaits": awaits,
        "because": because,
        "gates": [gate["id"] for gate in naming],
    }


def _phase(
    number: int, gates: list[dict[str, Any]], requirements: list[dict[str, Any]]
) -> dict[str, Any]:
    mine = [gate for gate in gates if gate["phase"] == number]
    by_status = {
        status: [
            item["id"]
            for item in requirements
            if item["phase"] == number and item["status"] == status
        ]
        for status in ("discharged", "declared", "open", "failed")
    }
    verdict = combine(Verdict(gate["verdict"]) for gate in mine)
    if verdict is Verdict.PASS and by_status["open"]:
        verdict = Verdict.NOT_RUN
    return {
        "phase": number,
        "title": ("From files to a volume one can trust", "Enhanced objects")[number - 1],
        "verdict": str(verdict),
        "awaited": False,
        "gates": [gate["id"] for gate in mine],
        "requirements": by_status,
    }


def _undischarged(passing: bool) -> list[dict[str, Any]]:
    no_reason = (None, "no gate names it, and it declares no reason")
    whole = {**_DECLARED} if passing else {**_DECLARED, 14: no_reason}
    rows: list[tuple[str, str, str, str | None, str]] = [
        (
            "SPC-R004.c1",
            "SPC-R004",
            "The affine is right for mobile C-arm reconstructions.",
            "clinical-data",
            "no such acquisition is held by the project",
        ),
        (
            "SPC-R010.c1",
            "SPC-R010",
            "Gradients agree with the console of each manufacturer.",
            "corpus",
            "the set specimen/diffusion is not on this machine",
        ),
    ]
    for index, (awaits, because) in whole.items():
        name = f"SPC-R{index:03d}"
        rows.append((name, name, _REQUIREMENTS[index - 1][0], awaits, because))
    names = ("clause", "requirement", "text", "awaits", "because")
    return [dict(zip(names, row, strict=True)) for row in rows]
