"""Values, what checks require, and verdicts in words; the same in every rendering."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

#: Verdicts from worst to best: the order in which a reader wants them.
VERDICTS = ("ERROR", "FAIL", "NOT_RUN", "PASS")

VERDICT_WORDS = {
    "PASS": "pass",
    "FAIL": "fail",
    "NOT_RUN": "not run",
    "ERROR": "error",
}

VERDICT_MEANS = {
    "PASS": "every check was carried out and met what is required",
    "FAIL": "at least one check was carried out and did not meet what is required",
    "NOT_RUN": "nothing was measured, or a check was skipped: this is no evidence either way",
    "ERROR": "the software stopped unexpectedly: this is no evidence either way",
}

STATUS_MEANS = {
    "discharged": "a gate that names the requirement ran and passed",
    "declared": "it cannot be shown yet; the typed reason is given and nothing is claimed",
    "open": "no gate gave a verdict on it, and no reason is declared: a gap",
    "failed": "a gate that names the requirement failed or stopped unexpectedly",
}

STATUS_ORDER = ("failed", "open", "declared", "discharged")

AWAITS_MEANS = {
    "clinical-data": "data from patients that this project does not hold",
    "corpus": "a reference corpus that was not present on the machine of this run",
    "elapsed-time": "use over a period of time",
    "hardware": "a device or accelerator that was not available",
    "licence": "material under a licence that has not been obtained",
    "later-phase": "work that a later phase of the plane holds",
}

_SHORT = 160
_SIGNIFICANT_DIGITS = 7


def value_text(value: Any, *, digits: int = _SIGNIFICANT_DIGITS, limit: int = _SHORT) -> str:
    """A measured or required value for a reader; an undefined one with its reason.

    Numbers carry `digits` significant digits; text beyond `limit` characters is cut, and says so.
    """
    if isinstance(value, Mapping) and set(value) == {"undefined"}:
        return f"undefined: {value['undefined']}"
    text = value if isinstance(value, str) else _plain(value, digits)
    if len(text) <= limit:
        return text
    return f"{text[:limit].rstrip()} … ({len(text)} characters; whole in report.json)"


def _plain(value: Any, digits: int) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.{digits}g}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_plain(item, digits) for item in value) + "]"
    if isinstance(value, Mapping):
        return json.dumps(value, sort_keys=True, ensure_ascii=False)
    return str(value)


def measured_and_required(check: Mapping[str, Any], *, limit: int = _SHORT) -> tuple[str, str]:
    """What a check measured and what it required, with unit, relation and tolerance.

    Values that differ never read the same: digits are added until they do not.
    """
    measured, required = check["measured"], check["required"]
    for digits in (_SIGNIFICANT_DIGITS, 12, 17):
        texts = (
            value_text(measured, digits=digits, limit=limit),
            value_text(required, digits=digits, limit=limit),
        )
        if texts[0] != texts[1] or measured == required:
            break
    unit = f" {check['unit']}" if check.get("unit") else ""
    is_defined = not (isinstance(measured, Mapping) and "undefined" in measured)
    found = texts[0] + unit if texts[0] and is_defined else texts[0]
    return found, _required_text(check, texts[1], unit)


def _required_text(check: Mapping[str, Any], required: str, unit: str) -> str:
    kind = check["kind"]
    if kind == "close":
        return f"{required} ± {_plain(check['tolerance'], _SIGNIFICANT_DIGITS)}{unit}"
    if kind in ("at_most", "at_least"):
        return f"{'≤' if kind == 'at_most' else '≥'} {required}{unit}"
    if kind in ("refuses", "notices"):
        verb = "refusal" if kind == "refuses" else "notice"
        return f"{verb} {required}".rstrip()
    if kind == "skip":
        return required
    if kind == "true":
        return required or "holds"
    return required + unit if required else required


def worst_first(items: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Gates or checks with those that need attention in front, otherwise in the given order."""
    return sorted(items, key=lambda item: VERDICTS.index(item["verdict"]))


def tally(items: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """How many gates or checks have each verdict that occurs, worst first."""
    counts = {verdict: sum(item["verdict"] == verdict for item in items) for verdict in VERDICTS}
    return {verdict: count for verdict, count in counts.items() if count}


def counted(count: int, noun: str) -> str:
    """A count with its noun: "1 gate", "2 gates"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def duration_text(seconds: float) -> str:
    """A duration as seconds, or minutes and seconds."""
    if seconds < 60:
        return f"{seconds:.2f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s"


def instant_text(iso: str) -> str:
    """An ISO 8601 instant as "2026-03-02 14:05:06 UTC"; another text as it is."""
    try:
        instant = datetime.fromisoformat(iso).astimezone(UTC)
    except ValueError:
        return iso
    return f"{instant:%Y-%m-%d %H:%M:%S} UTC"
