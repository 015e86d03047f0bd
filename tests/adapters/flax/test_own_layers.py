"""Layers of Flax are not taken as they are, and one line says what to give in place of them."""

from __future__ import annotations

import pytest
from flax import nnx

from normspec.adapters.declared import Declared
from normspec.adapters.targets import resolve
from normspec.spec.errors import WrongSignature

LAYER = nnx.LayerNorm(4, rngs=nnx.Rngs(0))


@pytest.mark.parametrize(("layer", "layers"), [(nnx.LayerNorm, False), (LAYER, False), (LAYER, True)])
def test_a_layer_of_flax_is_told_what_to_give(layer, layers):
    """A class, an instance, and an instance as a model."""
    with pytest.raises(WrongSignature, match="is a layer of flax, whose layers are not taken as they are"):
        resolve(layer, declared=Declared(layers=layers))
