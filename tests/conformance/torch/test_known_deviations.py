"""PyTorch's own mistakes, pinned in its own terms: once one is fixed, these tests say so."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn import functional

from normspec import Verdict, reference
from normspec.adapters.targets import resolve

from ..runs import run

#: Twelve values in three channels, and a cotangent that is not uniform.
X = np.array([[1.0, 2.0, 3.0], [4.0, -1.0, 0.0], [0.5, 2.0, -2.0], [1.0, 1.0, 5.0]])
G = np.array([[-1.0, 0.0, 1.0], [2.0, 3.0, -1.0], [0.0, 1.0, 2.0], [3.0, -1.0, 0.0]])
#: gamma, or the running variance, is every second element of it.
BUFFER = np.array([1.0, 100.0, 2.0, 200.0, 3.0, 300.0])
EPS = 1e-5

in_both_modes = pytest.mark.parametrize("training", [True, False])


def batch_norm(gamma: torch.Tensor, variance: torch.Tensor, *, training: bool) -> tuple[np.ndarray, np.ndarray]:
    """PyTorch's y and dx for X and G, with a running mean of zero."""
    x = torch.tensor(X, requires_grad=True)
    mean = torch.zeros(3, dtype=torch.float64)
    y = functional.batch_norm(x, mean, variance, gamma, None, training, 0.1, EPS)
    (dx,) = torch.autograd.grad(y, x, torch.tensor(G))
    return y.detach().numpy(), dx.numpy()


def exact_dx(gamma: np.ndarray, variance: np.ndarray, *, training: bool) -> np.ndarray:
    """The reference's dx for the same."""
    settings = {"eps": EPS, "momentum": 0.1, "training": training, "channel_axis": 1}
    return reference.batch_norm_vjp(X, gamma, None, np.zeros(3), variance, G, **settings)[0]


@in_both_modes
def test_batch_norm_misreads_a_strided_weight_in_its_backward(training: bool) -> None:
    """y is right, and dx is that of the first three elements of the buffer behind the weight."""
    strided, plain = torch.tensor(BUFFER)[::2], torch.tensor(BUFFER[::2].copy())
    ones = np.ones(3)
    y, dx = batch_norm(strided, torch.tensor(ones), training=training)
    right_y, right_dx = batch_norm(plain, torch.tensor(ones), training=training)
    np.testing.assert_allclose(y, right_y, rtol=1e-15)
    np.testing.assert_allclose(right_dx, exact_dx(BUFFER[::2], ones, training=training), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(dx, exact_dx(BUFFER[:3], ones, training=training), rtol=1e-12, atol=1e-12)
    assert np.abs(dx - right_dx)[:, 1].max() > 40 * np.abs(right_dx)[:, 1].max()  # 100, should be 2


def test_batch_norm_misreads_a_strided_running_variance_in_its_backward() -> None:
    """In inference y is right, but dx uses the wrong variances: the values read vary from call to call."""
    gamma, right = torch.ones(3, dtype=torch.float64), exact_dx(np.ones(3), BUFFER[::2], training=False)
    _, contiguous = batch_norm(gamma, torch.tensor(BUFFER[::2].copy()), training=False)
    np.testing.assert_allclose(contiguous, right, rtol=1e-12)
    wrong = []
    for _ in range(20):
        y, dx = batch_norm(gamma, torch.tensor(BUFFER)[::2], training=False)
        np.testing.assert_allclose(y, X / np.sqrt(BUFFER[::2] + EPS), rtol=1e-12)
        wrong.append(not np.allclose(dx, right, rtol=1e-6))
    assert any(wrong)


SHAPES = ((4, 3), (4, 3, 1), (4, 3, 1, 1), (4, 3, 1, 1, 1), (2, 3, 5), (2, 3, 4, 5), (2, 3, 2, 4, 5))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_a_strided_weight_is_misread_where_the_channels_lie_last(
    shape: tuple[int, ...], last: bool, dtype: torch.dtype
) -> None:
    """For x with one place per channel, and for 4-D and 5-D x with the channels last; not in bfloat16."""
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    if last and len(shape) not in formats:
        pytest.skip("no such memory format")
    generator = torch.Generator().manual_seed(0)
    x, g = (torch.randn(shape, generator=generator).to(dtype) for _ in range(2))
    if last:
        x, g = (one.contiguous(memory_format=formats[len(shape)]) for one in (x, g))
    x.requires_grad_()

    def dx(gamma: torch.Tensor) -> torch.Tensor:
        y = functional.batch_norm(x, None, None, gamma, None, True, 0.1, EPS)
        return torch.autograd.grad(y, x, g)[0]

    buffer = torch.tensor(BUFFER).to(dtype)
    wrong = not torch.allclose(dx(buffer[::2]), dx(buffer[::2].clone()), rtol=1e-3, atol=1e-3)
    expanded = buffer[:1].expand(shape[1])  # other numbers lie after it, which it reads in place of this one
    misread = not torch.equal(dx(expanded), dx(expanded.clone()))
    assert wrong == misread == (dtype is not torch.bfloat16 and (last or all(size == 1 for size in shape[2:])))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_check_of_parameter_layouts_meets_them(dtype: str) -> None:
    """CM-V3 finds the misreading with each layout of x that shows it, and nothing else is excused."""
    target = resolve("torch", op="batch_norm")
    report = run(target, dtypes=(dtype,), requirements={"CM-V3"})
    notes = {"1d": "gamma strided", "2d": "gamma strided, x channels_last", "3d": "gamma strided, x channels_last"}
    for dimensions, note in notes.items():
        (found,) = (r for r in report.results if r.binding == f"torch.nn.BatchNorm{dimensions}")
        assert found.verdict is Verdict.DEVIATES
        assert found.counterexample is not None
        assert (found.counterexample.output, found.counterexample.note) == ("dx", note)
    assert not report.unseen()


@pytest.mark.parametrize("strided", [False, True])
def test_the_backward_of_strided_16_bit_data_rounds_every_step(strided: bool) -> None:
    """In g r gamma with r = 1/8 and gamma = 8, g r is rounded to a multiple of 2^-24: 1.5 becomes 2."""
    spacing = 2.0**-24
    g = torch.full((3, 2), 12 * spacing, dtype=torch.float16)
    if strided:
        g = g.t().contiguous().t()
    x = torch.ones(3, 2, dtype=torch.float16, requires_grad=True)
    gamma, mean, variance = (torch.full((2,), value, dtype=torch.float16) for value in (8.0, 0.0, 63.0))
    y = functional.batch_norm(x, mean, variance, gamma, None, False, 0.1, 1.0)
    (dx,) = torch.autograd.grad(y, x, g)
    assert bool(torch.all(dx.double() == (16 if strided else 12) * spacing))


@pytest.mark.parametrize(("strided", "y"), [(False, 1137.0), (True, 1133.0)])
def test_the_forward_of_strided_16_bit_data_rounds_every_step(strided: bool, y: float) -> None:
    """In 1.75 / sqrt(var + eps) = 1136.5, var = 23 * 2^-24 and eps = 1e-6, the sum is rounded to 40 * 2^-24."""
    x = torch.tensor([[1.75]], dtype=torch.float16)
    x = x.expand(4, 1) if strided else x.repeat(4, 1)
    mean, variance = torch.zeros(1, dtype=torch.float16), torch.full((1,), 23 * 2.0**-24, dtype=torch.float16)
    found = functional.batch_norm(x, mean, variance, None, None, False, 0.1, 1e-6)
    assert found.flatten().tolist() == [y] * 4


@pytest.mark.parametrize(("contiguous", "y"), [(True, -0.2294921875), (False, -0.25)])
def test_channels_that_do_not_come_second_are_strided_data(contiguous: bool, y: float) -> None:
    """In 2 - 2 (x - mean) / sqrt(var + eps) = -0.22937, each step is rounded to bfloat16 if x is a view."""
    x = torch.full((2, 2, 8), 0.49609375, dtype=torch.bfloat16).movedim(-1, 1)
    mean, variance, gamma, beta = (
        torch.full((8,), one, dtype=torch.bfloat16) for one in (-1.84375, 4.40625, -2.0, 2.0)
    )
    found = functional.batch_norm(x.contiguous() if contiguous else x, mean, variance, gamma, beta)
    assert found.flatten().tolist() == [y] * x.numel()


@pytest.mark.parametrize("strided", [False, True])
def test_the_steps_of_strided_16_bit_data_overflow(strided: bool) -> None:
    """16384 * 8 is infinite on the way to dgamma = 2 * 16384 * 8 / 32, and 60000 + 30000 on the way to y."""
    x, g = (torch.tensor([[value, 0.0]] * 2, dtype=torch.float16) for value in (16384.0, 8.0))
    if strided:
        g = g.t().contiguous().t()
    gamma = torch.ones(2, dtype=torch.float16, requires_grad=True)
    mean, variance = (torch.full((2,), value, dtype=torch.float16) for value in (0.0, 1023.0))
    y = functional.batch_norm(x, mean, variance, gamma, None, False, 0.1, 1.0)
    (dgamma,) = torch.autograd.grad(y, gamma, g)
    assert dgamma[0].item() == (float("inf") if strided else 8192)
    column = torch.tensor([60000.0, -60000.0, -60000.0, -60000.0], dtype=torch.float16)
    x = column.repeat(2, 1).t() if strided else column[:, None].repeat(1, 2)
    y = functional.batch_norm(x, None, None, None, None, True, 0.1, 1.0)
    assert y[0, 0].item() == (float("inf") if strided else pytest.approx(3**0.5, rel=1e-3))


@pytest.mark.nightly
def test_the_checks_of_layouts_meet_rounded_steps() -> None:
    """CM-V1 and CM-V2 find them in the cases of `thorough`, recognise them as known, and accuse nothing else."""
    target = resolve("torch", op="batch_norm")
    target = replace(target, bindings=tuple(one for one in target.bindings if "functional" in one.name))
    report = run(target, dtypes=("float16",), requirements={"CM-V1", "CM-V2"}, profile="thorough")
    assert {r.requirement: r.verdict for r in report.results} == dict.fromkeys(("CM-V1", "CM-V2"), Verdict.DEVIATES)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_squares_overflow_in_float32(dtype: torch.dtype) -> None:
    """For values near 1e30 layer_norm and batch_norm return zeros or NaN, though the exact result is of order one."""
    rows = [[1e30, -1e30, 1e30, -1e30], [1e30, 2e30, 3e30, -1e30]]
    x = torch.tensor(rows, dtype=dtype)
    exact = reference.layer_norm(x.double().numpy(), None, None, eps=EPS, axes=(-1,))
    assert np.all((np.abs(exact) > 0.1) & (np.abs(exact) < 2))
    by_layer = functional.layer_norm(x, (4,), None, None, EPS)
    by_batch = functional.batch_norm(x.T.contiguous(), None, None, None, None, True, 0.1, EPS).T
    for y in (by_layer, by_batch):
        assert bool(torch.all(torch.isnan(y) | (y == 0)))
    in_float64 = functional.layer_norm(x.double(), (4,), None, None, EPS).numpy()
    np.testing.assert_allclose(in_float64, exact, rtol=1e-12)


#: The second derivative of sum(y c) in the direction t, at x = (1, 2, 4), t = (1, 0, 0) and c = (0, 1, 0).
NESTED = ([1.0, 2.0, 4.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0])


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning")  # torch.func's own
@pytest.mark.parametrize("operator", ["layer_norm", "batch_norm"])
def test_derivatives_of_the_tangent_take_the_statistics_for_constants(operator: str) -> None:
    """The gradient of a tangent is that with mean and root fixed; the tangent of the gradient is right."""
    eps = 2.0**-10
    x, t, c = (torch.tensor(values, dtype=torch.float64) for values in NESTED)

    def y(x: torch.Tensor) -> torch.Tensor:
        if operator == "layer_norm":
            return functional.layer_norm(x, (3,), eps=eps)
        return functional.batch_norm(x[:, None], None, None, None, None, True, 0.1, eps)[:, 0]

    arrays = (x.numpy(), None, None)
    exact = reference.layer_norm_vjp_vjp(*arrays, c.numpy(), t.numpy(), None, None, eps=eps, axes=(-1,))[0]
    np.testing.assert_allclose(exact, [-0.180, 0.098, 0.082], atol=5e-4)

    def loss_of_tangent(x: torch.Tensor) -> torch.Tensor:
        return (torch.func.jvp(y, (x,), (t,))[1] * c).sum()

    got = torch.func.grad(loss_of_tangent)(x).numpy()
    np.testing.assert_allclose(got, [0.038, 0.210, -0.019], atol=5e-4)
    d, moved = NESTED[0] - np.mean(NESTED[0]), NESTED[1] - np.mean(NESTED[1])
    r3 = (np.mean(d * d) + eps) ** -1.5
    np.testing.assert_allclose(got, -r3 * (np.mean(d * moved) * c.numpy() + moved * np.mean(c.numpy() * d)), rtol=1e-12)
    gradient = torch.func.grad(lambda x: (y(x) * c).sum())
    np.testing.assert_allclose(torch.func.jvp(gradient, (x,), (t,))[1].numpy(), exact, rtol=1e-12)
