"""The exact values of a step's results, and the largest errors that a sound algorithm makes there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

import numpy as np

from ...adapters.binding import Binding
from ...adapters.target import Target
from ..cases.case import Case
from ..judging.call_log import LoggedCall
from ..judging.findings import WorstElement, compare
from ..judging.subject import Subject
from .probe import VariableContent


class Judge:
    """Compares the results of steps with the right ones, under the conventions that a target declares."""

    def __init__(self, operator: str, dtype: str, conventions: Mapping[str, str], flushes: frozenset[str]) -> None:
        self.operator = operator
        binding = Binding(operator, operator, lambda *_, **__: None)
        self.subject = Subject(
            cast(Target, None), binding, dtype, conventions=dict(conventions), flushes=flushes
        )  # this target is never called
        self._cases: dict[int, Case] = {}

    def violations(self, call: LoggedCall, seen: Mapping[str, VariableContent]) -> Iterator[tuple[str, WorstElement]]:
        """Each wrong output and gradient of a call, with the place where it is farthest off."""
        for name, one in seen.items():
            found = self.compared(call, name, one)
            if found is not None and found.judged and found.ratio > 1:
                yield name, found

    def compared(self, call: LoggedCall, name: str, one: VariableContent) -> WorstElement | None:
        """One output or gradient with the exact one; None if that is not known."""
        got = one.stored
        if got is None:
            return None
        try:
            with np.errstate(all="ignore"):
                exact = self._exact(call, name)
                if exact is None:
                    return None
                case = self._case(call)
                return compare(got, exact, self.subject.truth(case).bound(name, self.subject.arithmetic(case)))
        except Exception:  # a case without elements, or one without a truth
            return None

    def exact(self, call: LoggedCall, name: str, index: tuple[int, ...]) -> float | None:
        """One element of an output or gradient; None if it is not known."""
        try:
            with np.errstate(all="ignore"):
                found = self._exact(call, name)
            return None if found is None else float(found.hi[index])
        except Exception:  # as above
            return None

    def _exact(self, call: LoggedCall, name: str) -> Any:
        case = self._case(call)
        if name not in case.record.outputs and (call.g is None or name[:1] != "d"):
            return None
        return self.subject.exact(case, name)

    def _case(self, call: LoggedCall) -> Case:
        if id(call) not in self._cases:
            x = call.inputs["x"]
            assert x is not None
            g = np.ones_like(x) if call.g is None else call.g
            self._cases[id(call)] = Case(
                self.subject.operator, dict(call.inputs), dict(call.settings), g, parts=call.parts
            )
        return self._cases[id(call)]
