"""inspect and convert from the command line and from Python, alone, in processes, and on Dask."""

import json
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from numbat_gates import Check, gate
from numbat_imaging.phantoms.reading import convert_fault, folder_of_fault


@gate(
    "IMG-G09",
    phase=1,
    discharges=["IMG-R014"],
    title="The command line and Python do the same, with an account",
)
def commands(check: Check) -> None:
    with TemporaryDirectory() as folder:
        work = Path(folder)
        _exit_statuses(check, work)
        _account(check, work)
        _same_result(check, work)
    with check.refuses("IMG-1805", "no scheduler answers"):
        convert_fault("clean", dask="tcp://127.0.0.1:9")


def _run(*arguments: str) -> tuple[int, str, str]:
    command = [sys.executable, "-c", "from numbat_imaging.cli import main; main()", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout, done.stderr


def _exit_statuses(check: Check, work: Path) -> None:
    clean, refused = str(folder_of_fault("clean")), str(folder_of_fault("middle-slice-missing"))
    check.equal("inspect a sound scan", _run("inspect", clean)[0], 0)
    code, out, _ = _run("inspect", refused)
    check.equal("inspect a scan with a gap", code, 4)
    check.true("the table names the code", "IMG-1206" in out, measured=out[:300])
    check.equal("convert a sound scan", _run("convert", clean, str(work / "a"))[0], 0)
    code, _, err = _run("convert", refused, str(work / "b"))
    check.equal("convert a scan with a gap", code, 4)
    check.true("stderr says how to repair it", "acquire-data" in err, measured=err[:300])
    check.equal(
        "the same again is refused, not overwritten", _run("convert", clean, str(work / "a"))[0], 4
    )
    check.equal("an unknown option is malformed", _run("convert", "--nonsense")[0], 2)
    check.equal("a path where nothing is", _run("inspect", "/nowhere/at/all")[0], 4)


def _account(check: Check, work: Path) -> None:
    code, out, _ = _run(
        "convert", str(folder_of_fault("clean")), str(work / "c"), "--json", "--contact-sheet"
    )
    check.equal("convert --json", code, 0)
    body: dict[str, Any] = json.loads(out)
    check.equal("one volume in the account", [v["status"] for v in body["volumes"]], ["written"])
    check.equal("every file in the account", body["files"]["counts"]["used"], 10)
    names = sorted(p.name for p in (work / "c").iterdir())
    check.equal("the files named are the files there", sorted(body["volumes"][0]["files"]), names)
    sheet = next((work / "c").glob("*.png")).read_bytes()
    check.true("the contact sheet is a PNG", sheet.startswith(b"\x89PNG\r\n"), measured=len(sheet))
    body = json.loads(_run("inspect", str(folder_of_fault("two-patients")), "--json")[1])
    check.equal(
        "inspect --json gives the refusal", body["stacks"][0]["refusal"]["code"], "IMG-1101"
    )


def _same_result(check: Check, work: Path) -> None:
    source = str(folder_of_fault("localizer-inside"))
    results = {}
    for workers in (1, 2):
        out = work / f"workers {workers}"
        _run("convert", source, str(out), "--workers", str(workers))
        results[workers] = {p.name: p.read_bytes() for p in sorted(out.iterdir())}
    check.equal("files with one process", len(results[1]), 4)
    check.true(
        "two processes give the same bytes", results[1] == results[2], measured=sorted(results[2])
    )
    if find_spec("distributed") is None:
        return
    distributed: Any = import_module("distributed")

    out = work / "dask"
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None
    ) as cluster:
        code, _, err = _run("convert", source, str(out), "--dask", cluster.scheduler_address)
    check.equal("convert on a Dask cluster", code, 0)
    written = {p.name: p.read_bytes() for p in sorted(out.iterdir())} if out.is_dir() else {}
    check.true("a Dask cluster gives the same bytes", written == results[1], measured=err[-300:])
    check.discharge("IMG-R014.dask")
