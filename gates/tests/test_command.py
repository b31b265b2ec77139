"""The scaffolding of command lines: exit statuses, problem details, and no patient's data."""

from __future__ import annotations

import json
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from numbat_gates.command import CommandGroup, answer_json, command_group, verb
from numbat_gates.verdicts import ExitCode, NotRun
from numbat_registries import load_registry, refuse

NAME = "DOE^JANE"


@pytest.fixture
def cli() -> CommandGroup:
    group = command_group("numbat-demo", "A demonstration.", lazy={"absent": "numbat_none:verb"})

    @verb(group)
    @click.argument("what")
    def act(what: str, as_json: bool) -> ExitCode | None:
        """Do as asked."""
        if what == "refuse":
            load_registry("radiology")
        if what == "malform":
            raise refuse("GATE-0901", plane="x", known=[])
        if what == "absent":
            raise NotRun("no scanner")
        if what == "break":
            raise KeyError(NAME)
        if what == "fail":
            return ExitCode.FAIL
        if what == "interrupt":
            raise KeyboardInterrupt
        if as_json:
            answer_json({"answer": what})
        else:
            click.echo(what)
        return None

    return group


def ask(cli: CommandGroup, *args: str) -> Result:
    return CliRunner().invoke(cli, args)


CASES = [
    (("act", "well"), ExitCode.PASS),
    (("act", "fail"), ExitCode.FAIL),
    (("act", "malform"), ExitCode.MALFORMED),
    (("act",), ExitCode.MALFORMED),
    (("act", "well", "--fast"), ExitCode.MALFORMED),
    (("act", "well", "more"), ExitCode.MALFORMED),
    (("unknown",), ExitCode.MALFORMED),
    (("absent",), ExitCode.MALFORMED),
    (("--fast",), ExitCode.MALFORMED),
    (("act", "absent"), ExitCode.NOT_RUN),
    (("act", "interrupt"), ExitCode.NOT_RUN),
    (("act", "refuse"), ExitCode.REFUSED),
    (("act", "break"), ExitCode.INTERNAL),
    (("--help",), ExitCode.PASS),
    (("act", "--help"), ExitCode.PASS),
    (("--version",), ExitCode.PASS),
]


@pytest.mark.parametrize(("args", "code"), CASES)
def test_exit_statuses(cli: CommandGroup, args: tuple[str, ...], code: ExitCode) -> None:
    result = ask(cli, *args)
    assert result.exit_code == code
    if code not in (ExitCode.PASS, ExitCode.FAIL):
        assert result.stdout == ""
        assert result.stderr


@pytest.mark.parametrize(("args", "code"), [case for case in CASES if case[1] > 1])
def test_as_json_stdout_is_one_document(
    cli: CommandGroup, args: tuple[str, ...], code: ExitCode
) -> None:
    result = ask(cli, *args, "--json")
    assert result.exit_code == code
    assert json.loads(result.stdout)["exit_code"] == code


def test_no_arguments_show_the_help_and_are_malformed(cli: CommandGroup) -> None:
    result = ask(cli)
    assert (result.exit_code, result.stdout) == (ExitCode.MALFORMED, "")
    assert "act" in result.stderr


def test_an_answer_goes_to_stdout_alone(cli: CommandGroup) -> None:
    assert (ask(cli, "act", "well").stdout, ask(cli, "act", "well").stderr) == ("well\n", "")
    assert json.loads(ask(cli, "act", "well", "--json").stdout) == {"answer": "well"}


def test_a_refusal_says_what_to_do(cli: CommandGroup) -> None:
    text = ask(cli, "act", "refuse").stderr
    assert "GATE-0102 unknown-registry" in text
    assert "supply-argument" in text
    problem = json.loads(ask(cli, "act", "refuse", "--json").stdout)
    assert problem["type"].endswith("/GATE-0102")
    assert problem["repair"][0]["action"] == "supply-argument"


def test_a_mistyped_option_is_told_with_the_usage(cli: CommandGroup) -> None:
    problem = json.loads(ask(cli, "act", "well", "--fast", "--json").stdout)
    assert problem["code"] == "GATE-0902"
    assert "--fast" in problem["fields"]["detail"]
    assert problem["fields"]["usage"] == "numbat-demo act [OPTIONS] WHAT"


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_fault_of_ours_tells_its_place_and_no_data(
    cli: CommandGroup, options: tuple[str, ...]
) -> None:
    result = ask(cli, "act", "break", *options)
    assert NAME not in result.output
    assert "KeyError" in result.output
    assert "test_command" in result.output
    assert "report-bug" in result.output


def test_the_traceback_is_shown_when_asked_for(
    cli: CommandGroup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBAT_TRACEBACK", "1")
    result = ask(cli, "act", "break")
    assert "Traceback" in result.stderr
    assert result.exit_code == ExitCode.INTERNAL


def test_every_verb_takes_json(cli: CommandGroup) -> None:
    def options(command: click.Command) -> set[str]:
        return {name for parameter in command.params for name in parameter.opts}

    assert all("--json" in options(command) for command in cli.commands.values())


def test_a_lazy_verb_is_listed_only_when_installed() -> None:
    group = command_group(
        "numbat-demo",
        "A demonstration.",
        lazy={"corpus": "numbat_gates.cli_corpus:corpus", "absent": "numbat_none:verb"},
    )
    result: Any = CliRunner().invoke(group, ["--help"])
    assert "corpus" in result.stdout
    assert "absent" not in result.stdout
