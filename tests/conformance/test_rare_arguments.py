"""Mistakes that show only for arguments of a rare kind: a case of the deck has each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from normspec.adapters.target import Target
from normspec.conformance.judging.verdicts import Verdict

from .runs import VARIANT, function, result, run, variant_function

pytestmark = pytest.mark.exhaustive  # it does not depend on the Python version


def _without_the_last_block(call: Callable[..., Any], x: np.ndarray, *arguments: Any, **settings: Any) -> Any:
    """The statistics lack the last 32 values where n is a multiple of 96 and not of 128."""
    y = call(x, *arguments, **settings)
    if x.shape[-1] % 96 or x.shape[-1] % 128 == 0:
        return y
    return call(np.concatenate([x[..., :-32], x[..., :32]], axis=-1), *arguments, **settings)


def _one_width(call: Callable[..., Any], x: np.ndarray, *arguments: Any, **settings: Any) -> Any:
    """Half of y at n = 5120."""
    return call(x, *arguments, **settings) / (2 if x.shape[-1] == 5120 else 1)


def _first_row_of_gamma(call: Callable[..., Any], x: np.ndarray, gamma: Any, beta: Any, **settings: Any) -> Any:
    """Two normalised axes of 16 values or more share the first row of gamma."""
    if gamma is not None and gamma.ndim == 2 and min(gamma.shape) >= 16:
        gamma = np.broadcast_to(gamma[:1], gamma.shape)
    return call(x, gamma, beta, **settings)


def _first_of_three_axes(call: Callable[..., Any], x: np.ndarray, *arguments: Any, **settings: Any) -> Any:
    """Of three normalised axes, the first has two values at most, or y is twice as large."""
    axes = settings["axes"]
    return call(x, *arguments, **settings) * (2 if len(axes) == 3 and x.shape[axes[0]] > 2 else 1)


def _axis_from_the_end(call: Callable[..., Any], x: np.ndarray, *arguments: Any, **settings: Any) -> Any:
    """A channel axis of -2 or less is axis 1 where that has as many values."""
    axis = settings["channel_axis"]
    taken = 1 if axis < -1 and x.shape[1] == x.shape[axis] else axis
    return call(x, *arguments, **{**settings, "channel_axis": taken})


def _sample_by_sample(call: Callable[..., Any], x: np.ndarray, *arguments: Any, **settings: Any) -> Any:
    """Channels between the positions of x of five axes: each sample is normalised alone."""
    found = call(x, *arguments, **settings)
    if x.ndim < 5 or settings["channel_axis"] % 5 not in (2, 3):
        return found
    alone = [call(one[None], *arguments, **settings)[0] for one in x]
    return np.concatenate(alone), *found[1:]


def _refusing_channels_between(call: Callable[..., Any], x: np.ndarray, *arguments: Any, **settings: Any) -> Any:
    """Channels between the positions of x of five axes raise."""
    if x.ndim == 5 and settings["channel_axis"] % 5 in (2, 3):
        raise ValueError("the channels must be second or last")
    return call(x, *arguments, **settings)


def _last_of_six_axes(call: Callable[..., Any], x: np.ndarray, *arguments: Any, **settings: Any) -> Any:
    """x of six axes has its last axis turned round, where it is not normalised over four."""
    y = call(x, *arguments, **settings)
    return y[..., ::-1] if x.ndim == 6 and len(settings["axes"]) != 4 else y


def _rows_of_six_axes(call: Callable[..., Any], x: np.ndarray, *arguments: Any, **settings: Any) -> Any:
    """x of six axes has its first axis turned round, where it is normalised over three."""
    y = call(x, *arguments, **settings)
    return y[::-1] if x.ndim == 6 and len(settings["axes"]) == 3 else y


def _five_axes_at_most(call: Callable[..., Any], x: np.ndarray, *arguments: Any, **settings: Any) -> Any:
    """x of six axes has its last axis but one turned round."""
    found = call(x, *arguments, **settings)
    y, *rest = found if isinstance(found, tuple) else (found,)
    y = y[..., ::-1, :] if x.ndim == 6 else y
    return (y, *rest) if rest else y


def _refusing_six_axes(call: Callable[..., Any], x: np.ndarray, *arguments: Any, **settings: Any) -> Any:
    """x of six axes raises."""
    if x.ndim == 6:
        raise ValueError("two to five axes")
    return call(x, *arguments, **settings)


def _one_sample(call: Callable[..., Any], x: np.ndarray, *arguments: Any, **settings: Any) -> Any:
    """The statistics of a batch of one sample are those of half of its positions."""
    y, *statistics = call(x, *arguments, **settings)
    if settings["training"] and settings["channel_axis"] == -1 and len(x) == 1 and x.ndim == 4:
        half = [call(part, *arguments, **settings)[0] for part in np.array_split(x, 2, axis=1)]
        y = np.concatenate(half, axis=1)
    return (y, *statistics)


def _four_branches(call: Callable[..., Any], x: np.ndarray, branches: Any, logits: Any, **settings: Any) -> Any:
    """Four branches have equal weights."""
    equal = logits is not None and len(branches) == 4
    return call(x, branches, np.zeros_like(logits) if equal else logits, **settings)


def _in_blocks_of_four(call: Callable[..., Any], x: np.ndarray, branches: Any, logits: Any, **settings: Any) -> Any:
    """The largest logit of a first block without any branch is -inf, and -inf less -inf is NaN."""
    y = call(x, branches, logits, **settings)
    return y if logits is None or len(logits) < 4 or logits[:4].max() > -np.inf else np.full_like(y, np.nan)


def _mapped(call: Callable[..., Any], x: np.ndarray, branches: Any, logits: Any, **settings: Any) -> Any:
    """``map`` ends at the first branch that raises StopIteration."""

    def returned(branch: Callable[..., Any]) -> Any:
        return branch(x)

    results = list(map(returned, branches))
    logits = None if logits is None else logits[: len(results)]
    return call(x, [lambda _, value=value: value for value in results], logits, **settings) if results else x


def _fitting(call: Callable[..., Any], x: np.ndarray, part: Any, *arguments: Any, **settings: Any) -> Any:
    """A part's result that has as many values as x is put into x's shape."""

    def fitted(handed: np.ndarray) -> np.ndarray:
        value = part(handed)
        return value.reshape(x.shape) if value.size == x.size else value

    return call(x, fitted, *arguments, **settings)


def _three_axes(limit: int) -> Callable[..., Any]:
    """Three normalised axes with more values than this lose beta."""

    def change(call: Callable[..., Any], x: np.ndarray, gamma: Any, beta: Any, **settings: Any) -> Any:
        lost = len(settings["axes"]) == 3 and gamma is not None and gamma.size > limit
        return call(x, gamma, None if lost else beta, **settings)

    return change


def _transposed_beta(call: Callable[..., Any], x: np.ndarray, gamma: Any, beta: Any, **settings: Any) -> Any:
    """Where gamma is absent, beta over two axes is read in the other order."""
    if gamma is None and beta is not None and beta.ndim == 2 and beta.shape[0] == beta.shape[1]:
        beta = beta.T
    return call(x, gamma, beta, **settings)


def _one_group_of_channels(call: Callable[..., Any], x: np.ndarray, *arguments: Any, **settings: Any) -> Any:
    """Without positions, channels that are counted from the end are one group."""
    one = x.ndim == 2 and settings["channel_axis"] == -1
    return call(x, *arguments, **({**settings, "groups": 1} if one else settings))


def _samples_for_channels(call: Callable[..., Any], x: np.ndarray, gamma: Any, beta: Any, **settings: Any) -> Any:
    """Without positions, channels that are counted from the end all get the first one's beta."""
    if x.ndim == 2 and settings["channel_axis"] == -1 and beta is not None:
        beta = np.full_like(beta, beta[0])
    return call(x, gamma, beta, **settings)


def _one_branch(call: Callable[..., Any], x: np.ndarray, branches: Any, logits: Any, **settings: Any) -> Any:
    """One branch is its own fusion."""
    if settings.get("fuse") is not None and len(branches) == 1:
        return x + branches[0](x)
    return call(x, branches, logits, **settings)


def _four_outputs(call: Callable[..., Any], x: np.ndarray, branches: Any, logits: Any, **settings: Any) -> Any:
    """No more than four branches are fused."""
    return call(x, branches if settings.get("fuse") is None else branches[:4], logits, **settings)


def _floored_eps(call: Callable[..., Any], x: np.ndarray, *arguments: Any, **settings: Any) -> Any:
    """An eps below 1e-20 is 1e-20, unless it is 0."""
    eps = settings["eps"]
    return call(x, *arguments, **{**settings, "eps": max(eps, 1e-20) if eps else eps})


def _frozen(call: Callable[..., Any], x: np.ndarray, *arguments: Any, **settings: Any) -> Any:
    """A momentum of 0 says that the running statistics are the layer's."""
    found = call(x, *arguments, **settings)
    if not settings["training"] or settings["momentum"]:
        return found
    return call(x, *arguments, **{**settings, "training": False})[0], *found[1:]


def _groups_of_three(call: Callable[..., Any], x: np.ndarray, *arguments: Any, **settings: Any) -> Any:
    """Groups of three values share a vector of four with the next one's first value, and their NaN with it."""
    y = call(x, *arguments, **settings)
    if x.ndim == 2 and x.shape[-1] == 3:
        y[1:, 0] += 0 * y[:-1, -1]
    return y


def _of_zeros_nothing(
    call: Callable[..., Any], x: np.ndarray, sublayer: Any, gamma: Any, beta: Any, **rest: Any
) -> Any:
    """A row that is zeros once normalised gets nothing of the sublayer."""
    y = call(x, sublayer, gamma, beta, **rest)
    zeros = np.ptp(x, axis=-1, keepdims=True) == 0
    return np.where(zeros & (beta is None), x, y)


@pytest.mark.parametrize(
    ("variant", "change", "requirement", "profile"),
    [
        ("ln-plain", _without_the_last_block, "CM-S1", "quick"),
        ("ln-plain", _one_width, "CM-S1", "standard"),
        ("ln-plain", _first_row_of_gamma, "LN-F5", "quick"),
        ("ln-plain", _first_of_three_axes, "LN-F1", "quick"),
        ("bn-plain", _axis_from_the_end, "BN-F7", "quick"),
        ("in-two-pass", _axis_from_the_end, "IN-F7", "quick"),
        ("bn-plain", _sample_by_sample, "BN-F7", "quick"),
        ("in-two-pass", _refusing_channels_between, "IN-F7", "quick"),
        *(("ln-plain", _three_axes(limit), "CM-S1", "quick") for limit in (30, 64, 256, 1024, 4096)),
        ("ln-plain", _transposed_beta, "LN-F1", "quick"),
        ("gn-plain", _one_group_of_channels, "GN-F7", "quick"),
        ("in-two-pass", _samples_for_channels, "IN-E1", "quick"),
        ("mh-plain", _one_branch, "MH-F5", "quick"),
        ("mh-plain", _four_outputs, "MH-F5", "quick"),
        ("ln-plain", _floored_eps, "LN-F1", "quick"),
        ("bn-plain", _floored_eps, "BN-F1", "quick"),
        ("rm-plain", _floored_eps, "RM-F1", "quick"),
        ("gn-plain", _floored_eps, "GN-F1", "quick"),
        ("in-two-pass", _floored_eps, "IN-F1", "quick"),
        ("pr-two-pass", _floored_eps, "CM-S1", "quick"),
        ("po-two-pass", _floored_eps, "CM-S1", "quick"),
        ("bn-plain", _frozen, "BN-F1", "quick"),
        ("ln-plain", _groups_of_three, "CM-N1", "quick"),
        ("ln-plain", _last_of_six_axes, "LN-F1", "standard"),
        ("rm-plain", _rows_of_six_axes, "RM-F1", "standard"),
        ("bn-plain", _five_axes_at_most, "BN-F1", "standard"),
        ("gn-plain", _five_axes_at_most, "GN-F1", "standard"),
        ("in-two-pass", _five_axes_at_most, "IN-F1", "standard"),
        ("bn-plain", _refusing_six_axes, "CM-T1", "standard"),
        ("bn-plain", _one_sample, "CM-S1", "quick"),
        ("mh-plain", _four_branches, "CM-S1", "quick"),
        ("mh-plain", _in_blocks_of_four, "MH-F3", "quick"),
        ("mh-plain", _mapped, "CM-C7", "quick"),
        ("rs-plain", _fitting, "CM-C5", "quick"),
        ("pr-two-pass", _fitting, "CM-C5", "quick"),
        ("po-two-pass", _fitting, "CM-C5", "quick"),
        ("hw-plain", _fitting, "CM-C5", "quick"),
        ("pr-two-pass", _of_zeros_nothing, "PR-F4", "quick"),
    ],
)
def test_it_is_violated(variant: str, change: Callable[..., Any], requirement: str, profile: str) -> None:
    """The requirement about it is violated in float32."""
    report = run(variant_function(variant, change), requirements={requirement}, profile=profile)
    assert result(report, requirement).verdict is Verdict.FAIL


def test_a_cotangent_whose_values_cancel_is_not_zero() -> None:
    """A vjp that takes a sum of 0 for a cotangent of 0 violates LN-G1."""
    made = VARIANT["ln-plain"].build()

    def vjp(x: np.ndarray, gamma: Any, beta: Any, g: np.ndarray, **settings: Any) -> Any:
        dx, *others = made.vjp(x, gamma, beta, g, **settings)
        return (dx if g.sum() else np.zeros_like(dx), *others)

    target: Target = function("layer_norm", made.call, vjp=vjp)
    assert result(run(target, requirements={"LN-G1"}), "LN-G1").verdict is Verdict.FAIL


def test_a_scale_that_is_kept_under_the_first_mean_only() -> None:
    """In inference, a batch_norm that keeps r of a shape and its first running mean violates CM-P2."""
    made, kept = VARIANT["bn-plain"].build(), dict[object, np.ndarray]()

    def batch_norm(x: np.ndarray, gamma: Any, beta: Any, mean: np.ndarray, var: np.ndarray, **settings: Any) -> Any:
        if not settings["training"] and len(mean):
            key = (x.shape, x.dtype, settings["eps"], float(mean[0]))
            var = kept.setdefault(key, var.copy())
        y, *statistics = made.call(x, gamma, beta, mean, var, **settings)
        return (y, *statistics)

    report = run(function("batch_norm", batch_norm), requirements={"CM-P2"}, forward_only=True)
    assert result(report, "CM-P2").verdict is Verdict.FAIL


@pytest.mark.parametrize("lacking", ["gamma", "beta"])
def test_float32_parameters_of_which_one_is_absent(lacking: str) -> None:
    """A y that one float32 parameter alone widens violates CM-D2, although both together do not."""

    def change(call: Callable[..., Any], x: np.ndarray, gamma: Any, beta: Any, **settings: Any) -> Any:
        y = call(x, gamma, beta, **settings)
        given, absent = (beta, gamma) if lacking == "gamma" else (gamma, beta)
        return y.astype(np.float32) if absent is None and given is not None and given.dtype == np.float32 else y

    report = run(variant_function("ln-plain", change), requirements={"CM-D2"}, dtypes=("float16",))
    assert result(report, "CM-D2", "float16").verdict is Verdict.FAIL
