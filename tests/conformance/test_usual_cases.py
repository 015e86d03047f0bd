"""What few cases show: two extents of ordinary size, an eps of 0 beside tiny variances, large or cancelling parts."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from normspec.adapters.numpy.operators.batch_norm import BatchNorm
from normspec.adapters.numpy.operators.group_norm import GroupNorm
from normspec.adapters.numpy.operators.layer_norm import LayerNorm
from normspec.adapters.numpy.operators.residual import Residual
from normspec.adapters.numpy.operators.rows import Array, Pull
from normspec.conformance.requests.implementation_targets import implementation_target

from .runs import function, run, verdicts


def _in_one_pass(base: Any) -> Any:
    class OnePassForImages(base):  # type: ignore[misc]
        """Takes the variance in one pass where groups and values are many."""

        def moments(self, x: Array) -> tuple[Array, Array]:
            mean, variance = super().moments(x)
            if len(x) >= 32 and x.shape[-1] >= 64:
                variance = np.maximum(np.square(x).mean(-1, keepdims=True) - np.square(mean), 0).astype(x.dtype)
            return mean, variance

    return OnePassForImages


class TileLost(LayerNorm):
    """Loses the last tile of 32 rows from dgamma where rows are long."""

    def gamma_gradient(self, p: Pull) -> Array:
        kept = len(p.x) // 32 * 32 if len(p.x) >= 32 and p.x.shape[-1] >= 512 else len(p.x)
        return super().gamma_gradient(dataclasses.replace(p, g=np.where(np.arange(len(p.x))[:, None] < kept, p.g, 0)))


class FloorUnderEps(LayerNorm):
    """Takes an eps of 1e-30 in place of a smaller one."""

    def rstd(self, variance: Array, eps: np.floating) -> Array:
        return super().rstd(variance, max(eps, type(eps)(1e-30)))


class LimitedBranch(Residual):
    """Limits the branch to a thousand."""

    def add(self, skip: Array, branch: Array) -> Array:
        return super().add(skip, np.clip(branch, -1000, 1000))


@pytest.mark.parametrize(
    ("operator", "right", "wrong", "requirement"),
    [
        ("batch_norm", BatchNorm, _in_one_pass(BatchNorm), "BN-F1"),
        ("group_norm", GroupNorm, _in_one_pass(GroupNorm), "GN-F1"),
        ("layer_norm", LayerNorm, TileLost, "LN-G2"),
        ("layer_norm", LayerNorm, FloorUnderEps, "LN-F1"),
        ("residual", Residual, LimitedBranch, "RS-F1"),
    ],
)
def test_what_few_cases_show(operator: str, right: Any, wrong: Any, requirement: str) -> None:
    """The right one passes, and the wrong one fails."""
    for made, verdict in ((right, "pass"), (wrong, "fail")):
        target = implementation_target("own", operator, made().implementation())
        assert verdicts(run(target, requirements={requirement})) == {requirement: verdict}


def centred(x: Array) -> Array:
    """Its deviation from the mean of each row, in float32 at least."""
    wide = x.astype(np.promote_types(x.dtype, np.float32))
    return wide - wide.mean(-1, keepdims=True)


@pytest.mark.parametrize(("apart", "verdict"), [(False, "pass"), (True, "fail")])
def test_the_sum_is_formed_before_its_mean_is_taken(apart: bool, verdict: str) -> None:
    """The deviations of x and F(x) have roundings of their own, which are large where x and F(x) nearly cancel."""

    def post_norm(x: Array, sublayer: Any, gamma: Any, beta: Any, *, eps: float) -> Array:
        branch = sublayer(x)
        d = centred(x) + centred(branch) if apart else centred(x + branch)
        y = d / np.sqrt(np.square(d).mean(-1, keepdims=True) + d.dtype.type(eps))
        y = y if gamma is None else y * gamma
        return (y if beta is None else y + beta).astype(x.dtype)

    target = function("post_norm", post_norm)
    report = run(target, dtypes=("float32",), requirements={"PO-F1"}, forward_only=True)
    assert verdicts(report) == {"PO-F1": verdict}
