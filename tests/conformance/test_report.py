"""What a report amounts to: whether the target conforms, and the exit status."""

from __future__ import annotations

import pytest

from normspec import Report, Result, Verdict

#: The verdicts of MUST results, what they amount to, and the exit status.
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


@pytest.mark.parametrize("level", ["MUST", "SHOULD"])
def test_advice_does_not_decide(level: str) -> None:
    """A violated SHOULD is advice: it is told, and the target conforms all the same."""
    found = report(made(Verdict.PASS), made(Verdict.FAIL, level))
    assert found.conforms == (level == "SHOULD")
    assert (len(found.failures()), len(found.advice())) == ((1, 0) if level == "MUST" else (0, 1))


@pytest.mark.parametrize("verdict", list(Verdict))
def test_a_partial_report_never_conforms(verdict: Verdict) -> None:
    """An interrupted run is partial whatever it found: exit status 3."""
    found = report(made(Verdict.PASS), made(verdict), partial=True)
    assert (found.conforms, found.exit_status) == (False, 3)
