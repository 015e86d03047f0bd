"""Generated cases depend on the seed alone: not on the user's modules, and on nothing kept between runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies

from normspec.conformance.cases import strategy
from normspec.conformance.cases.case import Description
from normspec.conformance.cases.deck import deck
from normspec.conformance.cases.strategy import generate

from .runs import NORMALISATIONS

COUNT = 40

of_every_operator = pytest.mark.parametrize("operator", NORMALISATIONS)

#: Prints generated descriptions; the first argument says which module of the user to import before.
PROGRAM = """
import sys
if len(sys.argv) > 1:
    __import__(sys.argv[1])
from normspec.conformance.cases.strategy import generate
for operator in ("layer_norm", "batch_norm"):
    for description in generate(operator, 3, 40):
        print(description.n, description.groups, description.eps, description.gamma, description.beta,
              description.cotangent, sorted(description.tags), description.momentum, description.rank)
"""


def printed(folder: Path, *arguments: str) -> str:
    """What the program prints in a process of its own, started in the folder with it on the path."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], cwd=folder, capture_output=True, text=True, check=True, timeout=120
    )
    return done.stdout


@of_every_operator
def test_the_same_seed_gives_the_same_descriptions(operator: str) -> None:
    """Generating twice from one seed gives equal descriptions, in the same order."""
    assert generate(operator, 5, COUNT) == generate(operator, 5, COUNT)


@of_every_operator
def test_another_seed_gives_other_descriptions(operator: str) -> None:
    """Two seeds share few descriptions even when the seed inside them is set aside."""

    def told(seed: int) -> set[tuple]:
        return {(d.n, d.groups, d.eps, d.gamma, d.beta) for d in generate(operator, seed, COUNT)}

    assert len(told(5) & told(6)) < COUNT // 4


@of_every_operator
def test_a_longer_run_is_about_as_many_cases_as_it_says(operator: str) -> None:
    """Generation gives at least three in four of the cases asked for, and never more."""
    assert COUNT * 3 // 4 <= len(generate(operator, 5, COUNT)) <= COUNT
    assert generate(operator, 5, 0) == []


def test_cases_do_not_depend_on_the_modules_of_the_user(tmp_path: Path) -> None:
    """A module full of constants, which Hypothesis harvests, changes no generated description."""
    constants = ", ".join(str(n * n + 7) for n in range(400))
    text = f"NUMBERS = [{constants}]\nFLOATS = [1.2345, 6.789e10, 2.5e-7]\nWORD = 'normal'\n"
    (tmp_path / "constants_of_the_user.py").write_text(text, encoding="utf-8")
    plain = printed(tmp_path)
    assert plain.count("\n") > COUNT
    assert printed(tmp_path, "constants_of_the_user") == plain


def test_generating_leaves_no_file_behind(tmp_path: Path) -> None:
    """Nothing is kept where Hypothesis keeps its examples, nor anything else in the user's folder."""
    (tmp_path / "module_of_the_user.py").write_text("NUMBERS = [12345, 67890]\n", encoding="utf-8")
    printed(tmp_path, "module_of_the_user")
    left = {path.relative_to(tmp_path).parts[0] for path in tmp_path.rglob("*") if path.is_file()}
    assert left - {"__pycache__"} == {"module_of_the_user.py"}


def test_shrinking_keeps_no_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure that was made smaller is not kept for the next run."""
    monkeypatch.setattr(hypothesis.configuration, "storage_directory", lambda *parts, **_: tmp_path.joinpath(*parts))
    assert strategy.smallest(deck("layer_norm", "quick", 0)[0], lambda description: description.n > 2) is not None
    assert list(tmp_path.rglob("examples")) == []


def test_every_drawn_integer_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every integer is drawn between bounds within -100 and 100: constants that Hypothesis harvests are larger."""
    bounds = []

    def noted(low: int, high: int) -> strategies.SearchStrategy[int]:
        bounds.append((low, high))
        return strategies.integers(low, high)

    class Noting:
        """The strategies module, with integers() noted and everything else as it is."""

        integers = staticmethod(noted)

        def __getattr__(self, name: str) -> object:
            if name in ("floats", "text", "binary", "data", "random_module", "decimals", "fractions"):
                raise AssertionError(f"{name}() draws from constants of any size")
            return getattr(strategies, name)

    monkeypatch.setattr(strategy, "st", Noting())
    for operator in NORMALISATIONS:
        generate(operator, 2, 20)
    strategy.smallest(deck("batch_norm", "quick", 0)[0], lambda description: description.n > 2)
    assert len(bounds) > 100
    assert all(-100 < low <= high < 100 for low, high in bounds)


@of_every_operator
def test_the_smallest_description_is_one_plain_group(operator: str) -> None:
    """Shrinking a failure that every description shows ends on one witness group of two numbers."""
    like = next(d for d in deck(operator, "quick", 0) if "value" in d.tags)
    found = strategy.smallest(like, lambda description: True)
    assert isinstance(found, Description)
    assert (found.groups, found.n, found.gamma) == ((("witness", 0),), 2, "ones")
