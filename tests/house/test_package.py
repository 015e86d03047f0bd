"""The package as installed: its contents, and that it works away from the checkout."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import normspec

#: tox tests the wheel. Elsewhere (an editable install while working on the code) there is no wheel to look into.
under_tox = pytest.mark.skipif("TOX_ENV_NAME" not in os.environ, reason="tox installs the wheel")


@under_tox
def test_the_tests_import_the_installed_wheel(checkout):
    """`import normspec` is not the checkout that the tests come from."""
    installed = Path(normspec.__file__).resolve()
    assert "site-packages" in installed.parts
    assert installed.parent != checkout.resolve()


@under_tox
def test_the_wheel_holds_every_room_and_no_tests(checkout):
    """Each Python file and each page of the rooms is in it; tests and benchmarks are not."""
    held = {str(file) for file in metadata.files("normspec") or ()}
    rooms = ("spec", "reference", "adapters", "studies", "conformance", "testing")
    files = [f for room in rooms for kind in ("*.py", "*.md") for f in (checkout / room).rglob(kind)]
    wanted = {f"normspec/{file.relative_to(checkout).as_posix()}" for file in files}
    assert wanted <= held
    assert "normspec/py.typed" in held
    assert not {name for name in held if name.startswith(("normspec/tests", "normspec/benchmarks", "tests"))}


def test_every_package_folder_is_declared(checkout):
    """A folder added to a room is named in pyproject.toml: the wheel would lack it otherwise."""
    text = (checkout / "pyproject.toml").read_text(encoding="utf-8")
    declared = set(re.findall(r'^    "(normspec[.\w]*)",$', text, re.MULTILINE))
    rooms = ("spec", "reference", "adapters", "studies", "conformance", "testing")
    folders = {file.parent for room in rooms for file in (checkout / room).rglob("*.py")}
    assert declared == {"normspec"} | {".".join(("normspec", *f.relative_to(checkout).parts)) for f in folders}
    assert all(importlib.util.find_spec(name) for name in declared)


def test_the_version_agrees_everywhere(checkout):
    """pyproject.toml, the metadata, `normspec.__version__`, the changelog and the citation name one version."""
    text = (checkout / "pyproject.toml").read_text(encoding="utf-8")
    declared = re.search(r'^version = "(.*)"$', text, re.MULTILINE)
    assert declared is not None
    assert normspec.__version__ == metadata.version("normspec") == declared[1]
    assert f"\nversion: {declared[1]}\n" in (checkout / "CITATION.cff").read_text(encoding="utf-8")
    assert f"## {declared[1]}" in (checkout / "CHANGELOG.md").read_text(encoding="utf-8")


def test_no_hint_takes_normspec_from_an_index(checkout):
    """It is installed from a clone, as the README says: no message and no page names a package that nobody finds."""
    rooms = ("spec", "reference", "adapters", "studies", "conformance", "testing", "docs", "examples")
    files = [file for room in rooms for kind in ("*.py", "*.md") for file in (checkout / room).rglob(kind)]
    files += [checkout / name for name in ("README.md", "CONTRIBUTING.md", "pyproject.toml")]
    wrong = re.compile(r"normspec\[[a-z]|pip install normspec\b")
    assert [file.name for file in files if wrong.search(file.read_text(encoding="utf-8"))] == []


def test_the_front_door_has_what_it_promises():
    """Every public name can be had, and a wrong one is an AttributeError."""
    assert all(hasattr(normspec, name) for name in normspec.__all__)
    assert set(normspec.__all__) <= set(dir(normspec))
    with pytest.raises(AttributeError, match="nonesuch"):
        _ = normspec.nonesuch  # type: ignore[attr-defined]


@pytest.mark.parametrize("command", [["normspec"], [sys.executable, "-m", "normspec"]])
def test_the_command_works_outside_the_checkout(tmp_path, command):
    """Installed as a script and as a module, and the normative pages come with it."""
    if command == ["normspec"]:
        command = [str(Path(sys.executable).with_name("normspec"))]
    version = subprocess.run([*command, "--version"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert version.stdout == f"normspec {normspec.__version__}\n"
    explained = subprocess.run([*command, "explain", "LN-F3"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert explained.stdout.startswith("LN-F3  MUST")
