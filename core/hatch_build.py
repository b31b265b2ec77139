"""Builds the C kernels into the wheel: one compiler (zig, from its wheel) for every machine.

Each variant is one shared library of all `kernels/*.c`. Nothing else of the machine is used: no
system compiler, no headers of Python or numpy.
"""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

KERNELS = Path("src/numbat/kernels")

FLAGS = (
    "-O3", "-std=gnu11", "-shared", "-fPIC", "-fvisibility=default", "-ffp-contract=fast",
    "-fno-math-errno", "-fno-trapping-math", "-Wall", "-Wextra", "-Werror",
    "-fno-sanitize=all", "-g0", "-s",
)  # fmt: skip

X86 = {"v2": "x86_64_v2", "v3": "x86_64_v3", "v4": "x86_64_v4"}
TARGETS = {
    ("linux", "x86_64"): ("x86_64-linux-gnu.2.17", X86, "manylinux_2_17_x86_64"),
    ("linux", "aarch64"): ("aarch64-linux-gnu.2.17", {"neon": "generic"}, "manylinux_2_17_aarch64"),
    ("darwin", "arm64"): ("aarch64-macos.11.0", {"neon": "apple_m1"}, "macosx_11_0_arm64"),
    ("darwin", "x86_64"): ("x86_64-macos.11.0", X86, "macosx_11_0_x86_64"),
    ("win32", "amd64"): ("x86_64-windows-gnu", X86, "win_amd64"),
}
SUFFIX = {"win32": ".dll", "darwin": ".dylib"}


def machine() -> tuple[str, str]:
    """The system and processor to build for; NUMBAT_BUILD_FOR=darwin-arm64 builds for another."""
    asked = os.environ.get("NUMBAT_BUILD_FOR")
    if asked:
        system, _, processor = asked.partition("-")
        return system, processor
    return sys.platform, platform.machine().lower()


def build_kernels(root: Path) -> list[Path]:
    """Compiles each variant whose sources or flags changed; gives the libraries."""
    system, processor = machine()
    target, variants, _ = TARGETS[system, processor]
    sources = sorted((root / KERNELS).glob("*.c"))
    digest = hashlib.sha256(repr((FLAGS, target)).encode())
    for path in sources + sorted((root / KERNELS).glob("*.h")):
        digest.update(path.read_bytes())
    folder = root / KERNELS / "lib"
    folder.mkdir(exist_ok=True)
    built = []
    for name, cpu in variants.items():
        library = folder / f"numbat_kernels_{name}{SUFFIX.get(system, '.so')}"
        stamp = library.with_suffix(".sha256")
        if not (library.exists() and stamp.exists() and stamp.read_text() == digest.hexdigest()):
            command = [
                sys.executable,
                "-m",
                "ziglang",
                "cc",
                "-target",
                target,
                f"-mcpu={cpu}",
                *FLAGS,
            ]
            subprocess.run([*command, "-o", str(library), *map(str, sources), "-lm"], check=True)
            stamp.write_text(digest.hexdigest())
        built.append(library)
    return built


class Kernels(BuildHookInterface[Any]):
    """hatchling's hook: compiles, takes the libraries into the wheel and names its platform."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel":
            return
        libraries = build_kernels(Path(self.root))
        # An editable installation finds them where they were built.
        for library in libraries if version != "editable" else ():
            inside = f"numbat/kernels/lib/{library.name}"
            build_data["force_include"][str(library)] = inside
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{TARGETS[machine()][2]}"


if __name__ == "__main__":
    for path in build_kernels(Path(__file__).parent):
        print(path)
