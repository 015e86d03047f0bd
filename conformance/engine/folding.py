"""Folding: of requirements that fail on the same case for the same reason, all refer to the most telling one."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import attrs
import numpy as np

from ...spec import requirements
from ...spec.identifiers import is_common, kind_of
from ..judging.verdicts import Counterexample, Result, Verdict

#: First letters of an operator's own ids, the most telling first: formula, statistics, inference, edges, gradients,
#: range, laws.
_TELLING = "FSIEGRL"


def priority(identifier: str) -> int:
    """
    Rank of a violated requirement: the lower it is, the more the violation says about the mistake.

    The contract (CM-T, CM-C1 to C3) comes first, because a wrong shape or a wrongly treated part breaks everything
    else. The operator's values, its gradients and its laws follow in this order, because a wrong formula breaks most
    laws. The other requirements common to all operators come last.
    """
    kind = kind_of(identifier)
    if is_common(identifier):
        return 0 if kind == "T" or identifier in ("CM-C1", "CM-C2", "CM-C3") else 9
    return 1 + (_TELLING.index(kind) if kind in tuple(_TELLING) else len(_TELLING))


def folded(results: Sequence[Result]) -> list[Result]:
    """
    The results, each naming the more telling requirement that fails on the same case for the same reason, if any.

    The reason is the same if the same element of the same result of the same call has the same wrong value, or if the
    same call raises the same exception at the same line. A MUST is not folded under a SHOULD.
    """
    order = {identifier: place for place, identifier in enumerate(requirements())}
    violated = [one for one in results if one.verdict.is_violation and one.counterexample is not None]
    violated.sort(key=lambda r: (r.verdict is not Verdict.FAIL, priority(r.requirement), order.get(r.requirement, 0)))
    first: dict[Hashable, str] = {}
    same: dict[int, str] = {}
    for one in violated:
        assert one.counterexample is not None
        key = (one.target, one.binding, one.op, one.dtype, *_reason(one.counterexample))
        leading = first.setdefault(key, one.requirement)
        if leading != one.requirement:
            same[id(one)] = leading
    return [attrs.evolve(one, same_case_as=same[id(one)]) if id(one) in same else one for one in results]


def _reason(case: Counterexample) -> tuple[Hashable, ...]:
    """Key of the reason: the arguments of the call that shows the violation, and the wrong result."""
    call, raised = case.call, case.raised
    inputs = tuple((name, _bits(array)) for name, array in sorted(case.arguments.items()))
    settings = tuple(sorted((name, repr(value)) for name, value in case.settings.items()))
    parts = tuple(sorted((role, repr(part)) for role, part in case.parts.items()))
    how = () if call is None else (call.mode, tuple(sorted(call.layouts.items())), _bits(call.g))
    if raised is not None:
        return inputs, settings, parts, how, raised
    wrong = tuple(None if value is None else float(value).hex() for value in (case.expected, case.got))
    words = case.note if case.got is None else ""  # without numbers the words are all there is
    return inputs, settings, parts, how, case.output, case.index, wrong, case.failure, words


def _bits(array: np.ndarray | None) -> Hashable:
    return None if array is None else (str(array.dtype), array.shape, array.tobytes())
