"""The envelope as an assertion on the user's own data."""

from __future__ import annotations

import re
from array import array as buffer

import attrs
import ml_dtypes
import numpy as np
import pytest

import normspec.testing as testing
from normspec import reference
from normspec.adapters.numpy.operators import IMPLEMENTATIONS
from normspec.conformance.faults import registered
from normspec.reference.envelope import envelope_of
from normspec.testing import OutsideEnvelope, call
from normspec.testing.options import JudgementOptions

DTYPES = (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)

SETTINGS = {
    "layer_norm": {"eps": 1e-5, "axes": (-1,)},
    "rms_norm": {"eps": 1e-5, "axes": (-2, -1)},
    "batch_norm": {"eps": 1e-5, "momentum": 0.1, "training": True, "channel_axis": 1},
    "group_norm": {"eps": 1e-5, "groups": 3, "channel_axis": -2},
    "instance_norm": {"eps": 1e-5, "channel_axis": 1},
}
OPERATORS = tuple(SETTINGS)


def drawn(op, dtype, seed=0, shape=(4, 6, 5)):
    """Inputs by name, settings and a cotangent: normal numbers in a dtype."""
    rng, settings = np.random.default_rng(seed), dict(SETTINGS[op])
    lengths = len(settings.get("axes", ()))
    held = shape[-lengths:] if lengths else (shape[1],)
    inputs = {"x": rng.standard_normal(shape), "gamma": rng.standard_normal(held)}
    if op != "rms_norm":
        inputs["beta"] = rng.standard_normal(held)
    if op == "batch_norm":
        inputs |= {"running_mean": rng.standard_normal(held), "running_var": rng.random(held) + 0.5}
    return (
        {name: value.astype(dtype) for name, value in inputs.items()},
        settings,
        rng.standard_normal(shape).astype(dtype),
    )


def build(op, inputs, settings, g, fault=None):
    """(y and statistics, gradients) of a fault, or of a sound function, by name."""
    made = (
        next(one for one in registered() if one.name == fault).build()
        if fault
        else IMPLEMENTATIONS[op]().implementation()
    )
    found = made.call(*inputs.values(), **settings)
    outputs = dict(
        zip(("y", "new_running_mean", "new_running_var"), found if isinstance(found, tuple) else (found,), strict=False)
    )
    return outputs, dict(zip(("dx", "dgamma", "dbeta"), made.vjp(*inputs.values(), g, **settings), strict=False))


def judge(op, outputs, gradients, inputs, settings, g, **options):
    """Every assertion of an operator on these results."""
    statistics = {name: value for name, value in outputs.items() if name != "y"}
    found = getattr(testing, f"assert_{op}")(outputs["y"], **inputs, **statistics, **settings, **options)
    given = {name: inputs[name] for name in ("x", "gamma")}
    if op == "batch_norm":
        given |= {name: inputs[name] for name in ("running_mean", "running_var")}
        settings = {key: value for key, value in settings.items() if key != "momentum"}
    pulled = getattr(testing, f"assert_{op}_grads")(**gradients, **given, g=g, **settings, **options)
    return (found if isinstance(found, dict) else {"y": found}) | pulled


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", OPERATORS)
def test_sound_results_hold_and_all_of_them_are_judged(op, dtype):
    """y, statistics and gradients of a sound function are within their envelopes, with every element judged."""
    inputs, settings, g = drawn(op, dtype)
    found = judge(op, *build(op, inputs, settings, g), inputs, settings, g)
    assert all(one.holds and one.judged == np.prod(one.shape) for one in found.values())
    assert 0 < max(one.ratio for one in found.values()) <= 1


@pytest.mark.parametrize("op", OPERATORS)
def test_a_mistake_is_named_with_the_worst_element(op):
    """The message has the element, what was expected and got, the places of the others, and the mistake's name."""
    prefix = {"layer_norm": "ln", "rms_norm": "rm", "batch_norm": "bn", "group_norm": "gn", "instance_norm": "in"}[op]
    inputs, settings, g = drawn(op, np.float32)
    outputs, gradients = build(op, inputs, {**settings, "eps": 0.1}, g, f"{prefix}-eps-on-std")
    with pytest.raises(OutsideEnvelope) as caught:
        judge(op, {"y": outputs["y"]}, gradients, inputs, {**settings, "eps": 0.1}, g)
    told, worst = str(caught.value), caught.value.judgement.worst
    assert f"got       {float(outputs['y'][worst.index]):.9g}\n" in told
    assert f"explain {prefix}-eps-on-std)" in told
    assert re.search(r"where     in groups? .* places? 0 to", told)


def test_zeros_are_not_taken_for_what_is_merely_small():
    """A mistake that returns x times the root of eps, for a tiny x, is near zero, and is not why y is zero."""
    x = (np.random.default_rng(1).standard_normal((4, 16)) * 3e-7).astype(np.float32)
    with pytest.raises(OutsideEnvelope) as caught:
        testing.assert_layer_norm(np.zeros_like(x), x, None, None, eps=1e-6)
    assert "normspec explain" not in str(caught.value)


@pytest.mark.parametrize("op", OPERATORS)
def test_a_message_leaves_what_was_given_as_it_is(op):
    """Known mistakes get copies of the inputs, because some of them write to their inputs."""
    inputs, settings, g = drawn(op, np.float32)
    outputs, gradients = build(op, inputs, settings, g)
    given = {name: value.copy() for name, value in inputs.items()}, g.copy()
    for results in ({**outputs, "y": outputs["y"] + 1}, gradients), (outputs, {**gradients, "dx": gradients["dx"] + 1}):
        with pytest.raises(OutsideEnvelope) as caught:
            judge(op, *results, inputs, settings, g)
        assert "bound" in str(caught.value)
        assert all(np.array_equal(inputs[name], value) for name, value in given[0].items())
        assert np.array_equal(g, given[1])


def test_a_message_is_about_what_was_given_whatever_becomes_of_it():
    """A kernel may use its buffers again before anybody reads the message."""
    inputs, settings, g = drawn("layer_norm", np.float32)
    outputs, gradients = build("layer_norm", inputs, settings, g)
    messages = []
    for reuses in (False, True):
        given, wrong = {name: value.copy() for name, value in inputs.items()}, outputs["y"] + 1
        with pytest.raises(OutsideEnvelope) as caught:
            judge("layer_norm", {"y": wrong}, gradients, given, settings, g)
        for value in (*given.values(), wrong) if reuses else ():
            value[...] = 7
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


@pytest.mark.parametrize("op", OPERATORS)
def test_exact_values_and_bounds_are_those_of_the_reference(op):
    """`envelope_...` returns the reference's values for the whole array, and its envelope."""
    inputs, settings, _ = drawn(op, np.float64)
    found = getattr(testing, f"envelope_{op}")(**inputs, **settings)
    found = found if isinstance(found, dict) else {"y": found}
    exact = getattr(reference, op)(*inputs.values(), **settings)
    np.testing.assert_array_equal(found["y"].exact, exact[0] if isinstance(exact, tuple) else exact)
    arithmetic = call.Arithmetic.of("float64")
    np.testing.assert_array_equal(found["y"].bound, envelope_of(op, **inputs, **settings, arithmetic=arithmetic).y())


@pytest.mark.parametrize("dtype", (np.float32, np.float64))
@pytest.mark.parametrize("op", OPERATORS)
def test_blocks_change_nothing(monkeypatch, op, dtype):
    """Judged group by group or all at once, worst elements and bounds differ only by roundings."""
    inputs, settings, g = drawn(op, dtype, shape=(7, 6, 5))
    results = build(op, inputs, settings, g)
    whole = judge(op, *results, inputs, settings, g)
    monkeypatch.setattr(call, "_BLOCK_VALUES", 1)
    apart = judge(op, *results, inputs, settings, g)
    for name, one in whole.items():
        assert apart[name].worst.index == one.worst.index
        assert apart[name].worst.bound == pytest.approx(one.worst.bound, rel=1e-9)
        assert apart[name].judged == one.judged


@pytest.mark.parametrize("name", ("y", "dx", "dgamma", "dbeta", "new_running_mean", "new_running_var"))
@pytest.mark.parametrize("dtype", (np.float32, np.float64))
def test_one_element_outside_its_bound_is_found(name, dtype):
    """An element two bounds away fails, whichever result it is in; half a bound away it holds."""
    inputs, settings, g = drawn("batch_norm", dtype)
    pulled = {name: inputs[name] for name in ("x", "gamma", "running_mean", "running_var")}
    fewer = {key: value for key, value in settings.items() if key != "momentum"}
    exact = testing.envelope_batch_norm(**inputs, **settings) | testing.envelope_batch_norm_grads(
        **pulled, g=g, **fewer
    )
    outputs, gradients = build("batch_norm", inputs, settings, g)
    results = {**outputs, **gradients}
    place = (1,) * results[name].ndim
    for share in (0.5, 2.0):  # an envelope is a few roundings wide at least
        moved = {key: value.copy() for key, value in results.items()}
        moved[name][place] = exact[name].exact[place] + share * exact[name].bound[place]
        some = {key: moved[key] for key in outputs}, {key: moved[key] for key in gradients}
        if share < 1:
            judge("batch_norm", *some, inputs, settings, g)
        else:
            with pytest.raises(OutsideEnvelope, match=f"^{name} of batch_norm: 1 of .* elements lies outside"):
                judge("batch_norm", *some, inputs, settings, g)


def test_a_sample_is_said():
    """`sample` groups are looked at, drawn with `seed`; the message says so, and sums over all groups are refused."""
    inputs, settings, g = drawn("layer_norm", np.float32, shape=(50, 8))
    y = build("layer_norm", inputs, settings, g)[0]["y"]
    assert testing.assert_layer_norm(y, **inputs, sample=5).judged == 5 * 8
    with pytest.raises(OutsideEnvelope, match="5 of 50 groups, drawn with seed 3"):
        testing.assert_layer_norm(y + 1, **inputs, sample=5, seed=3)
    with pytest.raises(ValueError, match=r"dgamma is a sum over all groups.*: leave out sample or dgamma"):
        testing.assert_layer_norm_grads(..., inputs["gamma"], ..., inputs["x"], inputs["gamma"], g, sample=5)


def test_what_cannot_be_finite_is_not():
    """A NaN in a group has to show in its y, and other groups are judged as ever."""
    inputs, settings, g = drawn("layer_norm", np.float32, shape=(3, 4))
    inputs["x"][1, 2] = np.nan
    y = build("layer_norm", inputs, settings, g)[0]["y"]
    assert testing.assert_layer_norm(y, **inputs).holds
    with pytest.raises(OutsideEnvelope, match="cannot be a finite number"):
        testing.assert_layer_norm(np.nan_to_num(y), **inputs)


def test_nothing_judged_is_no_pass():
    """Data on which nothing is promised is an error, and not an assertion that holds."""
    x = np.full((2, 4), 3e38, np.float32)
    with pytest.raises(ValueError, match="nothing of y could be judged"):
        testing.assert_layer_norm(x, x, None, None)


def test_a_class_that_allows_for_it_is_told():
    """Where a declared way of computing explains the error, the message names it and no mistake."""
    inputs, _, _ = drawn("layer_norm", np.float16, shape=(20, 8))
    x = inputs["x"].astype(np.float32)
    xhat = ((x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)).astype(np.float16)
    y = xhat * inputs["gamma"] + inputs["beta"]
    with pytest.raises(OutsideEnvelope, match='allowed   with storage="'):
        testing.assert_layer_norm(y, **inputs)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"y": np.zeros((2, 3), np.float32)}, AssertionError, r"y has shape \(2, 3\) in place of \(3, 4\)"),
        ({"y": np.full((3, 4), 0.1)}, AssertionError, "y is float64 in place of float32"),
        ({"y": [1.0]}, TypeError, "y is a list: pass an array"),
        ({"x": np.zeros((3, 4), int)}, TypeError, "x is of dtype int64: pass an array of one of float16"),
        ({"x": np.zeros((0, 4), np.float32), "y": np.zeros((0, 4), np.float32)}, ValueError, "no values"),
        ({"gamma": np.ones(3, np.float32)}, ValueError, r"gamma has shape \(3,\): pass one of shape \(4,\)"),
        ({"axes": (1,)}, ValueError, "axes is"),
        ({"eps": -1.0}, ValueError, "eps is -1.0"),
        ({"storage": "H3"}, ValueError, r"^storage is 'H3'; choose from H0, H1, H2, native$"),
        ({"subnormals": "ftz"}, ValueError, r"^subnormals is 'ftz'; choose from kept, flushed$"),
        ({"axis": 0}, TypeError, r"^there is no argument 'axis'; did you mean 'axes'\? choose from eps, axes, var"),
        ({"sample": 0}, ValueError, "sample is 0: pass the number of groups"),
        ({"sample": 2, "seed": -1}, ValueError, "seed is -1: pass a whole number from 0 on"),
        ({"seed": None}, ValueError, "seed is None: pass a whole number from 0 on"),
        ({"x": None}, TypeError, "x is None: pass an array"),
        ({"cast": "before-gain"}, TypeError, "there is no argument 'cast' for layer_norm; choose from eps, axes, var"),
    ],
)
def test_bad_arguments_are_one_clear_error(change, error, words):
    """A result of the wrong shape or dtype is an AssertionError; an unsuitable argument's error says what would fit."""
    inputs, settings, g = drawn("layer_norm", np.float32, shape=(3, 4))
    y = build("layer_norm", inputs, settings, g)[0]["y"]
    with pytest.raises(error, match=words):
        testing.assert_layer_norm(**{"y": y, **inputs, **change})


def test_a_result_of_another_dtype_fails_unless_the_test_says_that_it_converts():
    """As with `torch.testing.assert_close`; without the check a result is judged in the dtype of its input."""
    inputs, settings, g = drawn("layer_norm", np.float32)
    y = build("layer_norm", inputs, settings, g)[0]["y"].astype(np.float64)
    with pytest.raises(AssertionError, match=r"y is float64 in place of float32: .*check_dtype=False"):
        testing.assert_layer_norm(y, **inputs)
    assert testing.assert_layer_norm(y, **inputs, check_dtype=False).holds
    with pytest.raises(OutsideEnvelope):
        testing.assert_layer_norm(y.astype(np.float16), **inputs, check_dtype=False)


def test_y_may_be_as_wide_as_the_parameters():
    """float16 data under a float32 gamma gives a float32 y, computed or rounded before: both are in use."""
    inputs, settings, g = drawn("layer_norm", np.float16)
    inputs |= {name: inputs[name].astype(np.float32) for name in ("gamma", "beta")}
    y = build("layer_norm", {**inputs, "x": inputs["x"].astype(np.float32)}, settings, g)[0]["y"]
    assert testing.assert_layer_norm(y, **inputs).worst.bound < 1e-5
    assert testing.assert_layer_norm(y.astype(np.float16).astype(np.float32), **inputs).worst.bound > 1e-5


def test_a_gradient_that_is_not_returned_fails_and_one_that_is_left_out_is_not_judged():
    """None is the result of a function that has lost a gradient; `...` says that a gradient is not judged."""
    inputs, settings, g = drawn("layer_norm", np.float32)
    dx, dgamma, dbeta = build("layer_norm", inputs, settings, g)[1].values()
    x, gamma = inputs["x"], inputs["gamma"]
    for lost, name in (((None, dgamma, dbeta), "dx"), ((dx, None, dbeta), "dgamma")):
        with pytest.raises(AssertionError, match=f"{name} is None, and .* is given"):
            testing.assert_layer_norm_grads(*lost, x, gamma, g)
    assert set(testing.assert_layer_norm_grads(dx, ..., None, x, gamma, g)) == {"dx"}
    assert set(testing.assert_layer_norm_grads(..., dgamma, dbeta, x, gamma, g)) == {"dgamma", "dbeta"}
    with pytest.raises(AssertionError, match="y is None"):
        testing.assert_layer_norm(None, **inputs)


class OfDlpack:
    """An array that has DLPack's methods and nothing else."""

    def __init__(self, values):
        self.values = values

    def __dlpack__(self, **options):
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()


class OfDevice:
    """An array that can only be read through `get`, like CuPy's."""

    device = "cuda:0"

    def __init__(self, values):
        self.get = values.copy

    def __array__(self, *_):
        raise TypeError("Implicit conversion to a NumPy array is not allowed")


class OfColumn:
    """A column of a table, like pandas': it has `get` of one key, a dtype, and can be converted."""

    dtype = np.float32

    def __init__(self, values):
        self.values = values

    def get(self, key):
        raise KeyError(key)

    def __array__(self, *_, **__):
        return self.values


class Unreadable:
    """An array whose numbers cannot be read, as those of a traced or a sparse one."""

    def __array__(self, *_, **__):
        raise RuntimeError("it has no data\nand a second line")


def test_an_array_that_cannot_be_read_is_one_clear_error():
    """Whatever its framework raises, the error names the argument."""
    inputs, _, _ = drawn("layer_norm", np.float32)
    told = r"^y cannot be read as an array of NumPy \(it has no data\): pass a dense array"
    with pytest.raises(TypeError, match=told):
        testing.assert_layer_norm(Unreadable(), **inputs)


def test_a_gradient_without_its_cotangent_is_one_clear_error():
    """None in the place of g."""
    inputs, settings, g = drawn("layer_norm", np.float32)
    gradients = build("layer_norm", inputs, settings, g)[1].values()
    with pytest.raises(TypeError, match=r"^g is None: pass an array"):
        testing.assert_layer_norm_grads(*gradients, inputs["x"], inputs["gamma"], None)
    with pytest.raises(TypeError, match=r"^g is None: pass an array"):
        testing.envelope_layer_norm_grads(inputs["x"], inputs["gamma"], None)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_the_order_of_the_bytes_is_no_other_dtype(dtype):
    """Files hold big-endian numbers, and what NumPy computes from them has the order of the machine."""
    inputs, settings, g = drawn("layer_norm", dtype)
    y = build("layer_norm", inputs, settings, g)[0]["y"]
    swapped = {name: value.astype(value.dtype.newbyteorder("S")) for name, value in inputs.items()}
    assert testing.assert_layer_norm(y, **swapped).worst == testing.assert_layer_norm(y, **inputs).worst
    assert testing.assert_layer_norm(y.astype(y.dtype.newbyteorder("S")), **inputs).holds


@pytest.mark.parametrize(
    "made",
    [OfDlpack, OfDevice, OfColumn, lambda x: memoryview(x), lambda x: np.asfortranarray(x), lambda x: x.T.copy().T],
)
def test_arrays_of_any_kind_are_read(made):
    """DLPack, a device's array, a buffer, any strides."""
    inputs, settings, g = drawn("layer_norm", np.float32, shape=(3, 4))
    y = build("layer_norm", inputs, settings, g)[0]["y"]
    inputs["x"] = made(inputs["x"])
    assert testing.assert_layer_norm(made(y), **inputs).holds


def test_an_array_that_computes_in_its_own_way_is_read_as_numbers():
    """A matrix, whose products and shapes are its own, and a masked array; with a masked value it is refused."""
    inputs, settings, g = drawn("rms_norm", np.float32, shape=(3, 1))
    inputs["gamma"], settings["axes"] = None, (-2, -1)
    y = build("rms_norm", inputs, settings, g)[0]["y"]
    for kind in (np.matrix, np.ma.MaskedArray):
        given = {**inputs, **settings, "x": inputs["x"].view(kind)}
        assert testing.assert_rms_norm(y, **given, subnormals="flushed").holds
        assert testing.assert_rms_norm(y.view(kind), **given, storage="H1").holds
        with pytest.raises(testing.OutsideEnvelope, match="outside the error envelope"):
            testing.assert_rms_norm(y + 1, **given)
    with pytest.raises(TypeError, match="x has masked values"):
        testing.assert_rms_norm(y, np.ma.masked_greater(inputs["x"], -9), None)


def test_a_buffer_of_the_standard_library_is_an_array():
    """`array.array` of floats, which has a buffer and nothing else."""
    inputs, settings, g = drawn("layer_norm", np.float32, shape=(1, 4))
    y = build("layer_norm", inputs, settings, g)[0]["y"]
    gamma, beta = buffer("f", inputs["gamma"]), buffer("f", inputs["beta"])
    assert testing.assert_layer_norm(buffer("f", y[0]), buffer("f", inputs["x"][0]), gamma, beta).holds


@pytest.mark.parametrize(
    "wrong",
    [
        {"y": np.zeros((2, 2))},
        {"y": np.zeros((4, 6, 5))},
        {"y": None},
        {"x": [1.0]},
        {"gamma": np.ones(3)},
        {"axes": 7},
    ],
    ids=("shape", "dtype", "none", "list", "gamma", "axes"),
)
def test_of_what_is_refused_pytest_shows_the_line_of_the_test(wrong):
    """pytest shows the test's line that passes a wrong argument; no frame of ours is in between."""
    inputs, settings, _ = drawn("layer_norm", np.float32)
    with pytest.raises((AssertionError, TypeError, ValueError)) as caught:
        testing.assert_layer_norm(**({"y": inputs["x"], **inputs, **settings} | wrong))
    assert {str(one.path) for one in caught.traceback.filter(caught)} == {__file__}


def test_the_help_lists_every_keyword_with_its_default():
    """Type, meaning and default of each option stand in `help(normspec.testing)`, to which each assertion points."""
    for field in attrs.fields(JudgementOptions):
        default = f'"{field.default}"' if isinstance(field.default, str) else field.default
        assert f"\n    {field.name}={default} " in testing.__doc__
    for name in (one for one in testing.__all__ if one.startswith("assert_")):
        assert "help(normspec.testing)" in getattr(testing, name).__doc__, name


def test_dbeta_beside_no_gamma_is_told():
    """dbeta has gamma's shape; the message says what stands for a gamma that the function lacks."""
    x = np.ones((2, 3), np.float32)
    with pytest.raises(ValueError, match="pass gamma, which is ones if the function has none"):
        testing.assert_layer_norm_grads(x, ..., np.ones(3, np.float32), x, None, x)
