"""Whether a user's function can be called as its operator's canonical call."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ..spec.errors import WrongSignature
from ..spec.operators import OPERATORS
from .layers.names import PARAMETERS, meaning
from .own_call import EXAMPLES
from .signatures import lacking_affine, lacking_keywords, misplaced, signature_of


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
    if elsewhere := misplaced(signature, OPERATORS[operator].arguments):
        raise WrongSignature(
            f"{label}{_short_signature(signature)} has {elsewhere} in another place than"
            f" {OPERATORS[operator].signature}: put it there, since arguments are passed by position"
        )
    return lacking_keywords(signature, operator)


def check_vjp_signature(function: Callable[..., Any] | None, operator: str, label: str) -> None:
    """
    Raise WrongSignature unless NAME_vjp of a normalisation binds its canonical call.

    That of a composed operator has its parts' leaves too, as its author likes.
    """
    signature, record = None if function is None else signature_of(function), OPERATORS[operator]
    if signature is None or record.composed:
        return
    try:
        signature.bind(*record.arguments, "g", **dict.fromkeys(record.settings))
    except TypeError as error:
        tensors = ", ".join((*record.arguments, "g"))
        raise WrongSignature(
            f"{label}_vjp{_short_signature(signature)} cannot be called as {operator}_vjp({tensors}, *,"
            f" {', '.join(record.settings)}): {error}"
        ) from None


def _hint(signature: inspect.Signature, operator: str) -> str:
    """What to declare for a function that takes x but not every setting, gamma and beta; or that it needs a wrapper."""
    wrap = f"write a function {OPERATORS[operator].signature} that calls it, and check that"
    if next(iter(signature.parameters), "") == "self":
        return "; it is a method of a class: check that of an object, named as obj.method, or the class"
    if unknown := _unknown(signature, operator):
        return f"; nothing is passed as {' and '.join(unknown)}: {wrap}"
    if (moved := _moved(signature, operator)) is not None:
        name, argument = moved
        return f"; {name} does not stand where {argument} is passed, and no declaration changes that: {wrap}"
    lacking = [name for name in OPERATORS[operator].settings if name not in signature.parameters]
    affine = lacking_affine(signature, operator)
    if not (lacking or affine) or len(signature.parameters) < len(OPERATORS[operator].arguments) - 2:
        return ""
    fixed = [f"{name}={EXAMPLES[name]}" for name in lacking] + [f"{name}=none" for name in affine]
    return f"; what it has of its own, or lacks, can be declared, such as --fixed {','.join(fixed)}"


def _unknown(signature: inspect.Signature, operator: str) -> list[str]:
    """The arguments by keyword that the function needs and no call has, whatever is declared."""
    known = {*OPERATORS[operator].settings, *OPERATORS[operator].optional}
    return [
        name
        for name, one in signature.parameters.items()
        if one.kind is inspect.Parameter.KEYWORD_ONLY
        and one.default is inspect.Parameter.empty
        and not {name, meaning(name)} & known
    ]


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
