"""The quick verdict on a result is also the verdict of the whole envelope."""

from __future__ import annotations

import pickle
from functools import partial

import ml_dtypes
import numpy as np
import pytest

import normspec.testing as testing
from normspec.adapters.numpy.operators import IMPLEMENTATIONS
from normspec.conformance.faults import registered
from normspec.conformance.sound import SOUND
from normspec.reference.accuracy import AccuracyClass
from normspec.testing import in_blocks, quick_accept
from normspec.testing.call import Call
from normspec.testing.options import JudgementOptions

DTYPES = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float32": np.float32, "float64": np.float64}

SETTINGS = {
    "layer_norm": {"eps": 1e-5, "axes": (-1,)},
    "rms_norm": {"eps": 1e-5, "axes": (-2, -1)},
    "batch_norm": {"eps": 1e-5, "momentum": 0.1, "training": True, "channel_axis": 1},
    "group_norm": {"eps": 1e-5, "groups": 2, "channel_axis": 1},
    "instance_norm": {"eps": 1e-5, "channel_axis": -2},
}

#: Kinds of x. Several leave little of float64's digits, or are near a rule of range.
KINDS = {
    "usual": lambda z: z,
    "small": lambda z: z * 1e-3,
    "tiny": lambda z: z * 1e-30,
    "subnormal in float32": lambda z: z * 1e-43,
    "subnormal in float64": lambda z: z * 1e-322,
    "offset": lambda z: z + 100,
    "far": lambda z: z * 0.01 + 3000,
    "large": lambda z: z * 1e3,
    "equal": lambda z: z * 0 + 1.5,
    "nearly equal": lambda z: z * 1e-4 + 1,
    "one far": lambda z: np.where(z == z.max(), 1000, z),
    "heavy": lambda z: np.exp(2 * z),
    "zeros": lambda z: np.where(z > 0.5, z, 0),
    "signs": lambda z: np.sign(z),
}

SHAPES = ((4, 6, 5), (1, 2, 2), (3, 4, 1), (2, 4, 64), (9, 2, 3), (2, 2, 700))


def call_of(op, dtype, kind, shape, seed=0, of_parameters=None, eps=1e-5):
    """A call on drawn data, and a cotangent."""
    rng, settings = np.random.default_rng(seed), {**SETTINGS[op], "eps": eps}
    lengths = len(settings.get("axes", ()))
    held = shape[-lengths:] if lengths else (shape[1],)
    parameters = DTYPES[of_parameters or dtype]
    inputs = {"x": KINDS[kind](rng.standard_normal(shape)).astype(DTYPES[dtype])}
    inputs |= {name: rng.standard_normal(held).astype(parameters) for name in ("gamma", "beta")}
    if seed % 2:
        inputs["gamma"][..., 0] = 0
    if op == "rms_norm":
        del inputs["beta"]
    if op == "batch_norm":
        inputs |= {"running_mean": rng.standard_normal(held).astype(parameters)}
        inputs |= {"running_var": (rng.random(held) + 0.5).astype(parameters)}
    g = KINDS["heavy" if seed % 3 else "usual"](rng.standard_normal(shape)).astype(DTYPES[dtype])
    if kind.startswith("subnormal"):  # large, and it cancels: what underflowed is all there is
        g = np.resize(np.array([4000, -4000], g.dtype), shape)
    return Call(op, inputs, settings, g.dtype, AccuracyClass()), g


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", SETTINGS)
def test_whatever_surely_holds_is_within_the_envelope(op, dtype):
    """The farthest that surely holds, on either side, is no farther from the exact value than the envelope's bound."""
    known = 0
    for seed, (kind, shape) in enumerate((kind, shape) for kind in KINDS for shape in SHAPES):
        parameters = {1: "float32", 2: "float64"}.get(seed % 4)
        eps = 0.5 if kind.startswith("subnormal") else (1e-5, 1e-12, 0.1, 0.0)[seed // 2 % 4]
        call, g = call_of(op, dtype, kind, shape, seed, parameters, eps=eps)
        for names, cotangent in (("y",), None), (("dx", "dgamma", "dbeta"), g):
            with np.errstate(all="ignore"):
                rows = quick_accept.Float64Rows.of(call, cotangent) if call.layout.size > 1 else None
            if rows is None:
                continue
            names = tuple(name for name in names if name != "dbeta" or op != "rms_norm")
            for name, want in in_blocks.envelopes(call, names, cotangent, JudgementOptions()).items():
                value, left = getattr(rows, name)()
                exact, bound = (
                    call.rows(z, rows.groups) if value.ndim == 2 else z.ravel() for z in (want.exact, want.bound)
                )
                assert np.isfinite(bound).all(), (kind, shape, name)
                surely = left >= 0
                known += int(surely.sum())
                # Exact values are rounded once here.
                farthest = np.abs(value - exact) + np.broadcast_to(left, value.shape) - 2.0**-53 * np.abs(exact)
                assert (farthest <= bound)[surely].all(), (kind, shape, name)
    assert known > 10_000


def results_of(made, call, g):
    """An implementation's results, by name; it gets copies."""
    copies = [value.copy() for value in call.inputs.values()]
    with np.errstate(all="ignore"):
        outputs, gradients = made.call(*copies, **call.settings), made.vjp(*copies, g.copy(), **call.settings)
    y = outputs[0] if isinstance(outputs, tuple) else outputs
    found = {"y": y} | dict(zip(("dx", "dgamma", "dbeta"), gradients, strict=False))
    owners = {"y": "x", "dx": "x", "dgamma": "gamma", "dbeta": "beta"}
    return {
        name: value
        for name, value in found.items()
        if value is not None
        and (value.shape, value.dtype) == (call.inputs[owners[name]].shape, call.inputs[owners[name]].dtype)
    }


#: These group the values as no other operator does, and share all else with layer_norm: two dtypes tell, four at night.
_ALIKE, _TELLING = ("group_norm", "instance_norm"), ("float16", "float32")


@pytest.mark.parametrize(
    ("op", "dtype"),
    [
        pytest.param(op, dtype, marks=[pytest.mark.nightly] if op in _ALIKE and dtype not in _TELLING else [])
        for op in SETTINGS
        for dtype in DTYPES
    ],
)
def test_no_mistake_is_overlooked_and_most_of_what_is_sound_is_seen_at_a_glance(op, dtype):
    """For every known mistake and sound function, a result that passes the quick test passes the whole envelope too."""
    sound = [one.build for one in SOUND if one.operator == op]
    faults = [one.build for one in registered() if one.operator == op and dtype in one.dtypes]
    seen, usual = 0, 0
    for kind, shape in (("usual", (4, 8, 16)), ("offset", (4, 8, 16)), ("small", (2, 4, 6)), ("far", (3, 4, 33))):
        call, g = call_of(op, dtype, kind, shape)
        for build in (*sound, *faults):
            try:
                results = results_of(build(), call, g)
            except Exception:  # the mistake is that it raises
                continue
            for name, got in results.items():
                cotangent = None if name == "y" else g
                held = quick_accept.surely_within(call, {name: got}, cotangent)
                if held:
                    (whole,) = in_blocks._judged(call, {name: got}, cotangent, None, JudgementOptions()).values()
                    assert whole.holds and whole.judged == got.size, (build, kind, name)
                if kind == "usual" and build in sound:
                    seen, usual = seen + held, usual + 1
    assert seen > 0.9 * usual


@pytest.mark.parametrize("op", SETTINGS)
def test_how_near_it_was_is_told_whenever_one_asks(op):
    """The worst element is that of the arrays as they were judged, whatever was written to them since."""
    for names in ({"y"}, {"dx", "dgamma", "dbeta"}):
        call, g = call_of(op, "float32", "usual", (4, 6, 5))
        results = results_of(IMPLEMENTATIONS[op]().implementation(), call, g)
        chosen, cotangent = {name: results[name] for name in names & results.keys()}, None if names == {"y"} else g
        assert quick_accept.surely_within(call, chosen, cotangent)
        found = in_blocks.judge(call, chosen, cotangent, None, JudgementOptions())
        want = in_blocks._judged(call, chosen, cotangent, None, JudgementOptions())
        for value in (*chosen.values(), *call.inputs.values(), g):
            value[...] = 7
        for name, one in found.items():
            assert (one.worst, one.ratio, one.judged) == (want[name].worst, want[name].ratio, want[name].judged)
            assert repr(one.worst) in repr(one)
            assert pickle.loads(pickle.dumps(one)).worst == one.worst, "a process may hand it to another"
            assert (one.shape, one.groups, one.of_groups) == (want[name].shape, want[name].groups, want[name].of_groups)


def test_what_is_not_a_usual_call_is_left_to_the_whole_envelope():
    """Other classes of algorithms, given statistics, one value in a group, many values, sizes beyond the limits."""
    call, _ = call_of("batch_norm", "float16", "usual", (4, 6, 5))
    y = results_of(IMPLEMENTATIONS["batch_norm"]().implementation(), call, np.zeros((4, 6, 5), np.float16))["y"]
    other = partial(Call, "batch_norm", call.inputs, result_dtype=call.result_dtype)
    assert quick_accept.surely_within(call, {"y": y}, None)
    for accuracy in (AccuracyClass(storage="H1"), AccuracyClass(variance="one-pass")):
        assert not quick_accept.surely_within(other(settings=call.settings, accuracy=accuracy), {"y": y}, None)
    given = {**call.settings, "training": False}
    assert not quick_accept.surely_within(other(settings=given, accuracy=AccuracyClass()), {"y": y}, None)
    for value in (np.nan, np.inf, 5000.0):
        call.inputs["x"][0, 0, 0] = value
        assert not quick_accept.surely_within(call, {"y": y}, None)
    x = np.ones((4, 1), np.float32)
    assert testing.assert_layer_norm(x * 0, x, None, None).ratio == 0
