"""The sentences of a description."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from ...grouping import grouped
from .numbers import written_share
from .observing import ObservedResult
from .pattern import MOST_NAMES, WrongResult, with_verb
from .place import Place

#: What is said of gradients beside a wrong y that they do not follow from.
RIGHT_GRADIENTS = "the gradients are those of the right formula"
#: What is said of a wrong result for which no pattern was found.
WITHOUT_PATTERN = ", without a pattern that was found"


def how_often(seen: Sequence[ObservedResult], fresh: Sequence[ObservedResult], among: Place | None) -> str:
    """In how many cases it is wrong, where, and by how much: for results without a pattern."""
    wrong = [one for one in (*seen, *fresh) if one.wrong.any()]
    # "always unless ..." is hard to read.
    often = "" if among is None else f"always {among.words}".replace("always unless", "never where")
    return f"{in_how_many(seen, fresh)}{f', {often}' if often else WITHOUT_PATTERN}{_at_most(wrong)}"


def in_how_many(seen: Sequence[ObservedResult], fresh: Sequence[ObservedResult]) -> str:
    """In how many cases it is wrong."""
    cases = [*seen, *fresh]
    return f"wrong in {sum(bool(one.wrong.any()) for one in cases)} of {len(cases)} cases"


#: The rounding of float64.
_LEAST_SHARE = 2.0**-53


def _at_most(wrong: Sequence[ObservedResult]) -> str:
    errors = [
        float(np.abs(one.got - one.expected)[one.wrong].max() / np.abs(one.expected[one.judged]).max()) for one in wrong
    ]
    largest = float(np.max(errors)) if errors else np.inf  # NaN if one of them is
    # Below the rounding of every dtype only small values beside large ones are wrong, and their share says nothing.
    if not _LEAST_SHARE <= largest <= 0.5:
        return ""
    return f"; the largest error is {written_share(largest)} of the largest right value of its case"


def wrong_on_their_own(wrong: Sequence[WrongResult], outputs: Sequence[str]) -> list[WrongResult]:
    """Those that do not only follow from a wrong y, as gradients do: they are made of what y is made of."""
    y_is_wrong = any(one.result == "y" for one in wrong)
    return [one for one in wrong if one.result in outputs or not y_is_wrong]


def sentence_of(wrong: Sequence[WrongResult], names: Sequence[str], outputs: Sequence[str]) -> str:
    """One sentence for all wrong results. It says of gradients that only follow from a wrong y that they do."""
    bad = {one.result for one in wrong}
    follows = {one.name for one in wrong if one.result not in outputs and bad & set(outputs)}
    own = wrong_on_their_own(wrong, outputs)
    clauses = clauses_of([one for one in own if one.name not in follows or one.relation is not None])
    right = [name for name in names if name not in bad]
    if follows:
        clauses.append("gradients are wrong too")
    elif right and not bad & set(outputs):
        always = " in all of them" if any(one.size for one in wrong) else ""
        subject = with_verb(right) if len(right) <= MOST_NAMES else "everything else is"
        clauses.append(f"{subject} right{always}")
    elif right and "y" in bad and any(name not in outputs for name in right):
        clauses.append(RIGHT_GRADIENTS)
    return re.sub(r",(?=[;.])", "", f"{'; '.join(clauses)}.")


def clauses_of(wrong: Sequence[WrongResult]) -> list[str]:
    """One clause for all results that are wrong in the same words."""
    # What has no place is told by itself.
    alike = grouped(((one.predicate, one.name if one.place is None else ""), one.name) for one in wrong)
    return [f"{with_verb(names)} {predicate}" for (predicate, _), names in alike.items()]


def uncentred(sentence: str) -> str:
    """The sentence about the values themselves, in place of deviations."""
    sentence = sentence.replace("the variance", "the mean square").replace("squared deviations", "squares")
    return re.sub(r"\bvar\b", "mean(x^2)", sentence)


def capitalised(sentence: str) -> str:
    """A sentence with a capital, unless it begins with a symbol."""
    first = sentence.split(maxsplit=1)[0]
    is_word = first in ("the", "of", "a", "an", "no", "taking", "what", "each")
    return sentence[0].upper() + sentence[1:] if is_word else sentence
