"""Scripts without normspec, of TensorFlow's tensors: they fail on the mistake, and pass on the sound twin."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from ..jax.few import run as few
from ..script_files import MISTAKES, Words, wrong_with

WORDS = Words(
    "tensorflow",
    "import tensorflow as tf",
    held="tf.stop_gradient(x)",
    mean="tf.reduce_mean(x, axes, keepdims=True)",
    sqrt="tf.sqrt",
    sigmoid="tf.sigmoid",
    softmax="tf.nn.softmax",
)


@pytest.mark.parametrize("operator", MISTAKES)
def test_a_script_tells_the_mistake_from_the_sound_function(operator: str, tmp_path: Path) -> None:
    """For a wrong value, and for wrong gradients of a layer and of each block."""
    assert wrong_with(WORDS, operator, tmp_path, partial(few, dtype="float32", cases=40)) == ""
