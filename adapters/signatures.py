"""Signatures of users' functions and layers: what arguments a call takes, as far as it can be told."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from ..spec.errors import WrongSignature, one_line
from ..spec.operators import OPERATORS
from .layers.names import PARAMETERS, meaning
from .own_layer import folder_of_layer


def signature_of(function: Any) -> inspect.Signature | None:
    """
    The signature that shows a call's arguments; None if the function cannot be inspected, such as C code.

    ``__call__`` of a layer of PyTorch or Keras takes anything and passes it on, so ``forward`` or ``call`` shows it.
    """
    try:
        if folder_of_layer(function) == "keras":  # on PyTorch, a module too
            return inspect.signature(attribute(function, "call"))
        return inspect.signature(attribute(function, "forward") if has_modes(function) else function)
    except Exception:  # an object of the target that raises
        return None


def misplaced(signature: inspect.Signature, passed: Sequence[str]) -> str:
    """
    The parameter whose name tells of another tensor or part than the one passed in its place; empty if none does.

    ``passed``: what is passed by position, in order. A name is told by `PARAMETERS`, or is that of the operator itself.
    """
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [name for name, one in signature.parameters.items() if one.kind in positional]
    for name, argument in zip(names, passed):
        told = [one for one in passed if name.lower() in (one, *PARAMETERS.get(one, ()))]
        if told and argument not in told:
            return name
    return ""


def lacking_keywords(signature: inspect.Signature | None, operator: str) -> frozenset[str]:
    """The operator's optional keyword arguments, such as a shortcut, that this signature does not take."""
    parameters = [] if signature is None else list(signature.parameters.values())
    if signature is None or any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters):
        return frozenset()
    keyword = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return frozenset(OPERATORS[operator].optional) - {one.name for one in parameters if one.kind in keyword}


def lacking_affine(signature: inspect.Signature, operator: str) -> tuple[str, ...]:
    """gamma and beta, as far as a signature has no place for them beside the operator's other tensors."""
    record, kinds = OPERATORS[operator], {one.kind for one in signature.parameters.values()}
    if inspect.Parameter.VAR_POSITIONAL in kinds:
        return ()
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    tensors = [
        name.lower()
        for name, one in signature.parameters.items()
        if one.kind in positional and not {name, meaning(name)} & {*record.settings}
    ]
    affine = [name for name in ("gamma", "beta") if name in record.arguments]
    missing = len(record.arguments) - len(tensors)
    if missing == 1 and len(affine) == 2:
        affine.remove("beta" if set(tensors) & {*PARAMETERS["beta"]} else "gamma")
    return tuple(affine) if missing == len(affine) else ()


def has_modes(function: Any) -> bool:
    """Whether the callable has modes of training and inference, as torch.nn.Module does."""
    parts = ("train", "eval", "forward")
    return not inspect.isroutine(function) and all(callable(attribute(function, part)) for part in parts)


def attribute(function: Any, name: str) -> Any:
    """An attribute of a user's object, None if it has none. Raises WrongSignature if reading it raises."""
    try:
        return getattr(function, name, None)
    except Exception as error:
        raise WrongSignature(f"the attribute {name} of {type(function).__name__} raises {one_line(error)}") from error
