"""The functions and classes in a file that are named after an operator, found by parsing the file, not running it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from ..spec.errors import NotImportable, UnknownTarget
from . import own_function
from .layers_in_file import layers_in
from .loading import existing_file
from .targets import EXEC_PREFIX, check_operators, check_written


def names_a_file(target: str) -> bool:
    """Whether the text is FILE.py without :NAME. A command may end with .py too."""
    is_command = target.startswith(EXEC_PREFIX)
    return target.rstrip(":").endswith(".py") and not is_command and not own_function.names_a_function(target)


def targets_in(target: str, op: Sequence[str] | None = None) -> tuple[str, ...]:
    """
    FILE.py:NAME for each function of FILE.py named after an operator, and each layer class that says which operator it
    is, in file order.

    ``op`` limits the result to these operators. Imported names do not count. Raises NotImportable if the file cannot be
    read, UnknownOperator if ``op`` names none, and UnknownTarget, which lists the file's definitions, if it has no such
    function or class.
    """
    path, wanted = target.rstrip(":"), check_operators(op)
    check_written(path)
    file = existing_file(path)
    try:
        tree = ast.parse(file.read_bytes(), str(file))
    except SyntaxError as error:
        line = f", line {error.lineno}" if error.lineno else ""
        raise NotImportable(f"{path}{line}: SyntaxError: {error.msg}") from error
    except (OSError, ValueError) as error:
        raise NotImportable(f"{path} cannot be read: {error}") from error
    names = list(dict.fromkeys(bound(tree.body)))
    layers = layers_in(list(_statements(tree.body)), path)
    found = tuple(f"{path}:{name}" for name in names if layers.get(name, name) in wanted)
    if not found:
        imported = [name for name in _imported(tree.body) if name in wanted]
        raise UnknownTarget(_only_imported(path, imported) if imported else _nothing(path, names, wanted))
    return found


def _nothing(path: str, names: Sequence[str], wanted: Sequence[str]) -> str:
    """The message that nothing in a file says which operator it is, and how to name a function instead."""
    public = [name for name in names if not name.startswith("_")]
    has = f"it has {', '.join(public)}" if public else "it defines none at all"
    # What is named after another operator is hardly the one that is meant.
    unnamed = next((name for name in public if name not in check_operators(None)), "NAME")
    return (
        f"nothing in {path} says by its name which operator it is ({', '.join(wanted)}); {has}. Name one, and"
        f" the operator that it is: {path}:{unnamed} --op {wanted[0] if len(wanted) == 1 else 'OP'}"
    )


def _only_imported(path: str, names: Sequence[str]) -> str:
    """The message that a file imports a function with an operator's name, and how to check it all the same."""
    return (
        f"{path} defines no {' and no '.join(names)}, and imports it: name the file that defines it,"
        f" or the function itself, {path}:{names[0]}"
    )


def _imported(body: Sequence[ast.stmt]) -> Iterator[str]:
    """The names that import statements bind."""
    for one in _statements(body):
        if isinstance(one, (ast.Import, ast.ImportFrom)):
            yield from (alias.asname or alias.name for alias in one.names)


def bound(body: Sequence[ast.stmt]) -> Iterator[str]:
    """The names that statements define, without imports and without plain values, such as a number."""
    for one in _statements(body):
        if isinstance(one, (ast.FunctionDef, ast.ClassDef)):
            yield one.name
        elif isinstance(one, ast.Assign) and not isinstance(one.value, _PLAIN):
            yield from (target.id for target in one.targets if isinstance(target, ast.Name))
        elif isinstance(one, ast.AnnAssign) and one.value is not None and isinstance(one.target, ast.Name):
            yield one.target.id


def _statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements, including those in branches."""
    for one in body:
        if isinstance(one, (ast.If, ast.Try, ast.With)):
            inner = [*one.body, *getattr(one, "orelse", ()), *getattr(one, "finalbody", ())]
            inner += [statement for handler in getattr(one, "handlers", ()) for statement in handler.body]
            yield from _statements(inner)
        else:
            yield one


#: Expressions whose value cannot be called.
_PLAIN = (ast.Constant, ast.Dict, ast.List, ast.Set, ast.Tuple, ast.JoinedStr, ast.Compare, ast.BinOp, ast.UnaryOp)
