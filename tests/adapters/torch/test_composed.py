"""The composed operators of PyTorch's own functions, against those of the NumPy target."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from normspec.adapters.targets import resolve
from normspec.spec.errors import TargetRaised, Unsupported
from normspec.spec.operators import COMPOSED

from ..composed_checks import agree, cases, with_results, worst_in_bfloat16
from ..composed_problems import PROBLEMS, SHAPE

TARGET = resolve("torch", op=COMPOSED)
BINDINGS = [b for b in TARGET.bindings if b.seams is None and not b.name.startswith("transformers")]


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
@pytest.mark.parametrize(("binding", "name"), cases(BINDINGS))
def test_values_and_derivatives(binding, name, dtype):
    """Value, gradients, tangent and second order are those of the NumPy target in float64, up to roundings."""
    # PyTorch 2.13 raises where LayerNorm has no weight and the gradient of its bias is differentiated again.
    agree(TARGET, binding, name, dtype, held=frozenset({"beta"} if name.endswith("no gamma") else ()))


@pytest.mark.parametrize("operator", COMPOSED)
def test_every_composed_operator_has_a_binding(operator):
    """Each composed operator has a binding, and its parts are passed."""
    assert any(binding.operator == operator for binding in BINDINGS)


def test_lerp_takes_no_carry():
    """torch.lerp has one weight: a separate carry gate is unsupported, and the reason says so."""
    (binding,) = (b for b in BINDINGS if b.name == "torch.lerp(x, H, t)")
    problem = PROBLEMS["highway, carry"]
    with pytest.raises(Unsupported, match="takes no carry"):
        TARGET.session(binding).start(problem.drawn(), {}, parts=problem.parts)


@pytest.mark.parametrize("binding", BINDINGS, ids=[b.name for b in BINDINGS])
def test_results_of_another_shape(binding):
    """PyTorch refuses a result that cannot be broadcast, and broadcasts, as is declared, one that can."""
    with pytest.raises(TargetRaised, match="RuntimeError: The size of tensor"):
        with_results(TARGET, binding, "misshapen")
    assert "CM-C6" in {one.requirement for one in binding.known_violations}
    assert with_results(TARGET, binding, "broadcasting").shape == SHAPE


@pytest.mark.parametrize("binding", [b for b in BINDINGS if b.conventions.get("storage") == "native"])
def test_highways_round_every_operation(binding):
    """In 16 bits the result is further from the exact one than a single rounding could move it: storage is native."""
    assert worst_in_bfloat16(TARGET, binding) > 4
