"""Work done while a worker imports its target: building the cases that will run on it, and their truths."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from itertools import islice

import attrs
import numpy as np

from ...adapters.dtypes import DTYPES
from ...reference.accuracy import AccuracyClass
from ...spec.operators import OPERATORS
from ..judging.library import Library
from ..judging.truth import arithmetic_of
from ..judging.truths import truth_of
from ..kept.cache_folder import truths_store
from ..requests.profiles import profile_of
from ..requests.request import Request
from .unit import Unit

#: Number of units prepared. Cases and truths of one take about ten megabytes until it is judged.
_MOST = 4


@attrs.define
class Preparation:
    """
    The libraries of a request's first units, filled as far as there is time.

    The target is not open yet, so it is assumed to follow all normative conventions. If it does not, it needs other
    cases and truths, which are made later.
    """

    request: Request
    _made: dict[tuple[str, str], Library] = attrs.field(factory=dict)

    def steps(self) -> Iterator[bool]:
        """Make cases and truths one by one, each in a few milliseconds."""
        with contextlib.suppress(Exception):  # a defect of normspec: it shows again when the case is judged
            yield from self._steps()

    def _steps(self) -> Iterator[bool]:
        request = self.request
        if request.only:  # few of the cases will run
            return
        profile, store = profile_of(request.profile), truths_store(request.cache)
        for operator, dtype in islice(self._units(), _MOST):
            library = self._made[operator, dtype] = Library(dtype)
            for description in profile.cases(operator, request.seed):
                if description.large:  # a step would take long, and all of them much memory
                    continue
                case = library.case(description)
                yield True
                truth = truth_of(case, store)
                arithmetic = arithmetic_of(case, AccuracyClass())
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
        """The libraries made for a unit, in the form of Run.libraries. They are removed here."""
        library = self._made.pop((unit.operator, unit.dtype), None)
        return {} if library is None or unit.seed != self.request.seed else {(unit.operator, *library.kind): library}

    def _units(self) -> Iterator[tuple[str, str]]:
        """The operators and dtypes that will be judged first, as far as the targets' names show them."""
        operators = {operator for name in self.request.names for operator in self.request.likely_operators(name)}
        for operator in OPERATORS:
            if operator in operators:
                for dtype in DTYPES:
                    if dtype in (self.request.dtypes or DTYPES):
                        yield operator, dtype
