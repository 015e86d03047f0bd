"""A second mistake, of another kind, in a function whose values are wrong: neither is told as the other."""

from __future__ import annotations

import numpy as np
import pytest

from normspec.adapters.targets import resolve
from normspec.conformance.diagnosis.search import Search

from .runs import run


def layer_norm_of(x, gamma, beta, eps, axes):
    """The formula, in float32 at least."""
    wide = x.astype(np.result_type(x.dtype, np.float32))
    d = wide - wide.mean(axes, keepdims=True)
    y = d / np.sqrt(np.square(d).mean(axes, keepdims=True) + wide.dtype.type(eps))
    y = y if gamma is None else y * gamma
    return (y if beta is None else y + beta).astype(x.dtype)


def larger(y, is_wrong):
    """Y, a tenth larger where it is wrong."""
    return y * y.dtype.type(1.1) if is_wrong else y


def hides_nan(x, gamma, beta, *, eps, axes):
    """Wrong without gamma, and a NaN in x is taken for 0."""
    return larger(layer_norm_of(np.nan_to_num(x), gamma, beta, eps, axes), gamma is None)


def misreads_views(x, gamma, beta, *, eps, axes):
    """Wrong without gamma, and another x is read where it is not contiguous."""
    read = x if x.flags.c_contiguous else np.ascontiguousarray(x)[..., ::-1]
    return larger(layer_norm_of(read, gamma, beta, eps, axes), gamma is None)


def overwrites_x(x, gamma, beta, *, eps, axes):
    """Wrong without gamma, and x is overwritten."""
    y = larger(layer_norm_of(x, gamma, beta, eps, axes), gamma is None)
    if x.flags.writeable:
        x[...] = y
    return y


def raises_without_groups(x, gamma, beta, *, eps, axes):
    """Wrong without gamma, and raises for an x without values."""
    if not x.size:
        raise ValueError("no values")
    return larger(layer_norm_of(x, gamma, beta, eps, axes), gamma is None)


def misreads_views_of_three_axes_too(x, gamma, beta, *, eps, axes):
    """Wrong for three axes, and another x is read where it is not contiguous."""
    read = x if x.flags.c_contiguous else np.ascontiguousarray(x)[..., ::-1]
    return larger(layer_norm_of(read, gamma, beta, eps, axes), x.ndim == 3)


def diagnosed(function, requirements=None):
    """The report on a function, with its causes."""
    target = resolve(function, op="layer_norm", framework="numpy")
    return run(target, requirements=requirements, explain=True, forward_only=True)


@pytest.mark.parametrize(
    ("function", "other"),
    [(hides_nan, "CM-N3"), (misreads_views, "CM-V1"), (raises_without_groups, "CM-S2")],
)
def test_what_wrong_values_do_not_show_is_none_of_theirs(function, other):
    """The other mistake is violated and has no cause, although the plain call of its case is wrong too."""
    report = diagnosed(function, ("LN-F1", "LN-F4", "LN-F6", other))
    (cause,) = report.causes
    assert cause.sentence == "y is 1.1 times the right value where gamma is None."
    assert cause.requirement == "LN-F6"
    assert other not in cause.explains
    (violation,) = (one for one in report.failures() if one.requirement == other)
    assert violation.diagnosis is None


def test_an_overwritten_array_is_told_beside_wrong_values():
    """It is seen directly, so it is a cause by itself, with what the array holds."""
    causes = diagnosed(overwrites_x, ("LN-F1", "LN-F4", "LN-F6", "CM-P1")).causes
    assert [one.sentence for one in causes] == [
        "y is 1.1 times the right value where gamma is None.",
        "x is changed by the call: it holds y afterwards.",
    ]
    assert [one.explains[0] for one in causes] == ["LN-F6", "CM-P1"]


def test_that_plain_calls_are_right_is_said_only_where_they_are():
    """What is told of views does not hide that plain calls are wrong."""
    (cause,) = diagnosed(misreads_views_of_three_axes_too, ("CM-V1",)).causes
    assert cause.sentence.endswith("; some plain calls are wrong too.")


@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        (lambda x: x.copy(), "y is x itself."),
        (lambda x: x * 0, "y is zero."),
        (np.ones_like, "y is 1, whatever is given."),
    ],
    ids=["x", "zero", "one"],
)
def test_no_two_mistakes_are_sought_where_nothing_is_computed(monkeypatch, output, sentence):
    """The search for pairs takes most of a diagnosis, and no two steps of the formula give x or a number."""
    sought = []
    monkeypatch.setattr(Search, "_pairs", lambda search: sought.append(search) or [])

    def layer_norm(x, gamma, beta, *, eps, axes):
        return output(x)

    (cause,) = diagnosed(layer_norm, ("LN-F1", "LN-F2", "LN-F4", "LN-F6")).causes
    assert (cause.faults, cause.sentence, sought) == ((), sentence, [])
    assert diagnosed(lambda x, gamma, beta, *, eps, axes: x if gamma is None else x * gamma, ("LN-F1", "LN-F6")).causes
    assert sought
