"""One mutation run: the gates on the code as it is, then on each seeded fault."""

from __future__ import annotations

import marshal
import random
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic

from numbat_gates.digests import FRAMEWORK_PACKAGES
from numbat_gates.mutation.judging import Answer, Bench, Judge, try_all
from numbat_gates.mutation.results import Fate, Judgement, MutationRun
from numbat_gates.mutation.seeding import Fault, compiled
from numbat_gates.mutation.settings import Settings, load_settings, seeded
from numbat_gates.planes import Plane
from numbat_gates.registration import load_gates
from numbat_gates.requirements import requirements_of
from numbat_registries import refuse

#: A trial has this long beyond ten times what its gates took; machines are shared.
_PATIENCE_S = 60.0
_BASELINE_S = 3600.0
_MEMORY_BYTES = 12 << 30

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class _Reach:
    """What the gates do on the code as it is.

    `seconds`: how long each judging gate took. `lines`: for each file, which gates run which line.
    `silent`: gates that did not pass for lack of something, and why. `modules`: those that every
    judging gate loads.
    """

    seconds: Mapping[str, float]
    lines: Mapping[str, Mapping[int, frozenset[str]]]
    silent: Mapping[str, str]
    modules: tuple[str, ...]

    def gates_for(self, fault: Fault) -> list[str]:
        """The gates that run the statement of a fault, quickest first.

        What runs on import decides for every gate that runs anything of the module.
        """
        lines = self.lines.get(str(fault.path), {})
        first, last = fault.lines
        wanted = range(first, last + 1) if fault.function else lines
        names = {name for line in wanted for name in lines.get(line, ())}
        return sorted(names, key=lambda name: (self.seconds[name], name))


def mutate(
    plane: Plane,
    *,
    sample: int | None = None,
    seed: int = 0,
    module: str = "",
    at_least: float | None = None,
    workers: int = 2,
    progress: Progress | None = None,
) -> MutationRun:
    """Seed faults into a plane's code, one at a time, and see which of them its gates catch.

    `sample` takes that many faults by chance (`seed`), `module` those of modules whose name has
    this in it. `progress` is told what is being done, and how much of it.

    Raises GATE-0801 without usable settings, GATE-0802 when a gate does not pass on the code as it
    is, GATE-0803 when nothing is left to seed or to judge with.
    """
    begin = monotonic()
    settings = load_settings(plane)
    every = seeded(plane, settings)
    chosen = _chosen(plane, every, sample=sample, seed=seed, module=module)
    told = progress or (lambda what, done, total: None)
    with tempfile.TemporaryDirectory(prefix="numbat-mutation-") as folder:
        bench = _bench(plane, settings, Path(folder))
        reach = _baseline(bench, settings, chosen, workers=workers, progress=told)
        ready, reach = _rehearsed(bench, chosen, reach, workers=workers, progress=told)
        found = dict(_judgements(ready, settings, chosen, reach, workers=workers, progress=told))
    return MutationRun(
        plane=plane.name,
        version=plane.version,
        judgements=tuple(found[fault.id] for fault in chosen),
        at_least=settings.at_least if at_least is None else at_least,
        duration_s=monotonic() - begin,
        sample=sample,
        seed=seed,
        seconds=reach.seconds,
        silent=reach.silent,
        stale=tuple(sorted(set(settings.equivalent) - {fault.id for fault in every})),
    )


def _chosen(
    plane: Plane, every: Sequence[Fault], *, sample: int | None, seed: int, module: str
) -> list[Fault]:
    wanted = [fault for fault in every if module in fault.module]
    if not wanted:
        raise refuse(
            "GATE-0803", plane=plane.name, reason=f"no module with {module!r} in its name has any"
        )
    if sample is None or sample >= len(wanted):
        return wanted
    # The same seed takes the same faults wherever they stand in the file.
    by_id = sorted(wanted, key=lambda fault: fault.id)
    taken = {fault.id for fault in random.Random(seed).sample(by_id, sample)}
    return [fault for fault in wanted if fault.id in taken]


def _bench(plane: Plane, settings: Settings, scratch: Path) -> Bench:
    shared = scratch / "shared"
    shared.mkdir()
    environment = {
        name: value.replace("{scratch}", str(shared))
        for name, value in settings.environment.items()
    }
    return Bench(plane=plane, scratch=scratch, environment=environment, memory_bytes=_MEMORY_BYTES)


def _preloaded(plane: Plane, faults: Iterable[Fault], modules: Iterable[str]) -> tuple[str, ...]:
    """What a judge may load before its first trial: all that no fault can reach."""
    changed = {fault.module.partition(".")[0] for fault in faults}
    fresh = {plane.package, *changed}
    if fresh & set(FRAMEWORK_PACKAGES):
        # Everything of ours rests on them.
        return tuple(name for name in modules if not name.startswith("numbat"))
    return tuple(name for name in modules if name.partition(".")[0] not in fresh)


# ---------------------------------------------------------------------- the code as it is


def _baseline(
    bench: Bench,
    settings: Settings,
    faults: Sequence[Fault],
    *,
    workers: int,
    progress: Progress,
) -> _Reach:
    """Run each judging gate by itself, noting which lines of the modules it runs."""
    plane = bench.plane
    gates = _judging_gates(plane, settings)
    files = sorted({str(fault.path) for fault in faults})

    def trial(judge: Judge, name: str) -> Answer:
        trace = str(bench.scratch / f"{name}.lines")
        return judge.try_gates(
            [name], limit_s=_BASELINE_S, trace=trace, files=files, tell_modules=True
        )

    answers: dict[str, Answer] = {}
    for name, answer in try_all(bench, gates, trial, workers=workers):
        answers[name] = answer
        progress("gates on the code as it is", len(answers), len(gates))
    silent = {
        name: answers[name].how
        for name in gates
        if not answers[name].passed and answers[name].how.startswith("NOT_RUN")
    }
    failing = {
        name: answers[name].how for name in gates if not answers[name].passed and name not in silent
    }
    if failing:
        raise refuse("GATE-0802", plane=plane.name, gates=sorted(failing), how=[*failing.values()])
    judging = [name for name in gates if name not in silent]
    if not judging:
        raise refuse("GATE-0803", plane=plane.name, reason="no gate of it passes here")
    return _Reach(
        seconds={name: (answers[name].seconds or {}).get(name, 0.0) for name in judging},
        lines=_lines_of(bench.scratch, judging, files),
        silent=silent,
        modules=tuple(sorted(set.intersection(*(set(answers[name].modules) for name in judging)))),
    )


def _rehearsed(
    bench: Bench, faults: Sequence[Fault], reach: _Reach, *, workers: int, progress: Progress
) -> tuple[Bench, _Reach]:
    """The bench as faults will be tried on it, after a trial of each gate without a fault.

    Libraries are loaded before the fork only if all gates pass with that too: a gate that fails
    for the way it is run would seem to catch everything. The times without tracing are taken here.
    """
    ready = replace(bench, preload=_preloaded(bench.plane, faults, reach.modules))

    def trial(judge: Judge, name: str) -> Answer:
        return judge.try_gates([name], limit_s=_BASELINE_S)

    seconds: dict[str, float] = {}
    for name, answer in try_all(ready, list(reach.seconds), trial, workers=workers):
        if not answer.passed:
            return bench, reach
        seconds[name] = (answer.seconds or {}).get(name, 0.0)
        progress("gates as they will judge", len(seconds), len(reach.seconds))
    return ready, replace(reach, seconds={name: seconds[name] for name in reach.seconds})


def _judging_gates(plane: Plane, settings: Settings) -> list[str]:
    # What is measured over a whole run, such as coverage, says nothing of a single gate.
    gates = [gate.id for gate in load_gates(plane, requirements_of(plane)) if not gate.last]
    unknown = sorted(set(settings.gates) - set(gates))
    if unknown:
        reason = f"{unknown[0]} is no gate that can judge"
        raise refuse("GATE-0801", plane=plane.name, file=plane.mutation_file.name, reason=reason)
    chosen = [name for name in gates if not settings.gates or name in settings.gates]
    if not chosen:
        raise refuse("GATE-0803", plane=plane.name, reason="it has no gate that could judge")
    return chosen


def _lines_of(
    scratch: Path, gates: Iterable[str], files: Sequence[str]
) -> dict[str, dict[int, frozenset[str]]]:
    found: dict[str, dict[int, set[str]]] = {file: {} for file in files}
    for name in gates:
        trace = scratch / f"{name}.lines"
        for entry in trace.read_text(encoding="ascii").split("\n") if trace.exists() else ():
            if entry:
                number, line = map(int, entry.split())
                found[files[number]].setdefault(line, set()).add(name)
    return {
        file: {line: frozenset(names) for line, names in lines.items()}
        for file, lines in found.items()
    }


# ---------------------------------------------------------------------- one fault after the other


def _judgements(
    bench: Bench,
    settings: Settings,
    faults: Sequence[Fault],
    reach: _Reach,
    *,
    workers: int,
    progress: Progress,
) -> Iterator[tuple[str, Judgement]]:
    due: list[tuple[Fault, list[str]]] = []
    for fault in faults:
        gates = reach.gates_for(fault)
        if fault.id in settings.equivalent:
            why = settings.equivalent[fault.id]
            yield fault.id, Judgement(fault, Fate.DECLARED, how=why)
        elif not gates:
            yield fault.id, Judgement(fault, Fate.NOT_REACHED, how="no gate runs this line")
        else:
            due.append((fault, gates))

    def trial(judge: Judge, item: tuple[Fault, list[str]]) -> Judgement:
        return _tried(bench, judge, *item, reach=reach)

    done = len(faults) - len(due)
    for (fault, _), judgement in try_all(bench, due, trial, workers=workers):
        done += 1
        progress("seeded faults", done, len(faults))
        yield fault.id, judgement


def _tried(
    bench: Bench, judge: Judge, fault: Fault, gates: list[str], *, reach: _Reach
) -> Judgement:
    code = bench.scratch / f"{fault.id}.code"
    code.write_bytes(marshal.dumps(compiled(fault)))
    limit_s = _PATIENCE_S + 10 * sum(reach.seconds[name] for name in gates)
    answer = judge.try_gates(gates, limit_s=limit_s, module=fault.module, code=str(code))
    code.unlink()
    ran = answer.gates or tuple(gates[:1])
    return Judgement(fault, Fate.SURVIVED if answer.passed else Fate.CAUGHT, ran, answer.how)
