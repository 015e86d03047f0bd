"""Scripts without normspec, of functions on PyTorch's tensors: they fail on the mistake, and pass on the sound twin."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..runs import run
from ..script_files import MISTAKES, Words, wrong_with

WORDS = Words(
    "torch",
    "import torch",
    held="x.detach()",
    mean="x.mean(axes, keepdim=True)",
    sqrt="torch.sqrt",
    sigmoid="torch.sigmoid",
    softmax="torch.softmax",
)


@pytest.mark.parametrize("operator", MISTAKES)
def test_a_script_tells_the_mistake_from_the_sound_function(operator: str, tmp_path: Path) -> None:
    """For a wrong value, and for wrong gradients of a layer and of each block."""
    assert wrong_with(WORDS, operator, tmp_path, run) == ""
