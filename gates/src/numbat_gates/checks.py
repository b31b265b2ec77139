"""What a gate measures with: each method adds one check to the gate, and says whether it passed.

A check fails rather than raises, so that one run shows every fault. What cannot be a measurement,
such as a condition that is no boolean, is refused: a check that cannot fail is no check.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from numbat_gates.comparison import are_equal, difference, is_undefined
from numbat_gates.corpora import corpus
from numbat_gates.digests import digest_bytes, digest_tree, is_digest
from numbat_gates.evidence import to_json
from numbat_gates.planes import Plane
from numbat_gates.registration import Gate
from numbat_gates.requirements import Requirements
from numbat_gates.results import CheckResult
from numbat_gates.verdicts import NotRun, Verdict
from numbat_ledger import Coverage, Entry, active_ledger, context, coverage, read_entries
from numbat_ledger.chain import Ledger, parse_line
from numbat_registries import Diagnostic, Refusal, find_code, load_registry, refuse
from numbat_registries.raising import sinks

_Data = TypeVar("_Data", bytes, str, Path)


class Check:
    """The checks of one gate while it runs.

    `whole_run` is False when the run has only some of the plane's gates, so that nothing can be
    said about the plane as a whole.
    """

    def __init__(
        self,
        gate: Gate,
        *,
        plane: Plane,
        requirements: Requirements,
        whole_run: bool = True,
        phases: Sequence[int] = (),
        listener: Callable[[CheckResult], None] | None = None,
    ) -> None:
        self.listener = listener
        self.gate = gate
        self.plane = plane
        self.requirements = requirements
        self.whole_run = whole_run
        self.phases = tuple(phases) or tuple(requirements.phases)
        self.results: list[CheckResult] = []
        self.not_run: list[str] = []
        self.clauses: dict[str, bool] = {}
        self.inputs: dict[str, str] = {}
        self._names: dict[str, int] = {}

    # ------------------------------------------------------------------ measurements

    def equal(self, name: str, measured: Any, required: Any, *, unit: str = "") -> bool:
        """Passes when the two are the same value; arrays also need the same shape."""
        same, why = are_equal(measured, required)
        return self._add(
            name, "equal", same, measured=measured, required=required, unit=unit, detail=why
        )

    def close(
        self, name: str, *, measured: Any, required: Any, atol: float, unit: str = ""
    ) -> bool:
        """Passes when no element is further than `atol`, in `unit`, from the required one.

        Shapes must agree; an empty array, a NaN, or an infinity against a number fails.
        """
        apart = difference(measured, required)
        detail = apart.fault or f"largest difference {apart.worst:.6g}"
        if apart.place:
            detail += f" at {list(apart.place)}"
        return self._add(
            name,
            "close",
            not apart.fault and apart.worst <= atol,
            measured=measured,
            required=required,
            tolerance=float(atol),
            unit=unit,
            detail=detail,
        )

    def true(
        self, name: str, condition: Any, *, measured: Any = None, required: Any = None
    ) -> bool:
        """Passes when the condition is True.

        Raises GATE-0401 for a condition that is no boolean: a non-empty list would always pass.
        """
        if not isinstance(condition, bool) and type(condition).__name__ not in ("bool", "bool_"):
            raise refuse("GATE-0401", check=name, type=type(condition).__qualname__)
        return self._add(
            name,
            "true",
            bool(condition),
            measured=condition if measured is None else measured,
            required=True if required is None and measured is None else required,
        )

    def at_most(self, name: str, measured: Any, limit: Any, unit: str = "") -> bool:
        """Passes when the measured number is not above the limit; an undefined one fails."""
        return self._bound(name, "at_most", measured, limit, unit)

    def at_least(self, name: str, measured: Any, limit: Any, unit: str = "") -> bool:
        """Passes when the measured number is not below the limit; an undefined one fails."""
        return self._bound(name, "at_least", measured, limit, unit)

    def _bound(self, name: str, kind: str, measured: Any, limit: Any, unit: str) -> bool:
        undefined = is_undefined(measured) or is_undefined(limit)
        within = measured <= limit if kind == "at_most" else measured >= limit
        return self._add(
            name,
            kind,
            not undefined and bool(within),
            measured=measured,
            required=limit,
            unit=unit,
            detail="undefined number" if undefined else "",
        )

    # ------------------------------------------------------------------ refusals

    def refuses(self, code: str, name: str | None = None) -> ExpectedRefusal:
        """A block that passes when it raises exactly this code, and puts that in the ledger.

        Raises GATE-0101 for a code that no registry holds.
        """
        return ExpectedRefusal(self, find_code(code).code, name)

    def notices(self, code: str, name: str | None = None) -> ExpectedNotice:
        """A block that passes when it records this warning or notice, and puts that in the ledger.

        Raises GATE-0101 for a code that no registry holds.
        """
        return ExpectedNotice(self, find_code(code).code, name)

    # ------------------------------------------------------------------ what is not measured

    def skip(self, name: str, reason: str) -> None:
        """Say that a check could not be made here: the gate is NOT_RUN, unless something failed."""
        self.not_run.append(f"{name}: {reason}")
        self._append(
            CheckResult(self._unique(name), "skip", verdict=Verdict.NOT_RUN, detail=reason)
        )

    def discharge(self, clause: str) -> None:
        """Say that the gate measures a declared clause here; it counts if the gate passes.

        Raises GATE-0402 for a clause that the gate's requirements do not have, GATE-0403 for one
        that awaits what no machine can settle.
        """
        self._checked_clause(clause)
        self.clauses[clause] = True

    def corpus(self, name: str, *, clauses: Sequence[str] = ()) -> Path | None:
        """The folder of a corpus set, or None; with it the clauses count, without it they do not.

        Raises what `discharge` and `numbat_gates.corpora.corpus` raise.
        """
        for clause in clauses:
            self._checked_clause(clause)
        path = corpus(name)
        for clause in clauses:
            # Where a clause rests on several sets, one that is absent leaves it undischarged.
            self.clauses[clause] = path is not None and self.clauses.get(clause, True)
        return path

    def _checked_clause(self, name: str) -> None:
        clause = self.requirements.clauses.get(name)
        mine = [
            item.id
            for requirement in self.gate.discharges
            for item in self.requirements.clauses_of(requirement)
        ]
        if clause is None or name not in mine:
            raise refuse("GATE-0402", clause=name, gate=self.gate.id, known=mine)
        if not clause.awaits.depends_on_machine:
            raise refuse("GATE-0403", clause=name, gate=self.gate.id, awaits=str(clause.awaits))

    # ------------------------------------------------------------------ inputs and the whole run

    def data(self, source: _Data, *, name: str = "") -> _Data:
        """Bind an input to the report by its digest, and give it back.

        A path inside an installed distribution is named by its place there, any other by `name` or
        by its last part.
        """
        if isinstance(source, bytes):
            digest = digest_bytes(source)
            self.note_input(f"bytes:{name or digest[7:19]}", digest)
        else:
            path = Path(source)
            self.note_input(name or input_name(path), digest_tree(path))
        return source

    def note_input(self, name: str, digest: str) -> None:
        """Add an input's digest, "sha256:" and 64 hexadecimal digits, under a name of its own.

        Gates bind their inputs with `data`. Raises GATE-0405 for what is no such digest.
        """
        if not is_digest(digest):
            raise refuse("GATE-0405", gate=self.gate.id, input=name, digest=digest)
        if self.inputs.get(name, digest) != digest:
            name = f"{name}#{digest[7:15]}"
        self.inputs[name] = digest

    def coverage(self) -> Coverage:
        """Which codes of the plane's registry the run's checks have asserted so far.

        For `last` gates. Of a run of some phases, only the codes of their requirements are judged.
        Raises NotRun when the run has only some of the gates, or keeps no ledger.
        """
        ledger = active_ledger()
        if not self.whole_run or ledger is None:
            raise NotRun("coverage needs a run of all gates")
        registry = load_registry(self.plane.registry)
        found = coverage(read_entries(ledger.path), registry)
        due = {
            code.code
            for code in registry.live
            if not code.requirement or self._in_phases(code.requirement)
        }
        return Coverage(
            covered=found.covered,
            uncovered=tuple(code for code in found.uncovered if code in due),
            unregistered=found.unregistered,
        )

    def covers_registry(self) -> None:
        """One check for each live code of the plane's registry: did a check raise and assert it?"""
        found = self.coverage()
        for code in sorted({*found.covered, *found.uncovered}):
            asserted = [f"{gate} {check}" for gate, check in found.covered.get(code, ())]
            self.true(
                f"{code} {find_code(code).name} is asserted by a check",
                code in found.covered,
                measured=asserted[:3],
                required="at least one check",
            )
        self.equal("codes raised and not registered", list(found.unregistered), [])

    def _in_phases(self, names: Sequence[str]) -> bool:
        known = [self.requirements.requirements.get(name) for name in names]
        return any(item is None or item.phase in self.phases for item in known)

    # ------------------------------------------------------------------ adding results

    def _add(
        self,
        name: str,
        kind: str,
        passed: bool,
        *,
        measured: Any = None,
        required: Any = None,
        tolerance: float | None = None,
        unit: str = "",
        detail: str = "",
    ) -> bool:
        self._append(
            CheckResult(
                name=self._unique(name),
                kind=kind,
                verdict=Verdict.PASS if passed else Verdict.FAIL,
                measured=to_json(measured),
                required=to_json(required),
                tolerance=tolerance,
                unit=unit,
                detail=detail,
            )
        )
        return passed

    def _append(self, result: CheckResult) -> None:
        self.results.append(result)
        if self.listener is not None:
            self.listener(result)

    def _unique(self, name: str) -> str:
        # A name stands for one check in the report, the matrix and the ledger.
        count = self._names[name] = self._names.get(name, 0) + 1
        return name if count == 1 else f"{name} #{count}"

    def unexpected(self, refusal: Refusal) -> None:
        """A refusal that no check asked for left the gate: the software declined its work."""
        self._add(
            f"no refusal: {refusal.code} {refusal.diagnostic.name}",
            "refuses",
            False,
            measured=refusal.code,
            required="no refusal",
            detail=f"{refusal.diagnostic.message} (raised at {refusal.diagnostic.site})",
        )


class ExpectedRefusal:
    """The block of `check.refuses`; `diagnostic` is what was raised, once the block has ended."""

    def __init__(self, check: Check, code: str, name: str | None) -> None:
        self.check = check
        self.code = code
        self.name = check._unique(name or f"refuses {code} {find_code(code).name}")
        self.diagnostic: Diagnostic | None = None
        self._watch = _LedgerWatch()

    def __enter__(self) -> ExpectedRefusal:
        self._watch.start(self.check.gate.id, self.name)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        entries = self._watch.stop()
        if isinstance(error, NotRun) or (error is not None and not isinstance(error, Exception)):
            return False
        passed, measured, detail = self._judge(error)
        if passed and self.diagnostic is not None:
            self._watch.record(self.code, entries, self.diagnostic, gate=self.check.gate.id)
        self.check._append(
            CheckResult(
                name=self.name,
                kind="refuses",
                verdict=Verdict.PASS if passed else Verdict.FAIL,
                measured=measured,
                required=self.code,
                detail=detail,
            )
        )
        return True

    def _judge(self, error: BaseException | None) -> tuple[bool, str | None, str]:
        if error is None:
            return False, None, "nothing was refused"
        if isinstance(error, Refusal):
            self.diagnostic = error.diagnostic
            return error.code == self.code, error.code, error.diagnostic.message
        return False, type(error).__qualname__, f"an exception that is no refusal, at {site(error)}"


class ExpectedNotice:
    """The block of `check.notices`; `diagnostics` are those of this process with the code."""

    def __init__(self, check: Check, code: str, name: str | None) -> None:
        self.check = check
        self.code = code
        self.name = check._unique(name or f"notices {code} {find_code(code).name}")
        self.diagnostics: list[Diagnostic] = []
        self._watch = _LedgerWatch()

    @property
    def diagnostic(self) -> Diagnostic | None:
        """The first of them, or None."""
        return self.diagnostics[0] if self.diagnostics else None

    def __enter__(self) -> ExpectedNotice:
        self._watch.start(self.check.gate.id, self.name)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        entries = self._watch.stop()
        self.diagnostics = [seen for seen in self._watch.seen if seen.code == self.code]
        elsewhere = [entry for entry in entries if entry.code == self.code]
        passed = bool(self.diagnostics or elsewhere)
        if error is not None:
            # What went wrong inside is for the gate to answer, not for this check to hide.
            return
        if passed:
            self._watch.record(self.code, entries, self.diagnostic, gate=self.check.gate.id)
        others = sorted({seen.code for seen in self._watch.seen} - {self.code})
        detail = self.diagnostic.message if self.diagnostic else ""
        self.check._append(
            CheckResult(
                name=self.name,
                kind="notices",
                verdict=Verdict.PASS if passed else Verdict.FAIL,
                measured=self.code if passed else (others or None),
                required=self.code,
                detail=detail or ("" if passed else "it was not recorded"),
            )
        )


class _LedgerWatch:
    """What reaches the ledger during a block, from this process and from those it started."""

    def __init__(self) -> None:
        self.seen: list[Diagnostic] = []
        self._ledger: Ledger | None = None
        self._offset = 0
        self._name = ""
        self._context: Any = None

    def start(self, gate: str, name: str) -> None:
        self._ledger = active_ledger()
        self._name = name
        if self._ledger is not None and self._ledger.path.exists():
            self._offset = self._ledger.path.stat().st_size
        self._context = context(gate=gate, check=name)
        self._context.__enter__()
        sinks.append(self._see)

    def _see(self, diagnostic: Diagnostic) -> None:
        self.seen.append(diagnostic)

    def stop(self) -> list[Entry]:
        sinks.remove(self._see)
        self._context.__exit__(None, None, None)
        if self._ledger is None or not self._ledger.path.exists():
            return []
        with self._ledger.path.open("rb") as stream:
            stream.seek(self._offset)
            lines = stream.read().decode("utf-8", "replace").splitlines()
        return [entry for line in lines if (entry := parse_line(line)) is not None]

    def record(
        self, code: str, entries: list[Entry], diagnostic: Diagnostic | None, *, gate: str
    ) -> None:
        """Write that a check asked for what the entry of this code recorded."""
        if self._ledger is None:
            return
        place = diagnostic.site if diagnostic else None
        own = [e for e in entries if e.kind in ("raise", "notice") and e.code == code]
        exact = [entry for entry in own if entry.site == place]
        if own:
            ref = (exact or own)[-1].seq
            self._ledger.append("assert", code=code, gate=gate, check=self._name, ref=ref)


def site(error: BaseException) -> str:
    """Where an exception was raised, as "module:function:line", without what it says."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return "an unknown place"
    code = trace.tb_frame.f_code
    name = trace.tb_frame.f_globals.get("__name__", "?")
    return f"{name}:{code.co_name}:{trace.tb_lineno}"


def input_name(path: Path) -> str:
    """The name of an input file: its place under a folder of installed packages, or its last part.

    Such a name, "installed:pydicom/data/…", is found again wherever the package is installed.
    """
    place = path.absolute()
    for root in sorted(map(Path, sys.path), key=lambda folder: -len(folder.parts)):
        if root.name == "site-packages" and place.is_relative_to(root):
            return f"installed:{place.relative_to(root).as_posix()}"
    return f"file:{path.name}"
