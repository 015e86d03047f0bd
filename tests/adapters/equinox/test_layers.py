"""The layers of equinox, called canonically."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from normspec.adapters.equinox import target

from ..jax.wiring import check_absent, check_defaults, check_derivatives, check_narrow, modes, name_of

TARGET = target()
MODES = list(modes(TARGET))
in_every_mode = pytest.mark.parametrize(("binding", "training"), MODES, ids=name_of)


@in_every_mode
def test_values_and_derivatives(binding, training):
    """Forward, gradients, tangent and second order are wired to the inputs that they belong to."""
    check_derivatives(TARGET, binding, training)


@in_every_mode
def test_narrow_data(binding, training):
    """In bfloat16 each result is bfloat16."""
    check_narrow(TARGET, binding, training, ml_dtypes.bfloat16)


def test_float32_parameters_of_layer_norm():
    """Beside float32 parameters each result of LayerNorm has the dtype of what it belongs to: not so BatchNorm's."""
    (layer_norm,) = (binding for binding in TARGET.bindings if binding.operator == "layer_norm")
    check_narrow(TARGET, layer_norm, True, np.float32)


@in_every_mode
@pytest.mark.parametrize("absent", [("gamma",), ("beta",), ("gamma", "beta")])
def test_absent_parameters(binding, training, absent):
    """Without gamma, beta or both, y and the gradients of the rest are right."""
    check_absent(TARGET, binding, training, absent)


@pytest.mark.parametrize("binding", [b for b, training in MODES if training], ids=name_of)
def test_defaults(binding):
    """Equinox's own eps is 1e-5; the momentum of BatchNorm keeps 0.99 of the old statistic."""
    check_defaults(TARGET, binding, 1e-5, None if binding.operator == "layer_norm" else 0.01)
