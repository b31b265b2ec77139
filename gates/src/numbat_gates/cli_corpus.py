"""`numbat-gates corpus`: the data sets that no wheel carries."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from numbat_gates import corpora
from numbat_gates.command import (
    CommandGroup,
    answer_console,
    answer_json,
    malformed,
    talk_console,
    verb,
)
from numbat_gates.digests import digest_tree
from numbat_gates.verdicts import ExitCode
from numbat_registries import refuse

if TYPE_CHECKING:
    from rich.progress import Progress

corpus = CommandGroup(name="corpus", help="List and fetch the data sets that no wheel carries.")


@verb(corpus, "list")
def list_(as_json: bool) -> None:
    """List the sets that the installed planes name, and whether they are here."""
    root = corpora.corpus_root()
    rows = [_row(item, root) for item in corpora.corpus_sets().values()]
    if as_json:
        answer_json({"root": str(root), "sets": rows})
        return
    from rich.table import Table

    console = answer_console()
    console.print(f"in {root}")
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for title in ("set", "here", "licence", "source"):
        table.add_column(title, overflow="fold")
    for row in rows:
        table.add_row(row["name"], row["state"], row["licence"], row["source"])
    console.print(table)


def _row(item: corpora.CorpusSet, root: Path) -> dict[str, Any]:
    path = root / item.name
    state = "absent"
    if path.exists():
        state = "present" if digest_tree(path) == item.sha256 else "altered"
    return {
        "name": item.name,
        "title": item.title,
        "state": state,
        "licence": item.licence,
        "source": item.source,
        "commit": item.commit,
        "sha256": item.sha256,
        "can_be_downloaded": bool(item.archive),
    }


@verb(corpus)
@click.argument("names", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Fetch every set that planes name.")
@click.option(
    "--from",
    "offline",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Copy from this folder, which holds the sets or their archives, and use no network.",
)
@click.option(
    "--into",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where to put them; by default NUMBAT_CORPUS, or the user's cache.",
)
def fetch(
    names: tuple[str, ...],
    everything: bool,
    offline: Path | None,
    into: Path | None,
    as_json: bool,
) -> ExitCode:
    """Fetch the sets NAMES, and check each against its digest before it gets its name."""
    known = corpora.corpus_sets()
    if everything == bool(names):
        raise malformed("give the names of sets, or --all", help="numbat-gates corpus fetch --help")
    for name in names:
        if name not in known:
            raise refuse("GATE-0704", name=name, known=sorted(known))
    target = into if into is not None else corpora.corpus_root()
    chosen = [known[name] for name in (known if everything else names)]
    rows = _fetched(chosen, target, offline)
    if as_json:
        answer_json({"root": str(target), "sets": rows})
    else:
        for row in rows:
            click.echo(f"{row['name']}  {row['path']}")
    return ExitCode.PASS if rows else ExitCode.NOT_RUN


def _fetched(
    chosen: list[corpora.CorpusSet], target: Path, offline: Path | None
) -> list[dict[str, Any]]:
    from rich.progress import Progress

    rows = []
    with Progress(console=talk_console(), transient=True) as progress:
        for item in chosen:
            report = _reporter(progress, item.name)
            path = corpora.fetch(item, into=target, offline=offline, progress=report)
            rows.append({"name": item.name, "path": str(path), "sha256": item.sha256})
    return rows


def _reporter(progress: Progress, name: str) -> corpora.Progress:
    task = progress.add_task(name, total=None)

    def report(done: int, total: int | None) -> None:
        progress.update(task, completed=done, total=total)

    return report


@verb(corpus)
@click.argument("folder", type=click.Path(exists=True, path_type=Path))
def digest(folder: Path, as_json: bool) -> None:
    """Print the digest of FOLDER as corpus.toml names it."""
    found = digest_tree(folder)
    if as_json:
        files = [path for path in folder.rglob("*") if path.is_file()]
        size = sum(path.stat().st_size for path in files)
        answer_json({"sha256": found, "files": len(files), "size_bytes": size})
    else:
        click.echo(found)
