"""The verb `mutate`: faults are seeded into a plane's code, and what no gate catches is told."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from numbat_gates.command import answer_console, answer_json, talk_console
from numbat_gates.evidence import dumps
from numbat_gates.mutation import Fate, Judgement, MutationRun
from numbat_gates.mutation import mutate as run
from numbat_gates.planes import find_plane
from numbat_gates.verdicts import ExitCode

if TYPE_CHECKING:
    from rich.console import Console

    from numbat_gates.mutation.run import Progress


@click.command()
@click.argument("plane")
@click.option("--sample", type=click.IntRange(min=1), help="Take this many faults by chance.")
@click.option("--seed", type=int, default=0, show_default=True, help="Which chance.")
@click.option("--module", default="", help="Seed only modules with this in their name.")
@click.option(
    "--at-least",
    type=click.FloatRange(0, 1),
    help="The score that passes; by default that of mutation.toml.",
)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    default=2,
    show_default=True,
    help="How many faults are tried at once.",
)
@click.option(
    "--report",
    "report_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write every fault and its fate into this JSON file.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON on stdout.")
def mutate(
    plane: str,
    sample: int | None,
    seed: int,
    module: str,
    at_least: float | None,
    workers: int,
    report_file: Path | None,
    as_json: bool,
) -> ExitCode:
    """Seed faults into the code of PLANE, one at a time, and tell which ones no gate catches.

    No file is changed: each fault lives in a process of its own. Where faults are seeded is said in
    the mutation.toml of the plane.
    """
    found = find_plane(plane)
    talk = talk_console()
    with _bars(talk) if talk.is_terminal else _told_now_and_then(talk) as progress:
        done = run(
            found,
            sample=sample,
            seed=seed,
            module=module,
            at_least=at_least,
            workers=workers,
            progress=progress,
        )
    if report_file is not None:
        report_file.parent.mkdir(parents=True, exist_ok=True)
        report_file.write_text(dumps(done.to_dict()) + "\n", encoding="utf-8")
    if as_json:
        answer_json(done.to_dict())
    else:
        print_run(done, answer_console())
    return done.exit_code


@contextmanager
def _told_now_and_then(talk: Console) -> Iterator[Progress]:
    """Progress for a log: a line for each tenth of the work."""

    def told(what: str, done: int, total: int) -> None:
        if done == total or done * 10 // total > (done - 1) * 10 // total:
            talk.print(f"{what}: {done} of {total}")

    yield told


@contextmanager
def _bars(talk: Console) -> Iterator[Progress]:
    from rich.progress import MofNCompleteColumn, Progress, TimeElapsedColumn

    columns = (*Progress.get_default_columns()[:2], MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=talk, transient=True) as shown:
        tasks = {}

        def told(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = shown.add_task(what, total=total)
            shown.update(tasks[what], completed=done)

        yield told


def print_run(done: MutationRun, console: Console) -> None:
    """Print what no gate caught, where, and the score."""
    from rich.text import Text

    for fate, says in (
        (Fate.NOT_REACHED, "No gate runs these lines"),
        (Fate.SURVIVED, "No gate that runs these lines notices"),
        (Fate.DECLARED, "Declared to be no faults, and not counted"),
    ):
        found = done.having(fate)
        if found:
            console.print(Text(f"\n{says}: {len(found)}", style="bold"))
        for item in found:
            console.print(_lines(item), soft_wrap=True)
    for name, why in done.silent.items():
        console.print(Text(f"\n{name} judged nothing: {why}", style="yellow"))
    for name in done.stale:
        console.print(Text(f"\ndeclared, and there is no such fault: {name}", style="yellow"))
    console.print(_verdict(done), soft_wrap=True)


def _lines(item: Judgement) -> str:
    fault = item.fault
    where = f"{fault.module.replace('.', '/')}.py:{fault.line}"
    lines = [f"  {fault.id}  {where}  {fault.function or '(on import)'}  {fault.operator}"]
    lines += [f"      - {fault.source}", f"      + {fault.mutated}"]
    if item.fate is Fate.SURVIVED:
        lines.append(f"      passed: {', '.join(item.gates)}")
    if item.fate is Fate.DECLARED:
        lines.append(f"      because {item.how}")
    return "\n".join(lines)


def _verdict(done: MutationRun) -> str:
    counts = ", ".join(f"{len(done.having(fate))} {fate}" for fate in Fate)
    score = "no score" if done.score is None else f"score {done.score:.1%}"
    sampled = f" (a sample, seed {done.seed})" if done.sample else ""
    word = {ExitCode.PASS: "PASS", ExitCode.FAIL: "FAIL"}.get(done.exit_code, "NOT RUN")
    return (
        f"\n{word}  {done.plane}: {score} of {done.counted} seeded faults{sampled}, "
        f"{done.at_least:.0%} required; {counts}; {done.duration_s:.0f} s"
        f"  (exit {int(done.exit_code)}: {done.exit_code.says})"
    )
