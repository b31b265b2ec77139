"""Verdicts and how they combine."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from numbat_gates.verdicts import ExitCode, Verdict, combine

verdicts = st.lists(st.sampled_from(list(Verdict)))


def test_nothing_measured_is_not_a_pass() -> None:
    assert combine([]) is Verdict.NOT_RUN


@given(verdicts)
def test_pass_means_that_there_was_something_and_all_of_it_passed(several: list[Verdict]) -> None:
    everything_passed = bool(several) and set(several) == {Verdict.PASS}
    assert (combine(several) is Verdict.PASS) == everything_passed


@given(verdicts, st.randoms())
def test_order_and_repetition_do_not_matter(several: list[Verdict], random: object) -> None:
    shuffled = several * 2
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert combine(shuffled) is combine(several)


@given(verdicts)
def test_a_failure_is_never_hidden_by_what_was_not_run(several: list[Verdict]) -> None:
    assert combine([*several, Verdict.FAIL]) in (Verdict.FAIL, Verdict.ERROR)


def test_exit_statuses_are_the_published_ones() -> None:
    assert {str(verdict): int(verdict.exit_code) for verdict in Verdict} == {
        "PASS": 0,
        "FAIL": 1,
        "NOT_RUN": 3,
        "ERROR": 5,
    }
    assert [int(code) for code in ExitCode] == [0, 1, 2, 3, 4, 5]
