"""Where a user's own target is defined, according to the report."""

from __future__ import annotations

import functools
import textwrap
from pathlib import Path

import numpy as np
import pytest

import normspec
from normspec.adapters.definition import line_of
from normspec.adapters.own_function import from_name

FILE = """\
import functools
from numpy import mean as imported

def decorated(function):
    return function

if True:
    def layer_norm(x, gamma, beta, *, eps, axes):
        raise NotImplementedError

@decorated
@decorated
def twice(x, gamma, beta, *, eps, axes):
    pass

made = functools.partial(twice)
typed: object = made

class Holder:
    def twice(x, gamma, beta, *, eps, axes):
        pass

def twice(x, gamma, beta, *, eps, axes):
    def inner():
        pass
"""


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("layer_norm", 8),
        ("twice", 23),
        ("made", 16),
        ("typed", 17),
        ("Holder.twice", 20),
        ("inner", None),
        ("imported", None),
        ("Holder.none", None),
        ("twice.inner", None),
    ],
)
def test_the_line_is_that_of_the_definition(tmp_path, name, line):
    """For a decorated function the line of its `def`, of several the last; an imported name has none there."""
    file = tmp_path / "some.py"
    file.write_text(FILE, encoding="utf-8")
    assert line_of(str(file), name) == line


@pytest.mark.parametrize("content", [b"def f(:\n", b"\xff\xfe", b"\0"])
def test_a_file_that_cannot_be_read_has_no_line(tmp_path, content):
    """A file that does not parse, or does not exist, is no error here."""
    file = tmp_path / "some.py"
    file.write_bytes(content)
    assert line_of(str(file), "f") is None
    assert line_of(str(tmp_path / "none.py"), "f") is None


def checked(target):
    """The subject of a short check."""
    return normspec.check(target, op="layer_norm", dtypes=["float64"], profile="quick", only="LN-F6").subjects[0]


def test_a_report_names_the_file_as_the_user_does_and_the_line(tmp_path, monkeypatch):
    """Relative to the folder that the command is run in, from a worker and through an import; a framework has none."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kernels").mkdir()
    body = "\n\ndef mine(x, gamma, beta, *, eps, axes):\n    return np.zeros_like(x)\n"
    (tmp_path / "kernels" / "norms.py").write_text(f"import numpy as np{body}", encoding="utf-8")
    (tmp_path / "front.py").write_text(
        textwrap.dedent(
            """
            import numpy as np
            from kernels.norms import mine
            """
        ),
        encoding="utf-8",
    )
    for target in ("kernels/norms.py:mine", f"{tmp_path}/kernels/norms.py:mine", "front.py:mine"):
        subject = checked(target)
        assert (subject["file"].replace("\\", "/"), subject["line"]) == ("kernels/norms.py", 3)
    subject = checked("numpy")
    assert (subject["file"], subject["line"]) == ("", None)


def test_a_copied_file_has_the_users_name_and_what_it_imports_has_its_own(tmp_path, monkeypatch):
    """A cluster's worker reads a copy of FILE.py; a function that FILE.py imports stands in another file."""
    signature = "layer_norm(x, gamma, beta, *, eps, axes): return x"
    (tmp_path / "aside_from_front.py").write_text(f"def other_{signature}\n")
    copy = tmp_path / "copy.py"
    copy.write_text(f"from aside_from_front import other_layer_norm\ndef {signature}\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name, file in (("layer_norm", "front.py"), ("other_layer_norm", "aside_from_front.py")):
        (binding,) = from_name(f"front.py:{name}", ("layer_norm",), "numpy", str(copy)).bindings
        assert binding.where is not None and Path(binding.where.file).name == file


def test_a_callable_is_found_by_its_code():
    """A function within another, and one with arguments filled in, are found where they are written."""

    def mine(x, gamma, beta, *, eps, axes, more=0):
        return np.zeros_like(x)

    line = mine.__code__.co_firstlineno
    for target in (mine, functools.partial(mine, more=1)):
        subject = checked(target)
        assert subject["file"].endswith("test_definition.py")
        assert subject["line"] == line
