"""Refusals: what the valid calls have in common that raise, or return a wrong shape."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set

import numpy as np

from ....adapters.binding import differentiable
from ....spec.errors import BadOutput, MissingGradient, TargetRaised
from ...cases.case import Case
from ..answers import Values
from ..unused import parts_of, uncalled
from .observing import ObservedResult, Observer
from .places import place_of_cases

#: If calls fail in more ways than this, they are not told one by one.
_MOST_WAYS = 3
#: What is told of a missing gradient where its part is the reason.
_UNCALLED = "a part is not called, so that no gradient reaches its leaves,"


def refusal(
    observer: Observer, operator: str, formed: Sequence[Case], fresh: Sequence[Case], *, gradients: bool = True
) -> str:
    """
    How a call fails, and on which cases; empty if none fails, or if nothing is known about it.

    ``gradients``: whether calls for gradients count too.
    """
    for derivative in (False, True) if gradients else (False,):
        before, after = (_outcomes(observer, cases, derivative=derivative) for cases in (formed, fresh))
        failing = [one.case for one in (*before, *after) if one.wrong.any()]
        if failing:
            ways = _ways(observer, failing, derivative=derivative)
            places = [_place(operator, _among(before, cases), _among(after, cases)) for cases in ways.values()]
            whole = _place(operator, before, after)
            if len(ways) > _MOST_WAYS or (whole and not all(places)):
                ways, places = {f"{_subject(derivative)} fails in several ways": {*map(id, failing)}}, [whole]
            number = len(before) + len(after)
            told = zip(ways, places, ways.values(), strict=True)
            return "; ".join(words + (place or _counted(len(cases), number)) for words, place, cases in told)
    return ""


def _ways(observer: Observer, failing: Sequence[Case], *, derivative: bool) -> dict[str, set[int]]:
    """The ways in which calls fail, in words that hold for each of its cases."""
    alike: dict[str, dict[int, str]] = {}
    failures = [observer.failure(case, derivative=derivative) for case in failing]
    if all(one is None or _lost_all(one, case) for one, case in zip(failures, failing, strict=True)) and any(failures):
        return {"no gradient reaches any input": {*map(id, failing)}}
    for case, failure in zip(failing, failures, strict=True):
        if isinstance(failure, MissingGradient) and _is_of_uncalled_parts(observer, case, failure):
            alike.setdefault(_UNCALLED, {})[id(case)] = _UNCALLED
        elif failure is not None or not alike:
            words = _words(failure, derivative=derivative)
            alike.setdefault(_kind(failure, words), {})[id(case)] = words
        else:  # no call of a slow target is left: so this one is taken for one of the first
            next(iter(alike.values()))[id(case)] = ""
    return {_told(kind, [one for one in words.values() if one]): {*words} for kind, words in alike.items()}


def _is_of_uncalled_parts(observer: Observer, case: Case, failure: MissingGradient) -> bool:
    """Whether all inputs that lack a gradient are leaves of parts that the call leaves out."""
    parts = parts_of(failure.missing)
    return "" not in parts and not observer.limited and parts <= {*uncalled(observer.subject, case)}


def _kind(failure: Exception | None, words: str) -> str:
    """What the failures of one way have in common. Which leaves a case has, and of how many parts, says little."""
    if isinstance(failure, MissingGradient) and any(map(_is_leaf, failure.missing)):
        return " or ".join([*(one for one in failure.missing if not _is_leaf(one)), "some of the leaves"])
    return _NUMBERS.sub("#", words)


def _is_leaf(name: str) -> bool:
    return "." in name


def _told(kind: str, words: Sequence[str]) -> str:
    """What failures of one kind have in common, in words."""
    if kind.endswith("some of the leaves") and len({*words}) > 1:
        return f"no gradient reaches {kind}"
    return _example(words)


def _lost_all(failure: Exception, case: Case) -> bool:
    """Whether no gradient at all came; the message of each case then names the inputs that this case has."""
    return isinstance(failure, MissingGradient) and {*failure.missing} >= {*differentiable(case.operator, case.inputs)}


#: What differs between the messages of one mistake: shapes, and other numbers.
_NUMBERS = re.compile(r"[(\[][^()\[\]]*[)\]]|[-+]?\d[\w.+-]*")


def _example(texts: Sequence[str]) -> str:
    """The shortest of the messages of one mistake, and whether there are others."""
    example = min(texts, key=len)
    return example if len({*texts}) == 1 else f"{example}, and the like,"


def _among(outcomes: Sequence[ObservedResult], cases: Set[int]) -> list[ObservedResult]:
    """The same outcomes, with only these cases as those that fail."""
    return [
        one if id(one.case) in cases or not one.wrong.any() else _outcome(one.case, fails=False) for one in outcomes
    ]


def _place(operator: str, before: Sequence[ObservedResult], after: Sequence[ObservedResult]) -> str:
    """The place of the cases on which a call fails, in words; empty if none was found."""
    place = place_of_cases(operator, before, after)
    return "" if place is None else f" {place.words}"


def _counted(failing: int, number: int) -> str:
    return ", whatever is given" if failing == number else f" in {failing} of {number} cases"


def _outcomes(observer: Observer, cases: Sequence[Case], *, derivative: bool) -> list[ObservedResult]:
    """One number for each case: 1 if the call fails."""
    found = []
    for case in cases:
        answer = observer.answer(case, derivative=derivative)
        if answer is not None:
            found.append(_outcome(case, fails=bool(answer.words)))
    return found


def _outcome(case: Case, *, fails: bool) -> ObservedResult:
    values = Values(np.array([float(fails)]), np.zeros(1), np.zeros(1), 0.0)
    return ObservedResult(case, "the call", values, np.inf)


def _subject(derivative: bool) -> str:
    return "taking gradients" if derivative else "the call"


def _words(failure: Exception | None, *, derivative: bool) -> str:
    subject = _subject(derivative)
    if isinstance(failure, TargetRaised):
        return f"{subject} raises {_shortened(str(failure))}"
    if isinstance(failure, BadOutput):
        # Leave out the shapes, which are those of one case.
        told = re.sub(r" in place of .*", "", _shortened(str(failure)))
        return re.sub(r"has shape \(.*\)", "has a wrong shape", told)
    return f"{subject} fails"


def _shortened(words: str) -> str:
    line = " ".join(words.split()).rstrip(".")  # more words follow
    return line if len(line) <= 120 else f"{line[:117]}..."
