"""Options that describe a layer, or a function with an unusual signature, where normspec cannot find out by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from ...adapters.declarations import LAYOUTS, pairs
from . import completing
from .options import joined

_parameters = click.option(
    "--parameters",
    multiple=True,
    metavar="NAME=OWN,...",
    help="What your layer calls its parameters, if that is unusual, such as gamma=g,beta=b.",
)

_layout = click.option(
    "--layout",
    metavar="LAYOUT",
    shell_complete=completing.LAYOUTS,
    help=f"{' or '.join(LAYOUTS)}: where the channels of x lie for your layer or function.",
)

_fixed = click.option(
    "--fixed",
    multiple=True,
    metavar="NAME=VALUE,...",
    help="Settings that your function hard-codes or your layer does not show, such as eps=1e-6,axes=-1,beta=none.",
)

_layers = click.option(
    "--layers",
    is_flag=True,
    help="The target is a model of PyTorch, Keras, flax.nnx or Equinox: check one normalisation layer of each kind "
    "in it.",
)


#: The options that declare how a layer or a function is called.
declaring_options = joined(_parameters, _layout, _fixed)

#: The options of a command that checks layers.
layer_options = joined(declaring_options, _layers)


def declared_options(parameters: Sequence[str], layout: str | None, fixed: Sequence[str]) -> dict[str, Any]:
    """The options that declare, as arguments of `check`, `compare` and `identify`. Raises WrongDeclaration."""
    return {
        "parameters": pairs("--parameters", parameters) or None,
        "layout": layout,
        "fixed": pairs("--fixed", fixed) or None,
    }
