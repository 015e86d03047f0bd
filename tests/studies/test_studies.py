"""Each study on the built-in target."""

from __future__ import annotations

import json

import pytest

from normspec.conformance.command_line.root import main
from normspec.studies.catalogue import STUDIES
from normspec.studies.study import SEEDS


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_writes_its_numbers_and_its_figure(name, tmp_path, capsys):
    """The verdict on the terminal is that of the JSON, which has every fact for each of 20 seeds."""
    pytest.importorskip("matplotlib")
    assert main(["study", name, "--quick", "--out", str(tmp_path)]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    numbers = json.loads((tmp_path / f"{name}.json").read_text(encoding="utf-8"))
    assert f"verdict {numbers['verdict']}" in printed
    assert len(numbers["seeds"]) == SEEDS
    assert numbers["facts"]
    assert all(len(fact["values"]) in (1, SEEDS) for fact in numbers["facts"])
    assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / f"{name}.svg").read_text(encoding="utf-8").startswith("<?xml")


def test_the_studies_are_listed_with_their_claims(capsys):
    """Without a name the command says what there is."""
    assert main(["study"]) == 0
    listed = " ".join(capsys.readouterr().out.split())
    for study in STUDIES.values():
        assert f"{study.name} {study.claim}" in listed


def test_an_unknown_study_is_one_error(capsys):
    """One line, with what there is to choose from."""
    assert main(["study", "gradient-flux"]) == 2
    assert "did you mean 'gradient-flow'?" in capsys.readouterr().err
