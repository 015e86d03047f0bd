"""A user's own function as a target: FILE.py:NAME, package.module:NAME, or a callable."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from types import MappingProxyType, ModuleType
from typing import Any

from ..spec.errors import (
    NoSuchName,
    UnknownFramework,
    UnknownOperator,
    WrongSignature,
    choices,
    one_line,
)
from ..spec.operators import OPERATORS
from .binding import Binding
from .canonical_signature import check_signature, check_vjp_signature
from .declarations import NOTHING_DECLARED, Declarations
from .definition import with_definition
from .fixed import FixedSettings
from .frameworks import FRAMEWORKS, KNOWN, SLOW, active_backend, adapter, full_name
from .imports import implied_frameworks
from .layers.names import operator_named
from .loading import load_file, load_module
from .own_call import OwnCall
from .own_layer import is_layer_like, layer_target, which_operator
from .own_model import model_target
from .siblings import accepts_of, conventions_of, derivatives_of, known_violations_of, sibling
from .signatures import attribute, has_modes, signature_of
from .target import Target
from .traceback_lines import name_file
from .traits_before_import import traits_before_import


def names_a_function(target: str) -> bool:
    """Whether the text has the form FILE.py:NAME or package.module:NAME; a drive letter's colon does not count."""
    place, colon, name = target.rpartition(":")
    return bool(colon and place and name) and not ("/" in name or "\\" in name)


def file_of(target: str) -> str:
    """FILE.py of FILE.py:NAME; empty for any other form of target."""
    place = target.rpartition(":")[0] if names_a_function(target) else ""
    return place if place.endswith(".py") or "/" in place or "\\" in place else ""


def from_name(
    target: str,
    operators: tuple[str, ...] | None,
    framework: str | None,
    file: str = "",
    declared: Declarations = NOTHING_DECLARED,
) -> Target:
    """
    The target at FILE.py:NAME or package.module:NAME; NAME may be dotted.

    ``file`` is the real path of FILE.py, if it differs.
    """
    place, _, name = target.rpartition(":")
    if file:
        name_file(file, place)
    before = traits_before_import(file or place, framework)
    module = load_file(file or place, named=place) if file_of(target) else load_module(place)
    function = _object_in(module, name, place)
    if declared.layers:
        found = model_target(target, function, operators, declared)
    elif _is_own_layer(function, operators):
        found = layer_target(target, function, module, operators, declared, file)
    else:
        _check_callable(function, target)
        last = name.rpartition(".")[2]
        owner = module if last == name else None
        found = _target(target, function, _operator(last, operators, target), framework, module, owner, last, declared)
    found = replace(found, _traits={"cpu": before[found.framework]} if found.framework in before else {})
    return with_definition(found, function, module, name)


def _object_in(module: ModuleType, name: str, place: str) -> Any:
    """The object with this name, which may be dotted, in a module; ``place`` is the module in messages."""
    found: Any = module
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError as error:
            offered = _offered_by(module)
            hint = choices(name, offered) if offered else "; it defines no function and no layer"
            if getattr(module, "__file__", None) is None:  # a namespace package
                hint = f"; it is a folder without __init__.py: name a file in it, {place}/FILE.py:{name}"
            raise NoSuchName(f"{place} has no {name!r}{hint}") from error
        except Exception as error:  # a property, or the module's __getattr__
            raise NoSuchName(f"{name!r} of {place} raises {one_line(error)}") from error
    return found


def _offered_by(module: ModuleType) -> list[str]:
    """
    The public functions and classes of layers that a module or its package defines, in the order of the file.

    Those that are named after operators come first.
    """
    package = module.__name__.partition(".")[0]
    found = [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (inspect.isroutine(value) or (inspect.isclass(value) and is_layer_like(value)))
        and str(getattr(value, "__module__", "")).partition(".")[0] == package
    ]
    return sorted(found, key=lambda name: not operator_named([name]))


def from_callable(
    function: Any, operators: tuple[str, ...] | None, framework: str | None, declared: Declarations = NOTHING_DECLARED
) -> Target:
    """The target for this callable or layer."""
    if declared.layers:
        return model_target(type(function).__name__, function, operators, declared)
    if _is_own_layer(function, operators):
        kind = function if inspect.isclass(function) or inspect.isfunction(function) else type(function)
        return layer_target(_told_from_frameworks(kind.__name__, kind), function, None, operators, declared)
    bare = function.func if isinstance(function, partial) else function
    name = attribute(bare, "__name__")
    name = name if isinstance(name, str) and name.isidentifier() else type(bare).__name__
    label = _told_from_frameworks(name, bare)
    _check_callable(function, label)
    operator = _operator(name, operators, label)
    holder = getattr(bare, "__module__", None)
    if not inspect.isroutine(bare):
        holder = type(bare).__module__
    module = sys.modules.get(holder) if isinstance(holder, str) else None
    owner = module if module is not None and getattr(module, name, None) is function else None
    found = _target(label, function, operator, framework, module, owner, name, declared)
    return with_definition(found, bare, owner, name)


def _told_from_frameworks(name: str, value: Any) -> str:
    """The name of a target that is an object; with its module if a framework has that name: what is known by it is not
    about the object."""
    if full_name(name) not in KNOWN:
        return name
    module = attribute(value, "__module__")
    return f"{module if isinstance(module, str) else 'function'}:{name}"


def _target(
    label: str,
    function: Any,
    operator: str,
    framework: str | None,
    module: ModuleType | None,
    owner: ModuleType | None,
    name: str,
    declared: Declarations = NOTHING_DECLARED,
) -> Target:
    _check_callable(function, label)
    own = OwnCall.of(function, operator, declared, label) if declared else None
    unsupported_keywords = own.unsupported_keywords if own else check_signature(function, operator, label)
    if framework is None:
        framework = _framework_of(function, module, label)
    folder = adapter(framework)
    call, has_modes = _with_modes(function)
    derivatives = derivatives_of(function, owner, name, label)
    conventions, accepts, expected = (
        sibling(function, owner, name, suffix) for suffix in ("conventions", "accepts", "expected")
    )
    if own is not None:
        call = own.canonical_call(call, folder.BRIDGE)
        # Of a function's hand-written derivatives, only the vjp can be called with arguments that are not canonical.
        derivatives = {"vjp": own.canonical_vjp(derivatives["vjp"], folder.BRIDGE)} if "vjp" in derivatives else {}
    else:
        check_vjp_signature(derivatives.get("vjp"), operator, label)
    binding = Binding(
        operator,
        label,
        call,
        MappingProxyType(derivatives),
        conventions=conventions_of(conventions, label, operator),
        known_violations=(*folder.BRIDGE.violations, *known_violations_of(expected, label)),
        accepts=accepts_of(accepts, label),
        has_modes=has_modes,
        unsupported_keywords=unsupported_keywords,
        fixed=own.fixed if own is not None else FixedSettings(),
    )
    return Target(label, framework, folder.BRIDGE.version, folder.BRIDGE, (binding,), slow=full_name(framework) in SLOW)


def _is_own_layer(value: Any, operators: tuple[str, ...] | None) -> bool:
    """Whether a value is a layer, or makes one, and does not take the operator's canonical call."""
    if not is_layer_like(value):
        return False
    if inspect.isclass(value) or inspect.isfunction(value):
        return True
    named = [type(value).__name__] if operators is None or len(operators) != 1 else operators
    return not any(name in OPERATORS and _takes_canonical_call(value, name) for name in named)


def _takes_canonical_call(layer: Any, operator: str) -> bool:
    """Whether a layer takes the operator's canonical call; then it holds no parameters of its own."""
    signature, variadic = signature_of(layer), (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    says_nothing = signature is not None and all(one.kind in variadic for one in signature.parameters.values())
    if says_nothing and not OPERATORS[operator].composed:  # as a compiled layer's; a composed operator has no layers
        return False
    try:
        check_signature(layer, operator, "it")
    except WrongSignature:
        return False
    return True


def _operator(name: str, operators: tuple[str, ...] | None, label: str) -> str:
    """The operator a function implements: the given one, or the one that the function is named after."""
    if operators is not None and len(operators) == 1:
        return operators[0]
    known = OPERATORS if operators is None else operators
    if name in known:
        return name
    if operators is not None:
        raise UnknownOperator(
            f"{label} is one function and implements one operator: give one of {', '.join(operators)}"
        )
    raise which_operator(label)


def _check_callable(function: Any, label: str) -> None:
    if inspect.isclass(function):
        raise WrongSignature(f"{label} is a class: give a function, or an instance that can be called")
    if not callable(function):
        raise WrongSignature(f"{label} is {type(function).__name__}, which cannot be called: give a function")
    if _answer(inspect.iscoroutinefunction, function) or _answer(inspect.isasyncgenfunction, function):
        raise WrongSignature(f"{label} is async: give a function that returns its result")


def _answer(question: Callable[[Any], bool], function: Any) -> bool:
    """Ask a question about a function; the answer is False if the function raises while it is inspected."""
    try:
        return question(function)
    except Exception:
        return False


def _framework_of(function: Any, module: ModuleType | None, label: str) -> str:
    """The framework that the function's module imports. NumPy does not count if there is another framework."""
    try:
        found = implied_frameworks(function, module)
    except Exception:  # an object of the target whose attributes raise
        found = set()
    others = found - {"numpy"}
    if "keras" in others and others - {"keras"} == {active_backend()}:
        others = {"keras"}
    if len(others) > 1:
        raise UnknownFramework(
            f"{label} imports {' and '.join(sorted(others))}: say which one it is for with --framework,"
            f" one of {', '.join(FRAMEWORKS)}"
        )
    chosen = next(iter(others or found), None)
    if chosen is None:
        raise UnknownFramework(
            f"{label} imports no framework: say which one it is for with --framework, one of {', '.join(FRAMEWORKS)}"
        )
    if chosen not in FRAMEWORKS:
        raise UnknownFramework(
            f"{label} is written for {chosen}, which has no bridge; choose from {', '.join(FRAMEWORKS)}"
        )
    return chosen


def _with_modes(function: Any) -> tuple[Callable[..., Any], bool]:
    """A call that takes ``mode`` if the callable has modes, else the callable itself; and whether it has modes."""
    if not has_modes(function):
        return function, False

    present: bool | None = None

    def call(*tensors: Any, mode: str, **settings: Any) -> Any:
        nonlocal present
        training = bool(settings.get("training", mode == "training"))
        # Only where the mode changes, as in a program: train() and eval() may empty what is kept between calls.
        if present is not training or getattr(function, "training", training) is not training:
            (function.train if training else function.eval)()
            present = training
        return function(*tensors, **settings)

    return call, True
