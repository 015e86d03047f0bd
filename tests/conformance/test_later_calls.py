"""Results that many later calls must leave alone."""

from __future__ import annotations

import pytest

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
