"""The kernel conforms, except where normspec.toml expects a failure: a test for each requirement in each dtype."""

from __future__ import annotations

import pytest
from kernel import layer_norm

import normspec


@normspec.conforms(op="layer_norm")
@pytest.fixture
def kernel():
    """Values, gradients and laws of layer normalisation; a failure says what is wrong, and where."""
    return layer_norm
