"""The layers of flax, called canonically."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from normspec.adapters.flax import target

from ..jax.wiring import absences, check_absent, check_defaults, check_derivatives, check_narrow, modes, name_of

TARGET = target()
#: One of the two algorithms for the variance: they are called in one way.
MODES = [(binding, training) for binding, training in modes(TARGET) if not binding.name.endswith("=False)")]
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


@pytest.mark.parametrize("binding", TRAINED, ids=name_of)
def test_defaults(binding):
    """Flax's own eps is 1e-6, and in BatchNorm 1e-5; BatchNorm's momentum keeps 0.99 of the old statistic."""
    if binding.operator == "batch_norm":
        check_defaults(TARGET, binding, 1e-5, 0.01)
    else:
        check_defaults(TARGET, binding, 1e-6, None)
