"""The composed operators of TensorFlow's own functions, against those of the NumPy target."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from normspec.adapters import numpy as plain
from normspec.adapters.binding import COMPOSED
from normspec.adapters.errors import TargetRaised
from normspec.adapters.part import Part
from normspec.adapters.session import Session
from normspec.adapters.tensorflow import target

from ..composed_problems import PROBLEMS, SHAPE

TARGET = target()
PLAIN = plain.target()
BINDINGS = [binding for binding in TARGET.bindings if binding.operator in COMPOSED]
CASES = [
    pytest.param(binding, name, id=f"{binding.name}, {name}")
    for binding in BINDINGS
    for name, problem in PROBLEMS.items()
    if problem.operator == binding.operator
]


def _expected(problem):
    (binding,) = (b for b in PLAIN.bindings if b.operator == problem.operator)
    return Session(PLAIN, binding)


def _drawn(shape, dtype, seed):
    return np.random.Generator(np.random.Philox(seed)).normal(size=shape).astype(dtype)


def _wide(arrays):
    return {name: None if array is None else array.astype(np.float64) for name, array in arrays.items()}


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
@pytest.mark.parametrize(("binding", "name"), CASES)
def test_values_and_derivatives(binding, name, dtype):
    """Value, gradients, tangent and second order are those of the NumPy target in float64, up to roundings."""
    problem = PROBLEMS[name]
    session, expected = Session(TARGET, binding), _expected(problem)
    inputs, g = problem.drawn(dtype), _drawn(SHAPE, dtype, 1)
    along = {n: _drawn(inputs[n].shape, dtype, 2) for n in problem.names()}
    # The second derivative of tf.nn.moments in x is known to be wrong; that in the parameters is not.
    of_moments = problem.operator in ("pre_norm", "post_norm")
    second = {n: along[n] for n in problem.explicit() if n != "x" or not of_moments}
    settings, parts = problem.settings, problem.parts

    def all_of(session, inputs, g, along, second):
        evaluation = session.start(inputs, settings, parts=parts)
        return {
            **evaluation.outputs(),
            **{f"d{n}": gradient for n, gradient in evaluation.pull(g).gradients().items()},
            "tangent": session.jvp(inputs, settings, along, parts=parts),
            **{f"{n}_bar": bar for n, bar in session.vjp_vjp(inputs, settings, g, second, parts=parts).items()},
        }

    got = all_of(session, inputs, g, along, second)
    exact = all_of(expected, _wide(inputs), g.astype(np.float64), _wide(along), _wide(second))
    assert got.keys() == exact.keys()
    for what, value in exact.items():
        if value is None:
            assert got[what] is None, what
            continue
        assert got[what].dtype == dtype, what
        # A few dozen roundings of values of the largest's size: loose, since only the wiring is in question here.
        tolerance = 64 * float(ml_dtypes.finfo(dtype).eps) * (1 + np.abs(value).max())
        np.testing.assert_allclose(got[what].astype(np.float64), value, atol=tolerance, err_msg=what)


@pytest.mark.parametrize("operator", COMPOSED)
def test_every_composed_operator_has_a_binding(operator):
    """Each composed operator is there, with its parts handed over."""
    assert any(binding.operator == operator for binding in BINDINGS)


@pytest.mark.parametrize("binding", BINDINGS, ids=[b.name for b in BINDINGS])
def test_results_of_another_shape(binding):
    """TensorFlow refuses a result that cannot be broadcast, and broadcasts, as is declared, one that can."""
    problem = PROBLEMS[binding.operator]
    (role, part), *_ = problem.parts.items()

    def call(kind):
        def cut(part):
            return Part(kind, inner=(part,))

        parts = {**problem.parts, role: tuple(map(cut, part)) if isinstance(part, tuple) else cut(part)}
        return Session(TARGET, binding).start(problem.drawn(), problem.settings, parts=parts).outputs()["y"]

    with pytest.raises(TargetRaised, match=r"InvalidArgumentError: .*(Incompatible|Required broadcastable) shapes"):
        call("misshapen")
    assert "CM-C6" in binding.expected
    assert call("broadcasting").shape == SHAPE


def test_surplus_logits_are_refused():
    """A logit more than there are branches raises."""
    (binding,) = (b for b in BINDINGS if b.operator == "mhc")
    problem = PROBLEMS["mhc"]
    inputs = problem.drawn()
    inputs["logits"] = np.zeros(len(problem.parts["branches"]) + 1)
    with pytest.raises(TargetRaised):
        Session(TARGET, binding).start(inputs, {}, parts=problem.parts)


@pytest.mark.parametrize("binding", [b for b in BINDINGS if b.conventions.get("storage") == "native"])
def test_every_operation_is_rounded(binding):
    """In 16 bits the result is further from the exact one than one rounding could take it: storage is native."""
    problem = PROBLEMS[binding.operator]
    worst = 0.0
    for seed in range(8):
        inputs = problem.drawn(ml_dtypes.bfloat16, seed)
        y = Session(TARGET, binding).start(inputs, problem.settings, parts=problem.parts).outputs()["y"]
        exact = _expected(problem).start(_wide(inputs), problem.settings, parts=problem.parts).outputs()["y"]
        worst = max(worst, float((np.abs(y.astype(np.float64) - exact) / np.abs(exact)).max()))
    assert worst > 4 * 2.0**-8
