"""
Assertions for the operators without parts: results on the user's own data lie within their error envelope.

Arrays may be of NumPy, PyTorch, TensorFlow, JAX, MXNet or CuPy, or anything that has ``__array__``, ``__dlpack__`` or a
buffer, on any device, of float16, bfloat16, float32 or float64. Pass the function's inputs and results unchanged. The
operator's page in ``spec/`` says what the arguments mean; gamma and beta may be None.

help(normspec.testing) says what ``storage`` and the other keywords mean.

A result that is ``...`` is not judged. None fails as y and as dx, and as dgamma where gamma is given, because a
function that has lost a gradient returns None. None as dbeta is not judged, because a layer may have no beta.

Each assertion returns a :class:`Judgement`, whose ``ratio`` is the worst error in units of its bound, or several by
result name. Each raises :class:`OutsideEnvelope`, an AssertionError, if an element is outside; AssertionError for a
result of the wrong shape or dtype; TypeError or ValueError for an argument that the operator does not take, and where
nothing of the data can be judged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .asserting import judge_or_raise
from .judgement import Judgement
from .options import JudgementOptions

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .options import CentredOptions, Options

#: pytest then shows the test's line that passed these arguments, not the line here that refuses them.
__tracebackhide__ = True


def assert_layer_norm(
    y: Any, x: Any, gamma: Any, beta: Any, *, eps: float = 1e-5, axes: Sequence[int] = (-1,), storage: str = "H0",
    **options: Unpack[CentredOptions],
) -> Judgement:  # fmt: skip
    """
    Assert that y is LayerNorm over the trailing axes ``axes`` of x; gamma and beta have the shape of these axes.

    The other keywords: help(normspec.testing).
    """
    inputs, settings = {"x": x, "gamma": gamma, "beta": beta}, {"eps": eps, "axes": axes}
    return _judged("layer_norm", {"y": y}, inputs, settings, {"storage": storage, **options})["y"]


def assert_layer_norm_grads(
    dx: Any, dgamma: Any, dbeta: Any, x: Any, gamma: Any, g: Any, *,
    eps: float = 1e-5, axes: Sequence[int] = (-1,), storage: str = "H0", **options: Unpack[CentredOptions],
) -> dict[str, Judgement]:  # fmt: skip
    """
    Assert that dx, dgamma and dbeta are the gradients of sum(y g), g of x's shape.

    LayerNorm over the trailing axes ``axes`` of x; gamma has the shape of these axes.

    The other keywords: help(normspec.testing).
    """
    results, inputs = {"dx": dx, "dgamma": dgamma, "dbeta": dbeta}, {"x": x, "gamma": gamma, "beta": None}
    settings = {"eps": eps, "axes": axes}
    return _judged("layer_norm", results, inputs, settings, {"storage": storage, **options}, g)


def assert_rms_norm(
    y: Any, x: Any, gamma: Any, *, eps: float = 1e-5, axes: Sequence[int] = (-1,),
    storage: str = "H0", cast: str = "last", **options: Unpack[Options],
) -> Judgement:  # fmt: skip
    """
    Assert that y is RMSNorm over the trailing axes ``axes`` of x; gamma has the shape of these axes.

    The other keywords: help(normspec.testing).
    """
    inputs, settings = {"x": x, "gamma": gamma}, {"eps": eps, "axes": axes}
    return _judged("rms_norm", {"y": y}, inputs, settings, {"storage": storage, "cast": cast, **options})["y"]


def assert_rms_norm_grads(
    dx: Any, dgamma: Any, x: Any, gamma: Any, g: Any, *,
    eps: float = 1e-5, axes: Sequence[int] = (-1,), storage: str = "H0", cast: str = "last", **options: Unpack[Options],
) -> dict[str, Judgement]:  # fmt: skip
    """
    Assert that dx and dgamma are the gradients of sum(y g), g of x's shape.

    RMSNorm over the trailing axes ``axes`` of x; gamma has the shape of these axes.

    The other keywords: help(normspec.testing).
    """
    results, inputs = {"dx": dx, "dgamma": dgamma}, {"x": x, "gamma": gamma}
    settings = {"eps": eps, "axes": axes}
    return _judged("rms_norm", results, inputs, settings, {"storage": storage, "cast": cast, **options}, g)


def assert_group_norm(
    y: Any, x: Any, gamma: Any, beta: Any, *, groups: int, eps: float = 1e-5, channel_axis: int = 1,
    storage: str = "H0", **options: Unpack[CentredOptions],
) -> Judgement:  # fmt: skip
    """
    Assert that y is GroupNorm over ``groups`` groups of channels; samples lie along axis 0.

    The other keywords: help(normspec.testing).
    """
    inputs = {"x": x, "gamma": gamma, "beta": beta}
    settings = {"eps": eps, "groups": groups, "channel_axis": channel_axis}
    return _judged("group_norm", {"y": y}, inputs, settings, {"storage": storage, **options})["y"]


def assert_group_norm_grads(
    dx: Any, dgamma: Any, dbeta: Any, x: Any, gamma: Any, g: Any, *,
    groups: int, eps: float = 1e-5, channel_axis: int = 1, storage: str = "H0", **options: Unpack[CentredOptions],
) -> dict[str, Judgement]:  # fmt: skip
    """
    Assert that dx, dgamma and dbeta are the gradients of sum(y g), g of x's shape.

    GroupNorm over ``groups`` groups of channels; samples lie along axis 0, gamma has shape (channels,).

    The other keywords: help(normspec.testing).
    """
    results, inputs = {"dx": dx, "dgamma": dgamma, "dbeta": dbeta}, {"x": x, "gamma": gamma, "beta": None}
    settings = {"eps": eps, "groups": groups, "channel_axis": channel_axis}
    return _judged("group_norm", results, inputs, settings, {"storage": storage, **options}, g)


def assert_instance_norm(
    y: Any, x: Any, gamma: Any, beta: Any, *, eps: float = 1e-5, channel_axis: int = 1,
    storage: str = "H0", **options: Unpack[CentredOptions],
) -> Judgement:  # fmt: skip
    """
    Assert that y is InstanceNorm over each channel of each sample; samples lie along axis 0.

    The other keywords: help(normspec.testing).
    """
    inputs, settings = {"x": x, "gamma": gamma, "beta": beta}, {"eps": eps, "channel_axis": channel_axis}
    return _judged("instance_norm", {"y": y}, inputs, settings, {"storage": storage, **options})["y"]


def assert_instance_norm_grads(
    dx: Any, dgamma: Any, dbeta: Any, x: Any, gamma: Any, g: Any, *,
    eps: float = 1e-5, channel_axis: int = 1, storage: str = "H0", **options: Unpack[CentredOptions],
) -> dict[str, Judgement]:  # fmt: skip
    """
    Assert that dx, dgamma and dbeta are the gradients of sum(y g), g of x's shape.

    InstanceNorm over each channel of each sample; samples lie along axis 0, gamma has shape (channels,).

    The other keywords: help(normspec.testing).
    """
    results, inputs = {"dx": dx, "dgamma": dgamma, "dbeta": dbeta}, {"x": x, "gamma": gamma, "beta": None}
    settings = {"eps": eps, "channel_axis": channel_axis}
    return _judged("instance_norm", results, inputs, settings, {"storage": storage, **options}, g)


def assert_batch_norm(
    y: Any, x: Any, gamma: Any, beta: Any, running_mean: Any = None, running_var: Any = None, *,
    new_running_mean: Any = None, new_running_var: Any = None,
    eps: float = 1e-5, momentum: float = 0.1, training: bool = True, channel_axis: int = 1,
    running_variance: str = "biased", storage: str = "H0", **options: Unpack[CentredOptions],
) -> dict[str, Judgement]:  # fmt: skip
    """
    Assert that y is BatchNorm over each channel of x; the parameters and statistics have shape (channels,).

    Without ``training`` the running statistics normalise x. ``new_running_mean`` and ``new_running_var`` are judged
    if they are given; ``momentum`` is the weight of the new statistic. ``running_variance``: "biased", or "bessel"
    where the running variance averages variances that were divided by n - 1.

    The other keywords: help(normspec.testing).
    """
    results = {"y": y, "new_running_mean": new_running_mean, "new_running_var": new_running_var}
    inputs = {"x": x, "gamma": gamma, "beta": beta, "running_mean": running_mean, "running_var": running_var}
    settings = {"eps": eps, "momentum": momentum, "training": training, "channel_axis": channel_axis}
    chosen = {"running_variance": running_variance, "storage": storage, **options}
    return _judged("batch_norm", results, inputs, settings, chosen)


def assert_batch_norm_grads(
    dx: Any, dgamma: Any, dbeta: Any, x: Any, gamma: Any, g: Any, running_mean: Any = None, running_var: Any = None, *,
    eps: float = 1e-5, training: bool = True, channel_axis: int = 1, storage: str = "H0",
    **options: Unpack[CentredOptions],
) -> dict[str, Judgement]:  # fmt: skip
    """
    Assert that dx, dgamma and dbeta are the gradients of sum(y g), g of x's shape.

    BatchNorm over each channel of x; the statistics are used without ``training``.

    The other keywords: help(normspec.testing).
    """
    results = {"dx": dx, "dgamma": dgamma, "dbeta": dbeta}
    inputs = {"x": x, "gamma": gamma, "beta": None, "running_mean": running_mean, "running_var": running_var}
    settings = {"eps": eps, "momentum": 0.0, "training": training, "channel_axis": channel_axis}
    return _judged("batch_norm", results, inputs, settings, {"storage": storage, **options}, g)


def _judged(
    operator: str,
    results: Mapping[str, Any],
    inputs: Mapping[str, Any],
    settings: Mapping[str, Any],
    options: Mapping[str, Any],
    g: Any = None,
) -> dict[str, Judgement]:
    return judge_or_raise(operator, results, inputs, settings, JudgementOptions.of(operator, **options), g)
