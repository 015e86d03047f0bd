"""Every command of docs/layers.md for NumPy and PyTorch gives the verdict next to it."""

from __future__ import annotations

import pytest

from .layers_page import cases, check, rows

#: Targets with test folders of their own.
_ELSEWHERE = ("keras", "flax", "equinox")


def needs_nothing(name):
    """Whether a target takes NumPy's arrays."""
    return "functions.py" in name


@pytest.mark.parametrize("row", cases(lambda row: needs_nothing(row.name)))
def test_a_function_that_lacks_arguments_gets_its_verdict(row, checkout, tmp_path, monkeypatch):
    """A declaration of one line is enough."""
    check(row, checkout, tmp_path, monkeypatch)


@pytest.mark.torch
@pytest.mark.parametrize(
    "row", cases(lambda row: not needs_nothing(row.name) and not any(word in row.name for word in _ELSEWHERE))
)
def test_a_layer_of_torch_gets_its_verdict(row, checkout, tmp_path, monkeypatch):
    """The layers of PyTorch and transformers, and the user's own layers on PyTorch."""
    if "of_transformers" in row.name or "models.py" in row.name:
        pytest.importorskip("transformers", reason="the file imports models of transformers")
    check(row, checkout, tmp_path, monkeypatch)


def test_thirty_layers_are_on_the_page():
    """The page shows no fewer."""
    assert len(rows()) >= 30
