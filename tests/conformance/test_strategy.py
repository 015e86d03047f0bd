"""Shrinking: it ends on the plainest description, draws small integers alone, and leaves nothing behind."""

from __future__ import annotations

from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies

from normspec.conformance.cases import strategy
from normspec.conformance.cases.deck import deck
from normspec.conformance.cases.description import Description

from .runs import NORMALISATIONS

of_every_operator = pytest.mark.parametrize("operator", NORMALISATIONS)


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
    strategy.smallest(deck("batch_norm", "quick", 0)[0], lambda description: description.n > 2)
    assert len(bounds) > 20
    assert all(-100 < low <= high < 100 for low, high in bounds)


@of_every_operator
def test_the_smallest_description_is_one_plain_group(operator: str) -> None:
    """Shrinking a failure that every description shows ends on one witness group of two numbers."""
    like = next(d for d in deck(operator, "quick", 0) if not d.only)
    found = strategy.smallest(like, lambda description: True)
    assert isinstance(found, Description)
    assert (found.groups, found.n, found.gamma) == ((("witness", 0),), 2, "ones")
