"""A framework in plain code: the functions of adapters/<framework>/plain_code.py, as text."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import attrs

from ...adapters.frameworks import KNOWN, full_name

_ADAPTERS = Path(__file__).parent.parent.parent / "adapters"


@attrs.frozen
class Language:
    """The functions that scripts for one framework may use."""

    #: The lines that import what the functions use.
    imports: tuple[str, ...]
    #: The source of each function by name, without annotations.
    functions: dict[str, str] = attrs.field(eq=False)
    #: The backend that Keras has to be told; empty if there is no choice.
    backend: str = ""

    def copied(self, names: Iterable[str]) -> list[str]:
        """The source of these functions and of those that they call, in the order of the file."""
        wanted, waiting = set[str](), list(names)
        while waiting:
            name = waiting.pop()
            if name not in wanted:
                wanted.add(name)
                nodes = ast.walk(ast.parse(self.functions[name]))
                waiting += [one.id for one in nodes if isinstance(one, ast.Name) and one.id in self.functions]
        return [source for name, source in self.functions.items() if name in wanted]


def language_of(framework: str) -> Language:
    """The language of scripts for a framework: "torch", "keras[jax]". ONNX uses NumPy's tensors."""
    known = KNOWN[full_name(framework)]
    if known.folder == "keras":
        backend = known.environment["KERAS_BACKEND"]
        return attrs.evolve(_read(backend), backend=backend)
    return _read({"onnx": "numpy"}.get(known.framework, known.framework))


@cache
def _read(room: str) -> Language:
    """The contents of a room's file. It is parsed and not imported, because an import would import the framework."""
    tree = ast.parse((_ADAPTERS / room / "plain_code.py").read_text(encoding="utf-8"))
    imports, functions = [], {}
    for node in tree.body:
        if isinstance(node, ast.Import):
            imports.append(ast.unparse(node))
        elif isinstance(node, ast.FunctionDef):
            functions[node.name] = ast.unparse(_WithoutAnnotations().visit(node))
    return Language(tuple(imports), functions)


class _WithoutAnnotations(ast.NodeTransformer):
    """Removes annotations."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        node.returns = None
        self.generic_visit(node)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        bare = node if node.value is None else ast.Assign([node.target], node.value)
        return ast.fix_missing_locations(ast.copy_location(bare, node))

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node
