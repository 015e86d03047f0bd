"""Requirements that fail on the same case for the same reason: all but the one that tells most refer to that."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import attrs
import numpy as np

from ...spec import requirements
from ..judging.verdicts import Counterexample, Result, Verdict


def telling(identifier: str) -> int:
    """
    How early a violated requirement is told.

    A wrong shape breaks everything else, and so does what is done to a part, so the contract (CM-T, CM-C1 to C3) comes
    first; a wrong formula breaks most laws, so the operator's values, its gradients and its laws follow in this order;
    what else is common to all operators comes last.
    """
    page, _, rest = identifier.partition("-")
    if page == "CM":
        return 0 if rest[:1] == "T" or rest in ("C1", "C2", "C3") else 9
    return "_FSIEGRL".find(rest[:1]) % 9


def folded(results: Sequence[Result]) -> list[Result]:
    """
    The results, those folded that fail on the same case, for the same reason, as one that tells more.

    The reason is the same where the same element of the same result of the same call is wrong by the same value, or
    where the same call raises the same at the same line. A MUST is not folded under a SHOULD.
    """
    order = {identifier: place for place, identifier in enumerate(requirements())}
    violated = [one for one in results if one.verdict.is_violation and one.counterexample is not None]
    violated.sort(key=lambda r: (r.verdict is not Verdict.FAIL, telling(r.requirement), order.get(r.requirement, 0)))
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
    """What is handed over in the call that shows it, and what is wrong there."""
    call, raised = case.call, case.raised
    inputs = tuple((name, _bits(array)) for name, array in sorted(case.inputs.items()) if name != "g")
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
