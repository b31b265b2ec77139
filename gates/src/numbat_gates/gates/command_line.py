"""The command line, each time in a process of its own: exit statuses, streams, refusals as JSON."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

from numbat_gates import Check, gate
from numbat_gates.command import malformed
from numbat_gates.gates._toy import Toy, ask, environment, toy_plane
from numbat_gates.planes import find_plane

_WAITS = """
import time
from pathlib import Path
Path(__file__).with_name("started").write_text("")
while True:
    time.sleep(0.05)
"""
#: What is asked → the code that is due; each of them ends with 2.
_REQUESTS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("an unknown plane", ("run", "radiology"), "GATE-0901"),
    ("an unknown plane of another verb", ("matrix", "radiology"), "GATE-0901"),
    ("an unknown flag", ("run", "toy", "--fast"), "GATE-0902"),
    ("an unknown verb", ("walk",), "GATE-0902"),
    ("a missing argument", ("run",), "GATE-0902"),
    ("one argument too many", ("run", "toy", "again"), "GATE-0902"),
    ("a phase that is no number", ("run", "toy", "--phase", "one"), "GATE-0902"),
    ("an unknown gate", ("run", "toy", "--gate", "TOY-G99"), "GATE-0903"),
    ("an unknown phase", ("run", "toy", "--phase", "9"), "GATE-0904"),
    ("an unknown plane to mutate", ("mutate", "radiology"), "GATE-0901"),
    ("an id that nothing has", ("explain", "TOY-X001"), "GATE-0905"),
    ("a key without a report", ("run", "toy", "--key", __file__), "GATE-0902"),
)
_LONG_S = 120


@gate(
    "GATE-G16",
    phase=4,
    discharges=["GATE-R015"],
    title="Six exit statuses of fixed meaning, from real processes",
)
def command_line(check: Check) -> None:
    with toy_plane() as toy:
        toy.requirements("TOY-R001").gate(1, "check.true('it counts', True)")
        _each_status(check, toy)
        _malformed(check, toy)
        _streams(check, toy)
        _interrupted(check, toy)
    with check.refuses("GATE-0901", "an unknown plane"):
        find_plane("radiology")
    with check.refuses("GATE-0902", "a malformed request"):
        raise malformed("No such option: --fast")


def _each_status(check: Check, toy: Toy) -> None:
    check.equal("0: measured, and passed", toy.ask("run", "toy").code, 0)
    toy.gate(2, "check.equal('one and one', 1 + 1, 3)")
    check.equal("1: measured, and failed", toy.ask("run", "toy").code, 1)
    check.equal("2: malformed request", toy.ask("run", "toy", "--fast").code, 2)
    toy.gate(2, "check.skip('a peer', 'not installed')")
    check.equal("3: not run", toy.ask("run", "toy").code, 3)
    toy.gate(2, "check.true('it counts', True)", discharges="TOY-R404")
    check.equal("4: refused", toy.ask("run", "toy").code, 4)
    toy.gate(2, "raise KeyError('spacing')")
    check.equal("5: internal error of a gate", toy.ask("run", "toy").code, 5)
    (toy.package / "gates" / "gate_02.py").unlink()
    script = "from numbat_gates import cli, planes\nplanes.find_plane = None\ncli.main()"
    broken = subprocess.run(
        [sys.executable, "-c", script, "run", "toy"],
        env=environment(toy.root),
        capture_output=True,
        text=True,
        timeout=_LONG_S,
        check=False,
    )
    check.equal("5: internal error of the command itself", broken.returncode, 5)
    check.true("it asks for a report", "GATE-0990" in broken.stderr)
    check.true("and shows no data", "Traceback" not in broken.stderr)


def _malformed(check: Check, toy: Toy) -> None:
    answers = toy.ask_all([(*arguments, "--json") for _, arguments, _ in _REQUESTS])
    for (name, _, code), answer in zip(_REQUESTS, answers, strict=True):
        check.equal(f"{name}: exit status", answer.code, 2)
        check.equal(f"{name}: code", answer.document["code"], code)
        check.equal(f"{name}: the status is told", answer.document["exit_code"], 2)
        check.at_least(f"{name}: ways out", len(answer.document["repair"]), 1, "plans")
    check.equal("no verb at all", toy.ask().code, 2)


def _streams(check: Check, toy: Toy) -> None:
    refused = toy.ask("run", "radiology")
    check.equal("a refusal leaves stdout empty", refused.stdout, "")
    check.true("and is told on stderr", "GATE-0901" in refused.stderr)
    check.true("with the planes that there are", "toy" in refused.stderr)
    answer = toy.ask("run", "toy", "--json")
    check.equal("JSON alone on stdout", answer.document["plane"], "toy")
    check.equal("no talk in between", answer.stderr, "")
    asked = toy.ask("run", "toy").stdout
    check.true("no colours in a pipe", "\x1b" not in asked)
    last = asked.splitlines()[-1]
    check.true("the verdict is the last line", last.startswith("PASS  toy"), measured=last)
    verbs = ("run", "list", "matrix", "coverage", "explain", "verify", "corpus", "mutate")
    for verb, helped in zip(verbs, toy.ask_all([(v, "--help") for v in verbs]), strict=True):
        check.equal(f"{verb} --help: exit status", helped.code, 0)
        check.true(f"{verb} --help: usage", helped.stdout.startswith("Usage: numbat-gates"))
    version = ask("--version")
    check.true("--version", version.stdout.startswith("numbat-gates "), measured=version.stdout)


def _interrupted(check: Check, toy: Toy) -> None:
    toy.gate(2, _WAITS)
    started = toy.package / "gates" / "started"
    with subprocess.Popen(
        [sys.executable, "-m", "numbat_gates", "run", "toy"],
        env=environment(toy.root),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as running:
        _await(started, running)
        running.send_signal(signal.SIGINT)
        stderr = running.communicate(timeout=_LONG_S)[1]
    check.equal("interrupted: exit status", running.returncode, 3)
    check.true("interrupted: nothing is claimed", b"nothing is claimed" in stderr)


def _await(file: Path, running: subprocess.Popen[bytes]) -> None:
    while not file.exists() and running.poll() is None:
        time.sleep(0.02)
