"""
MXNet's own mistakes, pinned in its own terms: once one is fixed, these tests say so.

MXNet runs in its own interpreter, which NORMSPEC_MXNET_PYTHON names: each test passes it a few lines and reads their
output.
"""

from __future__ import annotations

import ast
import os
import subprocess
import textwrap

import mpmath
import pytest

#: Definitions for the lines: one training step of BatchNorm on one channel, its output and new moving averages.
PRELUDE = """
import mxnet as mx
from mxnet import autograd

def batch_norm(x, dtype, eps, momentum, mean=0.0, variance=1.0, backward=True):
    parameters = "float32" if dtype == "float16" else dtype
    x = mx.nd.array([[value] for value in x], dtype=dtype)
    gamma, beta = mx.nd.ones(1, dtype=parameters), mx.nd.zeros(1, dtype=parameters)
    mean, variance = mx.nd.full(1, mean, dtype=parameters), mx.nd.full(1, variance, dtype=parameters)
    x.attach_grad()
    with autograd.record():
        y = mx.nd.BatchNorm(x, gamma, beta, mean, variance, fix_gamma=False, eps=eps, momentum=momentum)
    if backward:
        y.backward()
    return [array.asnumpy().ravel().tolist() for array in (y, mean, variance)]
"""


def mxnet(expression: str, *lines: str) -> object:
    """The value of an expression, after some lines, in MXNet's interpreter."""
    code = "\n".join([PRELUDE, *map(textwrap.dedent, lines), f"print('|', repr({expression}), '|')"])
    python = os.environ["NORMSPEC_MXNET_PYTHON"]
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    value = done.stdout.split("|")[1].strip()
    return ast.literal_eval(value.replace("inf", "1e999").replace("nan", "None"))


def test_the_moving_averages_are_written_in_the_backward_pass() -> None:
    """A forward pass in training leaves them as they are; its backward pass moves them."""
    runs = "[batch_norm([1.0, 3.0], 'float64', 1e-5, 0.5, backward=b)[1] for b in (False, True)]"
    assert mxnet(runs) == [[0.0], [1.0]]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_running_variance_is_recovered_from_its_reciprocal_root(dtype: str) -> None:
    """With eps 1e-3 the variance of 2^-20 and -2^-20 has lost its digits: in float32 it is 200 times too large."""
    _, _, (got,) = mxnet(f"batch_norm([2.0**-20, -2.0**-20], {dtype!r}, 1e-3, 0.0)")
    exact = mpmath.mpf(2) ** -40
    error = abs(got - exact) / exact
    assert error > 100 if dtype == "float32" else error > mpmath.mpf(2) ** -40


def test_the_running_variance_of_a_constant_is_negative() -> None:
    """For two ones with eps 1e-5 it is -7.8e-13 in float32, and should be 0."""
    _, _, (got,) = mxnet("batch_norm([1.0, 1.0], 'float32', 1e-5, 0.0)")
    assert -1e-12 < got < -5e-13


def test_the_running_variance_of_a_constant_is_infinite_without_eps() -> None:
    """For two ones with eps 0 it is infinite in float64, whatever it was before, and stays so."""
    _, _, (got,) = mxnet("batch_norm([1.0, 1.0], 'float64', 0.0, 0.9)")
    assert got == float("inf")


def test_momentum_is_a_float32() -> None:
    """A running mean of 1 and a batch of zeros give the float32 next to 0.9 in float64, and not 0.9."""
    _, (got,), _ = mxnet("batch_norm([0.0, 0.0], 'float64', 1e-5, 0.9, mean=1.0)")
    assert got == 0.8999999761581421
    assert abs(got - mpmath.mpf("0.9")) > mpmath.mpf(2) ** -27


def test_the_variance_of_float16_data_is_rounded_to_float16() -> None:
    """For 1000 and 0 it is 250000, beyond float16: y is 0 and not 1 and -1, and the running variance is infinite."""
    y, _, variance = mxnet("batch_norm([1000.0, 0.0], 'float16', 1e-5, 0.9)")
    assert (y, variance) == ([0.0, 0.0], [float("inf")])
    # A single step of float16 above the largest variance that it has: right below, wrong above.
    assert mxnet("batch_norm([255.0, -255.0], 'float16', 1e-5, 0.9)")[0] == [1.0, -1.0]


def test_the_backward_pass_of_layer_norm_refuses_an_empty_batch() -> None:
    """The forward pass returns an empty array, the backward pass raises."""
    lines = """
    with mx.util.np_shape(True):
        x, gamma, beta = mx.nd.zeros((0, 4)), mx.nd.ones(4), mx.nd.zeros(4)
        x.attach_grad()
        with autograd.record():
            y = mx.nd.LayerNorm(x, gamma, beta)
        shape = y.asnumpy().shape
        try:
            y.backward()
            mx.nd.waitall()
            said = ""
        except mx.MXNetError as error:
            said = str(error).strip().splitlines()[-1]
    """
    shape, said = mxnet("(shape, said.replace('|', ''))", lines)
    assert shape == (0, 4)
    assert "Shape size mismatch 0 v.s. 1" in said


def test_group_norm_has_a_gain_for_each_group() -> None:
    """With four channels in two groups it takes two gains, and refuses four."""
    lines = """
    x = mx.nd.array([[[1.0], [3.0], [2.0], [6.0]]])
    def group_norm(gamma):
        gamma = mx.nd.array(gamma)
        try:
            return mx.nd.GroupNorm(x, gamma, mx.nd.zeros_like(gamma), num_groups=2, eps=0).asnumpy().ravel().tolist()
        except mx.MXNetError as error:
            return str(error).strip().splitlines()[-1].replace('|', '')
    """
    per_group, said = mxnet("(group_norm([1.0, 2.0]), group_norm([1.0, 2.0, 3.0, 4.0]))", lines)
    assert per_group == [-1.0, 1.0, -2.0, 2.0]
    assert "Shape size mismatch 4 v.s. 2" in said


def test_group_norm_refuses_an_empty_batch() -> None:
    """The forward pass raises."""
    lines = """
    with mx.util.np_shape(True):
        try:
            mx.nd.GroupNorm(mx.nd.zeros((0, 4, 1)), mx.nd.ones(2), mx.nd.zeros(2), num_groups=2)
            mx.nd.waitall()
            said = ""
        except mx.MXNetError as error:
            said = str(error).strip().splitlines()[-1]
    """
    assert "Shape size mismatch" in mxnet("said.replace('|', '')", lines)


def test_a_product_that_is_broadcast_has_no_gradient_of_an_empty_array() -> None:
    """The gradient of the factor is not written: the previous content of its memory, 7, is read."""
    lines = """
    with mx.util.np_shape(True):
        factor, x = mx.nd.ones((1, 1)), mx.nd.zeros((0, 2))
        x.attach_grad()
        factor.attach_grad()
        factor.grad[:] = 7
        with autograd.record():
            y = mx.nd.broadcast_mul(x, factor)
        y.backward()
    """
    assert mxnet("factor.grad.asnumpy().tolist()", lines) == [[7.0]]


@pytest.mark.parametrize(("dtype", "flushed"), [("float32", True), ("float64", False)])
def test_softmax_has_no_subnormal_weights_in_float32(dtype: str, flushed: bool) -> None:
    """For logits 0 and -100 the second weight is 3.7e-44, a subnormal of float32: there it is 0."""
    _, weight = mxnet(f"mx.nd.softmax(mx.nd.array([0.0, -100.0], dtype={dtype!r})).asnumpy().tolist()")
    exact = mpmath.exp(-100) / (1 + mpmath.exp(-100))
    assert weight == (0.0 if flushed else pytest.approx(float(exact), rel=1e-14))
