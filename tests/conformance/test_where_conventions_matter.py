"""In a dtype in which a convention does not matter, everything is judged as without it."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest

from normspec.conformance.engine.declaration_search import _Search
from normspec.conformance.engine.engine import Run
from normspec.conformance.judging.subject import Subject
from normspec.conformance.requests.plan import Plan
from normspec.conformance.requests.profiles import profile_of
from normspec.spec.conventions import CONVENTIONS, NORMATIVE, matters_in, operators_about
from normspec.spec.operators import OPERATORS

from .runs import DTYPES, FAULT, VARIANT, function, result, run, specimen

#: Cases of each operator that are judged under the convention and without it.
_CASES = 12


def _same(one: np.ndarray | None, other: np.ndarray | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.dtype == other.dtype and np.array_equal(one, other, equal_nan=True)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("operator", OPERATORS)
def test_envelopes_and_exact_values_are_the_same(operator: str, dtype: str) -> None:
    """The cases, the exact values and the envelopes of outputs and gradients do not change."""
    target = specimen(next(one for one in VARIANT.values() if one.operator == operator))
    plain = Subject(target, target.bindings[0], dtype, conventions=dict(NORMATIVE))
    left_out = [key for key in CONVENTIONS if operator in operators_about(key) and not matters_in(key, dtype)]
    assert left_out
    for key in left_out:
        for value in CONVENTIONS[key][1:]:
            other = attrs.evolve(plain, conventions={**NORMATIVE, key: value})
            assert other.format == plain.format
            library = other.new_library()
            for description in profile_of("quick").cases(operator, 0)[:_CASES]:
                case, same = plain.new_library().case(description), library.case(description)
                assert all(_same(case.inputs[name], same.inputs[name]) for name in case.inputs) and _same(
                    case.g, same.g
                )
                assert not any(other.relevant(name) for name in case.record.outputs)
                exact = plain.truth(case).outputs(), other.truth(case).outputs()
                for name in [*exact[0], *plain.truth(case).gradients()]:
                    here, there = (one.bound(case, name)(False) for one in (plain, other))
                    assert np.array_equal(here, there, equal_nan=True)
                assert all(np.array_equal(exact[0][name].hi, exact[1][name].hi, equal_nan=True) for name in exact[0])


def test_what_a_convention_is_not_about_is_not_judged_under_it() -> None:
    """The search for a declaration makes no call to learn that storage excuses nothing in float32."""
    calls = []

    def counted(*arguments: Any, **settings: Any) -> Any:
        calls.append(settings)
        return FAULT["ln-eps-on-std"].build().call(*arguments, **settings)

    target = function("layer_norm", counted)
    violation = result(run(target, requirements=("LN-F3",)), "LN-F3")
    made = Run(Plan((target,), ("float32",), "cpu", {}, profile_of("quick"), 0))
    search = _Search(made, target, target.bindings[0], [violation], float("inf"))
    before = len(calls)
    assert search._violated({"storage": "native", "mixed_dtypes": "promoted"}, violation)
    assert len(calls) == before
    assert search._violated({"storage": "native", "variance_algorithm": "one-pass"}, violation)
    assert len(calls) > before
