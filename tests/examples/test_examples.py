"""Every file in examples/ gets the verdict that its first lines state, from the command that they give."""

from __future__ import annotations

import ast
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import attrs
import pytest

from normspec.conformance.command_line.root import main
from normspec.spec import requirements

FOLDER = Path(__file__).parent.parent.parent / "examples"

#: Options for a verdict in seconds: a fault shows in one dtype; a sound file also runs in the tightest one.
QUICK = {
    1: ("--profile", "quick", "--dtype", "bfloat16"),
    0: ("--profile", "quick", "--dtype", "bfloat16", "--dtype", "float32"),
}

#: The spelling of each exit status in a header.
VERDICTS = {"conforms (exit status 0)": 0, "does not conform (exit status 1)": 1}


@attrs.frozen
class Stated:
    """A header's statement about one command: a block of `Key: value` lines, the first of them `Check:`."""

    command: tuple[str, ...]
    status: int
    #: The requirements named, and whether these are all.
    violated: frozenset[str]
    unsupported: frozenset[str]
    exactly: bool
    conventions: dict[str, str]


def stated(file: Path) -> list[Stated]:
    """The blocks of a file's docstring. A KeyError or ValueError says that a header is malformed."""
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return [block(part) for part in text.split("\n\n") if part.startswith("Check:")]


def block(text: str) -> Stated:
    """One block; without `Violates:` or `Unsupported:` nothing is."""
    lines = (line.split(":", 1) for line in text.splitlines())
    fields = {key: value.strip() for key, value in lines}
    program, *command = shlex.split(fields.pop("Check"))
    assert program == "normspec"
    violated, exactly = listed(fields.pop("Violates", ""))
    unsupported, _ = listed(fields.pop("Unsupported", ""))
    conventions = fields.pop("Conventions")
    declared = {} if conventions == "none" else dict(pair.split("=") for pair in conventions.split(", "))
    status = VERDICTS[fields.pop("Verdict")]
    assert not fields, f"unknown fields {', '.join(fields)}"
    return Stated(tuple(command), status, violated, unsupported, exactly, declared)


def listed(text: str) -> tuple[frozenset[str], bool]:
    """The ids of a list, and whether it is complete: it is unless it ends in "among others"."""
    ids = text.removesuffix(" among others")
    return frozenset(ids.split(", ") if ids else ()), ids == text


def needs_torch(file: Path) -> bool:
    """Whether the file imports PyTorch."""
    return re.search(r"^(import|from) torch\b", file.read_text(encoding="utf-8"), re.MULTILINE) is not None


def cases() -> list:
    """One case for each block of each file: each run has the first of a file, and the night has the others."""
    found = []
    for file in sorted(FOLDER.glob("*.py")):
        # NumPy's results do not depend on the Python version.
        mark = pytest.mark.torch if needs_torch(file) else pytest.mark.exhaustive
        for place, one in enumerate(stated(file)):
            marks = [mark, pytest.mark.nightly] if place else [mark]
            found.append(pytest.param(one, id=" ".join(one.command[1:]), marks=marks))
    return found


@pytest.mark.parametrize("expected", cases())
def test_an_example_gets_the_verdict_that_it_states(expected, checkout, tmp_path, monkeypatch):
    """The exit status, the violated requirements, the unsupported ones, and the conventions are as stated."""
    monkeypatch.chdir(checkout)
    if "from transformers" in (checkout / expected.command[1].partition(":")[0]).read_text(encoding="utf-8"):
        pytest.importorskip("transformers", reason="the example wraps layers of transformers")
    file = tmp_path / "report.json"
    status = main([*expected.command, *QUICK[expected.status], "--json", str(file)])
    report = json.loads(file.read_text(encoding="utf-8"))
    by_verdict: dict[str, set[str]] = {}
    for result in report["results"]:
        if result["level"] == "MUST":
            by_verdict.setdefault(result["verdict"], set()).add(result["requirement"])
    violated = by_verdict.get("fail", set())
    assert status == expected.status, sorted(violated)
    assert violated >= expected.violated
    if expected.exactly:
        assert violated == expected.violated
    assert by_verdict.get("unsupported", set()) >= expected.unsupported
    assert {tuple(sorted(subject["conventions"].items())) for subject in report["subjects"]} == {
        tuple(sorted(expected.conventions.items()))
    }


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.py")), ids=lambda file: file.name)
def test_a_header_is_complete_and_true_to_the_file(file):
    """It names functions of its own file, existing requirements, and everything that a failure or a pass needs."""
    blocks = stated(file)
    tree = ast.parse(file.read_text(encoding="utf-8"))
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert blocks
    for one in blocks:
        place, _, name = one.command[1].rpartition(":")
        assert (one.command[0], place, one.command[2]) == ("check", f"examples/{file.name}", "--op")
        assert name in functions
        assert one.violated | one.unsupported <= set(requirements())
        assert bool(one.violated) == (one.status == 1)
        given = [value for key, value in zip(one.command, one.command[1:], strict=False) if key == "--convention"]
        assert given == [f"{key}={value}" for key, value in one.conventions.items()]


def test_a_header_works_as_it_is_typed(checkout):
    """The command of a file that needs only NumPy, in its own process, as a reader runs it."""
    (expected,) = stated(checkout / "examples" / "layer_norm_without_eps.py")
    command = [sys.executable, "-m", "normspec", *expected.command, *QUICK[expected.status]]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == expected.status, done.stderr
    assert "DOES NOT CONFORM" in done.stdout


def test_some_examples_need_no_framework():
    """A reader without PyTorch finds sound and faulty ones to run."""
    blocks = [one for file in FOLDER.glob("*.py") if not needs_torch(file) for one in stated(file)]
    assert {one.status for one in blocks} == {0, 1}


def test_every_example_is_on_the_page():
    """docs/examples.md has a row for each file."""
    page = (FOLDER.parent / "docs" / "examples.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(\w+\.py)`", page, re.M)) == {file.name for file in FOLDER.glob("*.py")}
