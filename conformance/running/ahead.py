"""What is done while a worker imports its target: the cases that it will be put to, and the truths about them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from itertools import islice

import attrs
import numpy as np

from ...adapters.dtypes import DTYPES
from ...adapters.targets import TARGETS
from ...reference.accuracy import AccuracyClass
from ...spec.conventions import NORMATIVE
from ...spec.operators import OPERATORS
from ..judging.library import Library
from ..judging.truth import arithmetic_of
from ..judging.truths import truth_of
from ..kept.place import store_at
from ..requests.profiles import profile_of
from ..requests.request import Request
from .unit import Unit

#: Units that are begun: what is made of one takes some ten megabytes until it is judged.
_MOST = 4


@attrs.define
class Ahead:
    """
    The libraries of a request's units, filled as far as there is time.

    Nobody knows yet what the target is: it is taken for one that follows every norm. Where it does not, its cases and
    truths are others, and made when they are needed.
    """

    request: Request
    _made: dict[tuple[str, str], Library] = attrs.field(factory=dict)

    def steps(self) -> Iterator[bool]:
        """Make one thing after the other, each in a few milliseconds."""
        with contextlib.suppress(Exception):  # ours: it shows where the thing is needed
            yield from self._steps()

    def _steps(self) -> Iterator[bool]:
        request = self.request
        profile, store = profile_of(request.profile), store_at(request.cache)
        for operator, dtype in islice(self._units(), _MOST):
            library = self._made[operator, dtype] = Library(dtype)
            for description in profile.cases(operator, request.seed):
                if description.large:  # a step would take long, and the memory of all of them is much
                    continue
                case = library.case(description)
                yield True
                truth = truth_of(case, store)
                arithmetic = arithmetic_of(case, AccuracyClass.from_conventions(NORMATIVE, frozenset()))
                with np.errstate(all="ignore"):
                    names = list(truth.outputs())
                yield True
                if not request.forward_only:
                    with np.errstate(all="ignore"):
                        names += [name for name, value in truth.gradients().items() if value is not None]
                    yield True
                for name in names:
                    with np.errstate(all="ignore"):
                        truth.bound(name, arithmetic, None, range_rule=True)
                    yield True

    def taken(self, unit: Unit) -> dict[tuple[str, ...], Library]:
        """What was made for a unit, as a run shares libraries; it is let go of here."""
        library = self._made.pop((unit.operator, unit.dtype), None)
        return {} if library is None or unit.seed != self.request.seed else {(unit.operator, *library.kind): library}

    def _units(self) -> Iterator[tuple[str, str]]:
        """The operators and dtypes that will be judged first, as far as names tell."""
        operators = [operator for name in self.request.names if isinstance(name, str) for operator in self._of(name)]
        for operator in OPERATORS:
            if operator in operators:
                for dtype in DTYPES:
                    if dtype in (self.request.dtypes or DTYPES):
                        yield operator, dtype

    def _of(self, name: str) -> tuple[str, ...]:
        """The operators of a target by its name; none where that does not tell."""
        asked = self.request.op_of(name)
        if name in TARGETS or asked is not None:
            return tuple(OPERATORS) if asked is None else asked
        function = name.rpartition(":")[2].rpartition(".")[2]
        return (function,) if function in OPERATORS else ()
