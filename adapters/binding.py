"""Targets and bindings: what is checked, and how it spells each operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import attrs

from .conventions import validate

if TYPE_CHECKING:
    from .bridge import Bridge

#: The operators that can be checked.
OPERATORS: tuple[str, ...] = ("layer_norm", "batch_norm")

#: Operators whose signature is fixed and whose checks do not exist yet; naming one says so.
PLANNED_OPERATORS: tuple[str, ...] = ("residual", "pre_norm", "post_norm", "highway", "mhc")

#: The canonical call of each operator, as it is shown to the author of a function that cannot be called so.
SIGNATURES: Mapping[str, str] = {
    "layer_norm": "layer_norm(x, gamma, beta, *, eps, axes)",
    "batch_norm": "batch_norm(x, gamma, beta, running_mean, running_var, *, eps, momentum, training, channel_axis)",
}

#: The positional arguments of the canonical call.
ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "layer_norm": ("x", "gamma", "beta"),
    "batch_norm": ("x", "gamma", "beta", "running_mean", "running_var"),
}

#: The keyword arguments of the canonical call.
SETTINGS: Mapping[str, tuple[str, ...]] = {
    "layer_norm": ("eps", "axes"),
    "batch_norm": ("eps", "momentum", "training", "channel_axis"),
}

#: The results of the canonical call; one is returned bare, several as a tuple.
OUTPUTS: Mapping[str, tuple[str, ...]] = {
    "layer_norm": ("y",),
    "batch_norm": ("y", "new_running_mean", "new_running_var"),
}

#: The inputs that a gradient is taken with respect to, in the order of the vjp's results.
DIFFERENTIABLE: tuple[str, ...] = ("x", "gamma", "beta")

#: The derivatives that a function's author may supply beside it, as NAME_vjp and so on.
DERIVATIVES: tuple[str, ...] = ("vjp", "jvp", "vjp_vjp")


def _accepts_all(shape: tuple[int, ...], settings: Mapping[str, Any]) -> str | None:
    return None


@attrs.frozen
class Binding:
    """How one target spells one operator."""

    #: One of OPERATORS.
    operator: str = attrs.field(validator=attrs.validators.in_(OPERATORS))
    #: What is called, as its users write it: "torch.nn.LayerNorm".
    name: str
    #: The canonical call on the framework's own tensors; with has_modes it takes ``mode`` as well.
    call: Callable[..., Any]
    #: "vjp", "jvp", "vjp_vjp": the canonical derivatives, where the framework does not differentiate by itself.
    derivatives: Mapping[str, Callable[..., Any]] = attrs.field(factory=dict)
    #: The conventions it follows, where they are not the normative ones.
    conventions: Mapping[str, str] = attrs.field(factory=dict, converter=validate)
    #: For each of these conventions, why it differs and where that is written.
    reasons: Mapping[str, str] = attrs.field(factory=dict)
    #: Requirements that it is known to violate, each with the reason and its source: reported as "deviates".
    expected: Mapping[str, str] = attrs.field(factory=dict)
    #: (x's shape, settings) -> None, or the reason why this binding does not take such a call.
    accepts: Callable[[tuple[int, ...], Mapping[str, Any]], str | None] = _accepts_all
    #: Called as prepare(mode=..., wrt=...) before each call and each vjp, for a function that depends on these
    #: and whose framework has no other way to say so; None for every real binding.
    prepare: Callable[..., None] | None = None
    #: Whether it behaves by mode, as a module with train() and eval() does.
    has_modes: bool = False


@attrs.frozen
class Target:
    """What is checked: a framework's own layers, or one function."""

    #: As the user named it.
    name: str
    #: The framework whose tensors it takes: "numpy", "torch".
    framework: str
    #: The framework's version.
    version: str
    #: The mechanics of that framework.
    bridge: Bridge
    #: Its spellings of the operators.
    bindings: tuple[Binding, ...]
    #: The dtypes to check by default: all of the bridge's, unless it is written for fewer.
    dtypes: tuple[str, ...] = attrs.Factory(lambda target: target.bridge.dtypes, takes_self=True)
