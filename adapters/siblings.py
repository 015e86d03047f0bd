"""What stands beside a user's function in its module: NAME_vjp, NAME_accepts, NAME_conventions, NAME_expected."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any

from ..spec.conventions import ensure_about, validate
from ..spec.errors import BadSibling, UnknownConvention, Unsupported, WrongEntry, one_line
from .binding import DERIVATIVES, accepts_all
from .known import KnownViolation, checked_entries, without_limits
from .signatures import attribute


def derivatives_of(function: Any, owner: ModuleType | None, name: str, label: str) -> dict[str, Callable[..., Any]]:
    """
    The derivatives written out beside the function, by kind: NAME_vjp, NAME_jvp and so on.

    Raises BadSibling if one is neither a function nor None.
    """
    found = {}
    for kind in DERIVATIVES:
        beside = sibling(function, owner, name, kind)
        if callable(beside):
            found[kind] = beside
        elif getattr(owner, f"{name}_{kind}", None) is not None:
            what = type(beside).__name__
            raise BadSibling(f"{label}_{kind} is {what}, which cannot be called: make it a function, or None")
    return found


def sibling(function: Any, owner: ModuleType | None, name: str, suffix: str) -> Any:
    """NAME_vjp, NAME_accepts and so on: beside the function in its module, or an attribute of the callable."""
    beside = getattr(owner, f"{name}_{suffix}", None) if owner is not None else None
    if beside is None:
        beside = attribute(function, suffix) or attribute(function, f"{name}_{suffix}")
    return beside


def accepts_of(beside: Any, label: str) -> Callable[[tuple[int, ...], Mapping[str, Any]], str | None]:
    """
    NAME_accepts as a function that returns None or a reason; it may also decline by raising, as a call does.

    Raises BadSibling if NAME_accepts is not a function. The returned function raises it for any other answer.
    """
    name = f"{label}_accepts"
    if beside is None:
        return accepts_all
    if not callable(beside):
        raise BadSibling(f"{name} is {type(beside).__name__}: make it a function (shape, settings) -> None or a reason")

    def accepts(shape: tuple[int, ...], settings: Mapping[str, Any]) -> str | None:
        try:
            reason = beside(tuple(shape), dict(settings))
        except (Unsupported, NotImplementedError) as declined:
            return str(declined) or one_line(declined)
        except Exception as error:
            raise BadSibling(
                f"{name} raises {one_line(error)} for shape {tuple(shape)} and {dict(settings)}: return None where"
                " the function takes such a call, and the reason where it does not"
            ) from error
        if reason is None or (isinstance(reason, str) and reason.strip()):
            return None if reason is None else " ".join(reason.split())
        raise BadSibling(f"{name} returned {reason!r}: return None where the function takes the call, else a reason")

    return accepts


def conventions_of(beside: Any, label: str, operator: str) -> dict[str, str]:
    """
    NAME_conventions: the conventions that the function declares.

    Raises BadSibling if it is not a dict of texts, and UnknownConvention if a convention does not exist or is about
    other operators.
    """
    if beside is None:
        return {}
    if not isinstance(beside, Mapping):
        raise BadSibling(f"{label}_conventions is {type(beside).__name__}: make it a dict, such as {{'storage': 'H2'}}")
    _ensure_texts(beside, f"{label}_conventions", "'storage': 'H2'")
    try:
        declared = validate(beside)
    except UnknownConvention as error:
        raise UnknownConvention(f"{label}_conventions: {error}") from None
    ensure_about(declared, (operator,), f"{label} is")
    return declared


def _ensure_texts(beside: Mapping[Any, Any], where: str, example: str) -> None:
    """Raise BadSibling if a key or a value is not a text."""
    for odd in (one for pair in beside.items() for one in pair if not isinstance(one, str)):
        raise BadSibling(f"{where} has {odd!r}, which is not a text: write it as {example}")


def known_violations_of(beside: Any, label: str) -> tuple[KnownViolation, ...]:
    """
    NAME_expected: the function's known violations, as entries or as a dict from requirements to reasons.

    Raises BadSibling or WrongEntry if it is neither, or if there is no such requirement: it would excuse nothing.
    """
    if beside is None:
        return ()
    where = f"{label}_expected"
    if isinstance(beside, Mapping):
        _ensure_texts(beside, where, "'CM-V3': 'why it is violated'")
        try:
            found = without_limits(beside)
        except WrongEntry as error:
            raise WrongEntry(f"{where}: {error}") from None
    elif isinstance(beside, (KnownViolation, list, tuple)):
        found = checked_entries((beside,) if isinstance(beside, KnownViolation) else beside, where)
    else:
        raise BadSibling(
            f"{label}_expected is {type(beside).__name__}: make it a tuple of normspec.KnownViolation, or a dict from"
            " requirements, such as 'CM-V3', to why they are violated"
        )
    known = _requirements() if found else ()
    for one in found:
        if known and one.requirement not in known:
            raise BadSibling(
                f"{label}_expected: no requirement is called {one.requirement!r}; `normspec explain` lists them"
            )
    return found


def _requirements() -> Iterable[str]:
    """The ids of all requirements; none where the interpreter is too old to read the pages."""
    try:
        from ..spec.reader import requirements
    except ImportError:
        return ()
    return requirements()
