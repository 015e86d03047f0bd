"""docs/studies: each study has a page with its figure, and the page's text follows from the numbers next to it."""

from __future__ import annotations

import importlib.util
import json
from types import ModuleType

import numpy as np
import pytest

from normspec.studies.catalogue import STUDIES
from normspec.studies.study import SEEDS, Fact

from .blocks import CHECKOUT

FOLDER = CHECKOUT / "docs" / "studies"


@pytest.fixture(scope="module")
def figures() -> ModuleType:
    """docs/figures.py, which writes the contents of the pages."""
    found = importlib.util.spec_from_file_location("figures", CHECKOUT / "docs" / "figures.py")
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def numbers_of(name: str) -> dict:
    """The numbers that a page is about."""
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", STUDIES)
def test_a_page_shows_what_the_command_prints_of_its_numbers(name, figures):
    """The numbers give the block on the page; the figure exists, and is small."""
    page = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
    assert f"```text\n{figures.printed(numbers_of(name))}```\n" in page
    assert f"]({name}.svg)" in page
    assert (FOLDER / f"{name}.svg").stat().st_size < 100_000


@pytest.mark.parametrize("name", STUDIES)
def test_the_verdict_of_a_page_follows_from_its_numbers(name):
    """The study's rule of today, on the facts of the page, gives the verdict, the conditions and the reason there."""
    study, numbers = STUDIES[name], numbers_of(name)
    assert (numbers["claim"], numbers["rule"], numbers["measured"]) == (study.claim, study.rule, study.measured)
    assert (len(numbers["seeds"]), numbers["quick"], numbers["target"]) == (SEEDS, False, "numpy")
    facts = [
        Fact(one["name"], [np.nan if value is None else value for value in one["values"]], one["expected"])
        for one in numbers["facts"]
    ]
    judged = study.judge({fact.name: fact for fact in facts})
    shown = (numbers["verdict"], numbers["conditions"], numbers["because"])
    assert (judged.verdict.value, judged.conditions, judged.because) == shown


def test_the_index_lists_each_study_with_its_claim_and_verdict():
    """In the order in which `normspec study` lists them."""
    index = (FOLDER / "README.md").read_text(encoding="utf-8")
    rows = [f"| [{name}]({name}.md) | {one.claim} | {numbers_of(name)['verdict']} |" for name, one in STUDIES.items()]
    assert "\n".join(rows) in index


@pytest.mark.campaign
@pytest.mark.parametrize("name", STUDIES)
def test_the_numbers_of_a_page_are_those_of_the_study(name, figures):
    """Run again in full, each fact has the median that the page shows."""
    facts = figures.outcome_of(STUDIES[name]).findings.facts
    shown = {one["name"]: one["median"] for one in numbers_of(name)["facts"]}
    assert {fact.name: f"{fact.median:.3g}" for fact in facts} == {k: f"{v:.3g}" for k, v in shown.items()}
