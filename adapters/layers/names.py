"""Common names that authors give to parameters, to constructor arguments, and to layers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...spec.errors import WrongSignature
from ...spec.operators import OPERATORS

#: Usual names of each parameter: the last part of a name such as ``norm.weight``.
PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "gamma": ("weight", "gamma", "scale", "gain", "kernel", "g", "w", "a_2"),
    "beta": ("bias", "beta", "shift", "offset", "b", "b_2"),
    "running_mean": ("running_mean", "moving_mean", "mean", "ra_mean"),
    "running_var": ("running_var", "moving_variance", "moving_var", "running_variance", "variance", "var", "ra_var"),
}

#: Usual names, for each setting, of the constructor's argument and the layer's attribute. "size" is the normalised
#: extents, or the number of channels. "scale" says whether there is a gamma, "center" a beta, and "affine" both.
ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "size": (
        *("normalized_shape", "norm_shape", "shape", "size", "dim", "dims", "d_model", "model_dim", "hidden_size"),
        *("hidden_dim", "hidden", "features", "num_features", "n_features", "num_channels", "n_channels", "channels"),
        *("in_channels", "embed_dim", "emb_dim", "embedding_dim", "n_embd", "n_embed", "ndim", "width", "units"),
        *("layer_size", "input_size", "input_dim", "d", "c", "n"),
    ),
    "eps": ("eps", "epsilon", "variance_epsilon", "layer_norm_eps", "layer_norm_epsilon", "rms_norm_eps", "norm_eps"),
    "momentum": ("momentum", "bn_momentum"),
    "groups": ("num_groups", "groups", "n_groups", "ngroups"),
    "affine": ("elementwise_affine", "affine", "channelwise_affine"),
    "scale": ("use_scale", "use_weight"),
    "center": ("bias", "use_bias", "center"),
}

#: Arguments that normspec passes to constructors, by the folder of adapters/ with the framework's kit. The first is an
#: argument of no other framework's layers.
HANDED: Mapping[str, tuple[str, ...]] = {"flax": ("rngs", "dtype"), "equinox": ("key", "axis_name", "dtype")}

#: For each operator, parts of class names, in lower case without underscores, that identify it.
_OPERATORS: Mapping[str, tuple[str, ...]] = {
    "rms_norm": ("rmsnorm", "t5layernorm"),
    "layer_norm": ("layernorm",),
    "batch_norm": ("batchnorm",),
    "instance_norm": ("instancenorm",),
    "group_norm": ("groupnorm",),
}


def meaning(name: str) -> str | None:
    """The setting, a key of ARGUMENTS, that an argument of this name sets; None if the name is unknown."""
    return next((key for key, names in ARGUMENTS.items() if name.lower() in names), None)


def operator_named(names: Iterable[str]) -> str | None:
    """The operator named by the first of these names that names one; None if none does."""
    for name in names:
        plain = name.lower().replace("_", "")
        for operator, parts in _OPERATORS.items():
            if any(part in plain for part in parts):
                return operator
    return None


def parameters_of(
    own: Mapping[str, Any], trained: Iterable[str], operator: str, declared: Mapping[str, str], label: str
) -> dict[str, str]:
    """
    The name of the layer's tensor for each of the operator's parameters that the layer has.

    ``own``: all the layer's tensors by name. ``trained``: the names of its trained parameters; each must match one of
    the operator's parameters. Raises WrongSignature if one does not match, or if two could.
    """
    found: dict[str, str] = {}
    for role in OPERATORS[operator].parameters:
        if role in declared:
            found[role] = _declared(role, declared[role], own, label)
            continue
        named = [name for name in own if name.rpartition(".")[2].lower() in PARAMETERS[role]]
        named = [name for name in named if name not in declared.values()]
        if len(named) > 1:
            inner = len({name.rpartition(".")[0] for name in named}) > 1
            hint = "; --layers checks each layer of a model" if inner else ""
            raise WrongSignature(
                f"{label} has {' and '.join(named)}: say which is {role}, --parameters {role}={named[0]}{hint}"
            )
        if named:
            found[role] = named[0]
    unknown = [name for name in trained if name not in found.values()]
    if unknown:
        free = [role for role in OPERATORS[operator].parameters if role not in found]
        hint = (
            f"say which it is, --parameters {free[0]}={unknown[0]}" if free else f"{operator} has no parameter for it"
        )
        raise WrongSignature(f"{label} has a parameter {unknown[0]}: {hint}")
    return found


def _declared(role: str, name: str, own: Mapping[str, Any], label: str) -> str:
    """The tensor declared for a role, given by its whole name or the last parts of it."""
    named = [one for one in own if one == name or one.endswith(f".{name}")]
    if len(named) != 1:
        raise WrongSignature(
            f"{label} has {'no parameter' if not named else 'several parameters'} {name},"
            f" which --parameters {role}={name} names; it has {', '.join(own) or 'none'}"
        )
    return named[0]
