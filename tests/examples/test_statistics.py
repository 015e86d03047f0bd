"""The hook of examples/layer_norm_statistics.py reports what was normalised, and changes nothing."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.torch

FILE = Path(__file__).parent.parent.parent / "examples" / "layer_norm_statistics.py"


@pytest.fixture(scope="module")
def example() -> ModuleType:
    """The file as a module."""
    pytest.importorskip("torch")
    found = importlib.util.spec_from_file_location("layer_norm_statistics", FILE)
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_the_report_tells_the_moments_and_the_groups_below_eps(example):
    """For groups (1, 3) and (4, 4): means 2 and 4, variances 1 and 0, and eps outweighs the second variance."""
    import torch

    seen = example.Statistics()
    layer = example.ReportingLayerNorm((2,), hook=seen)
    x = torch.tensor([[1.0, 3.0], [4.0, 4.0]])
    assert seen.report() == "nothing was normalised"
    y = layer(x)
    assert torch.equal(y, example.ReportingLayerNorm((2,))(x))
    told = " ".join(seen.report().split())
    assert told == (
        "calls 1 mean 3 at first, 3 at last variance 0.5 at first, 0.5 at last least variance 0"
        " below eps 50.0% of the groups, whose y eps shrinks"
    )
