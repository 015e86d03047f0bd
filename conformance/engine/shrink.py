"""Shrinking: from a violation to the most telling case that shows it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import attrs

from ..cases.description import Description
from ..cases.plain import oddness, plainer, plainest
from ..cases.shapes import elements
from ..checks.registry import Check
from ..checks.repetitions import SHOWN_BY_REPEATING
from ..judging.findings import Finding
from ..judging.library import Library, fitted
from ..judging.subject import Subject
from .tally import Tally, findings

#: Elements that the reduction of one violation may try in all: seconds of work, so that a fault of large sizes is
#: reported soon.
REDUCTION = 2_000_000

#: Cases tried for one violation, and for all violations of a target in a dtype. Thus a function that fails everything
#: is reported in seconds. SLOW_TRIES holds if calls are slow. Cases are counted, so that no report depends on time.
TRIES = 250, 1500
SLOW_TRIES = 24, 120
#: Cases tried for a violation that only repetitions show: a try makes hundreds of calls where it does not show.
REPEATED_TRIES = 16
#: Once one of the plainest cases fails, how many more of them are tried for more readable numbers.
_MORE_PLAIN_CASES = 12

#: A value is readable between these two sizes, and an error is visible from this share of the value on.
_READABLE = 2.0**-10, 2.0**10
_VISIBLE = 2.0**-10

#: How many of the first figures of ``oddness`` are about eps, the magnitude, and the number of values.
_SIZE_FIGURES = 3

#: Fields that are taken from the original description when a case of another requirement is tried: they decide which
#: checks run on it, its mode and its parts.
_PURPOSE_FIELDS = ("requirements", "only", "mixed", "training", "recipe", "logits")


@attrs.frozen
class ShownViolation:
    """A violation, and the case that shows it."""

    finding: Finding
    description: Description

    @property
    def plainness(self) -> tuple[float, ...]:
        """How odd the case and its numbers are; the smaller of two is more telling."""
        ordinary = oddness(self.description)
        return (*ordinary[:2], not _readable(self.finding), *ordinary[2:])


@attrs.define
class Shrinker:
    """Shrinks violations. Cases that showed one requirement's violation are tried first for the next."""

    #: The cases that showed a violation, each with the requirements known to fail on it.
    _pool: dict[Description, set[str]] = attrs.field(factory=dict)
    _tried: int = 0

    def shrink(self, subject: Subject, tally: Tally, library: Library) -> ShownViolation:
        """Return the violation of the tally's requirement on the most telling of the tried cases."""
        assert tally.violation is not None and tally.description is not None
        repeated = tally.violation.note.startswith(SHOWN_BY_REPEATING)
        each, all_of_them = SLOW_TRIES if subject.slow else TRIES
        if repeated:
            each = min(each, REPEATED_TRIES)
        else:  # repetitions cost most, and did not show it
            subject = attrs.evolve(subject, repeats=0, large_repeats=0)
        search = _Search(tally.check, subject, library, min(each, max(all_of_them - self._tried, 1)))
        first_shown = ShownViolation(tally.violation, tally.description)
        try:
            found = self._search(search, first_shown)
        finally:
            self._tried += search.tried
        self._pool.setdefault(found.description, set()).add(tally.check.requirement)
        return found

    def adapted_cases(self, like: Description) -> list[Description]:
        """
        The cases that showed other violations, adapted to the purpose of a description, most telling first.

        Among cases with equally many values, one on which fewer requirements fail says more about each of them.
        """
        found: dict[Description, int] = {}
        for one, failing in self._pool.items():
            alike = _adapted(one, like)
            if alike is not None:
                found[alike] = min(len(failing), found.get(alike, len(failing)))

        def order(one: Description) -> tuple[float, ...]:
            ordinary = oddness(one)
            return (*ordinary[:_SIZE_FIGURES], found[one], *ordinary[_SIZE_FIGURES:])

        return sorted(found, key=order)

    def _search(self, search: _Search, first_shown: ShownViolation) -> ShownViolation:
        readable = _readable(first_shown.finding)  # if it is not, none need be

        def tells(shown: ShownViolation) -> bool:
            return not any(shown.plainness[:2]) and (_readable(shown.finding) or not readable)

        shown = search.first(self.adapted_cases(first_shown.description), enough=tells)
        if shown is None or not tells(shown):
            shown = _plainer_of(
                shown, search.first(plainest(first_shown.description), enough=tells, more=_MORE_PLAIN_CASES)
            )
        if shown is None:
            # Found again, so that the log holds only the calls of this violation.
            shown = search.shown(first_shown.description)
        return first_shown if shown is None else search.reduced(shown)


@attrs.define
class _Search:
    """The search for one violation."""

    check: Check
    subject: Subject
    library: Library
    tries: int
    tried: int = 0

    def shown(self, description: Description) -> ShownViolation | None:
        """The violation on a description; None if there is none, or if no try is left."""
        if self.tried >= self.tries:
            return None
        self.tried += 1
        fit = fitted(description, self.subject.binding)
        if fit is None:
            return None
        case = self.library.fresh(fit)
        if not self.check.when(case):
            return None
        found = findings(self.check, self.subject, case)
        return next((ShownViolation(one, fit) for one in found if one.violated and one.judged), None)

    def first(
        self, descriptions: Iterable[Description], *, enough: Callable[[ShownViolation], bool], more: int | None = None
    ) -> ShownViolation | None:
        """The first violation that is ``enough``, else the plainest; stops ``more`` cases after the first violation."""
        best: ShownViolation | None = None
        for description in descriptions:
            if best is not None and more is not None:
                more -= 1
                if more < 0:
                    break
            shown = self.shown(description)
            best = _plainer_of(best, shown)
            if shown is not None and enough(shown):
                return shown
        return best

    def reduced(self, shown: ShownViolation) -> ShownViolation:
        """The violation on ever plainer cases, until no step leads to a plainer one."""
        spent, progress = 0, True
        while progress:
            progress, least = False, oddness(shown.description)
            for description in plainer(shown.description):
                if oddness(description) >= least:
                    continue
                spent += elements(description)
                if spent > REDUCTION:
                    return shown
                found = self.shown(description)
                if found is not None and found.plainness < shown.plainness:
                    shown, progress = found, True
                    break
        return shown


def _adapted(known: Description, original: Description) -> Description | None:
    """The case that showed another requirement's violation, adapted to the purpose of this one."""
    if known.operator != original.operator:
        return None
    kept = {name: getattr(original, name) for name in _PURPOSE_FIELDS}
    return attrs.evolve(known, count=min(known.count, original.count), **kept)


def _plainer_of(one: ShownViolation | None, other: ShownViolation | None) -> ShownViolation | None:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other, key=lambda shown: shown.plainness)


def _readable(finding: Finding) -> bool:
    """Whether the numbers are of ordinary size and differ in the first few digits."""
    got, expected = finding.got, finding.expected
    if got is None or expected is None or not math.isfinite(got):
        return True
    least, most = _READABLE
    size = max(abs(got), abs(expected))
    return least <= size <= most and abs(got - expected) >= _VISIBLE * size
