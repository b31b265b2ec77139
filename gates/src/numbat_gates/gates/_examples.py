"""Running a piece of source, such as a code's documented example, where it leaves nothing behind.

A gate tries wrong raise sites as text: spelt out in its own source they would be raise sites of
this package, and wrong ones.
"""

from __future__ import annotations

import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO

from numbat_gates.gates._toy import toys
from numbat_registries import Code


def run_example(code: Code) -> None:
    """Run the documented example of a code; what it raises gets out of here."""
    run_source(code.example, name=f"<example of {code.code}>")


def run_source(text: str, *, name: str = "<a raise that a gate tries>") -> None:
    """Run Python source with its own namespace; what it raises gets out of here."""
    path, modules = list(sys.path), set(sys.modules)
    try:
        with toys(), redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            exec(compile(text, name, "exec"), {"__name__": "example"})
    finally:
        sys.path[:] = path
        for name in set(sys.modules) - modules:
            if name.partition("_")[0] == "example":
                del sys.modules[name]
