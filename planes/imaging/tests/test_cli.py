"""The command line: exit statuses, pure streams, JSON on every verb, interruption."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from numbat_imaging import cli, inspection
from numbat_imaging.phantoms.reading import folder_of_fault


def run(capfd: pytest.CaptureFixture[str], *arguments: object, status: int) -> tuple[str, str]:
    with pytest.raises(SystemExit) as ended:
        cli.cli.main([str(argument) for argument in arguments])
    out, err = capfd.readouterr()
    assert ended.value.code == status, err
    return out, err


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (("inspect", "{clean}"), 0),
        (("inspect", "{gap}"), 4),
        (("inspect", "/nowhere"), 4),
        (("inspect",), 2),
        (("inspect", "{clean}", "--nonsense"), 2),
        (("inspect", "{clean}", "--workers", "0"), 2),
        (("inspect", "{clean}", "--position-mm", "-1"), 2),
        (("inspect", "{clean}", "--fourth-axis", "colour"), 2),
        (("convert", "{clean}", "{out}"), 0),
        (("convert", "{gap}", "{out}"), 4),
        (("convert", "{clean}"), 2),
        (("convert", "{clean}", "{clean}/IM0001"), 2),
        (("convert", "{clean}", "/proc/numbat"), 4),
        (("nothing",), 2),
        (("--version",), 0),
        (("--help",), 0),
    ],
)
def test_exit_statuses(
    arguments: tuple[str, ...], status: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    places = {
        "clean": folder_of_fault("clean"),
        "gap": folder_of_fault("middle-slice-missing"),
        "out": tmp_path / "out",
    }
    out, err = run(capfd, *(text.format(**places) for text in arguments), status=status)
    assert "Traceback" not in out + err
    assert out or err


@pytest.mark.parametrize("verb", ["inspect", "convert"])
@pytest.mark.parametrize("name", ["clean", "middle-slice-missing", "two-patients", "report"])
def test_json_is_the_only_thing_on_stdout(
    verb: str, name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    extra = [tmp_path / "out"] if verb == "convert" else []
    with pytest.raises(SystemExit):
        cli.cli.main([verb, str(folder_of_fault(name)), *map(str, extra), "--json"])
    out, err = capfd.readouterr()
    body: dict[str, Any] = json.loads(out)
    assert body
    assert err == ""


def test_stdout_holds_the_answer_and_stderr_the_talk(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out, err = run(capfd, "convert", folder_of_fault("tilt-1-tag-absent"), tmp_path, status=0)
    assert out.startswith("written")
    assert "IMG-1211" in err
    assert "IMG-1211" not in out
    assert not any(mark in out + err for mark in ("\x1b", "\r", "━"))


def test_an_interruption_claims_nothing(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(inspection, "inspect", interrupted)
    out, err = run(capfd, "inspect", folder_of_fault("clean"), status=3)
    assert out == ""
    assert "interrupted" in err
    out, _ = run(capfd, "inspect", folder_of_fault("clean"), "--json", status=3)
    assert json.loads(out)["verdict"] == "NOT_RUN"


def test_a_fault_of_our_own_tells_no_patient(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("Phantom^One")

    monkeypatch.setattr(inspection, "inspect", broken)
    out, err = run(capfd, "inspect", folder_of_fault("clean"), status=5)
    assert "Phantom" not in out + err


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are a POSIX thing")
@pytest.mark.parametrize("as_json", [False, True])
def test_progress_bars_are_for_terminals(as_json: bool) -> None:
    import pty

    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", "from numbat_imaging.cli import main; main()", "inspect"]
    command += [str(folder_of_fault("clean")), *(["--json"] if as_json else [])]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, env=environment) as child:
        assert child.stdout is not None
        answer = child.stdout.read()
        assert child.wait() == 0
    os.close(theirs)
    talk = b""
    try:
        while part := os.read(ours, 4096):
            talk += part
    except OSError:
        pass  # Linux reports the closed other side as an error.
    finally:
        os.close(ours)
    assert (b"reading headers" in talk) is not as_json
    assert b"reading headers" not in answer


@pytest.mark.skipif(sys.platform == "win32", reason="signals are a POSIX thing")
def test_control_c_ends_a_conversion_without_files(tmp_path: Path) -> None:
    script = (
        "import os, signal, numbat_imaging.conversion as c\n"
        "def slow(*a, **k): os.kill(os.getpid(), signal.SIGINT)\n"
        "c.volume_from_stack = slow\n"
        "from numbat_imaging.cli import main; main()\n"
    )
    out = tmp_path / "out"
    command = [sys.executable, "-c", script, "convert", str(folder_of_fault("clean")), str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 3, done.stderr
    assert list(out.iterdir()) == []
    assert signal.getsignal(signal.SIGINT) is not None
