"""Imports go one way, and no framework is imported before a target needs it."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOMS = ("spec", "reference", "adapters", "studies", "conformance", "testing")

#: What each room may import of the others: `testing -> conformance -> adapters -> spec`, `conformance -> reference`.
#: `studies` is next to them; within conformance only the command line imports it.
ALLOWED = {
    "spec": {"spec"},
    "reference": {"reference", "spec"},
    "adapters": {"adapters", "spec"},
    "studies": {"studies", "adapters", "reference", "spec"},
    "conformance": {"conformance", "adapters", "reference", "spec"},
    "testing": {"testing", "conformance", "adapters", "reference", "spec"},
}

#: The same within `conformance`: rooms that decide a verdict, from the bottom up. Rooms that read results are above.
JUDGES = {
    "kept": set(),
    "cases": {"kept"},
    "judging": {"cases", "kept"},
    "checks": {"cases", "judging"},
    "sound": set(),
    "faults": {"checks", "sound"},
    "requests": {"cases", "checks", "expected", "faults", "kept", "sound"},
    "engine": {"cases", "checks", "judging", "requests", "results"},
}

#: The only room that may import the studies.
COMMAND_LINE = "conformance/command_line"

#: The other projects that a room may import, besides the standard library.
DEPENDENCIES = {
    "spec": set(),
    "reference": {"numpy", "ml_dtypes", "attrs"},
    "adapters": {"numpy", "ml_dtypes"},
    "conformance": {
        *("numpy", "ml_dtypes", "attrs", "click", "rich", "tomli", "tomllib", "matplotlib", "jinja2", "markupsafe"),
        "distributed",
    },
    "studies": {"numpy", "ml_dtypes", "attrs", "matplotlib"},
    "testing": {"numpy", "ml_dtypes", "attrs", "pytest", "xdist", "hypothesis", "typing_extensions"},
}

#: Libraries of layers for a framework, imported in its folder.
LAYERS = {"torch": {"transformers"}, "onnx": {"onnxruntime"}, "flax": {"jax"}, "equinox": {"jax"}}

FRAMEWORKS = {"torch", "tensorflow", "keras", "jax", "flax", "equinox", "onnx", "onnxruntime", "mxnet", "transformers"}


def sources(checkout: Path, room: str) -> list[Path]:
    """The Python files of a room."""
    return sorted((checkout / room).rglob("*.py"))


def imports(file: Path, checkout: Path) -> Iterator[tuple[str, str | None]]:
    """(module, name) for everything that a file imports, anywhere in it; relative modules as `normspec.<room>...`."""
    package = ("normspec", *file.relative_to(checkout).parent.parts)
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join((*start, *filter(None, [node.module])))
            yield from ((module, alias.name) for alias in node.names)


def imported(file: Path, checkout: Path) -> Iterator[str]:
    """The modules a file imports, and the names it imports from them, as if these were modules too."""
    for module, name in imports(file, checkout):
        yield module
        if name is not None:
            yield f"{module}.{name}"


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_the_rooms_below_it(checkout, room):
    """conformance -> adapters -> spec; conformance -> reference -> spec; nothing points the other way.

    Only the command line imports the studies.
    """
    for file in sources(checkout, room):
        for module in imported(file, checkout):
            if module.startswith("normspec."):
                own = {"studies"} if file.parent == checkout / COMMAND_LINE else set()
                assert module.split(".")[1] in ALLOWED[room] | {"__version__"} | own, f"{file} imports {module}"


@pytest.mark.parametrize("room", JUDGES)
def test_what_decides_a_verdict_imports_what_it_needs_alone(checkout, room):
    """A check knows no report, and a case no check: engine -> checks -> judging -> cases -> kept."""
    conformance = checkout / "conformance"
    rooms = {one.name for one in conformance.iterdir() if one.is_dir()}
    for file in sources(checkout, f"conformance/{room}"):
        for module in imported(file, checkout):
            parts = module.split(".")
            if parts[:2] == ["normspec", "conformance"] and parts[2:]:
                assert parts[2] in JUDGES[room] | {room} or parts[2] not in rooms, f"{file} imports {module}"


@pytest.mark.parametrize("room", ROOMS)
def test_rooms_import_one_another_relatively(checkout, room):
    """`from ..reference import x` within the package: it works whatever the name of the root."""
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


def module_of(file: Path, checkout: Path) -> str:
    """The name of a file of the package as a module: `normspec.adapters.binding`, `normspec.adapters.numpy`."""
    parts = file.relative_to(checkout).with_suffix("").parts
    return ".".join(("normspec", *(parts[:-1] if parts[-1] == "__init__" else parts)))


def cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The circles of a graph, each as the nodes on one way round; one for every edge that closes one."""
    done: set[str] = set()
    found = []

    def walk(node: str, path: list[str]) -> None:
        if node in path:
            found.append([*path[path.index(node) :], node])
        elif node not in done:
            for below in sorted(graph[node]):
                walk(below, [*path, node])
            done.add(node)

    for node in sorted(graph):
        walk(node, [])
    return found


def test_no_files_import_each_other_in_a_circle(checkout):
    """
    A file imports only files below it, so that it can be read and changed with only those in mind.

    Imports inside functions and for type checkers count as any other. It does not count that a package runs its
    `__init__.py` first: those of the rooms hold a docstring, or names from files that are below.
    """
    files = {module_of(file, checkout): file for room in ROOMS for file in sources(checkout, room)}
    graph: dict[str, set[str]] = {}
    for module, file in files.items():
        found = {f"{of}.{name}" if f"{of}.{name}" in files else of for of, name in imports(file, checkout)}
        graph[module] = found & files.keys() - {module}
    assert cycles(graph) == []


def test_a_circle_is_found():
    """A circle of three files is reported from its first file round to it; a diamond is no circle."""
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"a"}}) == [["a", "b", "c", "a"]]
    assert cycles({"a": {"b", "c"}, "b": {"d"}, "c": {"d"}, "d": set()}) == []


def loaded_by(statement: str, tmp_path: Path) -> set[str]:
    """The top-level modules that a fresh process has after the statement."""
    script = f"import sys\n{statement}\nprint(*sorted(m.split('.')[0] for m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def test_importing_normspec_imports_no_dependency(tmp_path):
    """The front door is lazy: a worker that needs one adapter loads nothing else."""
    assert not loaded_by("import normspec", tmp_path) & {"numpy", "rich", "click", *FRAMEWORKS}


@pytest.mark.parametrize(
    "statement",
    [
        "import normspec; normspec.check, normspec.Report",
        "import normspec.conformance.command_line",
        "import normspec.adapters.targets as t; t.resolve('numpy')",
    ],
)
def test_no_framework_is_imported_before_a_target_needs_it(tmp_path, statement):
    """The API, the command line and the NumPy target import no framework, and no plotting library."""
    assert not loaded_by(statement, tmp_path) & (FRAMEWORKS | {"matplotlib"})
