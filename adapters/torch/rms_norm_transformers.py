"""
The RMSNorms of Hugging Face's ``transformers``, if that is installed: Llama's, T5's and Gemma's.

The package takes seconds to import, so it is imported only when one of its layers is needed, not with the adapter.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch.func import functional_call

from ...spec.errors import Unsupported
from ..binding import Binding
from ..departures import Departures
from ..known import Failure, KnownViolation, Predicted
from .layers import lent

_SOURCE = "https://github.com/huggingface/transformers/blob/main/src/transformers/models/"

_IN_FLOAT32 = {"float64=float32": "float64 data is computed in float32, and returned as float64"}

#: The conventions that Llama and T5 share.
_BEFORE_GAIN = {
    "cast=before-gain": "x / rms(x) is rounded to 16 bits before the weight multiplies it",
    "mixed_dtypes=promoted": "the last step is a product with the weight, so that a float32 weight makes y float32",
    **_IN_FLOAT32,
}


def _part_overflows(failure: Failure) -> Predicted:
    """Whether, at each element, one of the two terms of dx, r h and r xhat mean(h xhat), overflows float16."""
    assert failure.g is not None
    x, g = np.asarray(failure.inputs["x"], np.float64), np.asarray(failure.g, np.float64)
    gamma = failure.inputs["gamma"]
    h = g if gamma is None else g * np.asarray(gamma, np.float64)
    r = 1 / np.sqrt((x * x).mean(axis=-1, keepdims=True) + failure.settings["eps"])
    along = r * x * r * (h * x * r).mean(axis=-1, keepdims=True)
    # The terms rounded to float16 are off by a few units of that format, 2^-11.
    return np.maximum(np.abs(r * h), np.abs(along)) >= 65504 * (1 - 2.0**-8)


#: The requirements that judge dx itself, and so meet its overflow.
_ABOUT_DX = (
    "RM-G1", "RM-G6", "RM-G8", "CM-P2", "CM-P5", "CM-V1", "CM-V2", "CM-V3", "CM-N8", "CM-S1", "CM-D1",
)  # fmt: skip

#: T5 multiplies x itself, in 16 bits; Llama multiplies its float32 copy of x.
_T5_KNOWN = tuple(
    KnownViolation(
        requirement,
        "x enters the mean square and the product, and the gradient of each is rounded to float16 before they are"
        " added: a part overflows where their sum does not",
        links=(f"{_SOURCE}t5/modeling_t5.py (T5LayerNorm.forward)",),
        failures=("nan", "infinite"),
        outputs=("dx",),
        dtypes=("float16",),
        where="a part of dx beyond float16",
        predicts=_part_overflows,
        always=False,  # it shows only for eps so small that 1/sqrt(eps) overflows float16
    )
    for requirement in _ABOUT_DX
)


def _rms_norm(module: str, name: str):
    # One cache for each class; a module is determined by the number of features and eps.
    @lru_cache(maxsize=256)
    def module_of(features: int, **eps: float):
        with torch.device("meta"):
            return getattr(importlib.import_module(module), name)(features, **eps)

    def rms_norm(x, gamma, *, axes, mode, **eps):
        del axes  # always the last axis: accepts() declines other axes
        if gamma is None:
            raise Unsupported(f"{name} always has a weight")
        layer = module_of(x.shape[-1], **eps)
        layer.train(mode == "training")
        return functional_call(layer, lent(gamma, None), (x,))

    return rms_norm


def _binding(
    model: str, name: str, follows: Mapping[str, str], known_violations: tuple[KnownViolation, ...] = ()
) -> Binding:
    module = f"transformers.models.{model}.modeling_{model}"
    call = _rms_norm(module, name)

    def accepts(shape: tuple[int, ...], settings: Mapping[str, Any]) -> str | None:
        return None if len(settings["axes"]) == 1 else f"{name} normalises only the last axis"

    source = f"{_SOURCE}{model}/modeling_{model}.py ({name}.forward)"
    declared = Departures({key: f"{reason}; {source}" for key, reason in follows.items()}, known_violations)
    return declared.binding(
        "rms_norm",
        f"transformers {name}",
        call,
        accepts=accepts,
        has_modes=True,
        load=lambda: importlib.import_module(module),
        defaults=call,
    )


def bindings() -> tuple[Binding, ...]:
    """The bindings of the layers; none if ``transformers`` is not installed."""
    if importlib.util.find_spec("transformers") is None:
        return ()
    return (
        _binding("llama", "LlamaRMSNorm", _BEFORE_GAIN),
        _binding("t5", "T5LayerNorm", _BEFORE_GAIN, _T5_KNOWN),
        _binding("gemma", "GemmaRMSNorm", {"gain=one-plus-gamma": "the weight is stored less 1", **_IN_FLOAT32}),
    )
