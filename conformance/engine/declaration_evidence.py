"""
Evidence against a declaration that would excuse wrong results: they are not of the kind that it describes.

A class of 16-bit storage, and ``float64=float32``, allow large errors for any reason. Results that are merely
truncated, or that have more digits than float32, come from something else.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

import attrs
import numpy as np

from ...adapters.binding import Binding
from ...adapters.target import Target
from ...reference.formats import FORMATS
from ...spec.errors import CALL_FAILED
from ...spec.operators import OPERATORS
from ..cases.case import Case
from ..judging.library import fitted
from ..judging.subject import Subject
from ..judging.verdicts import Result
from ..requests.plan import Plan
from .modes import cases_in

#: How many errors of more than half a unit in the last place, all towards zero, show that results are truncated. By
#: chance, this many roundings to nearest go one way once in 2^32 functions.
_MIN_TRUNCATED = 32

#: Number of cases of the run, besides the violated ones, on which such errors are counted.
_OTHER_CASES = 40

#: The least number of calls, with and without gradients, that show whether x is read in float32: a result may round to
#: what it was by chance.
_MIN_READ = 8

#: The least error of a computation in float32, in envelopes of float64, where it is worst. The unit roundoffs are 2^29
#: apart, and the envelope of a small case counts far fewer than 2^19 roundings.
_LEAST_OF_FLOAT32 = 2.0**10


def _is_of_float32(got: np.ndarray) -> bool:
    """Whether all of a float64 result are float32 numbers."""
    with np.errstate(over="ignore"):
        return np.array_equal(got.astype(np.float32), got, equal_nan=True)


@attrs.frozen
class Evidence:
    """What the results of one binding say, on its violated cases and on others of the run."""

    plan: Plan
    target: Target
    binding: Binding
    violations: Sequence[Result]
    #: The subject as the run judged it, by dtype.
    subject: Callable[[str], Subject]

    def is_not_of_float32(self) -> bool:
        """
        Whether float64 results are wrong, and not because they are computed in float32.

        What is computed in float32 is a float32 number at the end. Where a last step is in float64, such as the product
        with a float64 gamma, it at least reads x in float32. Of other results nothing is said, because anything may
        have cost half of their digits.

        In a composed operator parts compute in float64 at any step, and get x as it is: one wrong y that is a float32
        number shows enough.
        """
        ratios = [one.ratio for one in self._of("float64") if one.ratio is not None]
        if ratios and max(ratios) < _LEAST_OF_FLOAT32:
            return True
        if not self._of("float64"):
            return False
        if OPERATORS[self.binding.operator].composed:
            return not any(_is_of_float32(got) for got in self._wrong(gradients=False))
        return not all(map(_is_of_float32, self._wrong() or self._shown())) and not self._reads_float32()

    def is_truncated(self) -> bool:
        """
        Whether 16-bit results are truncated exact values, which no class of storage describes.

        Such results lie within the envelopes of classes that round several times. But those round to nearest, and so
        err to either side.
        """
        narrow = dict.fromkeys(one.dtype for one in self.violations if FORMATS[one.dtype].narrow)
        return any(self._errs_inwards(dtype) for dtype in narrow)

    def _of(self, dtype: str) -> list[Result]:
        return [one for one in self.violations if one.dtype == dtype]

    def _wrong(self, *, gradients: bool = True) -> list[np.ndarray]:
        """The wrong float64 results of the violated cases."""
        subject, wrong = self.subject("float64"), []
        asked = [(subject.judge_output, subject.outputs), (subject.judge_gradient, subject.pull)]
        for case in self._violated_cases(subject):
            for judge, results in asked if gradients else asked[:1]:
                self.target.begin()
                with suppress(*CALL_FAILED):
                    wrong += [got for name, got in results(case).items() if judge(case, name, got, note="").violated]
        return wrong

    def _shown(self) -> list[np.ndarray]:
        """The wrong numbers that the report shows, where no call by itself is wrong."""
        seen = (one.counterexample for one in self._of("float64"))
        return [np.asarray(one.got or 0, np.float64) for one in seen if one is not None]

    def _reads_float32(self) -> bool:
        """Whether each float64 result stays the same, bit for bit, if x is rounded to float32 first."""
        subject, same = self.subject("float64"), 0
        for case in self._other_cases(subject):
            rounded = case.replace(x=case.x.astype(np.float32).astype(np.float64))
            if np.array_equal(rounded.x, case.x, equal_nan=True):
                continue
            for results in (subject.outputs, subject.pull):
                self.target.begin()
                with suppress(*CALL_FAILED):
                    before, after = results(case), results(rounded)
                    if not all(np.array_equal(got, after[name], equal_nan=True) for name, got in before.items()):
                        return False
                    same += 1  # a call that fails shows nothing
        return same >= _MIN_READ

    def _errs_inwards(self, dtype: str) -> bool:
        """Whether many results of a dtype are off by more than half a unit in the last place, all towards zero."""
        subject, inward = self.subject(dtype), 0
        for case in itertools.chain(self._violated_cases(subject), self._other_cases(subject)):
            self.target.begin()
            try:
                got = subject.outputs(case)["y"].astype(np.float64)
            except CALL_FAILED:
                continue
            exact = subject.truth(case).outputs()["y"].hi
            off = np.abs(got) - np.abs(exact)
            beyond = np.abs(got - exact) > FORMATS[dtype].unit_roundoff * np.abs(exact)
            inward += int((beyond & (off < 0)).sum())
            if (beyond & (off > 0)).any():
                return False
            if inward >= _MIN_TRUNCATED:
                return True
        return False

    def _violated_cases(self, subject: Subject) -> Iterator[Case]:
        for description in dict.fromkeys(one.violated_on for one in self._of(subject.dtype)):
            if description is not None:
                yield subject.new_library().fresh(description)

    def _other_cases(self, subject: Subject) -> Iterator[Case]:
        """Ordinary cases of the run, besides the violated ones."""
        cases = cases_in(subject.mode, self.plan.profile.cases(self.binding.operator, self.plan.seed))[:_OTHER_CASES]
        for description in filter(None, (fitted(one, self.binding) for one in cases)):
            yield subject.new_library().fresh(description)
