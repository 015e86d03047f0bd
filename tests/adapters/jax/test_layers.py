"""The layers of jax, called canonically."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from normspec.adapters.jax import target

from .wiring import absences, check_absent, check_defaults, check_derivatives, check_narrow, modes, name_of

TARGET = target()
MODES = list(modes(TARGET))
TRAINED = [binding for binding, training in MODES if training]
in_every_mode = pytest.mark.parametrize(("binding", "training"), MODES, ids=name_of)


@in_every_mode
def test_values_and_derivatives(binding, training):
    """Forward, gradients, tangent and second order are wired to the inputs that they belong to."""
    check_derivatives(TARGET, binding, training)


@in_every_mode
@pytest.mark.parametrize("parameters", [ml_dtypes.bfloat16, np.float32])
def test_narrow_data(binding, training, parameters):
    """In bfloat16, with float32 parameters too, each result has the dtype of its argument."""
    check_narrow(TARGET, binding, training, parameters)


@pytest.mark.parametrize(("binding", "absent"), absences(TRAINED), ids=name_of)
def test_absent_parameters(binding, absent):
    """Without gamma, beta or both, y and the gradients of the rest are right."""
    check_absent(TARGET, binding, absent)


@pytest.mark.parametrize("binding", [b for b in TARGET.bindings if b.defaults is not None], ids=name_of)
def test_defaults(binding):
    """JAX's own eps is 1e-5."""
    check_defaults(TARGET, binding, 1e-5, None)
