"""Series: the results of repeated calls, for a function that does not give the same each time."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import numpy as np

from ...spec.errors import CALL_FAILED
from ..cases.case import Case
from ..judging.subject import Subject
from .answers import Values
from .question import call_first, how_it_fails

#: Results of one call by name, or how it fails in words.
Results = Mapping[str, np.ndarray] | str

#: Calls in a row. If something happens once in sixty calls, they show it twice.
_CALLS = 130
#: Calls that a candidate may be behind: a counter in the target has run before, and a candidate's starts anew.
_BEHIND = 80


@attrs.frozen(eq=False)
class Series:
    """The outputs, or the gradients, of repeated calls with the same arguments."""

    case: Case
    #: Whether gradients are taken, and no outputs.
    gradients: bool
    #: Those of each call.
    results: tuple[Results, ...]

    @classmethod
    def of(cls, subject: Subject, case: Case, after: Case, *, gradients: bool, within: Series | None = None) -> Series:
        """
        The series of a subject.

        ``within``: make it long enough for this other series to begin at one of its calls. It ends early if that can
        begin at none.
        """
        subject.target.begin()
        call_first(subject, after)
        found: list[Results] = []
        changes = [] if within is None else within._changes()
        begins = [*range(_BEHIND + 1)]
        for place in range(_CALLS + (0 if within is None else _BEHIND)):
            try:
                found.append(subject.results(case, gradients=gradients))
            except CALL_FAILED as failure:
                found.append(how_it_fails(failure))
            if within is not None and place:
                change, last = _change(found[-2], found[-1]), place - 1
                begins = [one for one in begins if not 0 <= last - one < len(changes) or changes[last - one] == change]
                if not begins:
                    break
        return cls(case, gradients, tuple(found))

    @property
    def varies(self) -> bool:
        """Whether a call gave other bits than the first."""
        return len({_bits(one) for one in self.results}) > 1

    def is_within(self, longer: Series, subject: Subject) -> bool:
        """
        Whether another series, from one of its calls on, is the same apart from rounding, and changed in the same bits.
        """
        changes, there = self._changes(), longer._changes()
        for start in range(len(there) - len(changes) + 1):
            part = longer.results[start : start + len(self.results)]
            if there[start : start + len(changes)] == changes and self._agrees(part, subject):
                return True
        return False

    def _changes(self) -> list[bytes]:
        """For each call, the values that differ from the call before, and in which direction."""
        return [_change(before, now) for before, now in zip(self.results, self.results[1:], strict=False)]

    def _agrees(self, others: tuple[Results, ...], subject: Subject) -> bool:
        judged: set[tuple[bytes, bytes]] = set()
        for here, there in zip(self.results, others, strict=True):
            pair = _bits(here), _bits(there)
            if pair not in judged and not same_results(subject, self.case, here, there):
                return False
            judged.add(pair)
        return True


def same_results(subject: Subject, case: Case, here: Results, there: Results) -> bool:
    """Whether two calls of a case give the same apart from rounding, or fail in the same way."""
    if isinstance(here, str) or isinstance(there, str):
        return here == there
    return here.keys() == there.keys() and all(
        values_of(subject, case, name, value).agrees(values_of(subject, case, name, there[name]))
        for name, value in here.items()
    )


def _change(before: Results, now: Results) -> bytes:
    if isinstance(before, str) or isinstance(now, str):
        return repr((isinstance(before, str), now if isinstance(now, str) else "")).encode()
    pairs = [(before[name].astype(np.float64), now[name].astype(np.float64)) for name in sorted(now)]
    signs = [np.nan_to_num(np.sign(two - one)) for one, two in pairs]
    return b"".join(sign.astype(np.int8).tobytes() for sign in signs)


def values_of(subject: Subject, case: Case, name: str, got: np.ndarray) -> Values:
    """An output or a gradient of a case with the exact one and its envelope."""
    exact = subject.exact(case, name)
    assert exact is not None
    return Values.of(got, exact, subject.bound(case, name)(False))


def _bits(results: Results) -> bytes:
    if isinstance(results, str):
        return results.encode()
    return b"".join(results[name].tobytes() for name in sorted(results))
