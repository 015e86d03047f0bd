"""Everything that a worker imports runs on Python 3.8, as far as its source shows."""

from __future__ import annotations

import ast
from pathlib import Path

#: Rooms that only the judge imports, and those of frameworks that need a newer Python themselves.
NOT_THERE = {"remote"}


def _files(checkout: Path) -> list[Path]:
    found = sorted((checkout / "adapters").rglob("*.py"))
    return [file for file in found if not NOT_THERE & set(file.relative_to(checkout / "adapters").parts)]


def test_it_parses_and_defers_its_annotations(checkout):
    """No newer syntax, and no annotation that is evaluated."""
    for file in _files(checkout):
        tree = ast.parse(file.read_text(encoding="utf-8"), feature_version=(3, 8))
        imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
        deferred = any(node.module == "__future__" for node in imports)
        assert deferred or all(isinstance(node, ast.Expr) for node in tree.body), file


def test_it_calls_nothing_newer(checkout):
    """`zip(strict=...)`, `isinstance(x, A | B)` and similar calls would only fail when they run."""
    newer = {"removeprefix", "removesuffix", "pairwise", "bit_count", "cache", "lcm", "nextafter", "ulp"}
    for file in _files(checkout):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            where = f"{file}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                keywords = {keyword.arg for keyword in node.keywords}
                assert not (node.func.id == "zip" and "strict" in keywords), where
                assert not (node.func.id == "dataclass" and keywords & {"slots", "kw_only"}), where
                if node.func.id in ("isinstance", "issubclass") and len(node.args) == 2:
                    assert not isinstance(node.args[1], ast.BinOp), where
            if isinstance(node, ast.ImportFrom) and node.module in ("functools", "itertools", "math"):
                assert not newer & {alias.name for alias in node.names}, where
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                assert not (node.value.id in ("functools", "itertools", "math") and node.attr in newer), where
                assert node.attr not in ("removeprefix", "removesuffix"), where


def test_it_evaluates_no_newer_type(checkout):
    """`Mapping[str, int]` of collections.abc and `list[int]` may stand only where nothing evaluates them."""
    for file in _files(checkout):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        deferred = {id(one) for node in ast.walk(tree) for part in _unevaluated(node) for one in ast.walk(part)}
        abstract = {
            alias.asname or alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module == "collections.abc"
            for alias in node.names
        }
        generic = abstract | {"dict", "frozenset", "list", "set", "tuple", "type"}
        for node in ast.walk(tree):
            if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and id(node) not in deferred:
                assert node.value.id not in generic, f"{file}:{node.lineno}"


def _unevaluated(node: ast.AST) -> list[ast.AST]:
    """The parts of a node that Python does not evaluate: annotations, and what only a type checker reads."""
    if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
        return list(node.body)
    return [part for name in ("annotation", "returns") if (part := getattr(node, name, None)) is not None]
