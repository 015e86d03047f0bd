"""How to mend a mistake: the step that a fault gets wrong, and the same step of the sound function."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from typing import Any

import attrs

from ...adapters.numpy.operators import IMPLEMENTATIONS
from ..faults.registry import Fault

#: Most lines of a step that is shown; read a longer one in its file.
_LINES = 8


@attrs.frozen
class Mended:
    """One step in the fault, and as it should be: lines of Python."""

    name: str
    wrong: str
    right: str


def mended(fault: Fault) -> tuple[Mended, ...]:
    """The steps that a fault overrides, each with the sound one; long steps are left out."""
    base, found = IMPLEMENTATIONS[fault.operator], []
    seen = set[str]()
    for owner in fault.step.__mro__:
        if owner in base.__mro__:
            break
        for name, step in vars(owner).items():
            sound = getattr(base, name, None)
            if name in seen or name.startswith("__") or not (inspect.isfunction(step) and inspect.isfunction(sound)):
                continue
            seen.add(name)
            wrong, right = _body(step), _body(sound)
            if wrong and right and max(wrong.count("\n"), right.count("\n")) < _LINES:
                found.append(Mended(name, wrong, right))
    return tuple(found)


def _body(step: Callable[..., Any]) -> str:
    """The lines of a function without its docstring; empty if there is no source."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(step)))
    except (OSError, TypeError, SyntaxError):
        return ""
    (function,) = tree.body
    assert isinstance(function, ast.FunctionDef)
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return "\n".join(ast.unparse(one) for one in body)
