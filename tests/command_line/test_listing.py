"""`normspec list`: installed targets are queried, missing ones have their command, broken ones spoil nothing."""

from __future__ import annotations

import io
import json
import sys

import numpy as np
import pytest
from rich.console import Console

from normspec.adapters.frameworks import KNOWN, command_of
from normspec.conformance import inventory as inventories
from normspec.conformance.command_line.root import main
from normspec.conformance.inventory import BROKEN, INSTALLED, MISSING, Entry, inventory
from normspec.conformance.reporting.inventory_table import print_inventory
from normspec.spec.operators import OPERATORS

DTYPES = ("float16", "bfloat16", "float32", "float64")
DEVICES = ("cpu", *(f"cuda:{number}" for number in range(8)))
SOME = ("layer_norm", "batch_norm", "pre_norm", "post_norm")


@pytest.fixture
def only(monkeypatch, tmp_path):
    """A function that makes only these targets installed; no configuration is found."""
    monkeypatch.chdir(tmp_path)

    def only(*names: str) -> None:
        monkeypatch.setattr(inventories, "missing", lambda name: () if name in names else (name,))

    return only


def shown(*entries: Entry, width: int = 80, encoding: str = "utf-8", asked: bool = True) -> str:
    """The table as a pipe of this width and encoding gets it."""
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding, newline="\n")
    console = Console(file=stream, width=width, highlight=False, markup=False, emoji=False)
    print_inventory(entries, console, asked=asked)
    stream.flush()
    return raw.getvalue().decode(encoding)


def row(text: str, name: str) -> str:
    """The line that begins with the name, its blanks made one."""
    return next(" ".join(line.split()) for line in text.splitlines() if line.startswith(name + " "))


def test_a_target_is_asked_what_it_has(only, capsys):
    """Version, operators, dtypes and devices of NumPy come from its worker; the rest has a command."""
    only("numpy")
    assert main(["list"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert row(out, "numpy") == f"numpy {np.__version__} all 10 float32 float64 cpu"
    assert row(out, "torch") == "torch python -m pip install '.[torch]'"
    assert "Not installed: in a clone of normspec\n" in out
    assert "'numpy<1.24' mxnet" in out


def test_nothing_is_imported_where_that_is_wished(only, monkeypatch, capsys):
    """`--no-import` starts no worker and prints only versions."""
    only("numpy")
    monkeypatch.setattr(inventories, "start_host", None)
    assert main(["list", "--no-import", "--python", "mxnet=venv"]) == 0
    out = capsys.readouterr().out
    assert row(out, "numpy") == f"numpy {np.__version__}"
    assert row(out, "mxnet") == "mxnet not asked"


def test_a_target_that_does_not_import_spoils_nothing(only, monkeypatch, tmp_path, capsys):
    """One that raises, one that ends its process and one without an interpreter: a line each, and NumPy is listed."""
    only("numpy", "jax", "mxnet")
    (tmp_path / "mxnet.py").write_text("import os\nos.abort()\n", encoding="utf-8")
    (tmp_path / "jax").mkdir()
    text = "raise ImportError('libnone.so is\\nnot here')\n"
    (tmp_path / "jax" / "__init__.py").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("jax", "mxnet"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert main(["list", "--python", "flax=nowhere/python"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert f"numpy {np.__version__} all 10" in out
    assert "mxnet mxnet ended its process by SIGABRT" in out
    assert "jax jax is installed and does not import (ImportError: libnone.so is)" in out
    assert "flax nowhere/python is not a Python interpreter" in out


def test_one_interpreter_for_all_must_be_there(only, capsys):
    """A mistyped path is one mistake, not one of each target."""
    only("numpy")
    assert main(["list", "--python", "nowhere"]) == 2
    out, err = capsys.readouterr()
    assert err.startswith("normspec: nowhere is not a Python interpreter") and out == ""


def test_json_holds_every_target(only, capsys, tmp_path):
    """The JSON goes to a file, or to standard output; then the table is on standard error."""
    only("numpy")
    assert main(["list", "--json", "-"]) == 0
    out, err = capsys.readouterr()
    assert "numpy" in err
    document = json.loads(out)
    assert [target["name"] for target in document["targets"]] == list(KNOWN)
    numpy = document["targets"][0]
    assert numpy["status"] == "installed"
    assert numpy["operators"] == document["operators"] == list(OPERATORS)
    assert (numpy["dtypes"], numpy["devices"]) == (["float32", "float64"], ["cpu"])
    assert {target["status"] for target in document["targets"][1:]} == {"missing"}
    assert all(target["install"] for target in document["targets"][1:])
    file = tmp_path / "list.json"
    assert main(["list", "--no-import", "--json", str(file)]) == 0
    assert "numpy" in capsys.readouterr().out
    assert json.loads(file.read_text(encoding="utf-8"))["targets"][0]["version"] == np.__version__


def test_configured_interpreters_are_honoured(only, tmp_path, capsys):
    """A target with its own interpreter is queried there; NumPy serves as one here."""
    only()
    (tmp_path / "pyproject.toml").write_text(
        f"[tool.normspec.interpreters]\nnumpy = {sys.executable!r}\n", encoding="utf-8"
    )
    assert main(["list"]) == 0
    out = capsys.readouterr().out
    assert row(out, "numpy").startswith(f"numpy {np.__version__} all 10")
    assert f"is run by {sys.executable}" in out


def test_progress_names_what_is_awaited(only):
    """A listener hears of each target."""
    only("numpy")
    heard = []
    inventory(progress=heard.append)
    assert [(event.done, event.total, event.text) for event in heard] == [(0, 1, "importing numpy")]


@pytest.mark.parametrize("width", [70, 80, 120])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_the_table_fits_its_width(width, encoding):
    """No line is wider than the console but a command, which is to be copied whole; none ends in blanks."""
    text = shown(
        Entry("numpy", INSTALLED, "2.4.6", OPERATORS, DTYPES[2:], ("cpu",)),
        Entry("torch", INSTALLED, "2.13.0+cu130", OPERATORS, DTYPES, DEVICES),
        Entry("flax", INSTALLED, "0.12.8", SOME, DTYPES, ("cpu", "gpu:0")),
        Entry("mxnet", INSTALLED, "1.9.1", OPERATORS, ("float16", "float32", "float64"), ("cpu",), "venvs/mxnet"),
        Entry("tensorflow", BROKEN, reason="a long reason " * 12),
        Entry("keras[tensorflow]", MISSING, install=command_of("keras[tensorflow]")),
        width=width,
        encoding=encoding,
    )
    lines = text.splitlines()
    assert all(len(line) <= width or "pip install" in line for line in lines)
    assert all(line == line.rstrip() for line in lines)
    assert all(operator in text for operator in SOME)
    if width >= 80:
        assert row(text, "torch") == "torch 2.13.0+cu130 all 10 all 4 cpu cuda:0-7"
        assert row(text, "mxnet") == "mxnet 1.9.1 all 10 all but bfloat16 cpu"


def test_text_of_a_target_is_not_markup():
    """Square brackets in a reason are printed as they are."""
    assert "[bold]no[/bold]" in shown(Entry("jax", BROKEN, reason="[bold]no[/bold]"))
