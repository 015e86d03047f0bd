"""From a violation to the smallest case that shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs

from ..spec.operators import OPERATORS, Groups
from .cases.description import Description
from .cases.shapes import elements
from .cases.strategy import smallest
from .checks.registry import Check
from .findings import Finding
from .library import Library, fitted
from .subject import Subject
from .tally import Tally, findings

#: Elements that the plain reduction of one violation may try in all, and above which a case counts as large:
#: a fault of size is reported within seconds, reduced as far as that goes.
REDUCTION = 2_000_000
LARGE = 50_000

#: Searches by Hypothesis in one run, at most: after so many, what earlier searches found and plain
#: reduction serve, so that a function which fails everything is reported in seconds.
SEARCHES = 12

#: What a case keeps as it shrinks: what it is for, and the mode and parts that it shows that in.
_PURPOSE = ("requirements", "only", "mixed", "training", "recipe", "logits")


@attrs.define
class Shrinker:
    """Shrinks violations; small cases found for one requirement are tried first for the next."""

    _pool: list[Description] = attrs.field(factory=list)
    _searches: int = 0

    def shrink(self, subject: Subject, tally: Tally, library: Library) -> Finding:
        """Return the finding on the smallest case known to violate the tally's requirement."""
        assert tally.violation is not None and tally.description is not None
        check, original = tally.check, tally.description
        best: list[Finding] = []

        def fails(description: Description) -> bool:
            found = violation(check, subject, description, library)
            if found is not None:
                best[:] = [found]
            return found is not None

        for known in self._pool:
            kept = {name: getattr(original, name) for name in _PURPOSE}
            alike = attrs.evolve(known, count=min(known.count, original.count), **kept)
            if known.operator == original.operator and fails(alike):
                return best[0]
        if self._searches < SEARCHES:
            self._searches += 1
            found = smallest(original, fails)
            if found is not None:
                fails(found)
                self._pool.append(found)
                return best[0]
        reduced = _reduced(original, fails)
        return best[0] if reduced is not None and best else tally.violation


def violation(check: Check, subject: Subject, description: Description, library: Library) -> Finding | None:
    """Return the check's violation on a description, or None where there is none."""
    fit = fitted(description, subject.binding)
    if fit is None:
        return None
    case = library.fresh(fit)
    if not check.when(case):
        return None
    found = findings(check, subject, case)
    return next((f for f in found if f.violated and f.judged), None)


def _reduced(description: Description, fails: Callable[[Description], bool]) -> Description | None:
    """Return a smaller description that still fails: fewer groups first, then shorter ones."""
    if not fails(description):
        return None
    best, spent = description, 0
    progress = True
    while progress:
        progress = False
        for candidate in _smaller(best):
            spent += elements(candidate)
            if spent > REDUCTION:
                progress = False
                break
            if fails(candidate):
                best, progress = candidate, True
                break
    fails(best)
    return best


def _smaller(description: Description) -> Iterator[Description]:
    shaped = {"features": None, "leading": None, "samples": None, "width": None}
    by_channel = OPERATORS[description.operator].groups is Groups.CHANNEL
    if by_channel and description.samples is not None and description.samples < description.n:  # fewer positions
        positions = description.n // description.samples
        for fewer in dict.fromkeys((1, positions // 2, positions - 1)):
            yield attrs.evolve(description, n=description.samples * fewer)
    if description.repeat is not None:
        yield attrs.evolve(description, repeat=None)
        if description.repeat > 1:
            yield attrs.evolve(description, repeat=description.repeat // 2)
            yield attrs.evolve(description, repeat=description.repeat - 1)
    if len(description.groups) > 1:
        flat = {**shaped, "samples": description.samples}  # a channel has as many samples as before
        for group in description.groups:
            yield attrs.evolve(description, groups=(group,), **flat)
        half = len(description.groups) // 2
        yield attrs.evolve(description, groups=description.groups[:half], **flat)
        yield attrs.evolve(description, groups=description.groups[half:], **flat)
    if description.n > 1:
        for n in dict.fromkeys((2, 3, 4, description.n // 2, description.n - 1)):
            if n < description.n:
                yield attrs.evolve(description, n=n, **shaped)
                if by_channel and description.samples is not None:
                    yield attrs.evolve(description, n=n, samples=n)
