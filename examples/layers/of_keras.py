"""Layers of Keras: one of one's own, one that is made and built, and a model with random weights."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops


class ScaledRMSNorm(keras.layers.Layer):
    """RMSNorm over the last axis, in float32 at least."""

    def __init__(self, epsilon=1e-6, **options):
        super().__init__(**options)
        self.epsilon = epsilon

    def build(self, input_shape):
        self.gain = self.add_weight(name="gain", shape=(input_shape[-1],), initializer="ones")

    def call(self, x):
        wide: Any = ops.cast(x, "float64" if self.compute_dtype == "float64" else "float32")
        square: Any = ops.mean(ops.square(wide), axis=-1, keepdims=True)
        y: Any = wide * ops.rsqrt(square + self.epsilon)
        return ops.cast(y * ops.cast(self.gain, wide.dtype), self.compute_dtype)


def built():
    """Return a LayerNormalization that is built for 24 features."""
    layer = keras.layers.LayerNormalization(epsilon=1e-5)
    layer.build((None, 24))
    return layer


def mobilenet():
    """Return a MobileNet with random weights."""
    options: dict[str, Any] = {"weights": None}  # Keras's own annotation is `str`
    return keras.applications.MobileNet(input_shape=(32, 32, 3), alpha=0.25, classes=5, **options)
