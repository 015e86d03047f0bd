"""A declaration that a run verified is the cause of what no mistake of the library explains."""

from __future__ import annotations

import numpy as np
import pytest

from normspec.adapters.targets import resolve

from .runs import run


def in_single_precision(x, gamma, beta, *, eps, axes):
    """A layer_norm in float32, by another root than the library's functions take."""
    wide = x.astype(np.float32)
    d = wide - wide.mean(axes, keepdims=True)
    y = d * np.float32(1) / np.sqrt(np.square(d).mean(axes, keepdims=True) + np.float32(eps))
    y = y if gamma is None else y * gamma.astype(np.float32)
    return (y if beta is None else y + beta.astype(np.float32)).astype(x.dtype)


def partly_summed(x, gamma, beta, *, eps, axes):
    """A sound layer_norm, except that the variance of 5120 values is that of the first 4096."""
    d = x - x.mean(axes, keepdims=True)
    summed = d[..., :4096] if d.shape[-1] == 5120 else d
    y = d / np.sqrt(np.square(summed).mean(axes, keepdims=True) + x.dtype.type(eps))
    y = y if gamma is None else y * gamma
    return y if beta is None else y + beta


def of_a_root_in_two_steps(x, gamma, beta, *, eps, axes):
    """A layer_norm whose root in float64 begins in float32, and is left some roundings short of exact."""
    d = x - x.mean(axes, keepdims=True)
    wide = np.square(d).mean(axes, keepdims=True) + x.dtype.type(eps)
    root = (1 / np.sqrt(wide.astype(np.float32))).astype(x.dtype)
    better = root * (1.5 - 0.5 * wide * root * root)
    y = d * np.where(np.isfinite(root) & (root > 0) & (wide > 1e-30), better, 1 / np.sqrt(wide))
    y = y if gamma is None else y * gamma
    return y if beta is None else y + beta


def report_on(call, *dtypes, **rest):
    """The report on a layer_norm without gradients."""
    target = resolve(call, op="layer_norm", framework="numpy")
    return run(target, dtypes=dtypes, explain=True, forward_only=True, **rest)


def test_float64_in_float32():
    """It is named as what is done, with what to declare, and every violation refers to it."""
    report = report_on(in_single_precision, "float32", "float64")
    (cause,) = report.causes
    assert (cause.convention, cause.dtypes) == ("float64=float32", ("float64",))
    assert cause.sentence == "Computes float64 in float32; float64=float32 allows it."
    assert "declare float64=float32" in cause.remedy
    assert {one.diagnosis for one in report.failures()} == {cause.sentence}
    assert [one.requirement for one in report.failures() if not one.follows_from] == [cause.leading]


def right(x, gamma, beta, *, eps, axes):
    """A sound layer_norm; its gradient of beta is summed in float32."""
    d = x - x.mean(axes, keepdims=True)
    y = d / np.sqrt(np.square(d).mean(axes, keepdims=True) + x.dtype.type(eps))
    y = y if gamma is None else y * gamma
    return y if beta is None else y + beta


def right_vjp(x, gamma, beta, g, *, eps, axes):
    """The gradients of parameters are summed in float32, whatever is given."""
    d = x - x.mean(axes, keepdims=True)
    r = 1 / np.sqrt(np.square(d).mean(axes, keepdims=True) + x.dtype.type(eps))
    h = g if gamma is None else g * gamma
    dx = r * (h - h.mean(axes, keepdims=True) - d * r * (h * d * r).mean(axes, keepdims=True))
    samples = tuple(range(x.ndim - len(axes)))
    summed = [(g * d * r).astype(np.float32).sum(samples), g.astype(np.float32).sum(samples)]
    dgamma, dbeta = (
        None if one is None else total.astype(one.dtype) for one, total in zip((gamma, beta), summed, strict=True)
    )
    return dx, dgamma, dbeta


@pytest.mark.nightly
def test_gradients_in_float32_are_not_all_of_it():
    """Where y is right, the sentence does not say that everything is computed in float32."""
    right.vjp = right_vjp
    target = resolve(right, op="layer_norm", framework="numpy")
    (cause,) = run(target, dtypes=("float64",), explain=True).causes
    assert cause.convention == "float64=float32"
    assert cause.sentence == "Computes a part of what it returns for float64 in float32; float64=float32 allows it."


def as_in_llama(x, gamma, *, eps, axes):
    """RMSNorm in float32 whatever x is, rounded to its dtype before the gain, whose dtype the product may have."""
    wide = x.astype(np.float32)
    normalised = wide / np.sqrt(np.square(wide).mean(axes, keepdims=True) + np.float32(eps))
    return normalised.astype(x.dtype) if gamma is None else normalised.astype(x.dtype) * gamma


@pytest.mark.nightly
def test_three_declarations_that_only_together_excuse():
    """The RMSNorm that most language models have. Each dtype needs others, and the product ends in float64."""
    target = resolve(as_in_llama, op="rms_norm", framework="numpy")
    report = run(target, dtypes=("bfloat16", "float64"), explain=True)
    assert set(report.subjects[0]["passes_under"]) == {"mixed_dtypes=promoted", "cast=before-gain", "float64=float32"}
    (cause,) = report.causes
    assert cause.sentence == (
        "Returns results in the dtype of float32 parameters; rounds to 16 bits before the gain; computes float64 in"
        " float32; mixed_dtypes=promoted, cast=before-gain and float64=float32 together allow it."
    )


def test_an_error_of_some_roundings_is_not_one_of_float32():
    """Such results lie within the envelopes of float32 too, as all do that are nearer: that describes nothing."""
    report = report_on(of_a_root_in_two_steps, "float64", requirements=("LN-F1",))
    assert report.failures() and not report.subjects[0]["passes_under"]
    assert not any(cause.convention for cause in report.causes)


def of_a_third_in_float32(x, gamma, beta, *, eps, axes):
    """The reciprocal of the number of values is rounded to float32."""
    share = np.float32(1) / np.float32(np.prod([x.shape[axis] for axis in axes]))
    d = x - x.sum(axes, keepdims=True) * x.dtype.type(share)
    y = d / np.sqrt(np.square(d).sum(axes, keepdims=True) * x.dtype.type(share) + x.dtype.type(eps))
    y = y if gamma is None else y * gamma
    return y if beta is None else y + beta


def test_what_is_no_float32_number_was_not_computed_in_float32():
    """A constant that was rounded to float32 costs half of the digits too; the results have all of float64's."""
    report = report_on(of_a_third_in_float32, "float64")
    assert report.failures() and not report.subjects[0]["passes_under"]
    assert not any("float32" in cause.sentence for cause in report.causes)


@pytest.mark.nightly
def test_a_wider_envelope_is_not_a_cause():
    """What would pass under a weaker class of accuracy is described as it was, and the class is offered apart."""
    report = report_on(partly_summed, "float32", profile="standard", requirements=("CM-S1",))
    assert report.subjects[0]["passes_under"]
    assert [one.convention for one in report.causes] == [""]
