"""Answers of two functions to a check that makes calls which only one of them has."""

from __future__ import annotations

from normspec.conformance.diagnosis.answers import Answer, ComparisonOutcome

PLAIN = ComparisonOutcome("dx", "wrong", "plain", (0,), 1.0, 2.0)
HELD = ComparisonOutcome("dx", note="plain")
ALONE = ComparisonOutcome("dx", "wrong", "x alone needs a gradient", (0,), 1.0, 2.0)


def agree(some: tuple[ComparisonOutcome, ...], others: tuple[ComparisonOutcome, ...]) -> bool:
    """Whether two answers agree, whichever is asked."""
    found = {one.agrees(other) for one, other in ((Answer(comparisons=some), Answer(comparisons=others)),)}
    assert Answer(comparisons=others).agrees(Answer(comparisons=some)) in found
    return found.pop()


def test_a_call_that_one_of_them_has_not_is_left_out() -> None:
    """What both have decides."""
    assert agree((PLAIN, ALONE), (PLAIN,))
    assert not agree((PLAIN, ALONE), (HELD,))


def test_a_violation_that_only_such_a_call_shows_is_no_agreement() -> None:
    """The calls that both have are right: they say nothing of that violation."""
    assert not agree((HELD, ALONE), (HELD,))
    assert agree((HELD,), (HELD,))
