"""Known violations of PyTorch's group_norm in nested derivatives, on every device."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..known import Failure, KnownViolation, Predicted
from .bridge import SOURCE
from .formats import ROUNDOFFS
from .groups import Groups, mean


def _moved_rstd(of: Groups, t: Any, u: float, eps: float) -> Any:
    """
    A bound on the error of the tangent of 1/sqrt(var + eps), computed as -r^3 mean((x - mean(x)) (t - mean(x))).

    In exact arithmetic this equals -r^3 mean((x - mean(x)) (t - mean(t))). The error of mean(x), that of a sum, is
    shared by the group and is multiplied by mean(t) - mean(x); in a sound formula this factor is 0. Each term is
    rounded in its two differences, in their product, and in the product with r^3; then come the sum, the quotient, and
    pow(r, 3). That makes n + 8 roundings.
    """
    n = of.x.shape[2] * of.x.shape[3]
    of_mean = u * ((n + 1) * mean(np.abs(of.x)) + np.abs(of.mu))
    variance = mean(of.d**2)
    # The saved variance may be smaller than the true one, by A4 of the accuracy page for a centred variance.
    least = variance - u * (n + 8 + 12 * np.sqrt(n)) * (variance + of_mean**2) - of_mean**2
    r = 1 / np.sqrt(np.maximum(least, 0) + eps * (1 - 2 * u))
    return r**3 * (of_mean * np.abs(mean(t) - of.mu) + u * (n + 8) * mean((np.abs(of.d) + of_mean) * np.abs(t - of.mu)))


def _of_moved_rstd(failure: Failure) -> Predicted:
    """Whether a tangent's error is within the envelope plus the effect of that error in the tangent of r."""
    assert failure.got is not None and failure.expected is not None and failure.envelope is not None
    eps, u = failure.settings["eps"], ROUNDOFFS[np.asarray(failure.inputs["x"]).dtype.name]
    of = Groups(failure, eps)
    tangent_of_y = failure.output == "forward over forward of y"
    moving = of.by_group((failure.tangents_again if tangent_of_y else failure.tangents)["x"])
    with np.errstate(all="ignore"):
        xhat = np.abs(of.d) * of.r
        if tangent_of_y:
            t = of.by_group(failure.tangents["x"])
            centred = np.abs(t - mean(t))
            by_r = np.abs(of.gamma) * (centred + 3 * xhat * mean(centred * xhat))
            by_r = by_r + np.abs(of.by_channel(failure.tangents.get("gamma"), 0.0) * of.d)
        elif failure.output == "forward over reverse in gamma":
            by_r = np.abs(of.g * of.d)
        else:
            h = np.abs(of.h)
            by_r = h + mean(h) + 3 * xhat * mean(h * xhat)
        # A hundredth for second-order terms: the last rounding, and the roundings of the factors.
        (more,) = of.back(failure, 1.01 * by_r * _moved_rstd(of, moving, u, eps))
        return np.abs(failure.got - failure.expected) <= failure.envelope + more


FORWARD = tuple(
    KnownViolation(
        requirement,
        "the tangent of 1/sqrt(var + eps) is a sum of (x - mean(x)) (t - mean(x)), t being the tangent of x, since the"
        " two are exchanged in a call: it is off by roundings of mean(x), however small t is",
        links=(
            f"{SOURCE}torch/csrc/autograd/FunctionsManual.cpp (group_norm_invstd_jvp, _invstd_jvp)",
            f"{SOURCE}tools/autograd/derivatives.yaml (native_group_norm)",
        ),
        failures=("value",),
        outputs=outputs,
        modes=("training",),
        predicts=_of_moved_rstd,
        always=False,  # the drawn tangents are seldom small compared with the mean
    )
    for requirement, outputs in (
        ("GN-G12", ("forward over reverse in x", "forward over reverse in gamma")),
        ("GN-G14", ("forward over forward of y",)),
    )
)
