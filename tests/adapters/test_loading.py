"""Files and modules that misbehave when they are imported."""

from __future__ import annotations

import sys

import pytest

from normspec.adapters import frameworks
from normspec.adapters.targets import resolve
from normspec.spec.errors import FrameworkMissing, NoSuchName, NotImportable

GOOD = """
import numpy as np

def layer_norm(x, gamma, beta, *, eps, axes):
    return x
"""


@pytest.fixture(autouse=True)
def _same_import_path():
    """Leave the import path as it was found."""
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if name.startswith("normspec_target_"):
            del sys.modules[name]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("def layer_norm(:", "layers.py, line 1: SyntaxError: "),
        ("x = 1\n  y = 2", "layers.py, line 2: SyntaxError: unexpected indent"),
        ("1/0", "raises when it is imported: ZeroDivisionError: division by zero"),
        ("raise ValueError('one\\ntwo')", r"raises when it is imported: ValueError: one, at .*layers\.py:1$"),
        ("import sys; sys.exit(0)", r"exits when it is imported \(SystemExit: 0\): guard that with if __name__"),
        ("raise SystemExit", r"exits when it is imported \(SystemExit\)"),
        ("raise KeyboardInterrupt", "was interrupted while it was imported"),
        ("class E(BaseException): pass\nraise E('own')", "raises when it is imported: E: own"),
        (
            "class E(Exception):\n  def __str__(s): raise E()\nraise E",
            r"raises when it is imported: E, at .*layers\.py:3$",
        ),
        ("import no_such_module_at_all", "does not import: ModuleNotFoundError: No module named"),
        ("from numpy import no_such_name", "does not import: ImportError: cannot import name 'no_such_name'"),
        ("from . import helper", "no known parent package; name it package.module:NAME"),
        ("open('/no/such/file')", "does not import: FileNotFoundError"),
        ("raise MemoryError", "ran out of memory while it was imported: --memory-limit is how much it may have"),
        ("def f(): return f()\nf()", "raises when it is imported: RecursionError"),
    ],
)
def test_file_that_does_not_import(write, source, message):
    """Any exception of a file becomes one line that names the file and the error."""
    path = write(source)
    before = set(sys.modules)
    with pytest.raises(NotImportable, match=message) as caught:
        resolve(f"{path}:layer_norm")
    assert "\n" not in str(caught.value)
    assert not any(name.startswith("normspec_target_") for name in set(sys.modules) - before)


def test_file_that_is_no_text(tmp_path):
    """A file of bytes that are no source is refused."""
    path = tmp_path / "layers.py"
    path.write_bytes(b"\x00\xff\xfe")
    with pytest.raises(NotImportable, match=r"layers\.py"):
        resolve(f"{path}:layer_norm")


def test_file_that_does_not_exist(tmp_path):
    """A path that leads nowhere, or to a directory, is refused."""
    with pytest.raises(NotImportable, match="does not exist"):
        resolve(f"{tmp_path / 'absent.py'}:layer_norm")
    with pytest.raises(NotImportable, match="is not a file"):
        resolve(f"{tmp_path}:layer_norm")


def test_file_that_is_not_python(tmp_path):
    """A file of another kind is refused."""
    path = tmp_path / "layers.txt"
    path.write_text(GOOD)
    with pytest.raises(NotImportable, match="its name should end in"):
        resolve(f"{path}:layer_norm")


def test_file_that_lacks_the_name(write):
    """The error for an absent name lists the functions that the file has."""
    path = write(GOOD)
    with pytest.raises(NoSuchName, match="has no 'layernorm'; did you mean 'layer_norm'"):
        resolve(f"{path}:layernorm", op="layer_norm")
    path = write("import numpy", "empty.py")
    with pytest.raises(NoSuchName, match="it defines no function and no layer"):
        resolve(f"{path}:layer_norm")


def test_a_folder_in_place_of_a_file(tmp_path, monkeypatch):
    """Python takes it for a package without anything in it."""
    (tmp_path / "a_folder").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(NoSuchName, match=r"a folder without __init__\.py: name a file in it, a_folder/FILE\.py:f"):
        resolve("a_folder:f", op="layer_norm")


def test_file_that_needs_a_missing_framework(write, monkeypatch):
    """Importing a framework that is not installed is reported with the extra to install."""
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setattr(frameworks, "_is_installed", lambda name: name == "numpy")
    path = write("import torch")
    with pytest.raises(FrameworkMissing, match=r"imports torch, which is not installed.*\.\[torch\]"):
        resolve(f"{path}:layer_norm")


@pytest.mark.parametrize(
    ("package", "extras"),
    [("torch", "torch"), ("keras", "keras,tensorflow"), ("flax", "flax"), ("transformers", "transformers")],
)
def test_a_layer_of_a_missing_package(write, monkeypatch, package, extras):
    """The command that installs it is named for a layer of the package itself, and for a file that imports it."""
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setattr(frameworks, "_is_installed", lambda name: name == "numpy")
    monkeypatch.delenv("KERAS_BACKEND", raising=False)
    with pytest.raises(FrameworkMissing, match=rf"^{package} is not installed: .*'\.\[{extras}\]'"):
        resolve(f"{package}:LayerNorm")
    path = write(f"import {package}")
    with pytest.raises(FrameworkMissing, match=rf"imports {package}, which is not installed: .*'\.\[{extras}\]'"):
        resolve(f"{path}:layer_norm")


def test_siblings_import(write):
    """A file can import modules next to it, at its top and inside its functions."""
    write("SHIFT = 1.0", "shift_one.py")
    write("SCALE = 2.0", "scale_two.py")
    path = write(
        """
        import numpy
        from shift_one import SHIFT

        def layer_norm(x, gamma, beta, *, eps, axes):
            from scale_two import SCALE
            return x * SCALE + SHIFT
        """
    )
    assert resolve(f"{path}:layer_norm").bindings[0].call(3.0, None, None, eps=0.0, axes=()) == 7.0
    assert sys.path[0] != str(path)


def test_siblings_of_one_name_do_not_meet(write):
    """Two files may each have a helper of the same name."""
    paths = []
    for folder, value in (("one", 1), ("two", 2), ("three", 3)):
        write(f"VALUE = {value}", f"{folder}/common_helper.py")
        write("", f"{folder}/common_package/__init__.py")
        write(f"VALUE = {value}", f"{folder}/common_package/inner.py")
        paths.append(
            write(
                """
                import numpy
                import common_helper
                from common_package import inner
                def layer_norm(x, gamma, beta, *, eps, axes):
                    return common_helper.VALUE * 10 + inner.VALUE
                """,
                f"{folder}/layers.py",
            )
        )
    calls = [resolve(f"{path}:layer_norm").bindings[0].call for path in paths + paths[:1]]
    assert [call(None, None, None, eps=0, axes=()) for call in calls] == [11, 22, 33, 11]


def test_an_edit_is_seen_at_once(write):
    """A file is compiled again each time: an edit within the same second counts."""
    source = "import numpy\ndef layer_norm(x, gamma, beta, *, eps, axes):\n    return {}\n"
    for value in (1, 2, 3):
        path = write(source.format(value))
        assert resolve(f"{path}:layer_norm").bindings[0].call(None, None, None, eps=0, axes=()) == value


def test_file_has_a_module_of_its_own(write):
    """The file is executed under its own module name, not as __main__."""
    path = write(GOOD + "\nNAME = __name__\nassert NAME != '__main__'\n")
    first, second = (resolve(f"{path}:layer_norm").bindings[0].call for _ in range(2))
    assert first.__module__ != second.__module__
    assert sys.modules[first.__module__].__dict__ is first.__globals__


def test_module_by_its_dotted_name(write, tmp_path, monkeypatch):
    """A module is found from the working directory, relative imports included."""
    write("", "normspec_probe/__init__.py")
    write("SHIFT = 5", "normspec_probe/shift.py")
    write(
        "import numpy\nfrom .shift import SHIFT\ndef layer_norm(x, gamma, beta, *, eps, axes): return SHIFT",
        "normspec_probe/layers.py",
    )
    monkeypatch.chdir(tmp_path)
    target = resolve("normspec_probe.layers:layer_norm")
    assert target.bindings[0].call(None, None, None, eps=0, axes=()) == 5
    assert target.name == "normspec_probe.layers:layer_norm"
    for name in [name for name in sys.modules if name.startswith("normspec_probe")]:
        monkeypatch.delitem(sys.modules, name)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("no_such_package.layers:layer_norm", "no module named 'no_such_package'"),
        ("normspec.no_such_module:layer_norm", "no module named 'normspec.no_such_module'"),
        ("not-a-name:layer_norm", "neither a file nor a module's dotted name"),
        (".layers:layer_norm", "neither a file nor a module's dotted name"),
    ],
)
def test_module_that_is_not_there(target, message):
    """A module that does not exist, or a name that none can have, is refused."""
    with pytest.raises(NotImportable, match=message):
        resolve(target)
