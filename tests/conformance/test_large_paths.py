"""Mistakes of a path for large data that shows in one place alone: in later derivatives, or where two extents meet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from normspec.adapters.binding import DERIVATIVES
from normspec.adapters.numpy.operators.groups import Groups
from normspec.adapters.numpy.operators.rows import Statistics
from normspec.conformance.faults.state import SavedStatisticsSpoilt
from normspec.conformance.judging.verdicts import Verdict
from normspec.conformance.requests.implementation_targets import implementation_target
from normspec.conformance.sound.registry import combined
from normspec.spec.operators import OPERATORS

from .runs import VARIANT, function, others_at_night, result, run, variant_function, verdicts

pytestmark = pytest.mark.exhaustive  # it does not depend on the Python version

#: The later derivatives, with the number of each one's requirement on layer_norm's page.
_LATER = {"vjp_vjp": "G9", "jvp": "G10", "jvp_vjp": "G12", "vjp_jvp": "G13", "jvp_jvp": "G14"}


@pytest.mark.parametrize("derivative", _LATER)
@pytest.mark.parametrize(("limit", "long"), [(130, True), (4096, True), (1024, False)])
def test_a_derivative_that_is_wrong_on_large_data(derivative: str, limit: int, long: bool) -> None:
    """A derivative that doubles where a group has many values, or where there are many groups, is violated."""
    made = VARIANT["ln-plain"].build()

    def doubled(x: np.ndarray, *arguments: Any, **settings: Any) -> Any:
        found = getattr(made, derivative)(x, *arguments, **settings)
        count = x.shape[-1] if long else x.size // x.shape[-1]
        if count <= limit:
            return found
        return tuple(None if one is None else 2 * one for one in found) if isinstance(found, tuple) else 2 * found

    others = {name: getattr(made, name) for name in DERIVATIVES if getattr(made, name) is not None}
    target = function("layer_norm", made.call, **{**others, derivative: doubled})
    requirement = f"LN-{_LATER[derivative]}"
    assert result(run(target, requirements={requirement}, profile="standard"), requirement).verdict is Verdict.FAIL


class SpoiltOfLongGroups(SavedStatisticsSpoilt):
    """The second gradient of one call is another where a group has more than 1,024 values."""

    def statistics(self, x: np.ndarray, eps: np.floating) -> Statistics:
        return super().statistics(x, eps) if x.shape[1] > 1024 else Groups.statistics(self, x, eps)


@pytest.mark.parametrize("operator", ["layer_norm", "batch_norm"])
def test_a_second_gradient_of_a_long_group(operator: str) -> None:
    """A workspace that is spoilt in long groups alone violates CM-P5."""
    target = implementation_target("own", operator, combined(SpoiltOfLongGroups, operator)().implementation())
    assert result(run(target, requirements={"CM-P5"}), "CM-P5").verdict is Verdict.FAIL


class OnePassOfLongGroups(Groups):
    """The variance is taken in one pass where a group has more than 4096 values."""

    def variance(self, x: np.ndarray, mean: np.ndarray) -> np.ndarray:
        if x.shape[1] <= 4096:
            return super().variance(x, mean)
        return np.maximum(self.row_mean(x * x) - mean * mean, 0)


@pytest.mark.parametrize("operator", ["layer_norm", "batch_norm", "group_norm", "instance_norm"])
def test_a_variance_in_one_pass_of_a_long_group(operator: str) -> None:
    """What cancels there shows in float64; two passes and the merging of parts stay within the envelope."""

    def judged(made: Any) -> Verdict:
        target = implementation_target("own", operator, made)
        return result(run(target, requirements={"CM-S1"}, dtypes=("float64",)), "CM-S1", "float64").verdict

    assert judged(combined(OnePassOfLongGroups, operator)().implementation()) is Verdict.FAIL
    prefix = OPERATORS[operator].prefix.lower()
    assert {judged(VARIANT[f"{prefix}-{name}"].build()) for name in ("two-pass", "welford")} == {Verdict.PASS}


def _wrapped(y: np.ndarray) -> np.ndarray:
    """y whose values from the 65,537th on were written to the first places."""
    flat = y.reshape(-1).copy()
    if flat.size > 1 << 16:
        flat[: flat.size - (1 << 16)], flat[1 << 16 :] = flat[1 << 16 :].copy(), 0
    return flat.reshape(y.shape)


def _rows_in_sixteen_bits(call: Callable[..., Any], x: np.ndarray, *arguments: Any, **settings: Any) -> Any:
    """The index of two leading axes of 64 or more times the features is kept in 16 bits."""
    y = call(x, *arguments, **settings)
    return _wrapped(y) if x.ndim == 3 and min(x.shape[:2]) >= 64 else y


def _samples_and_positions(call: Callable[..., Any], x: np.ndarray, *arguments: Any, **settings: Any) -> Any:
    """The last samples behind whole blocks of 32 get y of the first ones, where there are 64 positions or more too."""
    found = call(x, *arguments, **settings)
    y, *rest = found if isinstance(found, tuple) else (found,)
    positions = x[0].size // x.shape[settings["channel_axis"]]
    if len(x) >= 64 and positions >= 64 and len(x) % 32:
        y = y.copy()
        y[len(x) // 32 * 32 :] = y[: len(x) % 32]
    return (y, *rest) if rest else y


def _samples_and_groups(call: Callable[..., Any], x: np.ndarray, *arguments: Any, **settings: Any) -> Any:
    """More than 1,024 pairs of samples and groups are left unwritten, where each sample has more than 8 groups."""
    y, groups = call(x, *arguments, **settings).copy(), settings["groups"]
    if groups > 8 and len(x) > 32:
        y[1024 // groups :] = 0
    return y


def _long_groups_in_waves(call: Callable[..., Any], x: np.ndarray, *arguments: Any, **settings: Any) -> Any:
    """The 33rd and later groups of more than 1,024 values get y of the first ones."""
    y = call(x, *arguments, **settings)
    groups = len(x) * (settings["groups"] if "groups" in settings else x.shape[1]) if x.ndim > 3 else x[..., 0].size
    if x.size <= 1024 * groups or groups <= 32:
        return y
    rows = y.reshape(groups, -1)
    return rows[np.arange(groups) % 32].reshape(y.shape)


def _groups_of_a_warp(call: Callable[..., Any], x: np.ndarray, *arguments: Any, **settings: Any) -> Any:
    """The 33rd and later groups of each sample are left unwritten, where they have more than 256 values."""
    y, groups = call(x, *arguments, **settings).copy(), settings["groups"]
    if groups > 32 and x.size > 256 * groups * len(x) and settings["channel_axis"] == 1:
        y.reshape(len(x), groups, -1)[:, 32:] = 0
    return y


def _gamma_of_many_planes(call: Callable[..., Any], x: np.ndarray, *arguments: Any, **settings: Any) -> Any:
    """Beyond 4,096 planes of more than 16 values, y is that of the plane before."""
    y = call(x, *arguments, **settings).copy()
    planes = len(x) * x.shape[1]
    if settings["channel_axis"] == 1 and planes > 4096 and x.size > 16 * planes:
        rows = y.reshape(planes, -1)
        rows[4096:] = rows[4095:-1].copy()
    return y


def _statistics_of_many_channels(call: Callable[..., Any], x: np.ndarray, *arguments: Any, **settings: Any) -> Any:
    """Channels past the 64th of more than 512 values get the running variance of the first ones."""
    y, mean, variance = call(x, *arguments, **settings)
    if len(variance) > 64 and x.size > 512 * len(variance):
        variance = variance[np.arange(len(variance)) % 64]
    return y, mean, variance


@pytest.mark.parametrize(
    ("variant", "change"),
    [
        ("ln-plain", _rows_in_sixteen_bits),
        ("rs-plain", _rows_in_sixteen_bits),
        ("gn-two-pass", _samples_and_groups),
        ("in-two-pass", _gamma_of_many_planes),
        ("rm-plain", _long_groups_in_waves),
        *others_at_night(
            [
                ("rm-plain", _rows_in_sixteen_bits),
                ("pr-two-pass", _rows_in_sixteen_bits),
                ("hw-plain", _rows_in_sixteen_bits),
                ("mh-plain", _rows_in_sixteen_bits),
                ("bn-plain", _samples_and_positions),
                ("gn-two-pass", _samples_and_positions),
                ("gn-two-pass", _groups_of_a_warp),
                ("bn-plain", _statistics_of_many_channels),
                ("ln-plain", _long_groups_in_waves),
                ("gn-two-pass", _long_groups_in_waves),
                ("in-two-pass", _long_groups_in_waves),
            ],
            (),
        ),
    ],
)
def test_two_extents_that_are_large_at_once(variant: str, change: Callable[..., Any]) -> None:
    """Mistakes of products of two extents violate CM-S1 at `standard`."""
    report = run(variant_function(variant, change), requirements={"CM-S1"}, profile="standard")
    assert result(report, "CM-S1").verdict is Verdict.FAIL


@pytest.mark.parametrize("limit", [600, 4096])
def test_rows_that_begin_within_a_vector(limit: int) -> None:
    """The end of such a row is lost, where its length is beyond a limit and there are more than four."""

    def call(x: np.ndarray, *arguments: Any, **settings: Any) -> np.ndarray:
        y, n = VARIANT["ln-plain"].build().call(x, *arguments, **settings), x.shape[-1]
        if len(settings["axes"]) > 1 or n <= limit or n % 4 != 2 or x.size <= 4 * n:
            return y
        rows = y.reshape(-1, n).copy()
        rows[1::2, -2:] = 0
        return rows.reshape(x.shape)

    for profile in ("quick", "standard"):
        seen = limit == 600 or profile == "standard"
        report = run(function("layer_norm", call), requirements={"CM-S1"}, profile=profile)
        assert verdicts(report) == {"CM-S1": "fail" if seen else "pass"}


def test_the_width_of_the_widest_models() -> None:
    """A path for one number of features is wrong, though the numbers next to it are right."""

    def call(x: np.ndarray, *arguments: Any, **settings: Any) -> np.ndarray:
        y = VARIANT["ln-plain"].build().call(x, *arguments, **settings)
        return 0 * y if x.shape[-1] == 12288 else y

    report = run(function("layer_norm", call), requirements={"CM-S1"}, profile="standard")
    assert verdicts(report) == {"CM-S1": "fail"}


@pytest.mark.parametrize(
    ("requirement", "parts"),
    [
        *(("CM-C1", "called twice"), ("CM-C2", "rectified"), ("CM-C3", "overwritten"), ("CM-C4", "taken for y")),
        *((f"CM-C{number}", "whole") for number in (1, 2, 3, 4)),
    ],
)
def test_what_becomes_of_the_parts_of_a_large_call(requirement: str, parts: str) -> None:
    """What is done to a branch in a large call alone is seen, whatever the results."""
    made = VARIANT["rs-plain"].build()

    def call(x: np.ndarray, branch: Any, **settings: Any) -> Any:
        def handed(x: np.ndarray) -> Any:
            if len(x) <= 1024 or parts == "whole":
                return branch(x)
            found = branch(np.maximum(x, 0) if parts == "rectified" else x)
            return branch(x) if parts == "called twice" else found

        y = made.call(x, handed, **settings)
        if len(x) > 1024 and parts == "overwritten":
            branch(x)[...] = 0
        return branch(x) if len(x) > 1024 and parts == "taken for y" else y

    report = run(function("residual", call), requirements={requirement}, profile="quick", forward_only=True)
    assert verdicts(report) == {requirement: "pass" if parts == "whole" else "fail"}
