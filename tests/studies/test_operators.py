"""The operators as studies call them: steps of NumPy within the operators of a target."""

from __future__ import annotations

import numpy as np
import pytest

from normspec.studies import steps
from normspec.studies.operators import NotStudied, Operators
from normspec.studies.result import Chain, Result
from normspec.studies.study import Scale

SCALE = Scale(seeds=2)
X, G = SCALE.normal("x", 3, 4), SCALE.normal("g", 3, 4)
W = SCALE.normal("w", 4, 4)


@pytest.fixture(scope="module")
def numpy_operators() -> Operators:
    """The operators of the built-in target."""
    return Operators.of("numpy")


def test_every_operator_takes_steps_and_hands_back_their_gradients(numpy_operators):
    """Central differences approach the gradients as the square of the step, down to rounding."""
    w, v = W, SCALE.normal("v", 4, 4)
    calls = {
        "pre_norm": lambda x, w: numpy_operators.pre_norm(x, steps.linear(w), eps=1e-5),
        "post_norm": lambda x, w: numpy_operators.post_norm(x, steps.linear(w), eps=1e-5),
        "highway": lambda x, w: numpy_operators.highway(x, steps.linear(w), steps.linear(v)),
        "mhc": lambda x, w: numpy_operators.mhc(x, [steps.linear(w), steps.linear(v)], np.zeros(2)),
        "attention": lambda x, w: steps.attention(w, v, v, v)(x),
        "feed-forward": lambda x, w: steps.feed_forward(w, v, steps.tanh)(x),
    }
    names = {"pre_norm": "sublayer.w", "post_norm": "sublayer.w", "highway": "transform.w", "mhc": "branches.0.w"}
    names |= {"attention": "wq", "feed-forward": "w1"}
    x, g = SCALE.normal("x", 2, 3, 4), SCALE.normal("g", 2, 3, 4)
    tx, tw = SCALE.normal("tx", 2, 3, 4), SCALE.normal("tw", 4, 4)
    for name, call in calls.items():
        gradients = call(x, w).pull(g)
        told = np.vdot(gradients["x"], tx) + np.vdot(gradients[names[name]], tw)
        off = {}
        for step in (2.0**-8, 2.0**-12):
            ahead, behind = (np.vdot(call(x + at * tx, w + at * tw).y, g) for at in (step, -step))
            off[step] = abs((ahead - behind) / (2 * step) - told)
        rounding = 2.0**-52 * x.size * abs(call(x, w).y * g).sum() / 2.0**-12
        assert off[2.0**-12] <= max(off[2.0**-8] / 100, rounding), (
            name
        )  # 256 times nearer, except for terms of higher order


def test_a_residual_of_a_step_is_the_sum_and_hands_back_both_paths(numpy_operators):
    """y = x + x w, dx = g + g w^T, and dw comes back under the name of its role."""
    result = numpy_operators.residual(X, steps.linear(W))
    assert np.array_equal(result.y, X + X @ W)
    gradients = result.pull(G)
    assert np.array_equal(gradients["x"], G + G @ np.swapaxes(W, -1, -2))
    assert np.array_equal(gradients["branch.w"], np.swapaxes(X, -1, -2) @ G)


def test_a_sublayer_is_handed_what_the_block_hands_it(numpy_operators):
    """pre_norm passes LN(x) to its sublayer, post_norm x."""
    handed = {}

    def watched(name):
        def step(x):
            handed[name] = x
            return Result(x, lambda g: {"x": g})

        return step

    numpy_operators.pre_norm(X, watched("pre"), eps=1e-5)
    numpy_operators.post_norm(X, watched("post"), eps=1e-5)
    assert np.array_equal(handed["pre"], numpy_operators.layer_norm(X, eps=1e-5).y)
    assert np.array_equal(handed["post"], X)


def test_a_target_without_any_of_the_operators_is_refused(numpy_operators):
    """Nothing of it would be studied."""
    operators = Operators.of(lambda x, gamma, beta, *, eps, axes: x, op="layer_norm", framework="numpy")
    with pytest.raises(NotStudied, match="has none of them"):
        operators.names(["residual"])
    assert operators.names(["layer_norm", "residual"])["residual"] == "normspec.residual"


def test_a_chain_returns_the_gradient_at_every_layer():
    """The cotangent of each value, the chain's input included, and each step's own gradients."""
    back = Chain.of(X, [steps.linear(W), steps.linear(W)]).pull(G)
    down = G @ np.swapaxes(W, -1, -2)
    assert [one.shape for one in back.cotangents] == [X.shape] * 3
    assert np.array_equal(back.cotangents[1], down)
    assert np.array_equal(back.cotangents[0], down @ np.swapaxes(W, -1, -2))
    assert [list(one) for one in back.parameters] == [["w"], ["w"]]


def test_what_is_drawn_depends_on_the_seed_and_the_name_alone():
    """A seed's numbers are the same among others, and other names have other numbers."""
    assert np.array_equal(Scale(seed=3, seeds=1).normal("x", 4)[0], Scale(seed=0, seeds=5).normal("x", 4)[3])
    assert not np.array_equal(SCALE.normal("x", 4), SCALE.normal("y", 4))
