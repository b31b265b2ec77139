"""The scaffolding of every numbat command line: one set of exit statuses, `--json` on every verb,
refusals shown as text or as problem details, and faults of our own told without a patient's data.

    cli = command_group("numbat-imaging", "DICOM files to a volume one can trust.")

    @verb(cli)
    @click.argument("path")
    def inspect(path: str, as_json: bool) -> ExitCode: ...

stdout holds the answer, stderr the talk. A verb returns its ExitCode, or None for 0.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import IO, TYPE_CHECKING, Any, NoReturn, TypeVar, cast

import click

from numbat_gates.evidence import dumps
from numbat_gates.verdicts import ExitCode, NotRun
from numbat_registries import Refusal, Severity, refuse

if TYPE_CHECKING:
    from rich.console import Console

_TRAILING = re.compile(r"[ \t]+\n")
_Verb = TypeVar("_Verb", bound=Callable[..., Any])

_EXITS = "Exit status: " + ", ".join(f"{int(code)} {code.says}" for code in ExitCode) + "."


class CommandGroup(click.Group):
    """A click group with numbat's exit statuses; `lazy` maps verbs to "module:command".

    A lazy verb whose module is not installed is not there at all.
    """

    def __init__(self, *args: Any, lazy: Mapping[str, str] | None = None, **more: Any) -> None:
        super().__init__(*args, **more)
        self.lazy = dict(lazy or {})

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The verbs by name, lazy ones among them."""
        present = [name for name, target in self.lazy.items() if _is_installed(target)]
        return sorted({*super().list_commands(ctx), *present})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """One verb, imported now if it is lazy."""
        found = super().get_command(ctx, cmd_name)
        target = self.lazy.get(cmd_name)
        if found is not None or target is None or not _is_installed(target):
            return found
        module, _, attribute = target.partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def main(  # type: ignore[override]
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        **more: Any,
    ) -> NoReturn:
        """Run the command line and end the process with its exit status."""
        given = list(sys.argv[1:] if args is None else args)
        more["standalone_mode"] = False
        name = prog_name or self.name or "numbat"
        sys.exit(int(self._run(given, name, more)))

    def _run(self, args: list[str], name: str, more: dict[str, Any]) -> ExitCode:
        as_json = "--json" in args
        try:
            answer = super().main(args, prog_name=name, **more)
            return ExitCode(answer or 0)
        except click.exceptions.NoArgsIsHelpError as shown:
            click.echo(shown.format_message(), err=True)
            return ExitCode.MALFORMED
        except click.ClickException as error:
            return show_refusal(_usage(error, name), as_json=as_json)
        except Refusal as refusal:
            return show_refusal(refusal, as_json=as_json)
        except NotRun as absent:
            return _show_not_run(absent.reason, as_json=as_json)
        except (click.Abort, KeyboardInterrupt):
            return _show_not_run("interrupted: nothing is claimed", as_json=as_json)
        except BrokenPipeError:
            # The reader of stdout has gone; Python must not fail once more when it flushes.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return ExitCode.PASS
        except Exception as error:
            return _show_fault(error, _version_of(name), as_json=as_json)


def command_group(
    name: str, says: str, *, lazy: Mapping[str, str] | None = None, distribution: str = ""
) -> CommandGroup:
    """A command line with `--help`, and `--version` of `distribution` (else of its own name)."""
    group = CommandGroup(
        name=name,
        help=says,
        epilog=_EXITS,
        lazy=lazy,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    group.params.append(_version_option(name, distribution or name))
    return group


def _version_option(name: str, distribution: str) -> click.Option:
    def show(context: click.Context, _: click.Parameter, asked: bool) -> None:
        if asked and not context.resilient_parsing:
            click.echo(f"{name} {_version_of(distribution)}")
            context.exit()

    return click.Option(
        ["--version"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=show,
        help="Show the version and exit.",
    )


def verb(group: click.Group, name: str | None = None, **settings: Any) -> Callable[[_Verb], _Verb]:
    """Add a function to a group as a verb with `--json`; it gets that as `as_json`."""

    def add(function: _Verb) -> _Verb:
        option = click.option(
            "--json", "as_json", is_flag=True, help="Print the answer as JSON on stdout."
        )
        settings.setdefault("epilog", _EXITS)
        group.add_command(click.command(name, cls=click.Command, **settings)(option(function)))
        return function

    return add


def answer_json(value: Any) -> None:
    """Print a JSON answer on stdout: UTF-8, sorted keys."""
    click.echo(dumps(value))


def answer_console(*, width: int = 120) -> Console:
    """A console on stdout: colours in a terminal, plain text of a fixed width in a pipe."""
    return _console(sys.stdout, width)


def talk_console(*, width: int = 120) -> Console:
    """A console on stderr, for progress and remarks."""
    return _console(sys.stderr, width)


def _console(stream: Any, width: int) -> Console:
    from rich.console import Console

    terminal = stream.isatty()
    return Console(
        file=stream if terminal else cast("IO[str]", _Plain(stream)),
        width=None if terminal else width,
        highlight=False,
        soft_wrap=False,
        emoji=False,
        markup=False,
    )


class _Plain:
    """A stream for pipes and files: rich fills lines up with blanks, which nobody wants there."""

    def __init__(self, stream: IO[str]) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        return self.stream.write(_TRAILING.sub("\n", text))

    def flush(self) -> None:
        self.stream.flush()

    def isatty(self) -> bool:
        return False


def exit_code_of(refusal: Refusal) -> ExitCode:
    """The exit status of a refusal: 2 for those about the command line (-09xx), 5 for failures."""
    if refusal.diagnostic.severity is Severity.FAILURE:
        return ExitCode.INTERNAL
    return ExitCode.MALFORMED if refusal.code.partition("-")[2][:2] == "09" else ExitCode.REFUSED


def show_refusal(refusal: Refusal, *, as_json: bool) -> ExitCode:
    """Show a refusal, as text on stderr or problem details on stdout; gives its exit status."""
    from numbat_registries.rendering import to_problem, to_rich

    code = exit_code_of(refusal)
    if as_json:
        answer_json({**to_problem(refusal.diagnostic), "exit_code": int(code)})
    else:
        console = talk_console()
        console.print(to_rich(refusal.diagnostic), soft_wrap=not console.is_terminal)
    return code


def malformed(detail: str, *, usage: str = "", help: str = "") -> Refusal:  # noqa: A002
    """The refusal of a command line that is not understood (GATE-0902)."""
    return refuse("GATE-0902", detail=detail, usage=usage, help=help)


def internal_error(error: BaseException, *, version: str) -> Refusal:
    """The report of a fault of our own (GATE-0990): its type and place, never its text."""
    from numbat_gates.checks import site

    return refuse("GATE-0990", type=type(error).__qualname__, site=site(error), version=version)


def _usage(error: click.ClickException, name: str) -> Refusal:
    context = getattr(error, "ctx", None)
    path = context.command_path if context else name
    usage = context.command.get_usage(context).removeprefix("Usage: ") if context else path
    return malformed(error.format_message(), usage=" ".join(usage.split()), help=f"{path} --help")


def _show_not_run(reason: str, *, as_json: bool) -> ExitCode:
    if as_json:
        answer_json({"verdict": "NOT_RUN", "reason": reason, "exit_code": int(ExitCode.NOT_RUN)})
    else:
        talk_console().print(f"not run: {reason}")
    return ExitCode.NOT_RUN


def _show_fault(error: Exception, shown_version: str, *, as_json: bool) -> ExitCode:
    if os.environ.get("NUMBAT_TRACEBACK"):
        import traceback

        traceback.print_exception(error)
    return show_refusal(internal_error(error, version=shown_version), as_json=as_json)


def _version_of(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "not installed"


def _is_installed(target: str) -> bool:
    return find_spec(target.partition(":")[0]) is not None
