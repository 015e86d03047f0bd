"""What a wrong result is said to be: nothing that a single value contradicts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from normspec.adapters.targets import resolve
from normspec.conformance.diagnosis.patterns.pattern import WrongResult
from normspec.conformance.diagnosis.patterns.place import Place
from normspec.conformance.diagnosis.patterns.relation import LinearRelation
from normspec.conformance.diagnosis.patterns.sentences import sentence_of

from .runs import function, others_at_night, run


def wide(array):
    """In float32, or in float64 if it is that."""
    return array.astype(np.result_type(array, np.float32))


def layer_norm_by(output):
    """A layer_norm whose y is ``output(y in float32 or wider, dtype of x)``."""

    def layer_norm(x, gamma, beta, *, eps, axes):
        d = wide(x) - wide(x).mean(axes, keepdims=True)
        y = d / np.sqrt(np.square(d).mean(axes, keepdims=True) + d.dtype.type(eps))
        y = y if gamma is None else y * wide(gamma)
        return output(y if beta is None else y + wide(beta), x.dtype)

    return layer_norm


def through_float16(y, dtype):
    """Mostly a second rounding, and infinite where the result is beyond float16's range."""
    with np.errstate(over="ignore"):
        return y.astype(np.float16).astype(dtype)


def infinite_from_100(y, dtype):
    """Infinite in some places."""
    return np.where(np.abs(y) < 100, y, np.inf).astype(dtype)


@pytest.mark.parametrize("dtype", others_at_night(["bfloat16", "float32"], ["float32"]))
def test_a_few_infinite_values_do_not_hide_what_all_values_are(dtype):
    """An infinite value lies within no rounding of a finite one: y is not infinite, and no input was rounded."""
    target = resolve(layer_norm_by(through_float16), op="layer_norm", framework="numpy")
    (cause,) = run(target, dtypes=(dtype,), explain=True, forward_only=True).causes
    assert cause.sentence == "y is the right value rounded to float16."


def test_what_is_infinite_in_some_places_is_not_infinite_everywhere():
    """Where y is finite it is right, so the sentence says where it is infinite, or how often."""
    target = resolve(layer_norm_by(infinite_from_100), op="layer_norm", framework="numpy")
    (cause,) = run(target, dtypes=("float32",), explain=True, forward_only=True).causes
    assert "y is infinite." not in cause.sentence


def gradients(x, gamma, beta, g, eps, axes):
    """Those of layer_norm."""
    d = wide(x) - wide(x).mean(axes, keepdims=True)
    r = 1 / np.sqrt(np.square(d).mean(axes, keepdims=True) + d.dtype.type(eps))
    h = wide(g) if gamma is None else wide(g) * wide(gamma)
    dx = r * (h - h.mean(axes, keepdims=True) - d * r * (h * d * r).mean(axes, keepdims=True))
    samples = tuple(range(x.ndim - len(axes)))
    dgamma = None if gamma is None else (wide(g) * d * r).sum(samples).astype(gamma.dtype)
    return dx.astype(x.dtype), dgamma, None if beta is None else wide(g).sum(samples).astype(beta.dtype)


def layer_norm_vjp(x, gamma, beta, g, *, eps, axes):
    """Computes everything anew, with an eps that is not the one given."""
    return gradients(x, gamma, beta, g, 1e-5, axes)


@pytest.mark.nightly
def test_the_eps_of_a_backward_pass_of_its_own():
    """A backward pass that computes the statistics anew with a default has that default's number in the sentence."""
    right = layer_norm_by(lambda y, dtype: y.astype(dtype))
    right.vjp = layer_norm_vjp
    target = resolve(right, op="layer_norm", framework="numpy")
    (cause,) = run(target, dtypes=("float32",), explain=True).causes
    assert cause.sentence.lower().startswith("dx and dgamma are what the formula gives with 1e-05 in place of eps; ")


def recovering(at_zero):
    """A backward pass that divides y - beta by gamma, and has a number of its own where gamma is zero."""

    def layer_norm(x, gamma, beta, *, eps, axes):
        return right(x, gamma, beta, eps=eps, axes=axes)

    def vjp(x, gamma, beta, g, *, eps, axes):
        if gamma is None:
            return gradients(x, gamma, beta, g, eps, axes)
        y, shape = wide(right(x, gamma, beta, eps=eps, axes=axes)), wide(gamma)
        r = 1 / np.sqrt(wide(x).var(axes, keepdims=True) + wide(x).dtype.type(eps))
        small = np.abs(shape) < at_zero
        xhat = (y if beta is None else y - wide(beta)) / np.where(small, y.dtype.type(at_zero), shape)
        h = wide(g) * shape
        dx = r * (h - h.mean(axes, keepdims=True) - xhat * (h * xhat).mean(axes, keepdims=True))
        samples = tuple(range(x.ndim - len(axes)))
        dgamma = (wide(g) * xhat).sum(samples).astype(gamma.dtype)
        return dx.astype(x.dtype), dgamma, None if beta is None else wide(g).sum(samples).astype(beta.dtype)

    right = layer_norm_by(lambda y, dtype: y.astype(dtype))
    layer_norm.vjp = vjp
    return layer_norm


@pytest.mark.parametrize(("at_zero", "words"), [(1e-6, ", and 0 where gamma is 0"), (0.0, "")])
@pytest.mark.parametrize("dtype", others_at_night(["float32", "float16"], ["float32"]))
def test_normalised_values_that_are_recovered_from_y(at_zero, words, dtype):
    """What a gamma of zero has hidden is not in y: the sentence tells what it is taken from, and no lost additions."""
    target = resolve(recovering(at_zero), op="layer_norm", framework="numpy")
    with np.errstate(all="ignore"):
        (cause,) = run(target, dtypes=(dtype,), explain=True).causes
    formula = f"what the formula gives with (y - beta) / gamma in place of xhat{words}"
    assert cause.sentence == f"dx and dgamma are {formula}; y and dbeta are right."


def pre_norm(x, sublayer, gamma, beta, *, eps):
    """Right; its gradient is not."""
    d = wide(x) - wide(x).mean(-1, keepdims=True)
    z = d / np.sqrt(np.square(d).mean(-1, keepdims=True) + d.dtype.type(eps))
    z = z if gamma is None else z * wide(gamma)
    z = (z if beta is None else z + wide(beta)).astype(x.dtype)
    return (wide(x) + wide(sublayer(z))).astype(x.dtype)


def pre_norm_vjp(x, sublayer, gamma, beta, g, *, eps):
    """dgamma is formed from gamma q in the place of q."""
    d = wide(x) - wide(x).mean(-1, keepdims=True)
    r = 1 / np.sqrt(np.square(d).mean(-1, keepdims=True) + d.dtype.type(eps))
    xhat = d * r
    z = xhat if gamma is None else xhat * wide(gamma)
    z = (z if beta is None else z + wide(beta)).astype(x.dtype)
    q = wide(sublayer.vjp(z, g))
    h = q if gamma is None else q * wide(gamma)
    dx = wide(g) + r * (h - h.mean(-1, keepdims=True) - xhat * (h * xhat).mean(-1, keepdims=True))
    lead = tuple(range(x.ndim - 1))
    dgamma = None if gamma is None else (h * xhat).sum(lead).astype(gamma.dtype)
    return dx.astype(x.dtype), dgamma, None if beta is None else q.sum(lead).astype(beta.dtype)


def test_a_gain_too_many_in_the_gradient_of_the_gain():
    """dgamma formed from gamma q, as dx is, is described."""
    pre_norm.vjp = pre_norm_vjp
    target = resolve(pre_norm, op="pre_norm", framework="numpy")
    (cause,) = run(target, dtypes=("float32",), explain=True).causes
    assert cause.sentence.startswith("dgamma is gamma times the right value; ")


def _sentence(wrong, names):
    place = Place("where there are several branches", lambda one: True)
    return sentence_of([WrongResult(one, place=place) for one in wrong], ["y", "dx", *names], ["y"])


def test_dozens_of_leaves_are_not_named_one_by_one():
    """What is right in a few words, what is wrong with a number."""
    leaves = [f"dbranches.{place}.h" for place in range(40)]
    assert (
        _sentence(["dx"], leaves) == "dx is wrong, and only where there are several branches; everything else is right."
    )
    assert _sentence(["dx"], leaves[:2]).endswith("y, dbranches.0.h and dbranches.1.h are right.")
    assert _sentence(leaves, leaves).startswith("dbranches.0.h, dbranches.1.h and 38 others are wrong, and only where")


def highway_of_kept_logits(x, transform, gate, *, carry=None):
    """The gate's logits are kept within 60."""
    z = np.clip(wide(gate(x)), -60, 60)
    c = 1 / (1 + np.exp(z)) if carry is None else 1 / (1 + np.exp(-wide(carry(x))))
    return (wide(transform(x)) / (1 + np.exp(-z)) + wide(x) * c).astype(x.dtype)


def test_what_extreme_cases_alone_show_is_not_said_of_all():
    """What is added is e^-60 there; in ordinary cases nothing that small shows, so nothing speaks against it."""
    (cause,) = run(function("highway", highway_of_kept_logits), explain=True, forward_only=True).causes
    assert "plus" not in cause.sentence
    assert cause.sentence.startswith("y is wrong in ")


def _overwriting_the_cotangent(content, where):
    """A layer_norm whose backward pass leaves ``content(g, mean of g)`` in the cotangent, ``where`` (x, gamma)."""

    def vjp(x, gamma, beta, g, *, eps, axes):
        found = gradients(x, gamma, beta, g, eps, axes)
        if where(x, gamma):
            g[...] = content(g, g.mean(axes, keepdims=True))
        return found

    right = layer_norm_by(lambda y, dtype: y.astype(dtype))
    right.vjp = vjp
    return resolve(right, op="layer_norm", framework="numpy")


@pytest.mark.parametrize(
    ("content", "where", "words"),
    [
        # Zeros where a group has one value.
        (lambda g, mean: g - mean, lambda x, gamma: gamma is None, "gradients: it holds g - mean(g) afterwards"),
        (lambda g, mean: g * 0, lambda x, gamma: gamma is None, "gradients: it holds zeros afterwards"),
        # Ones where a group has one value, but for a zero.
        (lambda g, mean: g / mean, lambda x, gamma: gamma is None, "gradients"),
        (lambda g, mean: g - mean, lambda x, gamma: x.shape[-1] > 64, "gradients: it holds g - mean(g) afterwards"),
    ],
    ids=["centred", "zeros", "divided", "large"],
)
def test_what_an_overwritten_array_holds_is_true_of_the_shown_case(content, where, words):
    """It is told if the shown case and another one agree on it, and the shown one is among those that are looked at."""
    target = _overwriting_the_cotangent(content, where)
    (cause,) = run(target, requirements=["CM-P1"], explain=True).causes
    assert cause.sentence == f"The cotangent is changed by taking {words}; every plain call that was tried is right."


def _wrong_now_and_then(above, *, tracks):
    """A layer_norm that is wrong in one of three calls of more groups than this, or once where gradients are taken."""
    random, wrongs = np.random.default_rng(0), 0

    def output(y, dtype):
        nonlocal wrongs
        wrong = y.shape[0] > above and (not wrongs and tracked if tracks else random.integers(3) == 0)
        wrongs += wrong
        return (y * (1.5 if wrong else 1)).astype(dtype)

    def prepare(*, mode, wrt):
        nonlocal tracked
        tracked = bool(wrt)

    tracked, right = False, layer_norm_by(output)
    right.vjp = lambda x, gamma, beta, g, *, eps, axes: gradients(x, gamma, beta, g, eps, axes)
    target = resolve(right, op="layer_norm", framework="numpy")
    if tracks:
        target = replace(target, bindings=(replace(target.bindings[0], prepare=prepare),))
    return target


@pytest.mark.parametrize("tracks", others_at_night([False, True], [True]), ids=["at random", "once where tracked"])
def test_what_does_not_repeat_itself_is_no_matter_of_tracking(tracks):
    """Before CM-P6 is violated, both calls are repeated: what is gone then is a violation of CM-P2."""
    report = run(_wrong_now_and_then(64, tracks=tracks), requirements=["CM-P2", "CM-P6"], explain=True)
    assert {one.requirement for one in report.failures()} == {"CM-P2"}
    assert not any("tracked" in cause.sentence for cause in report.causes)


@pytest.mark.nightly
def test_what_large_calls_do_now_and_then_is_described():
    """The shown case is among those whose calls are repeated: smaller ones are right each time."""
    (cause,) = run(_wrong_now_and_then(64, tracks=False), requirements=["CM-P2", "CM-S1"], explain=True).causes
    assert cause.requirement == "CM-P2"
    assert cause.sentence == "y is wrong in some calls and right in others, with the same arguments."


def clamped(x, gamma, beta, *, eps, axes):
    """The normalised value is kept within 64."""
    d = wide(x) - wide(x).mean(axes, keepdims=True)
    xhat = np.clip(d / np.sqrt(np.square(d).mean(axes, keepdims=True) + d.dtype.type(eps)), -64, 64)
    y = xhat if gamma is None else xhat * wide(gamma)
    return (y if beta is None else y + wide(beta)).astype(x.dtype)


@pytest.mark.nightly
def test_a_formula_with_a_number_has_to_predict_two_values():
    """In the sweep of sizes one large value of a group is wrong, always the same one: some number fits that anyway."""
    target = resolve(clamped, op="layer_norm", framework="numpy")
    report = run(target, requirements=["CM-S1"], explain=True, forward_only=True, profile="standard")
    (cause,) = report.causes
    assert "what the formula gives" not in cause.sentence
    assert "64 gamma, with the sign of xhat" in cause.sentence


def instance_norm(x, gamma, beta, *, eps, channel_axis):
    """Of two positions that are as many as the channels, the last is taken for theirs by gamma."""
    axis = channel_axis % x.ndim
    around = tuple(place for place in range(1, x.ndim) if place != axis)
    d = wide(x) - wide(x).mean(around, keepdims=True)
    y = d / np.sqrt(np.square(d).mean(around, keepdims=True) + d.dtype.type(eps))

    def along(value, place):
        return wide(value).reshape([-1 if one == place else 1 for one in range(x.ndim)])

    square = x.ndim == 5 and axis == 4 and x.shape[3] == x.shape[4]
    y = y if gamma is None else y * along(gamma, axis - square)
    return (y if beta is None else y + along(beta, axis)).astype(x.dtype)


@pytest.mark.nightly
def test_a_formula_is_told_only_if_right_values_do_not_contradict_it():
    """Where a case is wrong in part, the formula has to give the rest of it as well, and that of several channels."""
    (cause,) = run(function("instance_norm", instance_norm), explain=True, forward_only=True).causes
    assert "feature" not in cause.sentence
    assert cause.sentence.startswith("y is wrong")


def rms_norm(x, gamma, *, eps, axes):
    """Right; its gradient is not."""
    y = wide(x) / np.sqrt(np.square(wide(x)).mean(axes, keepdims=True) + wide(x).dtype.type(eps))
    return (y if gamma is None else y * wide(gamma)).astype(x.dtype)


def rms_norm_vjp(x, gamma, g, *, eps, axes):
    """One sum of more than 2048 values is divided by their number rounded up to a power of two."""
    n = int(np.prod([x.shape[axis] for axis in axes]))
    r = 1 / np.sqrt(np.square(wide(x)).mean(axes, keepdims=True) + wide(x).dtype.type(eps))
    h, xhat = wide(g) if gamma is None else wide(g) * wide(gamma), wide(x) * r
    share = n / (1 << (n - 1).bit_length()) if n > 2048 and len(axes) == 1 else 1
    dx = r * (h - xhat * ((h * xhat).mean(axes, keepdims=True) * xhat.dtype.type(share)))
    dgamma = None if gamma is None else (wide(g) * xhat).sum(tuple(range(x.ndim - len(axes)))).astype(gamma.dtype)
    return dx.astype(x.dtype), dgamma


@pytest.mark.nightly
def test_from_some_size_on_is_true_of_every_size_that_was_tried():
    """Just above a power of two half of the term is left, at other sizes another part of it."""
    rms_norm.vjp = rms_norm_vjp
    target = resolve(rms_norm, op="rms_norm", framework="numpy")
    (cause,) = run(target, requirements=["CM-S1", "RM-G1"], explain=True).causes
    assert "1/2" not in cause.sentence
    assert "or more" not in cause.sentence
    assert cause.sentence.startswith("dx is wrong")


def batch_norm(x, gamma, beta, running_mean, running_var, *, eps, momentum, training, channel_axis):
    """The new running mean of more than 20 samples that have positions is a little too large."""
    axis = channel_axis % x.ndim
    around = tuple(place for place in range(x.ndim) if place != axis)

    def along(value):
        return wide(value).reshape([-1 if one == axis else 1 for one in range(x.ndim)])

    values = wide(x)
    mean, variance = (values.mean(around), values.var(around)) if training else (running_mean, running_var)
    y = (values - along(mean)) / np.sqrt(along(variance) + values.dtype.type(eps))
    y = y if gamma is None else y * along(gamma)
    y = (y if beta is None else y + along(beta)).astype(x.dtype)
    if not training:
        return y, running_mean.copy(), running_var.copy()
    step = values.dtype.type(momentum)
    new_mean = (1 - step) * wide(running_mean) + step * mean
    if x.ndim > 2 and x.shape[0] > 20:
        new_mean = new_mean + abs(new_mean) / 8
    new_variance = (1 - step) * wide(running_var) + step * variance
    return y, new_mean.astype(running_mean.dtype), new_variance.astype(running_var.dtype)


@pytest.mark.nightly
def test_sizes_are_compared_among_cases_of_one_shape():
    """The sweep has two axes up to 33 samples and four from 34 on; and the values of a channel are no samples."""
    report = run(function("batch_norm", batch_norm), requirements=["CM-S1"], explain=True, forward_only=True)
    (cause,) = report.causes
    assert "right up to 20 samples in training, wrong from 21 on" in cause.sentence


def rounding_where_mixed(x, gamma, beta, *, eps, axes):
    """The reciprocal deviation is rounded to the dtype of x where a parameter is wider than that."""
    d = wide(x) - wide(x).mean(axes, keepdims=True)
    r = 1 / np.sqrt(np.square(d).mean(axes, keepdims=True) + d.dtype.type(eps))
    mixed = any(one is not None and one.dtype != x.dtype for one in (gamma, beta))
    y = d * (wide(r.astype(x.dtype)) if mixed else r)
    y = y if gamma is None else y * wide(gamma)
    return (y if beta is None else y + wide(beta)).astype(x.dtype)


@pytest.mark.parametrize("dtype", others_at_night(["bfloat16", "float16"], ["float16"]))
def test_what_mixed_dtypes_alone_show_is_said_of_them(dtype):
    """Few cases of a deck have them, so others are tried with them too."""
    target = resolve(rounding_where_mixed, op="layer_norm", framework="numpy")
    (cause,) = run(target, dtypes=(dtype,), requirements=["CM-D1", "LN-F1"], explain=True, forward_only=True).causes
    assert cause.explains == ("CM-D1",)
    assert " cases, always where 16-bit data comes with float32 parameters" in cause.sentence


@pytest.mark.parametrize(
    ("is_wrong", "place"),
    [
        (lambda x, axes: len(axes) >= 4, "where the number of normalised axes is 4 or more"),
        (lambda x, axes: x.ndim >= 6, "where the number of axes of x is 6 or more"),
    ],
    ids=["normalised", "all"],
)
def test_axes_are_told_from_normalised_axes(is_wrong, place):
    """In the deck only four normalised axes come with six of x, so other cases are tried that tell the two apart."""

    def layer_norm(x, gamma, beta, *, eps, axes):
        larger = 1.25 if is_wrong(x, axes) else 1
        return layer_norm_by(lambda y, dtype: (y * larger).astype(dtype))(x, gamma, beta, eps=eps, axes=axes)

    target = resolve(layer_norm, op="layer_norm", framework="numpy")
    (cause,) = run(target, requirements=["LN-F1", "LN-F7"], explain=True, forward_only=True).causes
    assert cause.sentence == f"y is 5/4 times the right value {place}."


def rms_norm_by_a_table(x, gamma, *, eps, axes):
    """Each value is off by up to 3e-5 of itself, whatever their number."""
    right = wide(x) / np.sqrt(np.square(wide(x)).mean(axes, keepdims=True) + wide(x).dtype.type(eps))
    y = (right * (1 + 3e-5 * np.sin(3.0 * np.arange(x.size).reshape(x.shape) + 1.5))).astype(np.float32)
    return y if gamma is None else y * gamma


def test_an_error_that_larger_sizes_are_allowed_is_not_said_to_be_gone_there():
    """The envelope grows with the number of values, and the error does not."""
    target = resolve(rms_norm_by_a_table, op="rms_norm", framework="numpy")
    (cause,) = run(target, requirements=["RM-F1", "CM-S1"], explain=True, forward_only=True).causes
    words = "y is off by about as much at every number of values in a group, up to 0.002 % of the largest right value: "
    assert cause.sentence.startswith(f"{words}that is allowed from ")


def rms_norm_of_limited(x, gamma, *, eps, axes):
    """Limits x to what float16 holds."""
    limited = wide(x).clip(-65504, 65504)
    y = limited / np.sqrt(np.square(limited).mean(axes, keepdims=True) + limited.dtype.type(eps))
    return (y if gamma is None else y * gamma).astype(x.dtype)


def test_an_x_that_is_limited_is_told():
    """Groups of two large values have the same result as if each value were normalised alone."""
    target = resolve(rms_norm_of_limited, op="rms_norm", framework="numpy")
    (cause,) = run(target, dtypes=("float32",), explain=True, forward_only=True).causes
    assert "y is what the formula gives with x limited to between -65504 and 65504" in cause.sentence


def test_what_has_no_pattern_is_searched_in_one_dtype_and_told_in_both(monkeypatch):
    """Relations are fitted in the dtype that shows a mistake best; the other one says how often, and how far off."""
    fitted: list[str] = []
    as_it_was = LinearRelation.fitted

    def noting(self, seen, where):
        fitted.extend(one.case.x.dtype.name for one in seen[:1])
        return as_it_was(self, seen, where)

    monkeypatch.setattr(LinearRelation, "fitted", noting)
    target = resolve(
        layer_norm_by(lambda y, dtype: (y * (1 + np.tanh(y) / 128)).astype(dtype)), op="layer_norm", framework="numpy"
    )
    (cause,) = run(target, dtypes=("float32", "float64"), explain=True, forward_only=True).causes
    assert "without a pattern that was found" in cause.sentence
    assert set(cause.dtypes) == {"float32", "float64"}
    assert set(fitted) == {"float32"}
