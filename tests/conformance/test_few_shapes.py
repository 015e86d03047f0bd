"""A function for which each new shape is compiled is put to few shapes, and to all that its cases are for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from normspec.adapters.numpy.operators import IMPLEMENTATIONS
from normspec.conformance.cases.deck import deck
from normspec.conformance.cases.few_shapes import in_few_shapes
from normspec.conformance.engine import Run
from normspec.conformance.plan import Plan
from normspec.conformance.profiles import profile_of
from normspec.conformance.specimens import target_of
from normspec.spec.operators import OPERATORS

#: How many shapes of x a slow function meets at `quick`, in each dtype.
MOST = {"layer_norm": 12, "rms_norm": 12}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("operator", MOST)
def test_quick_has_few_shapes(operator, dtype):
    """All calls of a slow function together are of so many shapes of x, those of derived cases included."""
    seen = set()

    def noted(function):
        def call(x, *rest, **settings):
            seen.add(x.shape)
            return function(x, *rest, **settings)

        return call

    target = target_of("a function", operator, IMPLEMENTATIONS[operator]().implementation())
    (binding,) = target.bindings
    derivatives = {name: noted(function) for name, function in binding.derivatives.items()}
    target = replace(target, bindings=(replace(binding, call=noted(binding.call), derivatives=derivatives),))
    plan = Plan((target,), (dtype,), "cpu", {}, profile_of("quick"), 0, slow=True, explain=False)
    report = Run(plan).report()
    assert report.conforms
    assert len(seen) <= MOST[operator], sorted(seen)


@pytest.mark.parametrize("operator", OPERATORS)
def test_a_case_stays_what_it_is_for(operator):
    """On one of the few shapes a case has the requirements, kinds of groups, eps and parameters that it had."""
    for one in deck(operator, "quick", 0):
        few = in_few_shapes(one)
        if few is None:
            assert "CM-S1" in one.requirements
            continue
        assert set(few.groups) == set(one.groups) or len(few.groups) < len(one.groups)
        kept = ("requirements", "eps", "gamma", "beta", "cotangent", "training", "recipe", "logits", "mixed", "only")
        assert [getattr(few, name) for name in kept] == [getattr(one, name) for name in kept]
        assert in_few_shapes(few) == few
