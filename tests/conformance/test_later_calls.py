"""Results that many later calls must leave alone."""

from __future__ import annotations

import numpy as np
import pytest

from normspec import check
from normspec.adapters.numpy.operators.staged import Arrays
from normspec.conformance.faults.state import Buffers
from normspec.conformance.judging.verdicts import Verdict
from normspec.conformance.requests.implementation_targets import implementation_target
from normspec.conformance.sound.registry import combined

from .runs import result, run


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
