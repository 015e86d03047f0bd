"""The user's own functions on PyTorch tensors, sound and hostile."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from normspec.adapters.targets import resolve
from normspec.spec.errors import BadOutput, MissingGradient, TargetRaised, UnknownFramework, Unsupported

SETTINGS = {"eps": 0.1, "axes": (-1,)}


def _session(function):
    target = resolve(function, op="layer_norm", framework="torch")
    return target.session(target.bindings[0])


def _norm(x, gamma, beta, eps, axes):
    d = x - x.mean(axes, keepdim=True)
    y = d / torch.sqrt(d.square().mean(axes, keepdim=True) + eps)
    y = y if gamma is None else y * gamma
    return y if beta is None else y + beta


def test_framework_from_imports(write):
    """A file that imports torch is for PyTorch, whether it imports NumPy too or not."""
    path = write(
        """
        import numpy as np
        import torch
        def layer_norm(x, gamma, beta, *, eps, axes):
            return torch.nn.functional.layer_norm(x, gamma.shape, gamma, beta, eps)
        """
    )
    target = resolve(f"{path}:layer_norm")
    assert (target.framework, target.version) == ("torch", torch.__version__)
    assert resolve(lambda x, g, b, *, eps, axes: torch.abs(x), op="layer_norm").framework == "torch"


@pytest.mark.parametrize(
    ("function", "error"),
    [
        (lambda x, *a, **k: x.detach().numpy(), BadOutput),
        (lambda x, *a, **k: torch.from_numpy(x), TargetRaised),
        (lambda x, *a, axes, **k: np.mean(x, axis=axes, keepdims=True), TargetRaised),
        (lambda x, *a, **k: x.astype("float32"), TargetRaised),
    ],
)
def test_a_function_of_arrays_is_told_how_to_be_judged(layer_norm_inputs, function, error):
    """Its file may import torch for another function."""
    with pytest.raises(error, match=r"\(if the function is written for numpy, add --framework numpy\)"):
        _session(function).start(layer_norm_inputs, SETTINGS)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, *a, **k: x.float(),
        lambda x, *a, axes, **k: x.mean(axes, keepdim=True),
        lambda x, *a, **k: torch.rsqrt(x),
    ],
)
def test_a_function_of_tensors_is_told_how_to_be_judged(layer_norm_inputs, function):
    """It was declared to take NumPy's arrays."""
    target = resolve(function, op="layer_norm", framework="numpy")
    session = target.session(target.bindings[0])
    with pytest.raises(TargetRaised, match=r"\(if the function is written for torch, add --framework torch\)"):
        session.start(layer_norm_inputs, SETTINGS)


@pytest.mark.parametrize(
    ("function", "error"),
    [
        (lambda x, *a, **k: np.float64(1), BadOutput),
        (lambda x, *a, **k: 1.0, BadOutput),
        (lambda x, *a, **k: torch.zeros(2) @ x.shape, TargetRaised),
        (lambda x, *a, **k: np.linalg.inv(np.zeros((2, 2))), TargetRaised),
    ],
)
def test_other_errors_of_a_function_of_tensors_have_no_such_hint(layer_norm_inputs, function, error):
    """Numbers and NumPy's errors about values say nothing of the framework."""
    with pytest.raises(error) as raised:
        _session(function).start(layer_norm_inputs, SETTINGS)
    assert "--framework" not in str(raised.value)


def test_module_with_modes(layer_norm_inputs):
    """A torch module is put into training and inference; its forward takes the operator's arguments, or only x."""

    class Layer(torch.nn.Module):
        def forward(self, x, gamma, beta, *, eps, axes):
            return x if self.training else -x

    class Other(torch.nn.Module):
        def forward(self, x, residual):
            return x + residual

    session = _session(Layer())
    assert (session.start(layer_norm_inputs, SETTINGS).outputs()["y"] == layer_norm_inputs["x"]).all()
    inferred = session.start(layer_norm_inputs, SETTINGS, mode="inference").outputs()["y"]
    assert (inferred == -layer_norm_inputs["x"]).all()
    with pytest.raises(Exception, match="it has to take only x"):
        _session(Other())
    with pytest.raises(UnknownFramework):
        resolve(Other(), op="layer_norm", framework="paddle")


def test_a_module_is_switched_where_the_mode_changes(layer_norm_inputs):
    """Calls in one mode follow one another as in a program: what a module empties in train() and eval() lies there."""

    class Layer(torch.nn.Module):
        switched = ()

        def train(self, mode=True):
            self.switched = (*self.switched, mode)
            return super().train(mode)

        def forward(self, x, gamma, beta, *, eps, axes):
            return x

    layer = Layer()
    session = _session(layer)
    layer.switched = ()
    for mode in ("training", "training", "inference", "inference", "training"):
        session.start(layer_norm_inputs, SETTINGS, mode=mode)
    assert layer.switched == (True, False, True)
    layer.eval()  # by somebody else
    session.start(layer_norm_inputs, SETTINGS)
    assert layer.training


def test_derivatives_come_from_autograd(layer_norm_inputs):
    """Gradient, tangent and second order of a composed function need no extra functions."""
    session = _session(lambda x, gamma, beta, *, eps, axes: _norm(x, gamma, beta, eps, axes))
    g = layer_norm_inputs["x"][::-1].copy()
    own = session.start(layer_norm_inputs, SETTINGS).pull(g).gradients()
    target = resolve("torch", op="layer_norm")
    native = target.session(target.bindings[0])
    for name, value in native.start(layer_norm_inputs, SETTINGS).pull(g).gradients().items():
        np.testing.assert_allclose(own[name], value, atol=1e-12)
    tangents = [each.jvp(layer_norm_inputs, SETTINGS, {"x": g}) for each in (session, native)]
    np.testing.assert_allclose(*tangents, atol=1e-12)
    for name, value in native.vjp_vjp(layer_norm_inputs, SETTINGS, g, {"x": g}).items():
        np.testing.assert_allclose(session.vjp_vjp(layer_norm_inputs, SETTINGS, g, {"x": g})[name], value, atol=1e-12)


@pytest.mark.parametrize(
    ("function", "missing"),
    [
        (lambda x, g, b, *, eps, axes: _norm(x, g, b, eps, axes).detach(), ("x", "gamma", "beta")),
        (torch.no_grad()(lambda x, g, b, *, eps, axes: _norm(x, g, b, eps, axes)), ("x", "gamma", "beta")),
        (torch.inference_mode()(lambda x, g, b, *, eps, axes: _norm(x, g, b, eps, axes)), ("x", "gamma", "beta")),
        (lambda x, g, b, *, eps, axes: _norm(x, g.detach(), b, eps, axes), ("gamma",)),
        (lambda x, g, b, *, eps, axes: torch.tensor(_norm(x, g, b, eps, axes).tolist()), ("x", "gamma", "beta")),
    ],
)
def test_gradients_that_do_not_arrive(layer_norm_inputs, function, missing):
    """A gradient that autograd cannot carry to an input is missing, and not zero."""
    inputs = {name: array.astype(np.float32) for name, array in layer_norm_inputs.items()}
    evaluation = _session(function).start(inputs, SETTINGS)
    with pytest.raises(MissingGradient, match="no gradient reaches " + ", ".join(missing)) as caught:
        evaluation.pull(inputs["x"])
    assert caught.value.missing == missing


def test_a_tangent_that_does_not_arrive(layer_norm_inputs):
    """A tangent that is dropped on the way is missing."""
    session = _session(lambda x, g, b, *, eps, axes: torch.tensor(_norm(x, g, b, eps, axes).tolist()))
    with pytest.raises(MissingGradient, match="no tangent reaches y"):
        session.jvp(layer_norm_inputs, SETTINGS, {"x": layer_norm_inputs["x"]})


def test_a_kernel_brings_its_own_gradient(layer_norm_inputs):
    """Where autograd sees nothing, NAME_vjp next to the function is used."""

    class Kernel:
        @torch.no_grad()
        def __call__(self, x, gamma, beta, *, eps, axes):
            return x * 2

        def vjp(self, x, gamma, beta, g, *, eps, axes):
            return g * 2, gamma, beta

    pulled = _session(Kernel()).start(layer_norm_inputs, SETTINGS).pull(layer_norm_inputs["x"]).gradients()
    assert (pulled["x"] == 2 * layer_norm_inputs["x"]).all()


def test_two_cotangents_through_one_evaluation(layer_norm_inputs):
    """An evaluation that is kept can be pulled back more than once."""
    target = resolve("torch", op="layer_norm")
    for binding in target.bindings:
        evaluation = target.session(binding).start(layer_norm_inputs, SETTINGS)
        first, second = (evaluation.pull(k * layer_norm_inputs["x"], keep=True).gradients()["x"] for k in (1.0, 2.0))
        np.testing.assert_allclose(2 * first, second, atol=1e-12)


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (lambda x, *a, **k: None, BadOutput, "y is None"),
        (lambda x, *a, **k: x.detach().numpy(), BadOutput, "y is ndarray"),
        (lambda x, *a, **k: (x, x), BadOutput, "returned 2 values"),
        (lambda x, *a, **k: x.to_sparse(), BadOutput, "sparse"),
        (lambda x, *a, **k: x.to(torch.int32), BadOutput, "int32"),
        (lambda x, *a, **k: x.to(torch.complex64), BadOutput, "complex64"),
        (lambda x, *a, **k: x.to("meta"), BadOutput, "device meta"),
        (
            lambda x, *a, **k: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
            BadOutput,
            "is a nested tensor, not a dense one",
        ),
        (lambda x, *a, **k: x.add_(1), TargetRaised, "RuntimeError: a leaf Variable"),
        (lambda x, *a, **k: x @ x, TargetRaised, "RuntimeError: mat1 and mat2"),
        (lambda x, *a, **k: x.undefined, TargetRaised, "AttributeError"),
    ],
)
def test_what_is_no_result(layer_norm_inputs, function, error, message):
    """Anything returned in place of a tensor of floats is reported as what it is."""
    with pytest.raises(error, match=message):
        _session(function).start(layer_norm_inputs, SETTINGS)


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (lambda x, g, b, **k: (x * g + b).sum(), BadOutput, r"y has shape \(\) in place of \(4, 7\)"),
        (lambda x, g, b, **k: (x * g + b).float(), BadOutput, "y has dtype float32 in place of float64"),
    ],
)
def test_no_gradient_without_the_cotangents_shape(layer_norm_inputs, function, error, message):
    """A y of another shape or dtype than the cotangent has no gradient."""
    evaluation = _session(function).start(layer_norm_inputs, SETTINGS)
    assert evaluation.outputs()
    with pytest.raises(error, match=message):
        evaluation.pull(layer_norm_inputs["x"])


def test_what_raises_in_the_backward_or_in_forward_mode(layer_norm_inputs):
    """A backward that raises ends in TargetRaised with its stage; a missing forward mode is declined."""

    class Broken(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, *g):
            raise ValueError("no backward")

    session = _session(lambda x, g, b, *, eps, axes: Broken.apply(x) * g + b)
    x = layer_norm_inputs["x"]
    for stage, act in (
        ("vjp", lambda: session.start(layer_norm_inputs, SETTINGS).pull(x)),
        ("vjp_vjp", lambda: session.vjp_vjp(layer_norm_inputs, SETTINGS, x, {"x": x})),
    ):
        with pytest.raises(TargetRaised) as caught:
            act()
        assert caught.value.stage == stage
    with pytest.raises(Unsupported, match="forward-mode"):
        session.jvp(layer_norm_inputs, SETTINGS, {"x": x})


def test_changed_inputs_show_in_inference(layer_norm_inputs):
    """Where nothing is tracked, a target that works in place is seen to have changed its input."""
    session = _session(lambda x, g, b, *, eps, axes: x.add_(1))
    evaluation = session.start(layer_norm_inputs, SETTINGS, mode="inference")
    assert (evaluation.inputs()["x"] == layer_norm_inputs["x"] + 1).all()


def test_settings_that_a_target_leaves_behind_are_undone(layer_norm_inputs):
    """Gradient mode, and the threads, are the process's again after each call."""

    def layer_norm(x, gamma, beta, *, eps, axes):
        torch.set_grad_enabled(False)
        torch.set_num_threads(1)
        return x

    threads = torch.get_num_threads()
    _session(layer_norm).start(layer_norm_inputs, SETTINGS)
    assert torch.is_grad_enabled()
    assert torch.get_num_threads() == threads


def test_a_backward_that_is_not_differentiable(layer_norm_inputs):
    """A backward outside autograd's sight has no second order, which is no violation."""

    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, *g):
            return torch.tensor((g[0] * 2).tolist(), dtype=g[0].dtype)

    session = _session(lambda x, g, b, *, eps, axes: Doubled.apply(x))
    x, inputs = layer_norm_inputs["x"], {**layer_norm_inputs, "gamma": None, "beta": None}
    assert (session.start(inputs, SETTINGS).pull(x).gradients()["x"] == 2 * x).all()
    with pytest.raises(Unsupported, match="the backward is not differentiable"):
        session.vjp_vjp(inputs, SETTINGS, x, {"x": x})


class _Square(torch.autograd.Function):
    """x^2 with a backward that cannot be differentiated."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g


def test_once_differentiable_is_unsupported_at_second_order(layer_norm_inputs):
    """A backward marked once_differentiable has no second order, and is not read as one of zeros."""

    def layer_norm(x, gamma, beta, *, eps, axes):
        return _Square.apply(x) * gamma + beta

    session = _session(layer_norm)
    g, second = np.ones_like(layer_norm_inputs["x"]), {"x": layer_norm_inputs["x"]}
    with pytest.raises(Unsupported, match="once_differentiable"):
        session.vjp_vjp(layer_norm_inputs, SETTINGS, g, second)


class _Cube(torch.autograd.Function):
    """x^3, whose tangent is its own code and right."""

    @staticmethod
    def forward(x):
        return x**3

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x * x * g

    @staticmethod
    def jvp(ctx, t):
        (x,) = ctx.saved_tensors
        return 3 * x * x * t


def test_the_tangent_of_a_functions_own_tangent_is_unsupported(layer_norm_inputs):
    """PyTorch takes it for zero; the other nested derivatives of the same function are right."""
    session = _session(lambda x, gamma, beta, *, eps, axes: _Cube.apply(x) * gamma + beta)
    t = {"x": np.ones_like(layer_norm_inputs["x"])}
    with pytest.raises(Unsupported, match="jvp for zero"):
        session.nested("jvp_jvp", layer_norm_inputs, SETTINGS, t, t)
    for kind in ("jvp_vjp", "vjp_jvp"):
        found = session.nested(kind, layer_norm_inputs, SETTINGS, t, t["x"])["x"]
        expected = 6 * layer_norm_inputs["x"] * layer_norm_inputs["gamma"]
        assert np.allclose(found, expected, rtol=1e-12 if found.dtype == np.float64 else 1e-5)
