"""Gradients that are missing because y does not depend on an input: told after what is wrong in y."""

from __future__ import annotations

from collections.abc import Sequence

from ....spec.errors import MissingGradient
from ...cases.case import Case
from ..unused import is_independent_of
from .observing import Observer
from .pattern import MOST_NAMES, listed


def lacking_inputs(observer: Observer, cases: Sequence[Case]) -> tuple[str, ...]:
    """
    The inputs that no gradient reaches in some of these cases, if y does not depend on them in any of those.

    Empty if gradients fail in another way too, or if y is right in all of those cases: then they are the mistake. Empty
    on a slow target too: to see that y does not depend on an input takes more calls.
    """
    names: dict[str, None] = {}
    wrong = False
    if observer.limited:
        return ()
    for case in cases:
        answer = observer.answer(case, derivative=True)
        if answer is None or not answer.words:
            continue
        failure = observer.failure(case, derivative=True)
        if not isinstance(failure, MissingGradient) or not is_independent_of(observer.subject, case, failure.missing):
            return ()
        names.update(dict.fromkeys(failure.missing))
        wrong = wrong or any(one.name == "y" and one.wrong.any() for one in observer.observed([case]))
    return tuple(names) if wrong else ()


def lacking_in_words(names: Sequence[str]) -> str:
    """What is said of these inputs beside a wrong y."""
    are_leaves = all("." in name for name in names) and len(names) > 1
    what = "some of the leaves" if are_leaves or len(names) > MOST_NAMES else listed(names)
    return f"no gradient reaches {what} where y does not depend on {'it' if len(names) == 1 else 'them'}"
