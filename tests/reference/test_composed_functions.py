"""The public functions of the composed operators: their gradients, written by hand, against mpmath and the tape."""

from __future__ import annotations

import numpy as np
import pytest

from normspec import reference
from normspec.reference.composed import Composed
from normspec.spec.parts import Part

from .composed_compare import CERTIFYING, judged
from .composed_data import LOGITS, highway_witness, mhc_witness
from .composed_oracle import Oracle

pytestmark = pytest.mark.exhaustive  # it does not depend on the Python version


class Constant:
    """A part that returns a leaf."""

    def __init__(self, value):
        self.value = value

    def __call__(self, x):
        return self.value

    def vjp(self, x, g):
        """Nothing reaches x."""
        return np.zeros(np.shape(x))


class Times:
    """A part that multiplies by a power of two, which rounds nothing."""

    def __init__(self, number):
        self.number = number

    def __call__(self, x):
        return self.number * x

    def vjp(self, x, g):
        """Its own transpose."""
        return self.number * g


def callables(parts, inputs):
    """The parts as NumPy callables with their own pullbacks."""
    make = lambda p: Constant(inputs[p.leaves[0]]) if p.kind == "leaf" else Times(p.number)  # noqa: E731
    found = {}
    for role, p in parts.items():
        found[role] = None if p is None else [make(one) for one in p] if isinstance(p, tuple) else make(p)
    return found


def compared(operator, inputs, settings, parts, g, got):
    """The results of one call, by name, that are neither within an ulp nor within the certified bound."""
    composed = Composed(operator, inputs, settings, parts, CERTIFYING)
    oracle = Oracle(operator, inputs, settings, parts)
    values = {"y": composed.y()} | composed.gradients(g)
    true = {"y": oracle.y()} | oracle.gradients(g)
    pairs = {name: judged(values[name], true[name], np.asarray(result)) for name, result in got.items()}
    return {name: pair for name, pair in pairs.items() if not max(pair) <= 1}


@pytest.mark.parametrize("scales", [(1, 1, 1), (1e-300, 1e300, 1), (1, 1e300, 1e-200), (1e200, 1, 1e100)])
@pytest.mark.parametrize("carry", [False, True])
def test_highway_at_extreme_gates(carry, scales):
    """y, dx, dH and the gradients of both gates' logits are right from -inf to inf."""
    call = highway_witness(*scales, carry=carry)
    parts = callables(call.parts, call.inputs)
    x, extra = call.inputs["x"], {"carry": parts["carry"]}
    found = reference.highway_vjp(x, parts["transform"], parts["gate"], call.g, **extra)
    got = {"y": reference.highway(x, parts["transform"], parts["gate"], **extra), "x": found.dx}
    got |= {"transform.h": found.transform, "gate.z": found.gate} | ({"carry.z": found.carry} if carry else {})
    assert compared("highway", call.inputs, {}, call.parts, call.g, got) == {}
    np.testing.assert_array_equal(found.skip, found.dx)


@pytest.mark.parametrize("equal", [False, True])
@pytest.mark.parametrize("name", LOGITS)
def test_mhc_at_extreme_logits(name, equal):
    """y, dx, dlogits and the gradients of all branches are right for ties, wide spreads and -inf."""
    call = mhc_witness(LOGITS[name], equal=equal)
    parts, x, logits = callables(call.parts, call.inputs), call.inputs["x"], call.inputs["logits"]
    found = reference.mhc_vjp(x, parts["branches"], logits, call.g)
    got = {"y": reference.mhc(x, parts["branches"], logits), "x": found.dx, "logits": found.dlogits}
    if not equal:
        got |= {f"branches.{k}.h": to for k, to in enumerate(found.branches)}
    assert compared("mhc", call.inputs, {}, call.parts, call.g, got) == {}


def test_the_gradient_of_a_logit_that_dominates_is_not_lost():
    """For weights of 1 - e and e the gradients are e (1 - e) g (H_1 - H_2) and its negative, however small e is."""
    x, branches = np.zeros(1), [Constant(np.array([0.1])), Constant(np.array([-0.3]))]
    dlogits = reference.mhc_vjp(x, branches, [0.0, -100.0], np.array([0.7])).dlogits
    assert dlogits[0] == -dlogits[1] == pytest.approx(0.7 * 0.4 * np.exp(-100.0), rel=1e-15, abs=0)


@pytest.mark.parametrize("seed", range(6))
def test_normalising_blocks(seed):
    """dx, dgamma, dbeta and the sublayer's cotangent are right, for gamma and beta given and not."""
    rng = np.random.default_rng(seed)
    x, g, h = rng.standard_normal((3, 2, 4)) * [[[1.0]], [[1e3]], [[1e-3]]]
    gamma, beta = rng.standard_normal((2, 4)) if seed % 2 else (None, None)
    inputs, settings = {"x": x, "gamma": gamma, "beta": beta, "h": h}, {"eps": 1e-5}
    parts = {"sublayer": Part("scaled", number=-0.5)}
    found = reference.pre_norm_vjp(x, Times(-0.5), gamma, beta, g, eps=1e-5)
    got = {"x": found.dx} | ({} if gamma is None else {"gamma": found.dgamma, "beta": found.dbeta})
    assert compared("pre_norm", inputs, settings, parts, g, got) == {}
    np.testing.assert_array_equal(found.normalised, -0.5 * g)
    normalised = reference.layer_norm(x, gamma, beta, eps=1e-5, axes=(-1,))
    y = reference.pre_norm(x, Times(-0.5), gamma, beta, eps=1e-5)
    np.testing.assert_array_equal(y, x + -0.5 * normalised)
    parts = {"sublayer": Part("leaf", ("h",))}
    after = reference.post_norm_vjp(x, Constant(h), gamma, beta, g, eps=1e-5)
    got = {"y": reference.post_norm(x, Constant(h), gamma, beta, eps=1e-5), "x": after.dx, "h": after.sublayer}
    got |= {} if gamma is None else {"gamma": after.dgamma, "beta": after.dbeta}
    assert compared("post_norm", inputs, settings, parts, g, got) == {}
    twice = reference.post_norm_vjp(x, Times(2.0), gamma, beta, g, eps=1e-5)
    np.testing.assert_array_almost_equal_nulp(twice.dx, 3 * twice.sublayer, 2)


class Pulls:
    """The identity, except that it returns a given vector-Jacobian product."""

    def __init__(self, pulled):
        self.pulled = pulled

    def __call__(self, x):
        return x

    def vjp(self, x, g):
        """The given product."""
        return self.pulled


def test_a_gradient_that_overflows_on_the_way_is_right():
    """In pre_norm the gradient through LN is -2 g, beyond float64; with g of the skip path it is -g."""
    x, g = np.array([[-0.5, 0.5, -0.5, 0.5]]), np.array([[1e308, 1e308, -1e308, -1e308]])
    np.testing.assert_array_equal(reference.pre_norm_vjp(x, Times(-1.0), None, None, g, eps=0.0).dx, -g)


def test_a_gradient_is_rounded_once_where_a_term_is_subnormal():
    """
    In units of 2^-1074 the gradient through LN is 4.5: r = 1/2 and P h = 3 h / 4 for h = (12, -12).

    With g = 2^53 - 3 the sum is 2^53 + 1.5, and its neighbours are 2^53 and 2^53 + 2. If 4.5 is rounded to 4 first, the
    sum is halfway between them and becomes 2^53.
    """
    unit = 2.0**-1074
    g = np.array([[2.0**53 - 3, 0.0]]) * unit
    found = reference.pre_norm_vjp(np.array([[-1.0, 1.0]]), Pulls([[12 * unit, -12 * unit]]), None, None, g, eps=3.0)
    np.testing.assert_array_equal(found.dx / unit, [[2.0**53 + 2, -4.0]])
    # post_norm, whose sum is (-1, 1) here: the gradient of the sum is 4.5, and the sublayer's is added.
    x, g = np.array([[-0.5, 0.5]]), np.array([[12 * unit, -12 * unit]])
    found = reference.post_norm_vjp(x, Pulls([[(2.0**53 - 3) * unit, 0.0]]), None, None, g, eps=3.0)
    np.testing.assert_array_equal(found.dx / unit, [[2.0**53 + 2, -4.0]])


@pytest.mark.parametrize("activation", [None, 4.0])
@pytest.mark.parametrize("shortcut", [None, -0.25])
def test_residual(shortcut, activation):
    """y, dx and the branch's cotangent are right with and without shortcut and activation."""
    rng = np.random.default_rng(1)
    x, h, g = rng.standard_normal((3, 2, 3))
    numbers = {"shortcut": shortcut, "activation": activation}
    parts = {role: None if number is None else Part("scaled", number=number) for role, number in numbers.items()}
    extra = {role: None if number is None else Times(number) for role, number in numbers.items()}
    found = reference.residual_vjp(x, Constant(h), g, **extra)
    got = {"y": reference.residual(x, Constant(h), **extra), "x": found.dx, "h": found.branch}
    given = {"branch": Part("leaf", ("h",)), **parts}
    assert compared("residual", {"x": x, "h": h}, {}, given, g, got) == {}


def test_fuse_takes_the_place_of_weights():
    """With fuse the branches' gradients are the results of fuse.vjp, and the logits have none."""

    class Doubled:
        def __call__(self, ys):
            return 2.0 * ys[0] + ys[1]

        def vjp(self, ys, g):
            return [2.0 * g, g]

    x, g = np.random.default_rng(2).standard_normal((2, 2, 3))
    parts = [Times(2.0), Times(0.5)]
    np.testing.assert_array_equal(reference.mhc(x, parts, None, fuse=Doubled()), x + (4.0 * x + 0.5 * x))
    found = reference.mhc_vjp(x, parts, None, g, fuse=Doubled())
    np.testing.assert_array_equal(found.branches, [2.0 * g, g])
    np.testing.assert_array_equal(found.dx, 5.5 * g)
    assert found.dlogits is None


def test_a_part_without_a_pullback_leaves_dx_unknown():
    """Gradients that do not depend on the part's Jacobian are returned, and dx is None."""
    x, g = np.random.default_rng(3).standard_normal((2, 2, 3))
    found = reference.highway_vjp(x, lambda z: z, lambda z: 0 * z, g)
    assert found.dx is None
    np.testing.assert_array_equal(found.transform, g / 2)
    assert reference.pre_norm_vjp(x, lambda z: z, None, None, g, eps=0.1).dgamma is None
    assert reference.residual_vjp(x, lambda z: z, g, activation=np.tanh).branch is None


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda x: reference.residual(x, lambda z: z[:, :1]), "the result of branch has shape"),
        (lambda x: reference.residual(x, lambda z: [["a"]]), "the result of branch is of dtype"),
        (lambda x: reference.residual(x, 3), "pass a callable"),
        (lambda x: reference.highway(x, lambda z: z, lambda z: z.T), "the result of gate has shape"),
        (lambda x: reference.mhc(x, [lambda z: z], np.zeros(2)), "logits has shape"),
        (lambda x: reference.mhc_vjp(x, [], np.zeros(0), x), "branches is empty"),
        (lambda x: reference.mhc(x, [lambda z: z], None), "pass logits or fuse"),
        (lambda x: reference.mhc(x, [lambda z: z], np.zeros(1), fuse=sum), "pass logits or fuse"),
        (lambda x: reference.pre_norm(x, lambda z: z, np.ones(5), None, eps=0.1), "gamma has shape"),
        (lambda x: reference.post_norm(x, lambda z: z, None, None, eps=-1.0), "eps is"),
        (lambda x: reference.residual_vjp(x, lambda z: z, x[0]), "g has shape"),
        (lambda x: reference.residual_vjp(x.astype(int), lambda z: z, x), "x is of dtype int64"),
        (lambda x: reference.residual_vjp(x, 3, x), "branch is 3: pass a callable"),
        (lambda x: reference.residual_vjp(x, Pulls(None), x), "the result of branch's vjp is of dtype object"),
        (lambda x: reference.pre_norm_vjp(x, 3, None, None, x, eps=0.1), "sublayer is 3: pass a callable"),
        (lambda x: reference.mhc(x, np.tanh, np.zeros(1)), "branches is <ufunc 'tanh'>: pass a sequence of callables"),
        (lambda x: reference.mhc_vjp(x, [np.tanh], None, x, fuse=3), "fuse is 3: pass a callable"),
        (lambda x: reference.mhc_vjp(x, [np.tanh], None, x, fuse=Pulls(None)), "vjp is None: pass one array for each"),
        (lambda x: reference.mhc_vjp(x, [np.tanh] * 2, None, x, fuse=Pulls([x])), "vjp has 1 elements: pass one array"),
    ],
)
def test_what_does_not_fit_is_refused(call, says):
    """A wrong shape, dtype, eps, part or way to fuse raises a ValueError that says what to pass."""
    with pytest.raises(ValueError, match=says):
        call(np.ones((2, 3)))


class Recording:
    """The identity, which keeps what it was handed."""

    def __init__(self):
        self.handed = []

    def __call__(self, x):
        self.handed.append(x)
        return x

    def vjp(self, x, g):
        """Its own transpose."""
        self.handed.append(x)
        return g


@pytest.mark.parametrize(
    "call",
    [
        lambda x, part: reference.residual(x, part, shortcut=part),
        lambda x, part: reference.residual_vjp(x, part, x, shortcut=part),
        lambda x, part: reference.post_norm_vjp(x, part, None, None, x, eps=0.1),
        lambda x, part: reference.highway_vjp(x, part, part, x, carry=part),
        lambda x, part: reference.mhc_vjp(x, [part, part], [0.5, 0.5], x),
    ],
)
def test_parts_are_handed_an_array(call):
    """x may be a list of lists; its parts are handed an array of its values, and an array as it is."""
    part, x = Recording(), [[1.0, 2.0], [3.0, 5.0]]
    call(x, part)
    assert part.handed and all(isinstance(one, np.ndarray) for one in part.handed)
    part, x = Recording(), np.array(x, np.float32)
    call(x, part)
    assert part.handed and all(one is x for one in part.handed)


def test_a_branch_that_writes_to_x_does_not_change_the_other_term():
    """What is added to the branches of mhc, and to the branch of a residual connection, is x as it was given."""
    doubled = lambda x: np.multiply(x, 2, out=x)  # noqa: E731
    assert reference.residual(np.array([3.0]), doubled) == 9.0
    assert reference.mhc(np.array([3.0]), [doubled], [0.0]) == 9.0


def test_nothing_is_written_to():
    """x, the parameters and the cotangent are as before."""
    x, g = np.random.default_rng(4).standard_normal((2, 2, 3)).astype(np.float32)
    before = x.copy(), g.copy()
    reference.post_norm_vjp(x, Times(2.0), None, None, g, eps=0.1)
    reference.mhc_vjp(x, [Times(2.0)], np.zeros(1), g)
    np.testing.assert_array_equal((x, g), before)
