"""Scripts without normspec, of functions on Keras's tensors: they fail on the mistake, and pass on the sound twin."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import keras
import pytest

from ..jax.few import run as few
from ..script_files import MISTAKES, Words, wrong_with

WORDS = Words(
    f"keras[{keras.backend.backend()}]",
    "from keras import ops",
    held="ops.stop_gradient(x)",
    mean="ops.mean(x, axes, keepdims=True)",
    sqrt="ops.sqrt",
    sigmoid="ops.sigmoid",
    softmax="ops.softmax",
)


#: Each is compiled again: the tests marked `campaign` have the others.
SAMPLE = ("layer_norm", "pre_norm")
OPERATORS = [one if one in SAMPLE else pytest.param(one, marks=pytest.mark.campaign) for one in MISTAKES]


@pytest.mark.parametrize("operator", OPERATORS)
def test_a_script_tells_the_mistake_from_the_sound_function(operator: str, tmp_path: Path) -> None:
    """For a wrong value, and for wrong gradients of a layer and of each block."""
    assert wrong_with(WORDS, operator, tmp_path, partial(few, dtype="float32", cases=40)) == ""
