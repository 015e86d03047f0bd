"""PyTorch's differences by design: an experiment shows each declared convention."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from normspec.adapters.targets import resolve
from normspec.spec.errors import TargetRaised

TARGET = resolve("torch")
LAYER_NORM = [b for b in TARGET.bindings if b.operator == "layer_norm"]
BATCH_NORM = [b for b in TARGET.bindings if b.operator == "batch_norm"]
TRAINING = {"eps": 0.01, "momentum": 0.25, "training": True, "channel_axis": 1}


def _names(bindings):
    return [binding.name for binding in bindings]


def _batch(binding, x, dtype: Any = np.float64, c=2, parameters: Any = None):
    rank = {"torch.nn.BatchNorm2d": 4, "torch.nn.BatchNorm3d": 5}.get(binding.name, 2)
    x = np.asarray(x, dtype).reshape(-1, c, *(1,) * (rank - 2))
    parameters = parameters or dtype
    ones, zeros = np.ones(c, parameters), np.zeros(c, parameters)
    return {"x": x, "gamma": ones, "beta": zeros, "running_mean": zeros, "running_var": ones}


@pytest.mark.parametrize("binding", TARGET.bindings, ids=_names(TARGET.bindings))
def test_every_convention_has_a_reason_and_a_source(binding):
    """Each declared convention says why, with a link to where PyTorch says or does it."""
    declared = [binding.conventions, *binding.conventions_on.values()]
    assert set(binding.reasons) == {key for conventions in declared for key in conventions}
    assert all("https://" in reason for reason in binding.reasons.values())
    assert all(one.links and all("https://" in link for link in one.links) for one in binding.known_violations)


@pytest.mark.parametrize("binding", BATCH_NORM, ids=_names(BATCH_NORM))
def test_running_variance_is_bessels(binding):
    """The batch is normalised by the biased variance, and the unbiased one enters the running variance."""
    assert binding.conventions["running_variance"] == "bessel"
    x = np.array([[-1.0, -3.0], [1.0, 3.0]])
    outputs = TARGET.session(binding).start(_batch(binding, x), TRAINING).outputs()
    np.testing.assert_allclose(outputs["new_running_var"], 0.75 + 0.25 * np.array([2.0, 18.0]))
    np.testing.assert_allclose(outputs["y"].reshape(2, 2), x / np.sqrt(np.array([1.0, 9.0]) + 0.01))


@pytest.mark.parametrize("binding", BATCH_NORM, ids=_names(BATCH_NORM))
def test_momentum_weighs_the_new_statistic(binding):
    """Momentum is normative: it weighs the batch's mean."""
    assert "momentum" not in binding.conventions
    outputs = TARGET.session(binding).start(_batch(binding, [[4.0, 8.0], [4.0, 8.0]]), TRAINING).outputs()
    np.testing.assert_allclose(outputs["new_running_mean"], [1.0, 2.0])


@pytest.mark.parametrize("binding", BATCH_NORM, ids=_names(BATCH_NORM))
def test_one_value_per_channel_is_an_error(binding):
    """Training on one value per channel raises ValueError; inference does not."""
    assert binding.conventions["single_value"] == "error"
    session = TARGET.session(binding)
    with pytest.raises(TargetRaised, match="ValueError: Expected more than 1 value per channel"):
        session.start(_batch(binding, [[1.0, 2.0]]), TRAINING)
    assert session.start(_batch(binding, [[1.0, 2.0]]), {**TRAINING, "training": False}).outputs()


@pytest.mark.parametrize("binding", BATCH_NORM, ids=_names(BATCH_NORM))
def test_eps_zero_is_refused_in_training(binding):
    """PyTorch raises for eps = 0 in training, and the binding says so beforehand; inference accepts it."""
    inputs = _batch(binding, [[1.0, 2.0], [3.0, 5.0]])
    for training in (True, False):
        settings = {**TRAINING, "eps": 0.0, "training": training}
        reason = binding.accepts(inputs["x"].shape, settings)
        assert (reason is not None) is training
        if training:
            with pytest.raises(TargetRaised, match="eps must be positive"):
                TARGET.session(binding).start(inputs, settings)
        else:
            assert np.isfinite(TARGET.session(binding).start(inputs, settings).outputs()["y"]).all()


@pytest.mark.parametrize("binding", BATCH_NORM, ids=_names(BATCH_NORM))
def test_an_empty_batch_leaves_the_statistics(binding):
    """Training on an empty batch gives an empty y, the statistics as given and gradients of zero."""
    inputs = _batch(binding, np.zeros((0, 2)))
    inputs["running_mean"] = np.array([1.0, 2.0])
    evaluation = TARGET.session(binding).start(inputs, TRAINING)
    outputs = evaluation.outputs()
    assert outputs["y"].shape == inputs["x"].shape
    assert (outputs["new_running_mean"] == inputs["running_mean"]).all()
    assert (outputs["new_running_var"] == 1).all()
    gradients = evaluation.pull(inputs["x"]).gradients()
    assert not gradients["gamma"].any()
    assert not gradients["beta"].any()


@pytest.mark.parametrize("binding", LAYER_NORM, ids=_names(LAYER_NORM))
@pytest.mark.parametrize("parameters", [ml_dtypes.bfloat16, np.float32])
def test_layer_norm_sums_16_bit_gradients_in_16_bits(binding, parameters):
    """A sum of ones over rows stops growing at 256, where bfloat16 has no odd numbers, float32 parameters or not."""
    assert binding.conventions["storage"] == "H2"
    x = np.random.Generator(np.random.Philox(8)).normal(size=(1000, 4)).astype(ml_dtypes.bfloat16)
    inputs = {"x": x, "gamma": np.ones(4, parameters), "beta": np.zeros(4, parameters)}
    evaluation = TARGET.session(binding).start(inputs, {"eps": 0.01, "axes": (-1,)})
    assert (evaluation.pull(np.ones_like(x)).gradients()["beta"] == 256).all()


@pytest.mark.parametrize("binding", BATCH_NORM, ids=_names(BATCH_NORM))
def test_batch_norm_sums_in_float32(binding):
    """BatchNorm's sums are rounded once at the end: 1001 ones are 1001 with float32 parameters, 1000 in bfloat16."""
    for parameters, expected in ((np.float32, 1001), (ml_dtypes.bfloat16, 1000)):
        inputs = _batch(binding, np.arange(2002), ml_dtypes.bfloat16, parameters=parameters)
        evaluation = TARGET.session(binding).start(inputs, TRAINING)
        assert (evaluation.pull(np.ones_like(inputs["x"])).gradients()["beta"] == expected).all()


@pytest.mark.parametrize("binding", LAYER_NORM + BATCH_NORM, ids=_names(LAYER_NORM + BATCH_NORM))
def test_saved_statistics_are_rounded_to_the_parameters_dtype(binding):
    """A mean that 16 bits cannot hold is lost to the gradient with 16-bit parameters, and kept with float32 ones."""
    assert binding.conventions["storage"] == "H2"
    # In bfloat16, 256 and 258 are neighbours, and their mean 257 lies between them.
    values = np.array([256.0, 258.0])
    errors = {}
    for parameters in (ml_dtypes.bfloat16, np.float32):
        if binding.operator == "layer_norm":
            x = values.reshape(1, 2).astype(ml_dtypes.bfloat16)
            inputs = {"x": x, "gamma": np.ones(2, parameters), "beta": np.zeros(2, parameters)}
            settings = {"eps": 0.01, "axes": (-1,)}
            g = np.array([[1.0, 3.0]])
            exact = np.array([-1.0, 3.0]) / np.sqrt(1.01)
            name = "gamma"
        else:
            inputs = _batch(binding, values, ml_dtypes.bfloat16, c=1, parameters=parameters)
            settings, name = TRAINING, "gamma"
            g = np.array([1.0, 3.0]).reshape(inputs["x"].shape)
            exact = np.array([2.0]) / np.sqrt(1.01)
        gradients = TARGET.session(binding).start(inputs, settings).pull(g.astype(ml_dtypes.bfloat16)).gradients()
        errors[parameters] = np.abs(gradients[name].astype(np.float64) - exact).max()
    assert errors[ml_dtypes.bfloat16] > 0.5
    assert errors[np.float32] < 0.02
