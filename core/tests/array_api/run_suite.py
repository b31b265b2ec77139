"""Runs the public array API suite over `numbat.array_api`.

    python core/tests/array_api/run_suite.py CHECKOUT [pytest's arguments]

The checkout (with its submodule `array-api`) is copied, for the suite takes for granted that there
are
complex element types, and two of its lines are changed to live without.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

CHANGES = {
    "array_api_tests/dtype_helpers.py": (
        "for dt in complex_dtypes], key=lambda x: x[1]\n",
        "for dt in complex_dtypes], key=lambda x: x[1], default=(None,)\n",
    ),
    "array_api_tests/test_signatures.py": (
        "cmplx_name = dh.dtype_to_name[dh.widest_complex_dtype]",
        'cmplx_name = "complex128"',
    ),
}


def main() -> int:
    checkout, *arguments = sys.argv[1:]
    told = tomllib.loads(Path(__file__).with_name("skips.toml").read_text())
    with tempfile.TemporaryDirectory() as folder:
        suite = Path(folder) / "suite"
        shutil.copytree(checkout, suite, ignore=shutil.ignore_patterns(".git"))
        for name, (before, after) in CHANGES.items():
            text = (suite / name).read_text()
            if after not in text:
                if before not in text:
                    raise SystemExit(f"{name} is not the one that commit {told['commit']} has")
                (suite / name).write_text(text.replace(before, after))
        skips = [test for one in told["skip"] for test in one["tests"]]
        (suite / "numbat-skips.txt").write_text("\n".join(skips) + "\n")
        environment = os.environ | {
            "ARRAY_API_TESTS_MODULE": "numbat.array_api",
            "ARRAY_API_TESTS_SKIP_DTYPES": ",".join(told["skip_dtypes"]),
            "ARRAY_API_TESTS_VERSION": told["version"],
        }
        command = [sys.executable, "-m", "pytest", "-q", "--tb=line", "-p", "no:cacheprovider",
                   "--skips-file", "numbat-skips.txt", "array_api_tests", *arguments]  # fmt: skip
        return subprocess.run(command, cwd=suite, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
