"""Scans to NIfTI: numbat-imaging against dcm2niix, dicom2nifti and highdicom.

Every run is a process of its own, with its wall time and peak memory from wait4; the converters
take turns, and medians are compared. `--json` prints the figures as JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

import dcm2niix  # type: ignore[import-untyped]
from scenes import SCENES, Scene

_DICOM2NIFTI = """
import sys, dicom2nifti
dicom2nifti.dicom_series_to_nifti(sys.argv[1], sys.argv[2], reorient_nifti=False)
"""
_HIGHDICOM = """
import pathlib, sys, highdicom, nibabel, numpy, pydicom
series = [pydicom.dcmread(path) for path in sorted(pathlib.Path(sys.argv[1]).iterdir())]
volume = highdicom.get_volume_from_series(series).to_patient_orientation("RAS")
affine = numpy.diag([-1.0, -1.0, 1.0, 1.0]) @ volume.affine
nibabel.save(nibabel.Nifti1Image(volume.array.astype("int16"), affine), sys.argv[2])
"""
_IN_PROCESS = """
import sys, time
import numbat_imaging.output.writing
from numbat_imaging import Options, convert
start = time.perf_counter()
done = convert(sys.argv[1], sys.argv[2], options=Options(compress=sys.argv[3] == ".nii.gz"))
assert done.complete
print(time.perf_counter() - start)
"""
_IMPORTS = "import numpy, pydicom"

#: Converters that are timed on plain series alone.
_PLAIN = frozenset({"dicom2nifti", "highdicom"})


@dataclass(frozen=True)
class Run:
    """One process: wall time, peak resident memory, and the time that it reported of itself."""

    wall_s: float
    peak_mib: float
    reported_s: float | None = None


@dataclass(frozen=True)
class Row:
    """The medians of one converter for one form of output."""

    name: str
    suffix: str
    wall_s: float
    peak_mib: float
    runs: int


def commands(scene: str, source: Path, out: Path, suffix: str) -> dict[str, list[str]]:
    """The command of each converter; `out` exists and is empty."""
    python, target = sys.executable, str(out / f"volume{suffix}")
    numbat = [str(Path(python).with_name("numbat-imaging")), "convert", str(source), str(out)]
    level = "i" if suffix == ".nii.gz" else "n"
    found = {
        "numbat-imaging": numbat + ["--no-compress"] * (suffix == ".nii"),
        "numbat convert() in process": [
            *(python, "-c", _IN_PROCESS, str(source), str(out)),
            suffix,
        ],
        "dcm2niix": [str(dcm2niix.bin), "-z", level, "-o", str(out), str(source)],
        "dicom2nifti": [python, "-c", _DICOM2NIFTI, str(source), target],
        "highdicom": [python, "-c", _HIGHDICOM, str(source), target],
        "import numpy, pydicom": [python, "-c", _IMPORTS],
    }
    # Of the forms that hold several slices in a file, the other two read neither as four axes.
    return found if scene == "ct" else {name: found[name] for name in found if name not in _PLAIN}


def run(command: list[str], compiled: Path) -> Run:
    """Run a command to its end, with Python's byte code kept in `compiled`.

    Raises RuntimeError when it fails: a time of something that failed is no measurement.
    """
    start = time.perf_counter()
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=_environment(compiled),
    )
    assert process.stdout is not None
    assert process.stderr is not None
    said, complaint = process.stdout.read(), process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    wall_s = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{command[0]}: exit {process.returncode}: {complaint.decode()[-2000:]}")
    reported = float(said) if command[1:3] == ["-c", _IN_PROCESS] else None
    return Run(wall_s, used.ru_maxrss / 1024, reported)


def _environment(compiled: Path) -> dict[str, str]:
    # An installer compiles what it installs; a work tree must not be compiled anew in every run.
    kept = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": str(compiled)}


def measure(scene: str, source: Path, scratch: Path, suffix: str, *, runs: int) -> list[Row]:
    """Medians over `runs` rounds, in each of which every converter has one turn.

    A round before them fills the caches of the disk and of Python.
    """
    found: dict[str, list[Run]] = {}
    for turn in range(-1, runs):
        for name in commands(scene, source, scratch, suffix):
            out = scratch / f"{turn}"
            out.mkdir()
            latest = run(commands(scene, source, out, suffix)[name], scratch / "compiled")
            shutil.rmtree(out)
            if turn < 0:
                continue
            found.setdefault(name, []).append(latest)
            print(
                f"  {scene} {suffix} {name}: {latest.wall_s:.2f} s",
                file=sys.stderr,
                flush=True,
            )
    return [
        Row(
            name,
            suffix,
            statistics.median(
                one.wall_s if one.reported_s is None else one.reported_s for one in done
            ),
            statistics.median(one.peak_mib for one in done),
            len(done),
        )
        for name, done in found.items()
    ]


def table(rows: list[Row], volume_mib: float) -> str:
    """The figures as a Markdown table; ratios are numbat-imaging / the other."""
    ours = {row.suffix: row for row in rows if row.name == "numbat-imaging"}
    lines = [
        "| output | converter | wall s | numbat / it | peak MiB | peak / volume |",
        "|--|--|--:|--:|--:|--:|",
    ]
    for row in rows:
        ratio = ours[row.suffix].wall_s / row.wall_s
        lines.append(
            f"| {row.suffix} | {row.name} | {row.wall_s:.2f} | {ratio:.2f} | {row.peak_mib:.0f} "
            f"| {row.peak_mib / volume_mib:.2f} |"
        )
    return "\n".join(lines)


def environment() -> str:
    """Machine and versions, in one line."""
    names = ("numbat-imaging", "numpy", "pydicom", "nibabel", "isal")
    peers = ("dcm2niix", "dicom2nifti", "highdicom")
    packages = ", ".join(f"{name} {version(name)}" for name in (*names, *peers))
    python = f"Python {platform.python_version()}"
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, {python}; {packages}"


def measure_scene(name: str, scene: Scene, *, runs: int) -> list[Row]:
    """The scene written and converted, uncompressed and compressed."""
    with TemporaryDirectory(prefix="numbat-bench-") as folder:
        source, scratch = Path(folder) / name, Path(folder) / "out"
        scratch.mkdir()
        # A process begins with the peak memory of the one that starts it, so this one stays small.
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            pool.submit(scene.write, scene, source).result()
        return [
            row
            for suffix in (".nii", ".nii.gz")
            for row in measure(name, source, scratch, suffix, runs=runs)
        ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3, help="rounds; medians are taken over them")
    parser.add_argument("--scene", choices=list(SCENES), action="append", help="default: all")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    figures: dict[str, list[Row]] = {}
    for name in chosen.scene or SCENES:
        figures[name] = measure_scene(name, SCENES[name], runs=chosen.runs)
    if chosen.json:
        rows = {name: [asdict(row) for row in found] for name, found in figures.items()}
        print(json.dumps({"environment": environment(), "scenes": rows}, indent=2))
        return 0
    print(environment())
    for name, found in figures.items():
        scene = SCENES[name]
        print(f"\n{scene.says}, {scene.volume_mib:.0f} MiB\n\n{table(found, scene.volume_mib)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
