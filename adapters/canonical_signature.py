"""Whether a user's function can be called as its operator's canonical call."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ..spec.errors import WrongSignature
from ..spec.operators import OPERATORS
from .layers.names import PARAMETERS
from .own_call import EXAMPLES
from .signatures import lacking_affine, lacking_keywords, signature_of


def check_signature(function: Callable[..., Any], operator: str, label: str) -> frozenset[str]:
    """
    The operator's optional keyword arguments that the function does not take.

    Raises WrongSignature unless the signature binds the canonical call without them. A function that cannot be
    inspected, such as C code, is accepted as it is.
    """
    signature = signature_of(function)
    if signature is None:
        return frozenset()
    try:
        signature.bind(*OPERATORS[operator].arguments, **dict.fromkeys(OPERATORS[operator].settings))
    except TypeError as error:
        own = _short_signature(signature)
        raise WrongSignature(
            f"{label}{own} cannot be called as {OPERATORS[operator].signature}: {error}{_hint(signature, operator)}"
        ) from None
    misplaced = _misplaced_part(signature, operator)
    if misplaced:
        raise WrongSignature(
            f"{label}{_short_signature(signature)} has {misplaced} in another place than"
            f" {OPERATORS[operator].signature}: put it there, since arguments are passed by position"
        )
    return lacking_keywords(signature, operator)


def _misplaced_part(signature: inspect.Signature, operator: str) -> str:
    """A part whose name stands at another position than in the canonical call, where a tensor comes; empty if none."""
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [name for name, one in signature.parameters.items() if one.kind in positional]
    places = {name: place for place, name in enumerate(OPERATORS[operator].arguments)}
    roles = (role for role in OPERATORS[operator].roles if role in names and role in places)
    return next((role for role in roles if names.index(role) != places[role]), "")


def _hint(signature: inspect.Signature, operator: str) -> str:
    """What to declare for a function that takes x but not every setting, gamma and beta; or that it needs a wrapper."""
    if (moved := _moved(signature, operator)) is not None:
        name, argument = moved
        return (
            f"; {name} stands in another place than {argument}, and no declaration changes that: write a function"
            f" {OPERATORS[operator].signature} that calls it, and check that"
        )
    lacking = [name for name in OPERATORS[operator].settings if name not in signature.parameters]
    affine = lacking_affine(signature, operator)
    if not (lacking or affine) or len(signature.parameters) < len(OPERATORS[operator].arguments) - 2:
        return ""
    fixed = [f"{name}={EXAMPLES[name]}" for name in lacking] + [f"{name}=none" for name in affine]
    return f"; what it has of its own, or lacks, can be declared, such as --fixed {','.join(fixed)}"


def _moved(signature: inspect.Signature, operator: str) -> tuple[str, str] | None:
    """A parameter with a usual name of gamma, beta or a statistic in a later place, and which of these; or None."""
    names = [name.lower() for name in signature.parameters]
    for place, argument in enumerate(OPERATORS[operator].arguments):
        usual = PARAMETERS.get(argument, ())
        found = [later for later, name in enumerate(names) if name in usual]
        if found and found[0] > place:
            return names[found[0]], argument
    return None


def _short_signature(signature: inspect.Signature) -> str:
    """The signature without annotations and default values: they are objects of the target, and long."""
    empty = inspect.Parameter.empty
    short = [
        p.replace(annotation=empty, default=empty if p.default is empty else ...) for p in signature.parameters.values()
    ]
    bare = signature.replace(parameters=short, return_annotation=inspect.Signature.empty)
    return str(bare).replace("Ellipsis", "...")
