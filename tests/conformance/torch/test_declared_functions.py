"""Wrappers of layers that follow another convention: each conforms as it declares, and does not undeclared."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from normspec.adapters.binding import Binding
from normspec.adapters.target import Target
from normspec.adapters.torch import BRIDGE
from normspec.adapters.torch.layers import LAYER_NORM

from ..runs import run


def layer_norm_fp32(x, gamma, beta, *, eps, axes):
    """timm's LayerNormFp32."""
    parameters = (None if p is None else p.float() for p in (gamma, beta))
    return functional.layer_norm(x.float(), x.shape[-len(axes) :], *parameters, eps).to(x.dtype)


def deberta(x, gamma, beta, *, eps, axes):
    """DeBERTa's LayerNorm, with its affine map in the dtype of the data."""
    h = x.float()
    mean = h.mean(axes, keepdim=True)
    h = (h - mean) / torch.sqrt((h - mean).pow(2).mean(axes, keepdim=True) + eps)
    y = h.to(x.dtype)
    y = y if gamma is None else gamma * y
    return y if beta is None else y + beta


def one_plus(x, weight, beta, *, eps, axes):
    """NemotronLayerNorm1P: the weight that is stored is added to 1."""
    wide = torch.promote_types(x.dtype, torch.float32)
    gamma = None if weight is None else weight.to(wide) + 1
    beta = None if beta is None else beta.to(wide)
    return functional.layer_norm(x.to(wide), x.shape[-len(axes) :], gamma, beta, eps).to(x.dtype)


def nemotron(x, weight, beta, *, eps, axes):
    """NemotronLayerNorm1P as it is written: the 1 is added in the dtype of the weight."""
    return one_plus(x, None if weight is None else (weight + 1).to(torch.float32) - 1, beta, eps=eps, axes=axes)


def gemma(x, weight, beta, *, eps, axes):
    """Gemma's (1 + weight) * xhat, about a mean."""
    d = x.to(torch.promote_types(x.dtype, torch.float32))
    d = d - d.mean(axes, keepdim=True)
    y = d * torch.rsqrt(d.pow(2).mean(axes, keepdim=True) + eps)
    y = y if weight is None else y * (1 + weight.to(y.dtype))
    return (y if beta is None else y + beta).to(x.dtype)


def promoting(x, gamma, beta, *, eps, axes):
    """A layer that leaves y in the framework's promoted dtype."""
    h = x.to(torch.promote_types(x.dtype, torch.float32))
    h = h - h.mean(axes, keepdim=True)
    y = (h / torch.sqrt(h.pow(2).mean(axes, keepdim=True) + eps)).to(x.dtype if gamma is beta is None else h.dtype)
    y = y if gamma is None else y * gamma
    y = y if beta is None else y + beta
    return y.to((x if gamma is beta is None else gamma if beta is None else beta).dtype)


DECLARED = [
    (layer_norm_fp32, "float64", "float32", ("float64",)),
    (deberta, "float64", "float32", ("float64",)),
    (one_plus, "gain", "one-plus-gamma", ("float16", "bfloat16", "float32", "float64")),
    (gemma, "gain", "one-plus-gamma", ("float16", "bfloat16", "float32", "float64")),
    (promoting, "mixed_dtypes", "promoted", ("float16", "bfloat16")),
]


@pytest.mark.parametrize(("function", "key", "value", "dtypes"), DECLARED, ids=lambda one: getattr(one, "__name__", ""))
def test_a_wrapper_conforms_as_it_declares(function, key, value, dtypes):
    """With the declaration nothing is violated and nothing that matters left out; without it, each dtype violates."""
    of_torch = LAYER_NORM.known_violations if function in (layer_norm_fp32, one_plus) else ()  # which they call
    binding = Binding("layer_norm", "own", function, known_violations=of_torch)
    target = Target("own", "torch", BRIDGE.version, BRIDGE, (binding,))
    declared = run(target, dtypes=dtypes, conventions={key: value})
    assert declared.failures() == declared.errors() == ()
    assert declared.conforms
    lacking = {r.requirement for r in declared.results if r.verdict.value in ("unsupported", "not-exercised")}
    assert lacking <= {"LN-R2"}
    wanted = {"LN-F1", "LN-G1", "CM-D2"}
    failing = {r.dtype for r in run(target, dtypes=dtypes, requirements=wanted).failures()}
    assert failing == set(dtypes)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(
    ("function", "storage", "verdict"),
    [(nemotron, "H0", "fail"), (nemotron, "native", "pass"), (one_plus, "H0", "pass"), (gemma, "H0", "pass")],
)
def test_the_1_of_a_stored_gain_is_added_in_float32(function, storage, verdict, dtype):
    """1 + w rounded to 16 bits violates LN-F5, for weights that match no 16-bit gamma, unless all may round."""
    target = Target("own", "torch", BRIDGE.version, BRIDGE, (Binding("layer_norm", "own", function),))
    conventions = {"gain": "one-plus-gamma", "storage": storage}
    report = run(target, dtypes=(dtype,), conventions=conventions, requirements={"LN-F5"})
    assert [result.verdict.value for result in report.results] == [verdict]


def test_an_undeclared_promotion_violates_its_dtype_alone():
    """A y in float32 fails CM-D2; with a cotangent of float32 the numbers and CM-D3 are judged all the same."""
    target = Target("own", "torch", BRIDGE.version, BRIDGE, (Binding("layer_norm", "own", promoting),))
    report = run(target, dtypes=("bfloat16",), requirements={"CM-D1", "CM-D2", "CM-D3"})
    assert [result.verdict.value for result in report.results] == ["pass", "fail", "pass"]
