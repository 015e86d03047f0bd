"""How rms_norm, group_norm and instance_norm relate to the others, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

from normspec import reference
from normspec.reference.normalisation import normalisation

RNG = np.random.Generator(np.random.Philox(12))
X = RNG.normal(1, 2, (3, 6, 2, 5))
G = RNG.normal(size=X.shape)
GAMMA, BETA = RNG.normal(size=6), RNG.normal(size=6)
SETTINGS = {"eps": 0.25, "channel_axis": 1}


def test_one_group_has_the_statistics_of_layer_norm():
    """With one group a sample, and a gain of ones, group_norm is layer_norm over all but the samples."""
    y = reference.group_norm(X, None, None, groups=1, **SETTINGS)
    assert (y == reference.layer_norm(X, None, None, eps=0.25, axes=(-3, -2, -1))).all()


def test_a_channel_a_group_is_instance_norm():
    """With as many groups as channels group_norm is instance_norm, gradients included."""
    assert (
        reference.group_norm(X, GAMMA, BETA, groups=6, **SETTINGS)
        == reference.instance_norm(X, GAMMA, BETA, **SETTINGS)
    ).all()
    for one, other in zip(
        reference.group_norm_vjp(X, GAMMA, BETA, G, groups=6, **SETTINGS),
        reference.instance_norm_vjp(X, GAMMA, BETA, G, **SETTINGS),
        strict=True,
    ):
        assert one is not None and other is not None and (one == other).all()


def test_one_sample_of_instance_norm_is_batch_norm():
    """A single sample is normalised channel by channel, as batch_norm does in training."""
    one, zeros = X[:1], np.zeros(6)
    y, _, _ = reference.batch_norm(one, GAMMA, BETA, zeros, zeros, momentum=0.5, training=True, **SETTINGS)
    assert (y == reference.instance_norm(one, GAMMA, BETA, **SETTINGS)).all()


def test_groups_hold_consecutive_channels():
    """A change of one value reaches the channels of its group, and no other."""
    moved = X.copy()
    moved[1, 3, 0, 0] += 1
    settings = {"groups": 3, **SETTINGS}
    changed = reference.group_norm(moved, None, None, **settings) != reference.group_norm(X, None, None, **settings)
    reached = np.zeros(X.shape, bool)
    reached[1, 2:4] = True
    assert (changed <= reached).all() and changed.any(axis=(2, 3))[1, 2:4].all()


def test_without_a_mean_rms_norm_is_layer_norm():
    """A group with mean zero has the same y in rms_norm and layer_norm; any other group has a different one."""
    x = np.array([[-1.0, 3.0, -2.0, 0.0], [1.0, 3.0, 2.0, 0.0]])
    same = reference.rms_norm(x, None, eps=0.5, axes=(-1,)) == reference.layer_norm(x, None, None, eps=0.5, axes=(-1,))
    assert same[0].all() and not same[1, :3].any()


def test_dx_of_rms_norm_is_orthogonal_to_x():
    """With eps = 0 the sum of dx x vanishes over a group."""
    dx, _ = reference.rms_norm_vjp(X, None, G, eps=0.0, axes=(-1,))
    assert np.abs((dx * X).sum(-1)).max() < 1e-14


@pytest.mark.parametrize("training", [True, False])
def test_the_record_of_batch_norm_says_what_it_is_normalised_by(training):
    """By the statistics of the batch in training, by those that are given in inference."""
    inputs = {"x": X, "gamma": GAMMA, "beta": BETA, "running_mean": np.ones(6), "running_var": np.full(6, 3.75)}
    y = normalisation("batch_norm", inputs, {"training": training, **SETTINGS}).y()
    mean, variance = (X.mean((0, 2, 3)), X.var((0, 2, 3))) if training else (np.ones(6), np.full(6, 3.75))
    of_channel = (np.newaxis, slice(None), np.newaxis, np.newaxis)
    gain = GAMMA / np.sqrt(variance + 0.25)
    expected = (X - mean[of_channel]) * gain[of_channel] + BETA[of_channel]
    np.testing.assert_allclose(y.hi, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"groups": 4}, "groups is 4: pass a positive integer that divides the 6 channels"),
        ({"groups": 0}, "groups is 0"),
        ({"channel_axis": 0}, "the axis of the samples"),
        ({"channel_axis": -4}, "the axis of the samples"),
        ({"channel_axis": 4}, "pass an integer from -4 to 3"),
    ],
)
def test_groups_that_do_not_fit_are_refused(change, message):
    """A wrong setting raises ValueError that says what to pass."""
    with pytest.raises(ValueError, match=message):
        reference.group_norm(X, None, None, **{"groups": 2, **SETTINGS, **change})


@pytest.mark.parametrize("operator", ["layer_norm", "batch_norm", "group_norm", "instance_norm"])
@pytest.mark.parametrize("name", ["tbeta", "sbeta"])
def test_tangents_of_beta_are_checked_where_nothing_depends_on_them(operator, name):
    """The second tangent of y does not depend on those of beta; one of a wrong shape is refused all the same."""
    statistics, settings = (), {"eps": 0.25, "channel_axis": 1}
    if operator == "batch_norm":
        statistics, settings = (BETA, GAMMA**2), {**settings, "momentum": 0.1, "training": True}
    elif operator == "group_norm":
        settings["groups"] = 2
    elif operator == "layer_norm":
        settings = {"eps": 0.25, "axes": (-1,)}
    tangents = {"tx": G, "tgamma": None, "tbeta": None, "sx": X, "sgamma": None, "sbeta": None}
    function = getattr(reference, f"{operator}_jvp_jvp")
    function(X, None, None, *statistics, **tangents, **settings)
    with pytest.raises(ValueError, match=rf"{name} has shape \(7,\): pass one of shape"):
        function(X, None, None, *statistics, **{**tangents, name: np.ones(7)}, **settings)


@pytest.mark.parametrize("groups", [True, None, 2.0, "2", np.array([2, 3])])
def test_a_number_of_groups_is_an_integer(groups):
    """Anything but an integer is refused, including None and True."""
    with pytest.raises(ValueError, match="pass a positive integer that divides the 6 channels"):
        reference.group_norm(X, None, None, groups=groups, **SETTINGS)


def test_an_integer_of_numpy_counts_groups_and_axes():
    """Integers as NumPy returns them are taken like Python's."""
    settings = {"eps": 0.25, "groups": np.int64(3), "channel_axis": np.int32(-3)}
    y = reference.group_norm(X, None, None, **settings)
    assert (y == reference.group_norm(X, None, None, groups=3, **SETTINGS)).all()


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (X[0, 0, 0], "pass an array of at least two axes"),
        (X[0, 0, 0, 0], "pass an array of at least two axes"),
        (X[:, :0], "no channels along axis 1: pass at least one"),
    ],
)
def test_x_without_channels_is_refused(x, message):
    """Both operators on samples want two axes and a channel, and say so."""
    with pytest.raises(ValueError, match=message):
        reference.instance_norm(x, None, None, **SETTINGS)
    with pytest.raises(ValueError, match=message):
        reference.group_norm(x, None, None, groups=1, **SETTINGS)


@pytest.mark.parametrize(
    "change", [{"eps": "1e-5"}, {"eps": 10**400}, {"eps": None}, {"axes": (-1.0,)}, {"axes": (True,)}, {"axes": -1}]
)
def test_a_setting_of_another_kind_is_refused(change):
    """A text is no eps and a float no axis, and an integer beyond float64 is not finite."""
    with pytest.raises(ValueError, match="pass"):
        reference.rms_norm(X, None, **{"eps": 0.25, "axes": (-1,), **change})
