"""The user's own functions on JAX arrays, sound and hostile, transformed in every way that JAX has."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from normspec.adapters.targets import resolve
from normspec.spec.errors import BadOutput, TargetRaised, Unsupported
from normspec.spec.parts import Part

SETTINGS = {"eps": 0.1, "axes": (-1,)}


def _session(function, op="layer_norm"):
    target = resolve(function, op=op, framework="jax")
    return target.session(target.bindings[0])


def _norm(x, gamma, beta, eps):
    d = x - x.mean(-1, keepdims=True)
    return d / jnp.sqrt((d * d).mean(-1, keepdims=True) + eps) * gamma + beta


def _plain(x, gamma, beta, *, eps, axes):
    return _norm(x, gamma, beta, eps)


_jitted = jax.jit(_plain, static_argnames=("axes",))


def _mapped(x, gamma, beta, *, eps, axes):
    return jax.vmap(lambda row: _norm(row, gamma, beta, eps))(x)


def _checkpointed(x, gamma, beta, *, eps, axes):
    return jax.checkpoint(_norm, static_argnums=3)(x, gamma, beta, eps)


@partial(jax.custom_jvp, nondiff_argnums=(3,))
def _forward(x, gamma, beta, eps):
    return _norm(x, gamma, beta, eps)


@_forward.defjvp
def _forward_jvp(eps, primals, tangents):
    return jax.jvp(lambda *moved: _norm(*moved, eps), primals, tangents)


@partial(jax.custom_vjp, nondiff_argnums=(3,))
def _reverse(x, gamma, beta, eps):
    return _norm(x, gamma, beta, eps)


_reverse.defvjp(
    lambda x, gamma, beta, eps: (_norm(x, gamma, beta, eps), (x, gamma, beta)),
    lambda eps, saved, g: jax.vjp(lambda *moved: _norm(*moved, eps), *saved)[1](g),
)


def _by_custom_jvp(x, gamma, beta, *, eps, axes):
    return _forward(x, gamma, beta, eps)


def _by_custom_vjp(x, gamma, beta, *, eps, axes):
    return _reverse(x, gamma, beta, eps)


def test_framework_from_imports(write):
    """A file that imports jax, flax or equinox is for JAX, whether it imports NumPy too or not."""
    path = write(
        """
        import jax.numpy as jnp
        import numpy as np
        def layer_norm(x, gamma, beta, *, eps, axes):
            return jnp.negative(x)
        """
    )
    target = resolve(f"{path}:layer_norm")
    assert (target.framework, target.version) == ("jax", jax.__version__)


@pytest.mark.parametrize("function", [_jitted, _mapped, _checkpointed, _by_custom_jvp, _by_custom_vjp])
def test_transformed_functions_are_differentiated(layer_norm_inputs, function):
    """A function that is jitted, mapped, recomputed, or has its own rule has the gradients of the plain function."""
    g = layer_norm_inputs["x"][::-1].copy()
    exact, own = _session(_plain), _session(function)
    wanted, found = (each.start(layer_norm_inputs, SETTINGS) for each in (exact, own))
    np.testing.assert_allclose(found.outputs()["y"], wanted.outputs()["y"], atol=1e-12)
    for name, value in wanted.pull(g).gradients().items():
        np.testing.assert_allclose(found.pull(g).gradients()[name], value, atol=1e-12)
    for name, value in exact.vjp_vjp(layer_norm_inputs, SETTINGS, g, {"x": g}).items():
        again = own.vjp_vjp(layer_norm_inputs, SETTINGS, g, {"x": g})[name]
        np.testing.assert_allclose(again, value, atol=1e-12)
    tangent = exact.jvp(layer_norm_inputs, SETTINGS, {"x": g})
    if function is _by_custom_vjp:
        with pytest.raises(Unsupported, match=r"a jax.custom_vjp, which has no forward mode"):
            own.jvp(layer_norm_inputs, SETTINGS, {"x": g})
    else:
        np.testing.assert_allclose(own.jvp(layer_norm_inputs, SETTINGS, {"x": g}), tangent, atol=1e-12)


def test_a_jitted_function_is_compiled_once(layer_norm_inputs):
    """The same call again is a hit in JAX's cache, and so is the same gradient."""
    traces = []

    @partial(jax.jit, static_argnames=("axes",))
    def layer_norm(x, gamma, beta, *, eps, axes):
        traces.append(x)
        return _norm(x, gamma, beta, eps)

    session = _session(layer_norm)
    for _ in range(3):
        session.start(layer_norm_inputs, SETTINGS).pull(layer_norm_inputs["x"])
    assert len(traces) == 1


def test_a_gradient_that_is_stopped_is_zero(layer_norm_inputs):
    """JAX has no missing gradient: a stopped gradient is zero, and the checks judge that value."""
    session = _session(lambda x, g, b, *, eps, axes: _norm(x, jax.lax.stop_gradient(g), b, eps))
    pulled = session.start(layer_norm_inputs, SETTINGS).pull(layer_norm_inputs["x"]).gradients()
    assert pulled["x"].any()
    assert not pulled["gamma"].any()


def test_two_cotangents_through_one_evaluation(layer_norm_inputs):
    """An evaluation can be pulled back as often as one likes, in any order."""
    session, x = _session(_plain), layer_norm_inputs["x"]
    first, other = (session.start({**layer_norm_inputs, "x": k * x}, SETTINGS) for k in (1, 3))
    found = {k: first.pull(k * x).gradients()["x"] for k in (2.0, 1.0)}
    other.pull(x)
    np.testing.assert_allclose(2 * found[1.0], found[2.0], atol=1e-12)
    np.testing.assert_array_equal(first.pull(x).gradients()["x"], found[1.0])


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (lambda x, *a, **k: None, BadOutput, "y is None"),
        (lambda x, *a, **k: np.asarray(x), BadOutput, "y is ndarray, not a jax.Array"),
        (lambda x, *a, **k: [x], BadOutput, "returned a list of one value"),
        (lambda x, *a, **k: (x, x), BadOutput, "returned 2 values"),
        (lambda x, *a, **k: 1.0, BadOutput, "y is float"),
        (lambda x, *a, **k: x.astype(jnp.int32), BadOutput, "int32"),
        (lambda x, *a, **k: x @ x, TargetRaised, "TypeError"),
        (lambda x, *a, **k: x.undefined, TargetRaised, "AttributeError"),
        (lambda x, *a, **k: x.__setitem__(0, 1.0), TargetRaised, "TypeError"),
    ],
)
def test_what_is_no_result(layer_norm_inputs, function, error, message):
    """Anything returned in place of a tensor of floats is reported as what it is."""
    with pytest.raises(error, match=message):
        _session(function).start(layer_norm_inputs, SETTINGS)


def test_several_results_may_be_a_list(batch_norm_inputs):
    """batch_norm may return its three results as a list, and not as one array."""
    settings = {"eps": 0.1, "momentum": 0.5, "training": True, "channel_axis": -1}

    def batch_norm(x, gamma, beta, running_mean, running_var, **rest):
        return [x, running_mean, running_var]

    assert set(_session(batch_norm, "batch_norm").start(batch_norm_inputs, settings).outputs()) == {
        "y",
        "new_running_mean",
        "new_running_var",
    }
    with pytest.raises(BadOutput, match="batch_norm returned"):
        _session(lambda x, *a, **k: x, "batch_norm").start(batch_norm_inputs, settings)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x, g, b, **k: (x * g + b).sum(), r"y has shape \(\) in place of \(4, 7\)"),
        (lambda x, g, b, **k: (x * g + b).astype(jnp.float32), "y has dtype float32 in place of float64"),
    ],
)
def test_no_gradient_without_the_cotangents_shape(layer_norm_inputs, function, message):
    """A y of another shape or dtype than the cotangent has no gradient, of the first order or the second."""
    session, x = _session(function), layer_norm_inputs["x"]
    evaluation = session.start(layer_norm_inputs, SETTINGS)
    assert evaluation.outputs()
    with pytest.raises(BadOutput, match=message):
        evaluation.pull(x)
    with pytest.raises(BadOutput, match=message):
        session.vjp_vjp(layer_norm_inputs, SETTINGS, x, {"x": x})


def test_a_tracer_that_leaks_is_no_result(layer_norm_inputs):
    """A tracer that outlives its transformation is reported as what it is, and does not end the run."""
    leaked = []

    def layer_norm(x, gamma, beta, *, eps, axes):
        jax.jit(lambda z: leaked.append(z) or z)(x)
        return leaked[-1]

    with pytest.raises(BadOutput, match="y is a tracer, which has leaked"):
        _session(layer_norm).start(layer_norm_inputs, SETTINGS).outputs()
    with pytest.raises(TargetRaised, match="UnexpectedTracerError"):
        _session(lambda *a, **k: layer_norm(*a, **k) + 1).start(layer_norm_inputs, SETTINGS)


def test_what_jax_cannot_follow_has_no_gradients(layer_norm_inputs):
    """A function through NumPy, or by a callback, is judged on its values and has no derivative of any kind."""

    def by_numpy(x, gamma, beta, *, eps, axes):
        return jnp.asarray(np.asarray(x) * 2)

    def by_callback(x, gamma, beta, *, eps, axes):
        return jax.pure_callback(lambda value: np.asarray(value) * 2, jax.ShapeDtypeStruct(x.shape, x.dtype), x)

    x = layer_norm_inputs["x"]
    for function in (by_numpy, by_callback):
        session = _session(function)
        evaluation = session.start(layer_norm_inputs, SETTINGS)
        assert (evaluation.outputs()["y"] == 2 * x).all()
        for act in (
            lambda: evaluation.pull(x),  # noqa: B023 - called before the next turn
            lambda: session.jvp(layer_norm_inputs, SETTINGS, {"x": x}),  # noqa: B023
            lambda: session.vjp_vjp(layer_norm_inputs, SETTINGS, x, {"x": x}),  # noqa: B023
        ):
            with pytest.raises(Unsupported, match="where JAX cannot follow it"):
                act()


def test_a_kernel_brings_its_own_gradient(layer_norm_inputs):
    """Where JAX cannot differentiate, NAME_vjp next to the function is used."""

    class Kernel:
        def __call__(self, x, gamma, beta, *, eps, axes):
            return jnp.asarray(np.asarray(x) * 2)

        def vjp(self, x, gamma, beta, g, *, eps, axes):
            return g * 2, gamma, beta

    pulled = _session(Kernel()).start(layer_norm_inputs, SETTINGS).pull(layer_norm_inputs["x"]).gradients()
    assert (pulled["x"] == 2 * layer_norm_inputs["x"]).all()


def test_what_raises_in_a_derivative(layer_norm_inputs):
    """A rule that raises ends in TargetRaised with its stage."""

    @jax.custom_vjp
    def broken(x):
        return x

    def backward(saved, g):
        raise ValueError("no backward")

    broken.defvjp(lambda x: (x, None), backward)
    session, x = _session(lambda x, g, b, *, eps, axes: broken(x) * g + b), layer_norm_inputs["x"]
    for stage, act in (
        ("vjp", lambda: session.start(layer_norm_inputs, SETTINGS).pull(x)),
        ("vjp_vjp", lambda: session.vjp_vjp(layer_norm_inputs, SETTINGS, x, {"x": x})),
    ):
        with pytest.raises(TargetRaised, match="no backward") as caught:
            act()
        assert caught.value.stage == stage


def test_donated_arguments_are_gone(layer_norm_inputs):
    """A function that gives its argument's memory away is seen to have done so when the argument is read again."""
    layer_norm = jax.jit(lambda x, gamma, beta, eps, axes: x * 2, donate_argnums=0, static_argnames=("axes",))
    evaluation = _session(layer_norm).start(layer_norm_inputs, SETTINGS, mode="inference")
    assert evaluation.outputs()["y"].shape == layer_norm_inputs["x"].shape
    with pytest.raises(TargetRaised, match="deleted"):
        evaluation.inputs()


# Parts ----------------------------------------------------------------------------------------------------


@partial(jax.jit, static_argnames=("branch",))
def _residual(x, branch):
    return x + branch(x)


def test_leaves_have_gradients_through_a_jitted_function(layer_norm_inputs):
    """A part is a static argument of a jitted function, and the gradients of its leaves pass all the same."""
    x = layer_norm_inputs["x"]
    inputs = {"x": x, "branch.w": np.eye(7) * 3}
    parts = {"branch": Part("linear", ("branch.w",))}
    pulled = _session(_residual, "residual").start(inputs, {}, parts=parts).pull(x).gradients()
    np.testing.assert_allclose(pulled["x"], 4 * x)
    np.testing.assert_allclose(pulled["branch.w"], x.T @ x)


def test_what_a_traced_part_is_handed_cannot_be_read(layer_norm_inputs):
    """While a function is traced as a whole, the arguments of its parts have no values: recording is unsupported."""
    parts, inputs = {"branch": Part("square")}, {"x": layer_norm_inputs["x"]}
    with pytest.raises(Unsupported, match="traced as a whole"):
        _session(_residual, "residual").start(inputs, {}, parts=parts, record=True)
    assert _session(_residual, "residual").start(inputs, {}, parts=parts).outputs()
