"""Scripts without normspec, of functions on JAX's arrays: they fail on the mistake, and pass on the sound twin."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from ..script_files import MISTAKES, Words, wrong_with
from .few import run as few

WORDS = Words(
    "jax",
    "import jax",
    held="jax.lax.stop_gradient(x)",
    mean="x.mean(axes, keepdims=True)",
    sqrt="jax.numpy.sqrt",
    sigmoid="jax.nn.sigmoid",
    softmax="jax.nn.softmax",
)


#: Each is compiled again: the tests marked `campaign` have the others.
SAMPLE = ("layer_norm", "pre_norm")
OPERATORS = [one if one in SAMPLE else pytest.param(one, marks=pytest.mark.campaign) for one in MISTAKES]


@pytest.mark.parametrize("operator", OPERATORS)
def test_a_script_tells_the_mistake_from_the_sound_function(operator: str, tmp_path: Path) -> None:
    """For a wrong value, and for wrong gradients of a layer and of each block."""
    assert wrong_with(WORDS, operator, tmp_path, partial(few, dtype="float32", cases=3)) == ""
