"""Keras's layers, given directly: the calls they are built for, and the conventions they follow."""

from __future__ import annotations

import keras
import pytest

from normspec.adapters.targets import resolve


class Doubled(keras.layers.RMSNormalization):
    """A layer derived from one of Keras's, with its own call."""

    def call(self, inputs):
        return super().call(inputs) * 1


@pytest.mark.parametrize("op", [None, "layer_norm"])
@pytest.mark.parametrize("built", [False, True])
def test_an_instance_that_is_not_built_is_checked_in_every_size(built, op):
    """One that is built has its own. It is a layer, whether or not its operator is said."""
    layer = keras.layers.LayerNormalization(epsilon=1e-5)
    if built:
        layer.build((None, 6))
    (binding,) = resolve(layer, op=op).bindings
    assert binding.fixed.eps == 1e-5
    assert binding.fixed.shape == ((6,) if built else ())
    assert layer.built is built


def test_only_a_call_of_keras_may_differ_as_that_does():
    """Base classes do not matter. RMSNormalization has known violations on each backend."""
    assert resolve(keras.layers.RMSNormalization).bindings[0].known_violations
    assert not resolve(Doubled).bindings[0].known_violations


def test_a_class_is_checked_with_every_choice_of_parameters():
    """Its flags for gamma and beta are scale and center."""
    (binding,) = resolve(keras.layers.LayerNormalization).bindings
    assert binding.fixed.given == ()  # any
