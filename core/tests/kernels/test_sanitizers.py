"""Every kernel once under AddressSanitizer and UndefinedBehaviorSanitizer.

The library is built again by the system's compiler with both, and the tests of this folder are run
on
it in a process of their own; numpy's own allocator is left in place, so that each array is a block
whose bounds the sanitizer knows.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from numbat.kernels.loading import FOLDER, variants

SOURCES = FOLDER.parent
HERE = Path(__file__).parent
LEFT_OUT = {"test_sanitizers.py", "test_memory.py", "test_pool.py"}
"""Tests of the allocator and of threads, which are not about kernels over arrays."""

FLAGS = (
    "-shared", "-fPIC", "-O1", "-g", "-std=gnu11", "-fsanitize=address,undefined",
    "-fno-sanitize-recover=undefined", "-ffp-contract=fast", "-fno-math-errno",
)  # fmt: skip

RUNNER = """
import ctypes, sys
library, tests = sys.argv[1], sys.argv[2:]
given = ctypes.CDLL
class CDLL(given):
    def __init__(self, name, *args, **keywords):
        super().__init__(library if "numbat_kernels" in str(name) else name, *args, **keywords)
ctypes.CDLL = CDLL
import numbat.kernels.loading as loading
assert loading.LIBRARY._name == library
import pytest
sys.exit(pytest.main(["-q", "-x", "-s", "-p", "no:cacheprovider", *tests]))
"""


def _compiler() -> tuple[str, str]:
    """A compiler with AddressSanitizer, and the runtime library to load before Python."""
    if sys.platform != "linux":
        pytest.skip("the sanitizers' runtime is loaded before Python on Linux only")
    for name in ("gcc", "clang"):
        path = shutil.which(name)
        if path is None:
            continue
        runtime = "libasan.so" if name == "gcc" else f"libclang_rt.asan-{platform.machine()}.so"
        found = subprocess.run(
            [path, f"-print-file-name={runtime}"], capture_output=True, text=True, check=True
        ).stdout.strip()
        if os.path.isabs(found) and os.path.exists(found):
            return path, found
    pytest.skip("there is no compiler with AddressSanitizer")


@pytest.mark.parametrize("wide", [False, True], ids=["tile", "wide-tile"])
def test_kernels_under_sanitizers(tmp_path, wide):
    compiler, runtime = _compiler()
    processor = {"v3": ["-march=x86-64-v3"], "v4": ["-march=x86-64-v3"]}.get(variants()[0], [])
    library = tmp_path / "numbat_kernels.so"
    sources = sorted(map(str, SOURCES.glob("*.c")))
    # The tile of AVX-512 is tried on every machine; its vectors are cut in two where they must be.
    define = ["-DNB_WIDE"] if wide else []
    subprocess.run(
        [compiler, *FLAGS, *processor, *define, "-Wno-psabi", "-o", str(library), *sources, "-lm"],
        check=True,
    )
    tests = [HERE / "test_convolution_kernels.py"]
    if not wide:
        tests = [one for one in sorted(HERE.glob("test_*.py")) if one.name not in LEFT_OUT]
    environment = os.environ | {
        "LD_PRELOAD": runtime,
        "ASAN_OPTIONS": "detect_leaks=0:halt_on_error=1:abort_on_error=0",
        "NUMBAT_ALLOCATOR": "numpy",
        "OPENBLAS_NUM_THREADS": "1",
    }
    environment.pop("NUMBAT_KERNELS", None)
    ran = subprocess.run(
        [sys.executable, "-c", RUNNER, str(library), *map(str, tests)],
        env=environment, capture_output=True, text=True, timeout=1500, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert ran.returncode == 0, (ran.stdout + ran.stderr)[-6000:]
