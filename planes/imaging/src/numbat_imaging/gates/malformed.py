"""No file leaves an untyped exception, hangs, or takes memory beyond the bound."""

import random
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pydicom

from numbat_gates import Check, gate
from numbat_imaging.phantoms.trials import read_whole_way

_BUNDLED = Path(pydicom.__file__).parent / "data" / "test_files"
_SEEDS = (
    "CT_small.dcm",
    "MR_small_RLE.dcm",
    "MR_small_bigendian.dcm",
    "image_dfl.dcm",
    "no_meta.dcm",
)
_MUTANTS = 60
_SECONDS = 10.0
_BYTES = 256 << 20


@gate(
    "IMG-G11",
    phase=1,
    discharges=["IMG-R016"],
    title="Every damaged file gives a value or a typed refusal",
)
def malformed(check: Check) -> None:
    for path in sorted(_BUNDLED.glob("*.dcm")):
        _judge(check, f"pydicom {path.name}", [path])
    with TemporaryDirectory() as folder:
        for seed in _SEEDS:
            _judge(
                check,
                f"{_MUTANTS} mutants of {seed}",
                list(_mutants(_BUNDLED / seed, Path(folder))),
            )
    clauses = ["IMG-R016.corpus"]
    for name in ("imaging/fuzz_malformed", "imaging/pydicom_data", "imaging/misc_dicom"):
        root = check.corpus(name, clauses=clauses)
        if root is None:
            continue
        for path in sorted(p for p in root.rglob("*") if p.is_file() and p.suffix != ".tsv"):
            _judge(check, f"{name} {path.relative_to(root)}", [path])


def _mutants(source: Path, folder: Path) -> Iterator[Path]:
    """Seeded damage: bits flipped, bytes inserted, deleted, cut, length fields of all ones."""
    content = source.read_bytes()
    chance = random.Random(f"numbat {source.name}")
    for number in range(_MUTANTS):
        data = bytearray(content)
        at = chance.randrange(min(len(data), 4096))
        match number % 5:
            case 0:
                data[at] ^= 1 << chance.randrange(8)
            case 1:
                data[at:at] = chance.randbytes(chance.randrange(1, 9))
            case 2:
                del data[at : at + chance.randrange(1, 9)]
            case 3:
                del data[chance.randrange(len(data)) :]
            case _:
                data[at : at + 4] = b"\xff\xff\xff\xff"
        path = folder / f"{source.stem} {number}"
        path.write_bytes(data)
        yield path


def _judge(check: Check, name: str, paths: list[Path]) -> None:
    worst_s, worst_bytes, untyped = 0.0, 0, []
    for path in paths:
        fault, seconds, peak = _read(path)
        worst_s, worst_bytes = max(worst_s, seconds), max(worst_bytes, peak)
        if fault:
            untyped.append(fault)
    check.equal(f"untyped exceptions, {name}", untyped, [])
    check.at_most(f"time, {name}", worst_s, _SECONDS, "s")
    check.at_most(f"memory, {name}", worst_bytes, _BYTES, "bytes")


def _read(path: Path) -> tuple[str, float, int]:
    tracemalloc.start()
    started, fault = time.monotonic(), ""
    try:
        read_whole_way(path)
    except Exception as error:
        fault = f"{path.name}: {type(error).__name__}"
    seconds = time.monotonic() - started
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return fault, seconds, peak
