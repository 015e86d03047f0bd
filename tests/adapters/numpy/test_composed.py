"""The composed operators of the built-in NumPy target."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from normspec.adapters.build_parts import build_part
from normspec.adapters.numpy import BRIDGE, target
from normspec.adapters.numpy.operators import function
from normspec.adapters.session import Session
from normspec.spec.errors import PartRaised, TargetRaised
from normspec.spec.operators import OPERATORS
from normspec.spec.parts import Part

from ..composed_problems import PROBLEMS, SHAPE

TARGET = target()


def _session(problem):
    (binding,) = (b for b in TARGET.bindings if b.operator == problem.operator)
    return TARGET.session(binding)


def _rng(seed):
    return np.random.Generator(np.random.Philox(seed))


def _y(problem, inputs):
    return _session(problem).start(inputs, problem.settings, parts=problem.parts).outputs()["y"]


def _moved(inputs, along, t):
    return {
        name: None if array is None else array + t * along[name] if name in along else array
        for name, array in inputs.items()
    }


def _dot(left, right):
    return sum(float((left[name] * right[name]).sum()) for name in right)


@pytest.mark.parametrize("name", list(PROBLEMS))
def test_derivatives_agree_with_finite_differences(name):
    """jvp is the slope of y, vjp its transpose, vjp_vjp the transpose of the slope of vjp; leaves included."""
    problem, h = PROBLEMS[name], 1e-6
    session, inputs = _session(problem), problem.drawn()
    names, explicit = problem.names(), problem.explicit()
    along = {name: _rng(i).normal(size=inputs[name].shape) for i, name in enumerate(names)}
    g, g_along = _rng(90).normal(size=SHAPE), _rng(91).normal(size=SHAPE)

    slope = (_y(problem, _moved(inputs, along, h)) - _y(problem, _moved(inputs, along, -h))) / (2 * h)
    tangent = session.jvp(inputs, problem.settings, along, parts=problem.parts)
    np.testing.assert_allclose(tangent, slope, atol=1e-7)

    def pulled(t):
        evaluation = session.start(_moved(inputs, along, t), problem.settings, parts=problem.parts)
        return evaluation.pull(g + t * g_along).gradients()

    gradients = pulled(0)
    assert {n for n, gradient in gradients.items() if gradient is not None} == set(names)
    assert _dot(gradients, along) == pytest.approx(float((slope * g).sum()), abs=1e-7)

    # Second order concerns only the arguments.
    along = {name: along[name] for name in explicit}
    second = {name: _rng(70 + i).normal(size=inputs[name].shape) for i, name in enumerate(explicit)}
    bars = session.vjp_vjp(inputs, problem.settings, g, second, parts=problem.parts)
    bent = (_dot(pulled(h), second) - _dot(pulled(-h), second)) / (2 * h)
    assert _dot(bars, {**along, "g": g_along}) == pytest.approx(bent, abs=1e-6)


def _layer_norm(x, gamma, beta, eps):
    d = x - x.mean(-1, keepdims=True)
    xhat = d / np.sqrt((d * d).mean(-1, keepdims=True) + eps)
    return xhat * (1 if gamma is None else gamma) + (0 if beta is None else beta)


def _textbook(problem, t):
    """The formulas of the operators, using only numpy."""
    x, parts = t["x"], problem.parts

    def call(part, x):
        return build_part(part, {name: t[name] for name in part.all_leaves()}, BRIDGE, memory={})(x)

    if problem.operator == "residual":
        shortcut, activation = parts.get("shortcut"), parts.get("activation")
        total = (x if shortcut is None else call(shortcut, x)) + call(parts["branch"], x)
        return total if activation is None else call(activation, total)
    if problem.operator == "pre_norm":
        return x + call(parts["sublayer"], _layer_norm(x, t["gamma"], t["beta"], 0.1))
    if problem.operator == "post_norm":
        return _layer_norm(x + call(parts["sublayer"], x), t["gamma"], t["beta"], 0.1)
    if problem.operator == "highway":
        gate = 1 / (1 + np.exp(-call(parts["gate"], x)))
        carry = 1 - gate if "carry" not in parts else 1 / (1 + np.exp(-call(parts["carry"], x)))
        return call(parts["transform"], x) * gate + x * carry
    ys = [call(branch, x) for branch in parts["branches"]]
    if "fuse" in parts:
        return x + call(parts["fuse"], ys)
    w = np.exp(t["logits"]) / np.exp(t["logits"]).sum()
    return x + sum(w[k] * y for k, y in enumerate(ys))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
@pytest.mark.parametrize("name", list(PROBLEMS))
def test_values_are_the_formulas(name, dtype):
    """y is the formula in float64, up to a few roundings, in x's dtype."""
    problem = PROBLEMS[name]
    inputs = problem.drawn(dtype)
    y = _y(problem, inputs)
    exact = _textbook(problem, {n: None if a is None else a.astype(np.float64) for n, a in inputs.items()})
    assert y.dtype == dtype
    # Parts round their results: a few roundings of values below 8, amplified by later steps.
    np.testing.assert_allclose(y.astype(np.float64), exact, atol=24 * float(ml_dtypes.finfo(dtype).eps))


@pytest.mark.parametrize("name", list(PROBLEMS))
def test_16_bit_derivatives_are_near_those_in_float64(name):
    """16-bit gradients, tangents and second order have their inputs' dtypes and a few roundings' error."""
    problem, dtype = PROBLEMS[name], ml_dtypes.bfloat16
    session, narrow = _session(problem), problem.drawn(dtype)
    inputs = {n: None if a is None else a.astype(np.float64) for n, a in narrow.items()}
    g = _rng(1).normal(size=SHAPE).astype(dtype)
    second = {n: _rng(3).normal(size=inputs[n].shape).astype(dtype) for n in problem.names()}
    explicit = {n: second[n] for n in problem.explicit()}

    def all_of(inputs, kind):
        pull = session.start(inputs, problem.settings, parts=problem.parts).pull(g.astype(kind)).gradients()
        along = {n: a.astype(kind) for n, a in second.items()}
        cotangents = {n: a.astype(kind) for n, a in explicit.items()}
        bars = session.vjp_vjp(inputs, problem.settings, g.astype(kind), cotangents, parts=problem.parts)
        tangent = session.jvp(inputs, problem.settings, along, parts=problem.parts)
        return [*pull.values(), *bars.values(), tangent]

    for got, exact in zip(all_of(narrow, dtype), all_of(inputs, np.float64), strict=True):
        if exact is None:
            assert got is None
            continue
        assert got.dtype == dtype
        scale = np.abs(exact).max() + 1
        np.testing.assert_allclose(got.astype(np.float64), exact, atol=16 * scale * 2.0**-8)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_saturated_gates_are_exact(dtype):
    """A gate of minus infinity gives x, plus infinity the transform; +-1e4 the same, with zero gradients."""
    x, h = (_rng(i).normal(size=SHAPE).astype(dtype) for i in range(2))
    problem = PROBLEMS["highway, leaves"]
    for logit in (-np.inf, -1e4, 1e4, np.inf):
        inputs = {"x": x, "transform.h": h, "gate.z": np.full(SHAPE, logit, dtype)}
        evaluation = _session(problem).start(inputs, {}, parts=problem.parts)
        np.testing.assert_array_equal(evaluation.outputs()["y"], x if logit < 0 else h)
        gradients = evaluation.pull(np.ones_like(x)).gradients()
        assert (gradients["gate.z"] == 0).all()
        assert (gradients["x"] == float(logit < 0)).all()
        assert (gradients["transform.h"] == float(logit > 0)).all()


def test_extreme_fusion_logits_are_stable():
    """One logit of 1e4, or all but one at minus infinity, gives only that branch, and zero gradients of logits."""
    problem = PROBLEMS["mhc"]
    for logits in ([0.0, 1e4, 0.0], [-np.inf, 0.0, -np.inf], [-1e4, 1e4, -np.inf]):
        inputs = {**problem.drawn(), "logits": np.array(logits)}
        evaluation = _session(problem).start(inputs, {}, parts=problem.parts)
        np.testing.assert_array_equal(evaluation.outputs()["y"], inputs["x"] + inputs["branches.1.h"])
        assert (evaluation.pull(np.ones(SHAPE)).gradients()["logits"] == 0).all()


@pytest.mark.parametrize("kind", ["misshapen", "flattened", "broadcasting"])
@pytest.mark.parametrize("name", ["residual, all", "pre_norm", "post_norm", "highway, carry", "mhc", "mhc, coupled"])
def test_results_of_another_shape_are_refused(name, kind):
    """A result that does not have x's shape raises ValueError, and so does one that would be broadcast to it."""
    problem = PROBLEMS[name]
    for role, part in problem.parts.items():
        cut = (*part[:-1], Part(kind, inner=part[-1:])) if isinstance(part, tuple) else Part(kind, inner=(part,))
        with pytest.raises(TargetRaised, match=r"ValueError: .*must return the shape"):
            _session(problem).start(problem.drawn(), problem.settings, parts={**problem.parts, role: cut})


def test_what_a_part_raises_passes():
    """An exception of a part reaches the caller."""
    problem = PROBLEMS["residual"]
    with pytest.raises(TargetRaised) as caught:
        _session(problem).start(problem.drawn(), {}, parts={"branch": Part("raising")})
    assert isinstance(caught.value.original, PartRaised)


@pytest.mark.parametrize("name", ["residual, all", "pre_norm", "post_norm", "highway, carry", "mhc", "mhc, coupled"])
def test_a_result_is_no_alias_of_a_buffer(name):
    """A part that uses its output buffer again changes no earlier result."""
    problem, memory = PROBLEMS[name], {}
    parts = {
        role: tuple(Part("buffered", inner=(one,)) for one in part)
        if isinstance(part, tuple)
        else Part("buffered", inner=(part,))
        for role, part in problem.parts.items()
    }
    (binding,) = (b for b in TARGET.bindings if b.operator == problem.operator)
    session = Session(TARGET.bridge, binding, memory=memory)
    first = session.start(problem.drawn(), problem.settings, parts=parts)
    before = first.outputs()["y"]
    session.start(problem.drawn(seed=5), problem.settings, parts=parts)
    assert len(memory) > 0
    np.testing.assert_array_equal(first.outputs()["y"], before)


@pytest.mark.parametrize("operator", ["residual", "pre_norm", "post_norm", "highway", "mhc"])
def test_each_part_is_called_once_and_in_order(operator):
    """A forward pass calls every part once, branches in order."""
    problem = next(p for p in reversed(PROBLEMS.values()) if p.operator == operator)
    evaluation = _session(problem).start(problem.drawn(), problem.settings, parts=problem.parts, record=True)
    roles = [call.role for call in evaluation.recorder.calls]
    expected = {
        f"{role}.{k}" if isinstance(part, tuple) else role
        for role, part in problem.parts.items()
        for k in range(len(part) if isinstance(part, tuple) else 1)
    }
    assert len(roles) == len(expected) == len(set(roles))
    assert [role for role in roles if role.startswith("branches")] == sorted(
        role for role in expected if role.startswith("branches")
    )


def test_arguments_that_do_not_fit_are_refused():
    """Logits of a wrong number or together with fuse, parameters of a wrong size, and non-floats raise ValueError."""
    x = np.ones(SHAPE)

    def identity(x):
        return x

    for arguments, keywords in (
        (([identity], np.zeros(2)), {}),
        (([identity], None), {}),
        (([identity], np.zeros(1)), {"fuse": sum}),
        (([], np.zeros(0)), {}),
        (([identity], np.zeros(1, int)), {}),
    ):
        with pytest.raises(ValueError, match=r"logits|branch"):
            function("mhc")(x, *arguments, **keywords)
    with pytest.raises(ValueError, match="x must hold floating"):
        function("residual")(np.ones(3, int), identity)
    with pytest.raises(ValueError, match="x must be an array"):
        function("highway")([1.0], identity, identity)
    problem = PROBLEMS["pre_norm"]
    for wrong in ({"gamma": np.ones(3)}, {"beta": np.ones((1, 4))}):
        with pytest.raises(TargetRaised, match="ValueError"):
            _session(problem).start({**problem.drawn(), **wrong}, {"eps": 0.1}, parts=problem.parts)
    with pytest.raises(TargetRaised, match="ValueError: eps"):
        _session(problem).start(problem.drawn(), {"eps": -1.0}, parts=problem.parts)


def test_all_operators_have_all_derivatives():
    """The target has every operator, each with vjp, jvp and vjp_vjp, and with all nested derivatives."""
    assert {binding.operator for binding in TARGET.bindings} == set(OPERATORS)
    for binding in TARGET.bindings:
        assert set(binding.derivatives) == {"vjp", "jvp", "vjp_vjp", "jvp_vjp", "vjp_jvp", "jvp_jvp"}
