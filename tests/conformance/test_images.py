"""Images that are long along one axis, many long groups, and four axes for parts: what is lost there is seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from normspec.conformance.cases.images import images_deck
from normspec.conformance.cases.shapes import shape_of

from .runs import VARIANT, function, run, verdicts


def group_norm(kept: Callable[[np.ndarray], np.ndarray]) -> Callable[..., np.ndarray]:
    """group_norm whose statistics are of a part of the positions: of x as (samples, groups, width, height, columns)."""

    def call(x: np.ndarray, gamma: Any, beta: Any, *, eps: float, groups: int, channel_axis: int) -> np.ndarray:
        moved = np.moveaxis(x.astype(np.float64), channel_axis, 1)
        rows = moved.reshape(len(moved), groups, -1, *moved.shape[2:])
        of = kept(rows) if x.ndim == 4 else rows
        axes = tuple(range(2, rows.ndim))
        mean, variance = of.mean(axes, keepdims=True), of.var(axes, keepdims=True)
        y = ((rows - mean) / np.sqrt(variance + eps)).reshape(moved.shape)
        along = (-1, *(1,) * (x.ndim - 2))
        y = y if gamma is None else y * gamma.astype(np.float64).reshape(along)
        y = y if beta is None else y + beta.astype(np.float64).reshape(along)
        return np.moveaxis(y, 1, channel_axis).astype(x.dtype)

    return call


@pytest.mark.parametrize("profile", ["quick", "standard"])
@pytest.mark.parametrize(
    ("kept", "verdict"),
    [
        (lambda rows: rows, "pass"),
        (lambda rows: rows[..., : rows.shape[-1] // 64 * 64 or None], "fail"),  # the tail of a row
        (lambda rows: rows[..., :64, :], "fail"),  # all rows after the first 64
        (lambda rows: rows[..., : rows.shape[-2]], "fail"),  # as many columns as rows
    ],
    ids=["all", "row-tail", "first-rows", "square"],
)
def test_what_a_long_axis_loses_is_seen(kept: Callable[[np.ndarray], np.ndarray], verdict: str, profile: str) -> None:
    """CM-S1: the sweep of sizes lays positions out nearly square, or along the first axis."""
    report = run(function("group_norm", group_norm(kept)), requirements={"CM-S1"}, profile=profile)
    assert verdicts(report) == {"CM-S1": verdict}


@pytest.mark.parametrize("operator", ["batch_norm", "group_norm", "instance_norm"])
def test_each_axis_is_long_with_channels_second_and_last(operator: str) -> None:
    """At `standard` with each length; at `quick` one is long where the channels are second, the other where last."""
    for profile, count in (("quick", 2), ("standard", 20)):
        shapes = {(shape_of(one), one.channel_axis) for one in images_deck(operator, profile)}
        assert len(shapes) == count
        sides = [shape[2:] if axis == 1 else shape[1:3] for shape, axis in shapes]
        assert {height > width for height, width in sides} == {True, False}


def test_many_long_groups_at_once() -> None:
    """CM-S1 at `standard`: dgamma summed in two stages, where the second leaves out half of the first one's sums."""
    made = VARIANT["ln-plain"].build()

    def vjp(x: np.ndarray, gamma: Any, beta: Any, g: np.ndarray, *, eps: float, axes: tuple[int, ...]) -> Any:
        dx, dgamma, dbeta = made.vjp(x, gamma, beta, g, eps=eps, axes=axes)
        groups = x.size // max(gamma.size, 1) if gamma is not None else 0
        if min(groups, 0 if gamma is None else gamma.size) >= 512:
            half = groups // 2 * gamma.size
            rest = x.reshape(-1)[:half].reshape(-1, *gamma.shape)
            _, dgamma, _ = made.vjp(rest, gamma, beta, g.reshape(-1)[:half].reshape(rest.shape), eps=eps, axes=axes)
        return dx, dgamma, dbeta

    about = {"requirements": {"CM-S1"}, "profile": "standard"}
    assert verdicts(run(function("layer_norm", made.call, vjp=made.vjp), **about)) == {"CM-S1": "pass"}
    assert verdicts(run(function("layer_norm", made.call, vjp=vjp), **about)) == {"CM-S1": "fail"}


def test_a_part_gets_four_axes_where_x_has_four() -> None:
    """CM-C10: flattened to three, a part that takes each vector by itself gives the same."""
    made = VARIANT["pr-two-pass"].build()

    def flattened(x: np.ndarray, sublayer: Any, gamma: Any, beta: Any, *, eps: float) -> np.ndarray:
        rows = x.reshape(x.shape[0], -1, x.shape[-1]) if x.ndim == 4 else x
        return made.call(rows, sublayer, gamma, beta, eps=eps).reshape(x.shape)

    assert verdicts(run(function("pre_norm", flattened), requirements={"CM-C10"})) == {"CM-C10": "fail"}
