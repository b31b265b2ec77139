"""Run the measurements of one package: every module of its bench/ that is a program, by name.

Exit code: that of the first that failed, and 3 if the package has none.
"""

from __future__ import annotations

import argparse
import subprocess
import sys

from workspace import ROOT, members

__all__ = ["main"]

NOT_RUN = 3


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("room", choices=[member.room for member in members()])
    parser.add_argument("--only", metavar="NAME", help="the one module to run, without .py")
    chosen, passed_on = parser.parse_known_args(arguments)
    modules = sorted((ROOT / chosen.room / "bench").glob(f"{chosen.only or '[a-z]*'}.py"))
    modules = [module for module in modules if "__main__" in module.read_text("utf-8")]
    if not modules:
        print(f"{chosen.room}/bench holds no such measurement", file=sys.stderr)
        return NOT_RUN
    codes = []
    for module in modules:
        print(f"# {module.relative_to(ROOT).as_posix()}", file=sys.stderr, flush=True)
        codes.append(subprocess.run([sys.executable, str(module), *passed_on], check=False))
    return next((done.returncode for done in codes if done.returncode), 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
