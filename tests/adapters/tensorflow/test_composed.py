"""The composed operators of TensorFlow's own functions, against those of the NumPy target."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from normspec.adapters.tensorflow import target
from normspec.spec.errors import TargetRaised
from normspec.spec.operators import COMPOSED, OPERATORS

from ..composed_checks import agree, cases, with_results, worst_in_bfloat16
from ..composed_problems import PROBLEMS, SHAPE

TARGET = target()
BINDINGS = [binding for binding in TARGET.bindings if OPERATORS[binding.operator].composed]


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
@pytest.mark.parametrize(("binding", "name"), cases(BINDINGS))
def test_values_and_derivatives(binding, name, dtype):
    """Value, gradients, tangent and second order are those of the NumPy target in float64, up to roundings."""
    # The second derivative of tf.nn.moments in x is known to be wrong; that in the parameters is not.
    of_moments = binding.operator in ("pre_norm", "post_norm")
    agree(TARGET, binding, name, dtype, held=frozenset({"x"} if of_moments else ()))


@pytest.mark.parametrize("operator", COMPOSED)
def test_every_composed_operator_has_a_binding(operator):
    """Each composed operator has a binding, and its parts are passed."""
    assert any(binding.operator == operator for binding in BINDINGS)


@pytest.mark.parametrize("binding", BINDINGS, ids=[b.name for b in BINDINGS])
def test_results_of_another_shape(binding):
    """TensorFlow refuses a result that cannot be broadcast, and broadcasts, as is declared, one that can."""
    with pytest.raises(TargetRaised, match=r"InvalidArgumentError: .*(Incompatible|Required broadcastable) shapes"):
        with_results(TARGET, binding, "misshapen")
    if binding.operator != "mhc":  # there no run of the suite meets it
        assert "CM-C6" in {one.requirement for one in binding.known_violations}
    assert with_results(TARGET, binding, "broadcasting").shape == SHAPE


def test_surplus_logits_are_refused():
    """A logit more than there are branches raises."""
    (binding,) = (b for b in BINDINGS if b.operator == "mhc")
    problem = PROBLEMS["mhc"]
    inputs = problem.drawn()
    inputs["logits"] = np.zeros(len(problem.parts["branches"]) + 1)
    with pytest.raises(TargetRaised):
        TARGET.session(binding).start(inputs, {}, parts=problem.parts)


@pytest.mark.parametrize("binding", [b for b in BINDINGS if b.conventions.get("storage") == "native"])
def test_every_operation_is_rounded(binding):
    """In 16 bits the result is further from the exact one than a single rounding could move it: storage is native."""
    assert worst_in_bfloat16(TARGET, binding) > 4
