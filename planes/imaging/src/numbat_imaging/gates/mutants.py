"""20,000 mutants of real files and every known bomb end in a value or a typed refusal."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory

from numbat_gates import Check, gate
from numbat_imaging.phantoms.mutants import Seed, bundled_seeds, mutant, seeds_below, sibling

_MUTANTS = 20_000
_OF_CORPUS = 4_000
_ON_COMMAND_LINE = 300
_SEED_BYTES = 400_000
_SECONDS = 10.0
#: The bound of `intake.limits`, and what the reader itself holds at most while it works.
_BOUND_BYTES, _BOUND_TIMES = 64 << 20, 40
#: Vendor forms, encapsulation and transfer syntaxes that pydicom's wheel has no file of.
_CORPUS = (
    "imaging/dcm2niix_qa",
    "imaging/dicom2nifti_cases",
    "imaging/encapsulation",
    "imaging/pydicom_data",
)


@gate(
    "IMG-G31",
    phase=2,
    discharges=["IMG-R031"],
    title="20,000 mutants of real files and every bomb end in a value or a typed refusal",
)
def mutants(check: Check) -> None:
    if not hasattr(os, "fork") or not sys.platform.startswith("linux"):
        check.skip("mutants and bombs", "memory and time are bounded with fork and setrlimit")
        return
    corpus = _corpus_seeds(check)
    of_corpus = _OF_CORPUS if corpus else 0
    with TemporaryDirectory(dir=_memory_folder()) as folder:
        bundled = _Trial(bundled_seeds(), Path(folder))
        _judge(check, "mutants of bundled files", bundled, _MUTANTS - of_corpus)
        if corpus:
            _judge(check, "mutants of vendors' files", _Trial(corpus, Path(folder)), of_corpus)
        _judge_commands(check, bundled)
        _judge_bombs(check, Path(folder))


def _memory_folder() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def _corpus_seeds(check: Check) -> list[Seed]:
    """The first small file of each folder: one scan's many slices are one form."""
    found: list[Seed] = []
    for name in _CORPUS:
        root = check.corpus(name, clauses=["IMG-R031.corpus"])
        if root is None:
            continue
        first: dict[Path, Path] = {}
        for path in sorted(p for p in root.rglob("*") if p.is_file() and _is_dicom(p)):
            key = path if name.endswith(("encapsulation", "pydicom_data")) else path.parent
            if path.stat().st_size <= _SEED_BYTES:
                first.setdefault(key, path)
        found += seeds_below(first.values(), limit_bytes=_SEED_BYTES, root=root)
    return found


def _is_dicom(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(132)[128:] == b"DICM"


class _Trial:
    """Mutants of some seeds, dealt in turn; every fourth has a sound neighbour beside it."""

    def __init__(self, seeds: Sequence[Seed], folder: Path) -> None:
        self.seeds, self.folder = tuple(seeds), folder

    def of(self, number: int) -> tuple[Seed, int]:
        """The seed of a mutant and its number among the seed's own."""
        return self.seeds[number % len(self.seeds)], number // len(self.seeds)

    def written(self, number: int) -> list[Path]:
        """The files of one case, in place of those of the last one."""
        seed, own = self.of(number)
        # A DICOMDIR stands for its folder, and no process may read what another one is writing.
        place = self.folder / f"{os.getpid()}"
        place.mkdir(exist_ok=True)
        path = place / "mutant.dcm"
        path.write_bytes(mutant(seed, own))
        beside = place / "beside.dcm"
        if own % 4 != 3:
            beside.unlink(missing_ok=True)
            return [path]
        beside.write_bytes(sibling(seed))
        return [path, beside]

    def named(self, number: int) -> str:
        """How to make the mutant again."""
        seed, own = self.of(number)
        return f"mutant({seed.name!r}, {own})" + (" and sibling" if own % 4 == 3 else "")

    def bound_bytes(self, number: int) -> int:
        """What reading the case may take."""
        seed, own = self.of(number)
        size = max(len(mutant(seed, own)), len(seed.content))
        return max(_BOUND_BYTES, _BOUND_TIMES * size)


def _judge(check: Check, name: str, trial: _Trial, count: int) -> None:
    from numbat_imaging.phantoms.trials import read_whole_way, trials

    faults, codes, kinds, slowest, beyond = [], Counter[str](), Counter[str](), 0.0, []
    for outcome in trials(count, lambda n: read_whole_way(trial.written(n)), seconds=_SECONDS):
        kinds[outcome.kind] += 1
        codes[outcome.detail] += outcome.kind == "refusal"
        slowest = max(slowest, outcome.seconds)
        if outcome.is_fault:
            faults.append(f"{trial.named(outcome.number)}: {outcome.kind} {outcome.detail}")
        if outcome.grown_bytes > _BOUND_BYTES:
            allowed = trial.bound_bytes(outcome.number)
            if outcome.grown_bytes > allowed:
                beyond.append(f"{trial.named(outcome.number)}: {outcome.grown_bytes} bytes")
    check.equal(f"{name}: judged", sum(kinds.values()), count)
    check.equal(f"{name}: untyped, hanging, out of memory or crashed", sorted(faults)[:20], [])
    check.equal(f"{name}: beyond the bound on memory", sorted(beyond)[:20], [])
    check.at_most(f"{name}: time of the slowest", slowest, _SECONDS, "s")
    # Mutants that all fail at the door would prove nothing about what lies behind it.
    check.at_least(f"{name}: still read", kinds["value"] / count, 0.1)
    check.at_least(f"{name}: codes met", len(codes), 30 if count > 5000 else 20)


def _judge_commands(check: Check, trial: _Trial) -> None:
    from numbat_imaging.phantoms.trials import trials

    done = list(
        trials(_ON_COMMAND_LINE, lambda n: _by_commands(trial, 7 * n), seconds=2 * _SECONDS)
    )
    faults = [f"{trial.named(7 * o.number)}: {o.kind} {o.detail}" for o in done if o.is_fault]
    check.equal("command line: judged", len(done), _ON_COMMAND_LINE)
    check.equal("command line: other than read or refused", sorted(faults)[:20], [])


def _by_commands(trial: _Trial, number: int) -> str:
    """inspect and convert on one mutant: exit status 0 or 4, and nothing else."""
    from click.testing import CliRunner

    from numbat_imaging.cli import cli

    files = [str(path) for path in trial.written(number)]
    out = trial.folder / f"{os.getpid()} out"
    runner, met = CliRunner(), 0
    for arguments in (
        ["inspect", *files],
        ["inspect", "--json", *files],
        ["convert", "--contact-sheet", "--no-compress", *files, str(out)],
    ):
        result = runner.invoke(cli, arguments)
        if result.exit_code not in (0, 4):
            raise AssertionError(f"{arguments[0]} gave {result.exit_code}: {result.output[-300:]}")
        met = max(met, result.exit_code)
    rmtree(out, ignore_errors=True)
    return "value" if met == 0 else "refused"


def _judge_bombs(check: Check, folder: Path) -> None:
    from numbat_imaging.phantoms.bombs import BOMBS
    from numbat_imaging.phantoms.trials import read_whole_way, trials

    bombs = list(BOMBS.values())
    places = [folder / f"bomb {number}" for number in range(len(bombs))]
    for bomb, place in zip(bombs, places, strict=True):
        place.mkdir()
        bomb.write(place)
    judge: Callable[[int], str] = lambda n: read_whole_way(places[n])  # noqa: E731
    for outcome in sorted(trials(len(bombs), judge, seconds=_SECONDS), key=lambda o: o.number):
        bomb, place = bombs[outcome.number], places[outcome.number]
        size = sum(path.stat().st_size for path in place.iterdir())
        check.equal(f"{bomb.name}: outcome", outcome.detail, bomb.outcome)
        check.at_most(f"{bomb.name}: time", outcome.seconds, _SECONDS, "s")
        allowed = max(_BOUND_BYTES, _BOUND_TIMES * size)
        check.at_most(f"{bomb.name}: memory", outcome.grown_bytes, allowed, "bytes")
        rmtree(place)
