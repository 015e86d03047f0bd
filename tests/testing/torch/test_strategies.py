"""Hypothesis strategies for a function on torch tensors."""

from __future__ import annotations

import pytest
import torch

import normspec

hypothesis = pytest.importorskip("hypothesis")


@hypothesis.settings(max_examples=20, deadline=None, database=None, derandomize=True)
@hypothesis.given(case=normspec.strategies.cases("layer_norm", dtypes=["float32"]))
def test_the_inputs_of_a_case_become_tensors_as_the_page_says(case):
    """docs/pytest.md has the line that converts them; results need no conversion."""
    inputs = {name: None if one is None else torch.from_numpy(one) for name, one in case.inputs.items()}
    axes = case.settings["axes"]
    shape = inputs["x"].shape[len(inputs["x"].shape) - len(axes) :]
    y = torch.nn.functional.layer_norm(inputs["x"], shape, inputs["gamma"], inputs["beta"], case.settings["eps"])
    case.judge(y)
