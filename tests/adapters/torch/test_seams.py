"""Layers that bring their own sublayers: the recordings at their seams."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import torch
from torch import nn

from normspec.adapters.seam import RECORDED
from normspec.adapters.targets import resolve
from normspec.adapters.torch import encoder_layer, seams
from normspec.spec.errors import Unsupported
from normspec.spec.operators import COMPOSED
from normspec.spec.parts import Part

from ..seam_formulas import EPS, drawn, judged

TARGET = resolve("torch", op=COMPOSED)
LAYERS = [b for b in TARGET.bindings if b.seams is not None and b.name.startswith("torch.")]
SHAPES = [(2, 5, 6), (3, 2, 7), (1, 1, 1)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
@pytest.mark.parametrize("binding", LAYERS, ids=[b.name for b in LAYERS])
def test_what_is_recorded_obeys_the_formulas(binding, dtype, shape):
    """Around each sublayer are the normalisation and the addition, forward and backward."""
    judged(TARGET, binding, drawn(shape, dtype))


@pytest.mark.parametrize("binding", LAYERS, ids=[b.name for b in LAYERS])
def test_blocks_lie_end_to_end(binding):
    """There are two blocks; the second begins where the first ends, and the first has the gamma and beta given."""
    inputs, g = drawn((2, 5, 6), np.float64)
    first, second = TARGET.session(binding).seams(inputs, {"eps": EPS}, g, seed=1)
    assert set(first) == set(second) == set(RECORDED)
    np.testing.assert_array_equal(first["x"], inputs["x"])
    np.testing.assert_array_equal(first["y"], second["x"])
    np.testing.assert_array_equal(first["g"], second["dx"])
    np.testing.assert_array_equal(second["g"], g)
    for name in ("gamma", "beta"):
        np.testing.assert_array_equal(first[name], inputs[name])
        assert not (second[name] == inputs[name]).any()
        assert not np.isin(second[name], [0.0, 1.0]).any()


@pytest.mark.parametrize("binding", LAYERS, ids=[b.name for b in LAYERS])
def test_the_seed_decides_the_weights(binding):
    """The same seed gives the same recordings, another seed different ones."""
    inputs, g = drawn((2, 5, 6), np.float32)

    def returned(seed):
        return TARGET.session(binding).seams(inputs, {"eps": EPS}, g, seed=seed)[0]["returned"]

    np.testing.assert_array_equal(returned(1), returned(1))
    assert (returned(1) != returned(2)).any()


@pytest.mark.parametrize("norm_first", [False, True])
def test_recording_changes_no_value(norm_first):
    """The output is bit for bit that of the layer without hooks, with the same weights, and no hook stays behind."""
    layer = nn.TransformerEncoderLayer(6, 2, 13, 0.0, layer_norm_eps=EPS, batch_first=True, norm_first=norm_first)
    x, g = torch.randn(2, 5, 6, requires_grad=True), torch.randn(2, 5, 6)
    tensors = dict(layer.train().named_parameters())
    blocks = seams.recorded(layer, encoder_layer._BLOCKS, tensors, x, g, pre=norm_first)
    y = layer(x)
    assert torch.equal(blocks[-1]["y"], y)
    torch.testing.assert_close(blocks[0]["dx"], torch.autograd.grad(y, x, g)[0])
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in layer.modules())


def test_absent_parameters_are_ones_and_zeros():
    """If gamma or beta is None, the first block has ones or zeros, and says so."""
    inputs, g = drawn((2, 5, 6), np.float64)
    for binding in LAYERS:
        first = TARGET.session(binding).seams({**inputs, "gamma": None, "beta": None}, {"eps": EPS}, g)[0]
        assert (first["gamma"] == 1).all()
        assert (first["beta"] == 0).all()


def test_what_is_not_taken():
    """Another rank, an empty batch and features beyond counting are refused with the reason; so is a sublayer."""
    for binding in LAYERS:
        assert binding.accepts((2, 5, 6), {}) is None
        for shape in ((5, 6), (2, 3, 5, 6), (0, 5, 6), (2, 5, 5000), (2, 5000, 6)):
            assert isinstance(binding.accepts(shape, {}), str)
        inputs, _ = drawn((2, 5, 6), np.float64)
        with pytest.raises(Unsupported, match="at its seams"):
            TARGET.session(binding).start(inputs, {"eps": EPS}, parts={"sublayer": Part("identity")})
