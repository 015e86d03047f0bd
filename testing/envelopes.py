"""
The exact values of the operators without parts, and their error envelopes, as numbers.

The arguments are those of the same operator's assertions (assertions.py). The envelope is that of an algorithm whose
results have the dtype of x.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .asserting import checked_envelopes
from .judgement import Envelope

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .options import CentredEnvelopeOptions, EnvelopeOptions


def envelope_layer_norm(
    x: Any, gamma: Any, beta: Any, *, eps: float = 1e-5, axes: Sequence[int] = (-1,), storage: str = "H0",
    **options: Unpack[CentredEnvelopeOptions],
) -> Envelope:  # fmt: skip
    """The exact y and its envelope: LayerNorm over the trailing axes ``axes`` of x."""
    inputs, settings = {"x": x, "gamma": gamma, "beta": beta}, {"eps": eps, "axes": axes}
    return checked_envelopes("layer_norm", ("y",), inputs, settings, {"storage": storage, **options})["y"]


def envelope_layer_norm_grads(
    x: Any, gamma: Any, g: Any, *, eps: float = 1e-5, axes: Sequence[int] = (-1,), storage: str = "H0",
    **options: Unpack[CentredEnvelopeOptions],
) -> dict[str, Envelope]:  # fmt: skip
    """The exact "dx", "dgamma" and "dbeta" for the cotangent g of y, and their envelopes."""
    inputs, settings = {"x": x, "gamma": gamma, "beta": None}, {"eps": eps, "axes": axes}
    return checked_envelopes(
        "layer_norm", ("dx", "dgamma", "dbeta"), inputs, settings, {"storage": storage, **options}, g
    )


def envelope_rms_norm(
    x: Any, gamma: Any, *, eps: float = 1e-5, axes: Sequence[int] = (-1,),
    storage: str = "H0", cast: str = "last", **options: Unpack[EnvelopeOptions],
) -> Envelope:  # fmt: skip
    """The exact y and its envelope: RMSNorm over the trailing axes ``axes`` of x."""
    inputs, settings = {"x": x, "gamma": gamma}, {"eps": eps, "axes": axes}
    return checked_envelopes("rms_norm", ("y",), inputs, settings, {"storage": storage, "cast": cast, **options})["y"]


def envelope_rms_norm_grads(
    x: Any, gamma: Any, g: Any, *, eps: float = 1e-5, axes: Sequence[int] = (-1,),
    storage: str = "H0", cast: str = "last", **options: Unpack[EnvelopeOptions],
) -> dict[str, Envelope]:  # fmt: skip
    """The exact "dx" and "dgamma" for the cotangent g of y, and their envelopes."""
    inputs, settings = {"x": x, "gamma": gamma}, {"eps": eps, "axes": axes}
    return checked_envelopes(
        "rms_norm", ("dx", "dgamma"), inputs, settings, {"storage": storage, "cast": cast, **options}, g
    )


def envelope_group_norm(
    x: Any, gamma: Any, beta: Any, *, groups: int, eps: float = 1e-5, channel_axis: int = 1, storage: str = "H0",
    **options: Unpack[CentredEnvelopeOptions],
) -> Envelope:  # fmt: skip
    """The exact y and its envelope: GroupNorm over ``groups`` groups of channels; samples lie along axis 0."""
    inputs = {"x": x, "gamma": gamma, "beta": beta}
    settings = {"eps": eps, "groups": groups, "channel_axis": channel_axis}
    return checked_envelopes("group_norm", ("y",), inputs, settings, {"storage": storage, **options})["y"]


def envelope_group_norm_grads(
    x: Any, gamma: Any, g: Any, *, groups: int, eps: float = 1e-5, channel_axis: int = 1, storage: str = "H0",
    **options: Unpack[CentredEnvelopeOptions],
) -> dict[str, Envelope]:  # fmt: skip
    """The exact "dx", "dgamma" and "dbeta" for the cotangent g of y, and their envelopes."""
    inputs = {"x": x, "gamma": gamma, "beta": None}
    settings = {"eps": eps, "groups": groups, "channel_axis": channel_axis}
    return checked_envelopes(
        "group_norm", ("dx", "dgamma", "dbeta"), inputs, settings, {"storage": storage, **options}, g
    )


def envelope_instance_norm(
    x: Any, gamma: Any, beta: Any, *, eps: float = 1e-5, channel_axis: int = 1, storage: str = "H0",
    **options: Unpack[CentredEnvelopeOptions],
) -> Envelope:  # fmt: skip
    """The exact y and its envelope: InstanceNorm over each channel of each sample; samples lie along axis 0."""
    inputs, settings = {"x": x, "gamma": gamma, "beta": beta}, {"eps": eps, "channel_axis": channel_axis}
    return checked_envelopes("instance_norm", ("y",), inputs, settings, {"storage": storage, **options})["y"]


def envelope_instance_norm_grads(
    x: Any, gamma: Any, g: Any, *, eps: float = 1e-5, channel_axis: int = 1, storage: str = "H0",
    **options: Unpack[CentredEnvelopeOptions],
) -> dict[str, Envelope]:  # fmt: skip
    """The exact "dx", "dgamma" and "dbeta" for the cotangent g of y, and their envelopes."""
    inputs, settings = {"x": x, "gamma": gamma, "beta": None}, {"eps": eps, "channel_axis": channel_axis}
    return checked_envelopes(
        "instance_norm", ("dx", "dgamma", "dbeta"), inputs, settings, {"storage": storage, **options}, g
    )


def envelope_batch_norm(
    x: Any, gamma: Any, beta: Any, running_mean: Any = None, running_var: Any = None, *,
    eps: float = 1e-5, momentum: float = 0.1, training: bool = True, channel_axis: int = 1,
    running_variance: str = "biased", storage: str = "H0", **options: Unpack[CentredEnvelopeOptions],
) -> dict[str, Envelope]:  # fmt: skip
    """The exact "y" and its envelope, and those of "new_running_mean" and "new_running_var" if statistics are given."""
    inputs = {"x": x, "gamma": gamma, "beta": beta, "running_mean": running_mean, "running_var": running_var}
    settings = {"eps": eps, "momentum": momentum, "training": training, "channel_axis": channel_axis}
    chosen = {"running_variance": running_variance, "storage": storage, **options}
    names = ("y",) if running_mean is None or running_var is None else ("y", "new_running_mean", "new_running_var")
    return checked_envelopes("batch_norm", names, inputs, settings, chosen)


def envelope_batch_norm_grads(
    x: Any, gamma: Any, g: Any, running_mean: Any = None, running_var: Any = None, *,
    eps: float = 1e-5, training: bool = True, channel_axis: int = 1, storage: str = "H0",
    **options: Unpack[CentredEnvelopeOptions],
) -> dict[str, Envelope]:  # fmt: skip
    """The exact "dx", "dgamma" and "dbeta" for the cotangent g of y, and their envelopes."""
    inputs = {"x": x, "gamma": gamma, "beta": None, "running_mean": running_mean, "running_var": running_var}
    settings = {"eps": eps, "momentum": 0.0, "training": training, "channel_axis": channel_axis}
    names = ("dx", "dgamma", "dbeta")
    return checked_envelopes("batch_norm", names, inputs, settings, {"storage": storage, **options}, g)
