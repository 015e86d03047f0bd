"""What in a source shows that its results may depend on more than code: files, variables, compilers, the network."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

#: Modules of the standard library that reach nothing outside of the program. What is not among them may.
INNOCENT = frozenset({
    "__future__", "abc", "array", "bisect", "cmath", "collections", "contextlib", "copy", "dataclasses", "decimal",
    "enum", "fractions", "functools", "heapq", "itertools", "keyword", "math", "numbers", "operator", "re",
    "statistics", "string", "struct", "textwrap", "types", "typing", "warnings", "weakref",
})  # fmt: skip

#: The languages of kernels, in which `load` reads memory.
_OF_KERNELS = ("triton.language", "jax.experimental.pallas")

#: Words with which names begin that reach outside, and those with which they end. A name that only looks so costs a
#: run, and one that is missing here could cost a verdict.
_BEGINNING = (
    "argv", "cdll", "compil", "connect", "ctypes", "dlopen", "download", "environ", "exec", "extension", "file",
    "getenv", "hub", "import", "librar", "load", "memmap", "mmap", "open", "path", "pickl", "popen", "pretrained",
    "read", "request", "session", "shelve", "socket", "spawn", "sqlite", "stdin", "subprocess", "system", "url",
)  # fmt: skip
_WORD = re.compile(rf"(?:^|_)(?:{'|'.join(_BEGINNING)})|(?:(?<!pro)files?|paths?|urls?|txt|csv)(?:$|_)")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

#: A text that may name a file: it has a folder, or an ending.
_FILE = re.compile(r"[/\\]|^[\w.-]*\w\.[A-Za-z]\w{0,7}$")

#: Functions of Python itself that run or ask for what cannot be read here.
_BUILT_IN = frozenset({"__import__", "breakpoint", "eval", "globals", "vars"})


def reaches(tree: ast.Module) -> str:
    """What in a source reaches outside of the program, in words; empty where nothing does."""
    return next(_found(tree), "")


def _found(tree: ast.Module) -> Iterator[str]:
    told, kernels = _docstrings(tree), _kernel_languages(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            memory = isinstance(node.value, ast.Name) and node.value.id in kernels
            if not memory and _is_outward(node.attr):
                yield f"uses {node.attr} (line {node.lineno})"
        elif isinstance(node, ast.Name) and (_is_outward(node.id) or node.id in _BUILT_IN):
            yield f"uses {node.id} (line {node.lineno})"
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if any(map(_is_outward, alias.name.split("."))):
                    yield f"imports {alias.name} (line {node.lineno})"
        elif isinstance(node, ast.ImportFrom):
            of_kernels = (node.module or "") in _OF_KERNELS
            for alias in node.names:
                if alias.name == "*" or (not of_kernels and _is_outward(alias.name)):
                    yield f"imports {alias.name} of {node.module or '.'} (line {node.lineno})"
        elif isinstance(node, ast.Constant) and id(node) not in told:
            text = node.value.decode("latin-1") if isinstance(node.value, bytes) else node.value
            if isinstance(text, str) and (_FILE.search(text) or (text.isidentifier() and _is_outward(text))):
                yield f"has the text {text[:40]!r}, which may name a file (line {node.lineno})"


def _is_outward(name: str) -> bool:
    return _WORD.search(_HUMP.sub("_", name).lower()) is not None


def _docstrings(tree: ast.Module) -> set[int]:
    """The texts that stand alone, and so do nothing."""
    return {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}


def _kernel_languages(tree: ast.Module) -> set[str]:
    """What the languages of kernels are called in a source."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {one.asname for one in node.names if one.asname and one.name in _OF_KERNELS}
        elif isinstance(node, ast.ImportFrom):
            whole = {f"{node.module}.{one.name}": one.asname or one.name for one in node.names}
            found |= {name for module, name in whole.items() if module in _OF_KERNELS}
    return found
