"""Declarations and fixed settings of a layer or function: they are read, sent to workers, and decline calls."""

from __future__ import annotations

import numpy as np
import pytest

import normspec
from normspec.adapters.declarations import Declarations, pairs
from normspec.adapters.fixed import FixedSettings, fixed_from_plain
from normspec.adapters.own_function import from_callable
from normspec.spec.errors import CannotVary, WrongDeclaration, WrongSignature

FIXED = FixedSettings(eps=1e-6, shape=(4, 5), axes=2, given=(("gamma", "beta"), ()))


def test_what_is_declared_is_read():
    """Numbers, shapes, axes and words, each by its name."""
    declared = Declarations(fixed={"eps": "1e-6", "shape": "4x5", "training": "no", "beta": "none", "rank": "4"})
    found = declared.settings()
    assert (found.eps, found.shape, found.axes, found.training, found.ranks) == (1e-6, (4, 5), 2, False, (4,))
    assert (declared.affine("none"), declared.affine("given")) == ({"beta"}, frozenset())


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"fixed": {"eps": "small"}}, "give a number such as 1e-6"),
        ({"fixed": {"eps": "-1"}}, "give a number such as 1e-6"),
        (
            {"fixed": {"axes": "1"}},
            "give -1 for the last axis, -2 for the last two; for features in axis 1, add --layout",
        ),
        ({"fixed": {"epsilon": "1"}}, "did you mean 'eps'"),
        ({"fixed": {"gamma": "ones"}}, "give none or given"),
        ({"layout": "nchw"}, "choose from channels-last, channels-first"),
        ({"parameters": {"weight": "w"}}, "choose from gamma, beta"),
    ],
)
def test_what_cannot_be_declared_is_told(declared, message):
    """One line says what to write."""
    with pytest.raises(WrongDeclaration, match=message):
        Declarations(**declared)


@pytest.mark.parametrize(("texts", "message"), [(("eps",), "write NAME=VALUE"), (("eps=1", "eps=2"), "keep one")])
def test_what_is_no_pair_is_told(texts, message):
    """An option takes NAME=VALUE, each name once."""
    with pytest.raises(WrongDeclaration, match=message):
        pairs("--fixed", texts)


def test_pairs_are_divided_by_commas():
    """An option may hold several, and be repeated."""
    assert pairs("--fixed", ("eps=1e-6,axes=-1", "beta=none")) == {"eps": "1e-6", "axes": "-1", "beta": "none"}


def test_what_is_declared_and_fixed_travels():
    """Both are the same after they were plain values."""
    declared = Declarations({"gamma": "g"}, "channels-first", {"eps": "1e-6"})
    assert Declarations.from_plain(declared.to_plain()) == declared
    told = {name: list(value) if isinstance(value, tuple) else value for name, value in FIXED.to_plain().items()}
    assert fixed_from_plain(told) == FIXED
    assert not fixed_from_plain({})


@pytest.mark.parametrize(
    ("shape", "settings", "reason"),
    [
        ((3, 4, 5), {"eps": 1e-6, "axes": (-2, -1)}, None),
        ((3, 4, 5), {"eps": 1e-5, "axes": (-2, -1)}, "its eps is 1e-06"),
        ((3, 4, 6), {"eps": 1e-6, "axes": (-2, -1)}, "it is made for (4, 5) in the last 2 axes"),
        ((3, 4, 5), {"eps": 1e-6, "axes": (-1,)}, "it normalises the last 2 axes"),
    ],
)
def test_what_is_fixed_declines_other_calls(shape, settings, reason):
    """Each with its own reason."""
    assert FIXED.declines("layer_norm", shape, settings) == reason


def test_channels_are_compared_along_their_axis():
    """A negative axis is the same one; a mode is compared, and momentum only in training."""
    fixed = FixedSettings(channel_axis=1, channels=6, training=False, momentum=0.1)
    given = {"training": False, "momentum": 0.5, "channel_axis": -2}
    assert fixed.declines("batch_norm", (3, 6, 2), given) is None
    assert fixed.declines("batch_norm", (3, 5, 2), given) == "it has 6 channels"
    assert fixed.declines("batch_norm", (3, 6, 2), {**given, "channel_axis": 2}) == "its channels are axis 1"
    assert fixed.declines("batch_norm", (3, 6, 2), {**given, "training": True}) == "it runs only with training=False"
    assert FixedSettings(channels=6).declines("batch_norm", (3, 6), {"channel_axis": 2}) is None, "x has no axis 2"


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (("gamma", "beta"), None),
        ((), None),
        (("gamma",), "it always has a beta"),
    ],
)
def test_parameters_that_cannot_be_given_are_told(given, reason):
    """Parameters that a layer lacks, and parameters that it always has."""
    fixed = FixedSettings(given=(("gamma", "beta"),)) if reason else FIXED
    assert fixed.lacks(dict.fromkeys(given, np.zeros(1))) == reason
    assert FixedSettings(given=((),)).lacks({"gamma": np.zeros(1)}) == "it has no gamma"


def test_a_function_is_called_with_what_it_takes():
    """eps under its own name, no axes, no beta, and the features in axis 1."""
    seen = []

    def layer_norm(x, weight, epsilon):
        seen.append((x.shape, weight.shape, epsilon, x.flags.c_contiguous))
        return 2 * x

    declared = Declarations(layout="channels-first", fixed={"axes": "-1", "beta": "none"})
    (binding,) = from_callable(layer_norm, ("layer_norm",), "numpy", declared).bindings
    x, gamma = np.arange(24.0).reshape(2, 3, 4), np.ones(4)
    y = binding.call(x, gamma, None, eps=0.5, axes=(-1,))
    assert seen == [((2, 4, 3), (4,), 0.5, True)]
    np.testing.assert_array_equal(y, 2 * x)
    with pytest.raises(CannotVary, match="it has no beta"):
        binding.call(x, gamma, gamma, eps=0.5, axes=(-1,))


@pytest.mark.parametrize(("layout", "axis"), [("channels-first", 1), ("channels-last", -1)])
def test_a_layout_says_where_a_function_has_its_channels(layout, axis):
    """As --fixed channel_axis does, which outranks it; x is passed as it is."""

    def group_norm(x, gamma, beta, *, eps, groups):
        return x

    (binding,) = from_callable(group_norm, None, "numpy", Declarations(layout=layout)).bindings
    assert (binding.fixed.channel_axis, binding.fixed.ranks) == (axis, ())
    declared = Declarations(layout=layout, fixed={"channel_axis": "2"})
    (binding,) = from_callable(group_norm, None, "numpy", declared).bindings
    assert binding.fixed.channel_axis == 2
    x = np.ones((2, 3, 4))
    assert binding.call(x, None, None, eps=0.5, groups=2, channel_axis=2) is x


def test_a_function_with_a_declaration_gets_its_optional_parts():
    """What it lacks of them is not passed, and is known to be unsupported."""

    def residual(x, branch, *, shortcut=None):
        return (x if shortcut is None else shortcut(x)) + branch(x)

    (binding,) = from_callable(residual, None, "numpy", Declarations(fixed={"rank": "3"})).bindings
    assert binding.unsupported_keywords == {"activation"}
    x = np.ones((1, 2, 3))
    np.testing.assert_array_equal(binding.call(x, lambda x: 5 * x, shortcut=lambda x: 7 * x), 12 * x)
    np.testing.assert_array_equal(binding.call(x, lambda x: 5 * x), 6 * x)


def test_what_a_function_writes_into_its_x_shows():
    """It gets a copy where its channels are first, and the copy's values come back."""

    def layer_norm(x, gamma, beta, *, eps, axes):
        x *= 3
        return x.copy()

    (binding,) = from_callable(layer_norm, None, "numpy", Declarations(layout="channels-first")).bindings
    x = np.arange(24.0).reshape(2, 3, 4)
    binding.call(x, None, None, eps=0.5, axes=(-1,))
    np.testing.assert_array_equal(x, 3 * np.arange(24.0).reshape(2, 3, 4))


def test_a_vjp_is_called_with_what_its_function_takes():
    """Its gradients are in their places; for an absent parameter there is None."""

    def rms_norm(x):
        return x

    def rms_norm_vjp(x, g):
        return 5 * g

    rms_norm.vjp = rms_norm_vjp
    declared = Declarations(fixed={"eps": "1e-6", "axes": "-1", "gamma": "none"})
    (binding,) = from_callable(rms_norm, None, "numpy", declared).bindings
    g = np.ones((2, 3))
    dx, dgamma = binding.derivatives["vjp"](g, None, g, eps=1e-6, axes=(-1,))
    assert dgamma is None
    np.testing.assert_array_equal(dx, 5 * g)


def test_a_declaration_is_about_what_the_operator_has():
    """One for several operators leaves out what one of them lacks."""
    everything = Declarations(fixed={"momentum": "0.1", "axes": "-1", "channels": "8", "gamma": "given", "rank": "3"})
    assert everything.about("layer_norm", "own").fixed.keys() == {"axes", "gamma", "rank"}
    assert everything.about("batch_norm", "own").fixed.keys() == {"momentum", "channels", "gamma", "rank"}
    assert everything.about("residual", "own").fixed.keys() == {"rank"}


@pytest.mark.parametrize(
    ("operator", "fixed", "message"),
    [
        ("group_norm", {"channel_axis": "0"}, "axis 0 of own has the samples"),
        ("group_norm", {"channels": "6", "groups": "4"}, "4 does not divide 6"),
        ("layer_norm", {"axes": "-1", "shape": "4x5"}, "this shape has 2 axes"),
        ("layer_norm", {"rank": "1", "shape": "4x5"}, "x of own has 2 axes at least"),
        ("batch_norm", {"rank": "1"}, "x of own has 2 axes at least"),
        ("rms_norm", {"rank": "1", "axes": "-2"}, "x of own has 2 axes at least"),
    ],
)
def test_declarations_that_contradict_each_other_are_told(operator, fixed, message):
    """One error says so, before anything is called."""
    with pytest.raises(WrongDeclaration, match=message):
        Declarations(fixed=fixed).about(operator, "own")


def test_a_run_of_two_operators_takes_what_one_of_them_has():
    """It is an error only where none has it."""

    def layer_norm(x, gamma, beta, *, eps, axes):
        return x

    def batch_norm(x, gamma, beta, running_mean, running_var, *, eps, training, channel_axis):
        return x, running_mean, running_var

    for one, fixed in ((layer_norm, {"axes": "-1"}), (batch_norm, {"momentum": "0.1"})):
        options = {"framework": "numpy", "dtypes": ["float64"], "profile": "quick", "only": "CM-T1"}
        assert normspec.check(one, fixed=fixed, **options).results
    with pytest.raises(
        WrongDeclaration, match=r"^fixed={\"momentum\": 0\.1}: layer_norm has no momentum: leave it out"
    ):
        normspec.check(layer_norm, fixed={"momentum": "0.1"}, **options)


def test_a_declaration_that_is_about_no_target_is_an_error():
    """A function's parameters have places, not names, and a composed operator has no channels."""

    def rms_norm(x, gamma, *, eps, axes):
        return x

    def residual(x, branch, *, activation=None, shortcut=None):
        return x

    options = {"framework": "numpy", "dtypes": ["float64"], "profile": "quick", "only": "CM-T1"}
    with pytest.raises(WrongDeclaration, match=r"^parameters= is about layers, and rms_norm takes its parameters in"):
        normspec.check(rms_norm, parameters={"gamma": "g"}, **options)
    with pytest.raises(WrongDeclaration, match=r"^layout: residual has no channels: leave it out"):
        normspec.check(residual, layout="channels-first", **options)
    assert normspec.check([rms_norm, residual], layout="channels-first", **options).results
    with pytest.raises(WrongDeclaration, match=r"^fixed= is about functions and layers of your own, not about numpy"):
        normspec.check("numpy", fixed={"eps": 1e-3}, dtypes=["float64"], only="CM-T1")


def test_what_is_lacking_is_told_with_what_to_write():
    """The error for a function that takes no eps says how to declare it."""

    def rms_norm(x, weight):
        return x

    with pytest.raises(WrongSignature, match="--fixed eps=1e-5,axes=-1"):
        from_callable(rms_norm, None, "numpy")
    with pytest.raises(WrongSignature, match="takes no eps: say what it has of its own, --fixed eps=1e-5"):
        from_callable(rms_norm, None, "numpy", Declarations(fixed={"axes": "-1"}))


def test_a_parameter_in_a_later_place_needs_a_wrapper():
    """PyTorch's functions have the shape, or the statistics, where gamma is passed: nothing that is declared helps."""

    def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5):
        return input

    with pytest.raises(WrongSignature, match="weight does not stand where gamma is passed, and no declaration changes"):
        from_callable(layer_norm, None, "numpy")


def test_a_name_in_another_place_is_told_beside_a_declaration():
    """What is left of the arguments is passed by position too."""
    with pytest.raises(WrongSignature, match=r"has bias in another place than \(x, gamma, beta\): put it there"):
        from_callable(lambda x, bias, weight, eps: x, ("layer_norm",), "numpy", Declarations(fixed={"axes": "-1"}))


@pytest.mark.parametrize(
    ("function", "fixed"),
    [
        (lambda x: x, "eps=1e-5,axes=-1,gamma=none,beta=none"),
        (lambda x, *, eps, axes: x, "gamma=none,beta=none"),
        (lambda x, weight, eps: x, "axes=-1,beta=none"),
        (lambda x, bias, eps: x, "axes=-1,gamma=none"),
        (lambda x, a, b: x, "eps=1e-5,axes=-1"),
    ],
)
def test_what_is_told_to_be_declared_is_enough(function, fixed):
    """gamma and beta belong to it: with all that the message says, the function can be called."""
    with pytest.raises(WrongSignature, match=f"--fixed {fixed}$"):
        from_callable(function, ("layer_norm",), "numpy")
    declared = dict(one.split("=") for one in fixed.split(","))
    assert from_callable(function, ("layer_norm",), "numpy", Declarations(fixed=declared)).bindings


def test_gamma_and_beta_that_are_still_lacking_are_told():
    """After eps and axes were declared, the message says how to declare these."""
    with pytest.raises(WrongSignature, match=r"if it lacks these, say so: --fixed gamma=none,beta=none$"):
        from_callable(lambda x: x, ("layer_norm",), "numpy", Declarations(fixed={"eps": "1e-5", "axes": "-1"}))


def test_what_is_fixed_is_told_as_it_is_declared():
    """Axes are counted from the last, as --fixed takes them."""
    assert Declarations(fixed={"axes": "-2", "eps": "1e-6"}).settings().words("layer_norm") == ["eps=1e-06", "axes=-2"]
