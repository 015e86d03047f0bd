"""Each study on the built-in target, in its quick form, and the command that runs it."""

from __future__ import annotations

import json
import sys

import pytest

from normspec.conformance.command_line.root import main
from normspec.studies.catalogue import STUDIES
from normspec.studies.study import SEEDS, Scale
from normspec.studies.written import written

from .quick import outcome

pytestmark = pytest.mark.exhaustive  # NumPy's results do not depend on the Python version


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_writes_its_numbers_and_its_figure(name, tmp_path):
    """The JSON has every fact, for each of 20 seeds where it was drawn; the figure is there in both forms."""
    pytest.importorskip("matplotlib")
    files = written(outcome(name), tmp_path)
    assert [file.name for file in files] == [f"{name}.json", f"{name}.svg", f"{name}.png"]
    numbers = json.loads(files[0].read_text(encoding="utf-8"))
    assert len(numbers["seeds"]) == SEEDS
    assert numbers["facts"]
    assert all(len(fact["values"]) in (1, SEEDS) for fact in numbers["facts"])
    assert files[1].read_bytes().startswith(b"<?xml")
    assert files[2].read_bytes().startswith(b"\x89PNG")


def test_the_command_prints_the_verdict_and_says_what_it_wrote(tmp_path, capsys):
    """The terminal shows the verdict of the JSON."""
    pytest.importorskip("matplotlib")
    assert main(["study", "depth-dynamics", "--quick", "--out", str(tmp_path)]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    numbers = json.loads((tmp_path / "depth-dynamics.json").read_text(encoding="utf-8"))
    assert f"verdict {numbers['verdict']} because {numbers['because']}" in printed
    assert "Leave out --quick for the verdict on the claim." in printed
    assert "depth-dynamics.png" in printed


def test_without_matplotlib_there_are_numbers_and_a_word(tmp_path, capsys, monkeypatch):
    """The table and the JSON need nothing more; what draws the figure is named."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["study", "depth-dynamics", "--quick", "--out", str(tmp_path)]) == 0
    assert "in a clone of normspec, python -m pip install '.[plot]'" in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["depth-dynamics.json"]


def test_the_studies_are_listed_with_their_claims(capsys):
    """Without a name the command says what there is."""
    assert main(["study"]) == 0
    listed = " ".join(capsys.readouterr().out.split())
    for study in STUDIES.values():
        assert f"{study.name} {study.claim}" in listed


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["gradient-flux"], "no study is called 'gradient-flux'; did you mean 'gradient-flow'?"),
        (["gradient-flow", "--target", "nothing"], "unknown target 'nothing'"),
        (
            ["gradient-flow", "--target", "exec:./worker"],
            "is a command, and what calls it here needs a target in Python",
        ),
        (["--seed", "-1"], "'-1' is not a whole number from 0 on"),
    ],
)
def test_bad_input_is_one_error(arguments, complaint, capsys):
    """One line that says what to do, and exit status 2."""
    assert main(["study", *arguments]) == 2
    error = capsys.readouterr().err
    assert complaint in error
    assert error.count("\n") == 1


def test_any_whole_number_is_a_seed():
    """As in `normspec check`; seeds that follow each other draw other numbers, past 64 bits too."""
    drawn = Scale(seed=2**64 - 1, seeds=2).normal("x", 3)
    assert drawn.shape == (2, 3) and (drawn[0] != drawn[1]).all()


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("def residual(x, branch, *, shortcut=None, activation=None):\n    raise ValueError('no')", "ValueError: no"),
        ("def residual(x, branch, *, shortcut=None, activation=None):\n    return x + branch(x)", "has no gradients"),
        ("def residual(x, branch, *, shortcut=None, activation=None):\n    return None", "residual"),
    ],
)
def test_a_target_that_cannot_be_called_is_one_error(source, complaint, tmp_path, capsys):
    """The message says what it raised, lacks or returned, and where to learn more."""
    (tmp_path / "mine.py").write_text(f"import numpy\n\n{source}\n", encoding="utf-8")
    assert main(["study", "depth-dynamics", "--quick", "--target", f"{tmp_path / 'mine.py'}:residual"]) == 2
    error = capsys.readouterr().err
    assert complaint in error
    assert "`normspec check` says more" in error
    assert error.count("\n") == 1


def test_a_file_in_place_of_the_folder_is_one_error(tmp_path, capsys):
    """The message says what cannot be written, and where."""
    (tmp_path / "taken").write_text("")
    assert main(["study", "depth-dynamics", "--quick", "--out", str(tmp_path / "taken")]) == 2
    assert "cannot be written" in capsys.readouterr().err
