"""Known targets, and helpful errors for unknown ones."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from normspec.adapters import frameworks
from normspec.adapters.targets import TARGETS, check_operators, installed, resolve
from normspec.spec.errors import (
    FrameworkMissing,
    NormspecError,
    NotImportable,
    UnknownFramework,
    UnknownOperator,
    UnknownTarget,
)
from normspec.spec.operators import OPERATORS


def test_numpy_is_always_there():
    """The built-in NumPy target has every operator in the two dtypes that it is written for."""
    target = resolve("numpy")
    assert {binding.operator for binding in target.bindings} == set(OPERATORS)
    assert target.dtypes == ("float32", "float64")
    assert target.framework == "numpy"
    assert "numpy" in installed()


@pytest.mark.parametrize("op", ["batch_norm", ["batch_norm"], ("batch_norm", "batch_norm")])
def test_op_restricts_a_known_target(op):
    """Only the bindings of the operators that are named remain."""
    assert [binding.operator for binding in resolve("numpy", op=op).bindings] == ["batch_norm"]


def test_conventions_of_a_device_count_there():
    """A convention for one kind of device applies there, and overrides the general one."""
    target = resolve("numpy", op="layer_norm")
    (plain,) = target.bindings
    binding = replace(plain, conventions={"affine": "folded"}, conventions_on={"cuda": {"storage": "H1"}})
    target = replace(target, bindings=(binding,))
    assert target.on("cpu") is target
    assert target.on("cuda:1").bindings[0].conventions == {"affine": "folded", "storage": "H1"}


def test_conventions_of_a_device_are_checked():
    """An unknown word is refused when the binding is made, not when the device is used."""
    (plain,) = resolve("numpy", op="layer_norm").bindings
    with pytest.raises(NormspecError, match="H9"):
        replace(plain, conventions_on={"cuda": {"storage": "H9"}})


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("nunpy", "unknown target 'nunpy'; did you mean 'numpy'.*FILE.py:NAME"),
        ("", "unknown target ''"),
        ("torch.nn.LayerNorm", "a colon parts a module from what it has, torch.nn:LayerNorm"),
        ("layers.py", "write layers.py:NAME"),
        ("layers.py:", "write layers.py:NAME"),
        (r"C:\code\layers.py", "is a path as Windows writes it"),
        (Path("layers.py"), "write layers.py:NAME"),
        (42, "of type int is not a target: give a callable"),
        (None, "of type NoneType is not a target"),
    ],
)
def test_unknown_target(target, message):
    """An unknown target is refused with the possible forms."""
    with pytest.raises(UnknownTarget, match=message):
        resolve(target)


def test_a_file_without_its_ending_is_told_as_one(tmp_path, monkeypatch):
    """The name of a file lacks .py: the message has it."""
    (tmp_path / "norms.py").write_text("")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnknownTarget, match=r"unknown target 'norms': a file is named with its ending, norms\.py$"):
        resolve("norms")


def test_a_file_of_another_kind_is_told_as_one(tmp_path, monkeypatch):
    """It is no module that could be installed."""
    (tmp_path / "norms.txt").write_text("")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NotImportable, match=r"^norms\.txt is a file whose name does not end in \.py: rename it$"):
        resolve("norms.txt:layer_norm")


def test_a_folder_is_told_as_one(tmp_path):
    """The message says to name a file in it."""
    with pytest.raises(UnknownTarget, match=r"is a folder: name a file in it, such as .*FILE\.py:NAME$"):
        resolve(str(tmp_path))


@pytest.mark.parametrize(
    ("op", "message"),
    [
        ("layernorm", "did you mean 'layer_norm'"),
        ("xyz", "choose from layer_norm, batch_norm"),
        ("high_way", "did you mean 'highway'"),
        (["layer_norm", "xyz"], "unknown operator 'xyz'"),
        ("layer norm", "did you mean 'layer_norm'"),
        ("LN", "did you mean 'layer_norm'"),
        ([], "no operator is named"),
    ],
)
def test_unknown_operator(op, message):
    """An unknown operator is refused with the choices."""
    with pytest.raises(UnknownOperator, match=message):
        resolve("numpy", op=op)


def test_all_operators_by_default():
    """None stands for all of them."""
    assert check_operators(None) == tuple(OPERATORS)


@pytest.mark.parametrize("target", ["numpy", "layers.py:layer_norm", len])
def test_unknown_framework(target):
    """A framework without a bridge is refused before anything is loaded."""
    with pytest.raises(UnknownFramework, match=r"did you mean 'torch'.*choose from numpy, torch"):
        resolve(target, framework="tocrh")


def test_framework_of_a_known_target_is_its_own():
    """--framework with a known target is refused unless it names the same framework."""
    assert resolve("numpy", framework="numpy").name == "numpy"
    with pytest.raises(UnknownFramework, match="has a framework of its own"):
        resolve("numpy", framework="torch")


@pytest.mark.parametrize(("target", "framework"), [("torch", None), ("layers.py:layer_norm", "torch")])
def test_missing_framework_names_the_extra(monkeypatch, target, framework):
    """A framework that is not installed is reported with the command that installs it."""
    monkeypatch.setattr(frameworks, "_is_installed", lambda name: name == "numpy")
    with pytest.raises(FrameworkMissing, match=r"in a clone of normspec, python -m pip install '\.\[torch\]'"):
        resolve(target, framework=framework)


def test_broken_framework_says_why(monkeypatch):
    """A framework that is installed and does not import is reported with its own error."""

    def broken(name, package):
        raise OSError("libtorch.so: no such file")

    monkeypatch.setattr(frameworks, "_is_installed", lambda name: True)
    monkeypatch.setattr(frameworks.importlib, "import_module", broken)
    with pytest.raises(FrameworkMissing, match=r"does not import \(OSError: libtorch.so"):
        resolve("torch")


def test_no_framework_is_imported_before_it_is_needed():
    """Listing the installed targets, and resolving the NumPy target, imports no other framework."""
    code = (
        "import sys, normspec.adapters.targets as t; t.installed(); t.resolve('numpy');"
        " sys.exit(any(name in sys.modules for name in ('torch', 'jax', 'tensorflow')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_every_framework_is_that_of_a_target():
    """The frameworks for which a function may be written are those that some known target imports."""
    assert {*frameworks.FRAMEWORKS.values()} <= {*TARGETS}
    assert {known.framework for known in frameworks.KNOWN.values()} <= {*frameworks.FRAMEWORKS}
    assert {*TARGETS} == {*frameworks.KNOWN, "keras"}
