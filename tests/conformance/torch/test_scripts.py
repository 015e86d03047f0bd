"""Scripts without normspec, of functions on PyTorch's tensors: they fail on the mistake, and pass on the sound twin."""

from __future__ import annotations

from pathlib import Path

import pytest

from normspec.adapters.targets import resolve

from .. import scripts
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


UNTRACKED = """
import torch


def layer_norm(x, gamma, beta, *, eps, axes):
    y = torch.nn.functional.layer_norm(x, x.shape[x.ndim - len(axes) :], gamma, beta, eps)
    return y{factor}
"""


def test_a_mistake_where_nothing_is_tracked_has_a_script(tmp_path: Path) -> None:
    """A function may take another way under `torch.no_grad`, as where a check makes its plain calls."""
    bad, sound = tmp_path / "bad.py", tmp_path / "sound.py"
    bad.write_text(UNTRACKED.format(factor=" * (1 if torch.is_grad_enabled() else 1.5)"))
    sound.write_text(UNTRACKED.format(factor=""))
    target = resolve(f"{bad}:layer_norm", op="layer_norm", framework="torch")
    text = scripts.written(run(target, requirements=["LN-F1"]).failures()[0], bad, "layer_norm", "torch")
    assert "y = untracked(lambda: layer_norm(" in text
    assert str(scripts.run(text)).startswith("AssertionError: y[") and scripts.run(text, str(sound)) is None
