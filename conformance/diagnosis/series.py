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

#: Calls in a row. If something happens once in sixty calls, they show it twice.
_CALLS = 130
#: Calls that a candidate may be behind: a counter in the target has run before, and a candidate's starts anew.
_BEHIND = 80


@attrs.frozen(eq=False)
class Series:
    """The outputs, or the gradients, of repeated calls with the same arguments."""

    case: Case
    #: For each call, its results by name, or how it failed in words.
    results: tuple[Mapping[str, np.ndarray] | str, ...]

    @classmethod
    def of(cls, subject: Subject, case: Case, after: Case, *, gradients: bool, within: Series | None = None) -> Series:
        """
        The series of a subject.

        ``within``: make it long enough for this other series to begin at one of its calls. It ends early if that can
        begin at none.
        """
        subject.target.begin()
        call_first(subject, after)
        found: list[Mapping[str, np.ndarray] | str] = []
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
        return cls(case, tuple(found))

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

    def _agrees(self, others: tuple[Mapping[str, np.ndarray] | str, ...], subject: Subject) -> bool:
        judged: set[tuple[bytes, bytes]] = set()
        for here, there in zip(self.results, others, strict=True):
            pair = _bits(here), _bits(there)
            if pair in judged:
                continue
            judged.add(pair)
            if isinstance(here, str) or isinstance(there, str):
                if here != there:
                    return False
            elif set(here) != set(there) or not all(
                values_of(subject, self.case, name, value).agrees(values_of(subject, self.case, name, there[name]))
                for name, value in here.items()
            ):
                return False
        return True


def _change(before: Mapping[str, np.ndarray] | str, now: Mapping[str, np.ndarray] | str) -> bytes:
    if isinstance(before, str) or isinstance(now, str):
        return repr((isinstance(before, str), now if isinstance(now, str) else "")).encode()
    with np.errstate(all="ignore"):
        signs = [np.nan_to_num(np.sign(_wide(now[name]) - _wide(before[name]))) for name in sorted(now)]
    return b"".join(sign.astype(np.int8).tobytes() for sign in signs)


def values_of(subject: Subject, case: Case, name: str, got: np.ndarray) -> Values:
    """An output or a gradient of a case with the exact one and its envelope."""
    exact = subject.exact(case, name)
    assert exact is not None
    return Values.of(got, exact, subject.bound(case, name)(False))


def _wide(values: np.ndarray) -> np.ndarray:
    return values.astype(np.float64)


def _bits(results: Mapping[str, np.ndarray] | str) -> bytes:
    if isinstance(results, str):
        return results.encode()
    return b"".join(results[name].tobytes() for name in sorted(results))
