"""Terms of a layer's sum that are left out, as its cause tells them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .runs import VARIANT, function, run


def _logistic(z: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-z.astype(np.float64)))


def sparse_highway(x: np.ndarray, transform: Any, gate: Any, *, carry: Any = None) -> np.ndarray:
    """Takes a gate below 1e-4 for 0."""
    h, z = transform(x), gate(x)
    t = _logistic(z)
    c = _logistic(-z) if carry is None else _logistic(carry(x))
    return (np.where(t < 1e-4, 0, t) * h + c * x).astype(x.dtype)


def mhc_of_one(x: np.ndarray, branches: Any, logits: Any, *, fuse: Any = None) -> np.ndarray:
    """Leaves fuse out where there is one branch."""
    if fuse is not None and len(branches) == 1:
        return x + branches[0](x)
    return VARIANT["mh-plain"].build().call(x, branches, logits, fuse=fuse)


@np.errstate(all="ignore")
def _told(operator: str, call: Any) -> str:
    (cause,) = run(function(operator, call), explain=True, forward_only=True).causes
    return cause.sentence


def test_a_small_term_is_left_out_rather_than_exchanged_for_a_smaller_one() -> None:
    """t^2 transform(x) is as near as 0 there, and nobody wrote it."""
    assert _told("highway", sparse_highway).startswith(
        "y is the right value without t transform(x) where the transform gate is about"
    )


def test_a_fuse_that_is_left_out_is_no_matter_of_weights() -> None:
    """With fuse there are none."""
    assert _told("mhc", mhc_of_one).startswith(
        "y is what the formula gives with the sum of the branches in place of what fuse returns"
    )
