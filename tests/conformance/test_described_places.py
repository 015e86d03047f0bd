"""Where a result is wrong, if no formula is found: one place, two that hold at once, or most of a place."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

from normspec.adapters.numpy.operators.batch_norm import BatchNorm
from normspec.adapters.numpy.operators.group_norm import GroupNorm
from normspec.adapters.numpy.operators.highway import Highway, Paths
from normspec.adapters.numpy.operators.layer_norm import LayerNorm
from normspec.adapters.numpy.operators.residual import Residual
from normspec.adapters.numpy.operators.rows import Array, Pull
from normspec.conformance.requests.implementation_targets import implementation_target

from .runs import run


def told(wrong: type, operator: str) -> str:
    """The sentence of the one cause."""
    target = implementation_target("own", operator, wrong().implementation())
    (cause,) = run(target, explain=True).causes
    return cause.sentence


class BranchLostInBatches(Residual):
    """Loses the branch where x has five rows or more."""

    def add(self, skip: Array, branch: Array) -> Array:
        return super().add(skip, 0 * branch if len(skip) > 4 else branch)


def test_a_length_of_the_first_axis_is_a_place() -> None:
    """It is the batch, or the sequence."""
    place = "where the length of the first axis of x is 5 or more"
    assert place in told(BranchLostInBatches, "residual")


class SignLostInThreeAxes(Highway):
    """Turns the sign of a part of dx where a carry is given and x has three axes."""

    def skip_gradient(self, p: Paths, g: Array) -> Array:
        right = super().skip_gradient(p, g)
        return -right if p.carry_logits is not None and p.x.ndim == 3 else right


def test_two_places_that_hold_at_once() -> None:
    """In each alone much is right."""
    assert "only where carry is given and x has 3 axes" in told(SignLostInThreeAxes, "highway")


class MomentumOfOneReduced(BatchNorm):
    """Takes a momentum of 1 for 3/4."""

    def updated(self, old: Array, new: Array, momentum: float) -> Array:
        return super().updated(old, new, 0.75 if momentum == 1 else momentum)


@pytest.mark.nightly
def test_a_momentum_of_one_is_no_limit() -> None:
    """None is larger: "above about 1" would name no case."""
    assert "where momentum is 1" in told(MomentumOfOneReduced, "batch_norm")


class WrongInSmallGroups(GroupNorm):
    """Takes another variance where a group has eight values or fewer, by a factor that is not the same in any two."""

    def variance(self, x: Array, mean: Array) -> Array:
        n = x.shape[1]
        return super().variance(x, mean) * (1 + 0.3 * math.cos(n) ** 2 if n <= 8 else 1)


def test_most_of_a_place_is_told_as_where_it_always_is() -> None:
    """A constant group is right there too."""
    assert "always where the number of values in a group is 8 or less" in told(WrongInSmallGroups, "group_norm")


class WiderBesideBeta(LayerNorm):
    """Returns float64 where beta is given."""

    def call(self, *arrays: Any, **settings: Any) -> Any:
        y = super().call(*arrays, **settings)
        return y.astype("float64") if arrays[2] is not None else y


def test_a_wrong_dtype_is_told_with_its_place() -> None:
    """Every value is right, so that no description of values would say it."""
    sentence = told(WiderBesideBeta, "layer_norm")
    assert "y has dtype float64 where beta is given; every value that was tried is right" in sentence


class Squeezed(LayerNorm):
    """Drops axes of one element."""

    def call(self, *arrays: Any, **settings: Any) -> Any:
        return super().call(*arrays, **settings).squeeze()


def test_a_lone_element_along_an_axis_is_a_place() -> None:
    """As of a squeeze without an axis."""
    assert "y has a wrong shape where an axis of x has one element" in told(Squeezed, "layer_norm")


class NothingForClosedGains(LayerNorm):
    """Its dgamma is 0 where gamma is."""

    def gamma_gradient(self, p: Pull) -> Array:
        return super().gamma_gradient(p) * (p.gamma != 0)


def test_a_parameter_is_a_place_of_its_gradient() -> None:
    """It has no value of x beside it."""
    assert "dgamma is zero where gamma is 0" in told(NothingForClosedGains, "layer_norm")


class ReversedMomentum(BatchNorm):
    """Weighs old and new statistics the other way round where momentum is above 1/2."""

    def updated(self, old: Array, new: Array, momentum: float) -> Array:
        return super().updated(old, new, 1 - momentum if momentum > 0.5 else momentum)


@pytest.mark.nightly
def test_a_limit_between_two_settings_that_are_far_apart_is_not_guessed() -> None:
    """No case has a momentum between 0.25 and 0.9."""
    sentence = told(ReversedMomentum, "batch_norm")
    assert "where momentum is about 0.9 or more (and not where it is about 0.25 or less)" in sentence


class NoiseBesideBeta(LayerNorm):
    """Adds noise where beta is given."""

    def call(self, *arrays: Any, **settings: Any) -> Any:
        y = super().call(*arrays, **settings)
        return y if arrays[2] is None else (y + np.random.random_sample(y.shape)).astype(y.dtype)


@pytest.mark.nightly
def test_a_result_that_varies_beside_one_parameter() -> None:
    """The calls that are repeated have every parameter."""
    words = "differs between calls with the same arguments, where beta is given"
    assert words in told(NoiseBesideBeta, "layer_norm")


class NoiseAndNoAbsentGamma(LayerNorm):
    """Adds noise, and fails where gamma is None."""

    def call(self, *arrays: Any, **settings: Any) -> Any:
        if arrays[1] is None:
            raise ValueError("gamma is missing")
        y = super().call(*arrays, **settings)
        return (y + np.random.random_sample(y.shape)).astype(y.dtype)


@pytest.mark.nightly
def test_a_call_that_fails_does_not_show_that_results_no_longer_vary() -> None:
    """It has no results."""
    target = implementation_target("own", "layer_norm", NoiseAndNoAbsentGamma().implementation())
    causes = run(target, explain=True, requirements=("LN-F1", "CM-P2")).causes
    assert causes and not any("where gamma is given" in cause.sentence for cause in causes)


class KeepsStatisticsOfOneValue(BatchNorm):
    """Leaves the running statistics as they were where a channel has one value."""

    def running(
        self, s: Any, mean: Array, variance: Array, momentum: float, count: int, eps: Any
    ) -> tuple[Array, Array]:
        return (mean, variance) if count == 1 else super().running(s, mean, variance, momentum, count, eps)


@pytest.mark.nightly
def test_a_result_that_is_an_input_is_no_multiple_of_the_right_one() -> None:
    """The few cases with one value a channel share a momentum, and so a ratio."""
    sentence = told(KeepsStatisticsOfOneValue, "batch_norm")
    assert "new_running_var is running_var itself in training where a group has one value" in sentence


class MomentsOfTheLastGroup(GroupNorm):
    """Takes the moments of the 33rd and later groups from the 32nd, and returns a tenth more as their dx."""

    def statistics(self, x: Array, eps: np.floating) -> Any:
        found = super().statistics(x, eps)
        taken = np.arange(len(x)) - self._beyond(len(x))
        moments = {name: getattr(found, name)[taken] for name in ("mean", "variance", "rstd")}
        return dataclasses.replace(found, **moments)

    def input_gradient(self, p: Pull) -> Array:
        right = super().input_gradient(p)
        return right * np.where(self._beyond(len(p.x)) > 0, 1.1, 1.0).astype(right.dtype)[:, None]

    def _beyond(self, rows: int) -> np.ndarray:
        return np.maximum(np.arange(rows) % self.settings["groups"] - 31, 0)


@pytest.mark.nightly
def test_one_case_with_many_cotangents_shows_its_output_once() -> None:
    """Its groups are alike, and it has no gamma and no beta: what is right in it is not right for want of these."""
    sentence = told(MomentsOfTheLastGroup, "group_norm")
    assert "right up to 32 groups, wrong from 33 on" in sentence and "given" not in sentence
