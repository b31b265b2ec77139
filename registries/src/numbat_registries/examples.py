"""Running a code's documented example, so that its page cannot drift from the software."""

from __future__ import annotations

from contextlib import redirect_stderr, redirect_stdout
from io import StringIO

from numbat_registries.diagnostics import Diagnostic, Refusal
from numbat_registries.raising import sinks
from numbat_registries.registry import Code


def codes_raised_by_example(code: Code) -> list[str]:
    """Every code that the example of `code` raises or records, in order; the raised one is last.

    The example runs in this process with its own namespace; what it prints is dropped.
    """
    seen: list[Diagnostic] = []

    def record(diagnostic: Diagnostic) -> None:
        seen.append(diagnostic)

    sinks.append(record)
    try:
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            exec(
                compile(code.example, f"<example of {code.code}>", "exec"), {"__name__": "example"}
            )
    except Refusal as refusal:
        return [*(d.code for d in seen if d.code != refusal.code), refusal.code]
    finally:
        sinks.remove(record)
    return [diagnostic.code for diagnostic in seen]
