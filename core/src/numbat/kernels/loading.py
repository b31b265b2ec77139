"""The C library: which variant this processor takes, and the types of its functions.

The variants were built with the wheel, by the compiler that `core/hatch_build.py` pins; nothing is
compiled when numbat runs.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from pathlib import Path

from numbat_registries import refuse

FOLDER = Path(__file__).parent / "lib"
SUFFIX = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")

X86_FLAGS = {
    "v4": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
    "v3": {"avx2", "fma", "bmi1", "bmi2", "f16c"},
}


def cpu_flags() -> set[str]:
    """The features of this processor as Linux names them; empty where they cannot be read."""
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as lines:
            for line in lines:
                if line.startswith("flags"):
                    return set(line.split(":", 1)[1].split())
    except OSError:
        pass
    return set()


def variants() -> list[str]:
    """The variants that this processor can run, best first; `NUMBAT_KERNELS=v3` asks for one."""
    asked = os.environ.get("NUMBAT_KERNELS")
    if platform.machine().lower() in ("arm64", "aarch64"):
        able = ["neon"]
    else:
        flags = cpu_flags()
        able = [name for name, needed in X86_FLAGS.items() if needed <= flags] + ["v2"]
    if asked is None:
        return able
    if asked not in able:
        raise refuse("CORE-0901", asked=asked, able=able)
    return [asked]


def load(folder: Path = FOLDER) -> tuple[ctypes.CDLL, str]:
    """The library of the best variant that is installed, and the variant's name.

    Raises CORE-0901 where the environment asks for a variant that this processor cannot run, and
    CORE-0902 where no variant is installed.
    """
    able = variants()
    for name in able:
        path = folder / f"numbat_kernels_{name}{SUFFIX}"
        if path.exists():
            return ctypes.CDLL(str(path)), name
    raise refuse("CORE-0902", folder=folder.name, able=able)


LIBRARY, VARIANT = load()

LIBRARY.nb_memory_handler.restype = ctypes.c_void_p
LIBRARY.nb_memory_limit.argtypes = [ctypes.c_uint64]
for _name in ("release", "used", "kept", "peak"):
    getattr(LIBRARY, f"nb_memory_{_name}").restype = ctypes.c_uint64
