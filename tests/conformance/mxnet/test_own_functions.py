"""A plain function of MXNet conforms as it is: mistakes of MXNet's operations do not count against it."""

from __future__ import annotations

import os
from pathlib import Path

import normspec
from normspec import Verdict

PLAIN = """
import mxnet as mx
import numpy as np


def layer_norm(x, gamma, beta, *, eps, axes):
    wide = x if np.dtype(x.dtype) == np.float64 else x.astype("float32")
    mean = wide.mean(axis=axes, keepdims=True)
    d = mx.nd.broadcast_sub(wide, mean)
    y = mx.nd.broadcast_div(d, mx.nd.sqrt(mx.nd.square(d).mean(axis=axes, keepdims=True) + eps))
    if gamma is not None:
        y = mx.nd.broadcast_mul(y, gamma.astype(y.dtype))
    if beta is not None:
        y = mx.nd.broadcast_add(y, beta.astype(y.dtype))
    return y.astype(x.dtype)
"""


def test_a_plain_function_conforms(tmp_path: Path) -> None:
    """In every dtype, without a flag; that MXNet cannot add up nothing is reported, as MXNet's."""
    file = tmp_path / "plain.py"
    file.write_text(PLAIN, encoding="utf-8")
    report = normspec.check(f"{file}:layer_norm", python=os.environ["NORMSPEC_MXNET_PYTHON"], profile="quick")
    assert report.conforms, report.failures()
    deviating = {r.requirement for r in report.results if r.verdict is Verdict.DEVIATES}
    assert deviating == {"CM-S2"}
    assert {r.dtype for r in report.results} == {"float16", "float32", "float64"}
