"""A report's overall result: whether the target conforms, and the exit status."""

from __future__ import annotations

import pytest

from normspec import Report, Result, Verdict

#: The verdicts of MUST results, the overall result, and the exit status.
OUTCOMES = (
    ((Verdict.PASS,), True, 0),
    ((Verdict.DEVIATES,), True, 0),
    ((Verdict.PASS, Verdict.UNSUPPORTED, Verdict.NOT_EXERCISED), True, 0),
    ((Verdict.PASS, Verdict.FAIL), False, 1),
    ((Verdict.ERROR, Verdict.FAIL), False, 1),
    ((Verdict.PASS, Verdict.ERROR), False, 3),
    ((Verdict.NOT_EXERCISED,), False, 2),
    ((Verdict.UNSUPPORTED, Verdict.UNSUPPORTED), False, 2),
    ((), False, 2),
)


def made(verdict: Verdict, level: str = "MUST") -> Result:
    """A result with this verdict."""
    return Result("own", "own", "layer_norm", "LN-F1", level, "float32", "cpu", "eager", verdict)


def report(*results: Result, partial: bool = False) -> Report:
    """A report of these results."""
    return Report(results, profile="quick", seed=0, partial=partial)


@pytest.mark.parametrize(("verdicts", "conforms", "status"), OUTCOMES)
def test_conforming_needs_something_judged_and_nothing_wrong(
    verdicts: tuple[Verdict, ...], conforms: bool, status: int
) -> None:
    """Passes and declared deviations count, everything else at best does not harm."""
    found = report(*map(made, verdicts))
    assert (found.conforms, found.exit_status) == (conforms, status)


@pytest.mark.parametrize("verdict", [Verdict.FAIL, Verdict.ADVICE])
def test_advice_does_not_decide(verdict: Verdict) -> None:
    """A violated SHOULD is advice: it is reported, and the target conforms all the same."""
    found = report(made(Verdict.PASS), made(verdict))
    assert found.conforms == (verdict is Verdict.ADVICE)
    assert (len(found.failures()), len(found.advice())) == ((1, 0) if verdict is Verdict.FAIL else (0, 1))


def test_each_verdict_is_counted_under_its_own_name() -> None:
    """The report's counts and the results' verdicts use the same words in the same order."""
    found = report(made(Verdict.PASS), made(Verdict.ADVICE), made(Verdict.ADVICE))
    assert list(found.counts()) == [verdict.value for verdict in Verdict]
    assert found.counts()["advice"] == len(found.advice()) == 2


@pytest.mark.parametrize("verdict", list(Verdict))
def test_a_partial_report_never_conforms(verdict: Verdict) -> None:
    """An interrupted run is partial whatever it found: exit status 3."""
    found = report(made(Verdict.PASS), made(verdict), partial=True)
    assert (found.conforms, found.exit_status) == (False, 3)
