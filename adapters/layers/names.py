"""Names: what authors of layers call their parameters, the arguments of constructors, and the layers themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...spec.errors import WrongSignature
from ...spec.operators import OPERATORS

#: What each parameter is called, by the last part of a name such as ``norm.weight``.
PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "gamma": ("weight", "gamma", "scale", "gain", "kernel", "g", "w", "a_2"),
    "beta": ("bias", "beta", "shift", "offset", "b", "b_2"),
    "running_mean": ("running_mean", "moving_mean", "mean", "ra_mean"),
    "running_var": ("running_var", "moving_variance", "moving_var", "running_variance", "variance", "var", "ra_var"),
}

#: What the arguments of a constructor, and the attributes of a layer, are called that hold each setting. "size" is the
#: extents that are normalised, or the number of channels; "scale", "center" and "affine" say which of gamma and beta,
#: or both, there are.
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

#: The operator of a layer, by what the name of its class holds in lower case without underscores.
_OPERATORS: Mapping[str, tuple[str, ...]] = {
    "rms_norm": ("rmsnorm", "t5layernorm"),
    "layer_norm": ("layernorm",),
    "batch_norm": ("batchnorm",),
    "instance_norm": ("instancenorm",),
    "group_norm": ("groupnorm",),
}


def meaning(name: str) -> str | None:
    """What an argument of this name sets, of ARGUMENTS; None where it is none of them."""
    return next((key for key, names in ARGUMENTS.items() if name.lower() in names), None)


def operator_named(names: Iterable[str]) -> str | None:
    """The operator that the first of these names which names one does name; None where none does."""
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
    Which of a layer's tensors, by name, stands for each parameter of the operator that it has.

    ``own``: all its tensors by name. ``trained``: those that are parameters, each of which has to stand for something.
    Raises WrongSignature where one does not, or where two could.
    """
    found: dict[str, str] = {}
    for role in OPERATORS[operator].parameters:
        if role in declared:
            found[role] = _declared(role, declared[role], own, label)
            continue
        named = [name for name in own if name.rpartition(".")[2].lower() in PARAMETERS[role]]
        named = [name for name in named if name not in declared.values()]
        if len(named) > 1:
            raise WrongSignature(
                f"{label} has {' and '.join(named)}: say which is {role}, --parameters {role}={named[0]}"
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
    """The tensor that is declared for a role, by its whole name or the last parts of it."""
    named = [one for one in own if one == name or one.endswith(f".{name}")]
    if len(named) != 1:
        raise WrongSignature(
            f"{label} has {'no parameter' if not named else 'several parameters'} {name},"
            f" which --parameters {role}={name} names; it has {', '.join(own) or 'none'}"
        )
    return named[0]
