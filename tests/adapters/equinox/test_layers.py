"""The layers of equinox, called canonically."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from normspec.adapters.equinox import target

from ..jax.wiring import absences, check_absent, check_defaults, check_derivatives, check_narrow, modes, name_of

TARGET = target()
MODES = list(modes(TARGET))
TRAINED = [binding for binding, training in MODES if training]
in_every_mode = pytest.mark.parametrize(("binding", "training"), MODES, ids=name_of)


@in_every_mode
def test_values_and_derivatives(binding, training):
    """Forward, gradients, tangent and second order are wired to the inputs that they belong to."""
    check_derivatives(TARGET, binding, training)


@in_every_mode
def test_narrow_data(binding, training):
    """In bfloat16 each result is bfloat16."""
    check_narrow(TARGET, binding, training, ml_dtypes.bfloat16)


@pytest.mark.parametrize("binding", [b for b in TRAINED if b.operator != "batch_norm"], ids=name_of)
def test_float32_parameters(binding):
    """With float32 parameters each result has the dtype of its argument, except for BatchNorm's."""
    check_narrow(TARGET, binding, True, np.float32)


@pytest.mark.parametrize(("binding", "absent"), absences(TRAINED), ids=name_of)
def test_absent_parameters(binding, absent):
    """Without gamma, beta or both, y and the gradients of the rest are right."""
    check_absent(TARGET, binding, absent)


@pytest.mark.parametrize("binding", TRAINED, ids=name_of)
def test_defaults(binding):
    """Equinox's own eps is 1e-5; the momentum of BatchNorm keeps 0.99 of the old statistic."""
    check_defaults(TARGET, binding, 1e-5, 0.01 if binding.record.has_modes else None)
