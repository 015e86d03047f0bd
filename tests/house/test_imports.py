"""Imports go one way, and no framework is imported before a target needs it."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOMS = ("spec", "reference", "adapters", "conformance")

#: What each room may import of the others: `conformance -> adapters -> spec`, `conformance -> reference -> spec`.
ALLOWED = {
    "spec": {"spec"},
    "reference": {"reference", "spec"},
    "adapters": {"adapters", "spec"},
    "conformance": {"conformance", "adapters", "reference", "spec"},
}

#: What a room may import of other projects, beside the standard library.
DEPENDENCIES = {
    "spec": set(),
    "reference": {"numpy", "ml_dtypes", "attrs"},
    "adapters": {"numpy", "ml_dtypes"},
    "conformance": {"numpy", "ml_dtypes", "attrs", "hypothesis", "click", "rich", "tomli", "tomllib"},
}

#: Libraries of layers for a framework, imported in its folder.
LAYERS = {"torch": {"transformers"}, "onnx": {"onnxruntime"}, "flax": {"jax"}, "equinox": {"jax"}}

FRAMEWORKS = {"torch", "tensorflow", "keras", "jax", "flax", "equinox", "onnx", "onnxruntime", "mxnet", "transformers"}


def sources(checkout: Path, room: str) -> list[Path]:
    """The Python files of a room."""
    return sorted((checkout / room).rglob("*.py"))


def imported(file: Path, checkout: Path) -> Iterator[str]:
    """The modules a file imports, anywhere in it, relative ones as `normspec.<room>...`."""
    package = ("normspec", *file.relative_to(checkout).parent.parts)
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join((*start, *filter(None, [node.module])))
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_the_rooms_below_it(checkout, room):
    """conformance -> adapters -> spec; conformance -> reference -> spec; nothing points the other way."""
    for file in sources(checkout, room):
        for module in imported(file, checkout):
            if module.startswith("normspec."):
                assert module.split(".")[1] in ALLOWED[room] | {"__version__"}, f"{file} imports {module}"


@pytest.mark.parametrize("room", ROOMS)
def test_rooms_import_one_another_relatively(checkout, room):
    """`from ..reference import x` within the package: it works under whatever name the root has."""
    for file in sources(checkout, room):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                assert (node.module or "").split(".")[0] != "normspec", f"{file}:{node.lineno}"


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_its_dependencies(checkout, room):
    """Other projects are imported where they are declared, and a framework only in the folder named after it."""
    for file in sources(checkout, room):
        own = {part for part in file.relative_to(checkout).parts if part in FRAMEWORKS}
        own |= {library for framework in own for library in LAYERS.get(framework, ())}
        allowed = DEPENDENCIES[room] | own | sys.stdlib_module_names | {"normspec"}
        for module in imported(file, checkout):
            assert module.split(".")[0] in allowed, f"{file} imports {module}"


def loaded_by(statement: str, tmp_path: Path) -> set[str]:
    """The top-level modules that a fresh process has after the statement."""
    script = f"import sys\n{statement}\nprint(*sorted(m.split('.')[0] for m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def test_importing_normspec_imports_no_dependency(tmp_path):
    """The front door is lazy: a worker that needs one adapter loads nothing else."""
    assert not loaded_by("import normspec", tmp_path) & {"numpy", "hypothesis", "rich", "click", *FRAMEWORKS}


@pytest.mark.parametrize(
    "statement",
    [
        "import normspec; normspec.check, normspec.Report",
        "import normspec.conformance.command_line",
        "import normspec.adapters.targets as t; t.resolve('numpy')",
    ],
)
def test_no_framework_is_imported_before_a_target_needs_it(tmp_path, statement):
    """The API, the command line and the NumPy target leave every framework alone."""
    assert not loaded_by(statement, tmp_path) & FRAMEWORKS
