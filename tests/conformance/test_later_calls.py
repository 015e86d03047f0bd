"""Results that many later calls must leave alone."""

from __future__ import annotations

import numpy as np
import pytest

from normspec import check
from normspec.adapters.numpy.operators import IMPLEMENTATIONS
from normspec.adapters.numpy.operators.staged import Arrays
from normspec.conformance.faults.state import Buffers
from normspec.conformance.judging.verdicts import Verdict
from normspec.conformance.requests.implementation_targets import implementation_target
from normspec.conformance.sound.registry import combined

from .runs import FAULT, function, result, run, specimen


class BuffersInTurn(Buffers):
    """Returns y in one of eight buffers in turn, which the eighth call after it overwrites."""

    calls = 0

    def after(self, stage: str, arrays: Arrays, results: Arrays) -> Arrays:
        if stage != "call":
            return results
        self.calls += 1
        return self.shared(f"y{self.calls % 8}", results[0]), *results[1:]


@pytest.mark.parametrize("operator", ["layer_norm", "batch_norm", "mhc"])
def test_a_result_in_one_of_several_buffers(operator: str) -> None:
    """CM-P4 makes more later calls than code has buffers."""
    target = implementation_target("own", operator, combined(BuffersInTurn, operator)().implementation())
    assert result(run(target, requirements={"CM-P4"}), "CM-P4").verdict is Verdict.FAIL


def _with_a_variance_too_large(x, gamma, beta, *, eps, axes):
    """Wrong, and wrong in the same way whatever was called before."""
    x64 = x.astype(np.float64)
    y = (x64 - x64.mean(axes, keepdims=True)) / np.sqrt(x64.var(axes, keepdims=True) * 1.1 + eps)
    y = y * (1 if gamma is None else gamma.astype(np.float64)) + (0 if beta is None else beta.astype(np.float64))
    return y.astype(x.dtype)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_wrong_formula_alone_is_not_a_memory(dtype):
    """Asked for CM-P2 alone, nothing says that the formula is wrong; later calls show nothing of earlier ones."""
    report = check(_with_a_variance_too_large, op="layer_norm", dtypes=dtype, only="CM-P2", profile="quick")
    assert report.conforms, report


def _unbiased(x, gamma, beta, *, eps, axes):
    """Wrong, and of (1, 2) values it returns the same for either choice of axes, as a right function does."""
    wide = x.astype(np.float64)
    n = np.prod([x.shape[axis] for axis in axes])
    deviation = wide - wide.mean(axes, keepdims=True)
    y = deviation / np.sqrt(np.square(deviation).sum(axes, keepdims=True) / max(n - 1, 1) + eps)
    y = y * (1 if gamma is None else gamma.astype(np.float64)) + (0 if beta is None else beta.astype(np.float64))
    return y.astype(x.dtype)


def test_the_same_result_for_calls_that_have_the_same_right_one_is_no_memory():
    """What a call returned is returned by the next too, where that is right."""
    report = check(_unbiased, op="layer_norm", dtypes="float32", only="CM-P2", profile="quick")
    assert report.conforms, report


@pytest.mark.parametrize(
    "fault", ["ln-dx-no-mean", "ln-dx-uses-y", "ln-cotangent-clipped", "ln-dbeta-mean", "ln-backward-assumes-matrix"]
)
def test_a_wrong_gradient_alone_is_not_a_memory(fault):
    """Gradients are judged by their formula, where they are as wrong by themselves and in calls of other values."""
    assert result(run(specimen(FAULT[fault]), requirements={"CM-P2"}), "CM-P2").verdict is Verdict.PASS


@pytest.mark.parametrize(("of_memory", "verdict"), [(True, Verdict.FAIL), (False, Verdict.PASS)])
def test_gradients_that_fail_after_another_call_alone_are_memory(of_memory, verdict):
    """A vjp that refuses an x with another last value than the last x had violates CM-P2; without gamma, not."""
    plain, last = IMPLEMENTATIONS["layer_norm"]().implementation(), []

    def vjp(x, gamma, beta, g, **settings):
        near = bool(last) and last[0].shape == x.shape and np.array_equal(last[0].flat[:-1], x.flat[:-1])
        if near and not np.array_equal(last[0], x) if of_memory else gamma is None:
            raise RuntimeError("no gradient")
        last[:] = [x.copy()]
        return plain.vjp(x, gamma, beta, g, **settings)

    found = result(run(function("layer_norm", plain.call, vjp=vjp), requirements={"CM-P2"}), "CM-P2")
    assert found.verdict is verdict
