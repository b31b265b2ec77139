"""The documented example of every code raises it, so that no page drifts from the software."""

from numbat_gates import Check, gate
from numbat_registries import Code, load_registry


@gate(
    "CORE-G14",
    phase=1,
    discharges=["CORE-R014"],
    title="Every code's documented example raises it",
)
def documented_examples(check: Check) -> None:
    for code in load_registry("core").live:
        name = f"example of {code.code} {code.name}"
        expected = check.refuses if code.severity.is_raised else check.notices
        with expected(code.code, name):
            _run(code)


def _run(code: Code) -> None:
    exec(compile(code.example, f"<example of {code.code}>", "exec"), {"__name__": "example"})
