"""Arrays of the installed frameworks: each is judged like NumPy's array of the same numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np

from normspec import testing

from .cost import SHAPES, plain
from .data import DTYPES, Array, drawn


def conversions() -> Iterator[tuple[str, Callable[[Array], Any]]]:
    """Functions that turn NumPy's arrays into a framework's, for each installed framework."""
    for made in (_torch, _tensorflow, _jax, _keras, _onnxruntime):
        try:
            yield made.__name__.removeprefix("_"), made()
        except ImportError:
            continue


def _torch() -> Callable[[Array], Any]:
    import torch

    def converted(value: Array) -> Any:
        bits = value.dtype == ml_dtypes.bfloat16
        return torch.from_numpy(value.view(np.int16)).view(torch.bfloat16) if bits else torch.from_numpy(value)

    return converted


def _tensorflow() -> Callable[[Array], Any]:
    import tensorflow

    return tensorflow.convert_to_tensor


def _jax() -> Callable[[Array], Any]:
    import jax

    jax.config.update("jax_enable_x64", True)
    return jax.numpy.asarray


def _keras() -> Callable[[Array], Any]:
    import keras

    return lambda value: keras.Variable(value, dtype=value.dtype.name)


def _onnxruntime() -> Callable[[Array], Any]:
    import onnxruntime

    return onnxruntime.OrtValue.ortvalue_from_numpy


def frameworks(limit: int) -> None:
    """Judge a sound y and a wrong one in each framework's arrays, at every shape with at most `limit` values."""
    converting = dict(conversions())
    for shape in (one for one in SHAPES if np.prod(one) <= limit):
        for dtype in DTYPES:
            inputs, g = drawn("layer_norm", dtype, np.random.default_rng(0), shape)
            x, gamma, beta = (value.astype(np.float64) for value in inputs.values())
            y = plain(x, gamma, beta).astype(g.dtype)
            wrong = y.copy()
            wrong[..., -1] = wrong[..., 0]
            want, told = testing.assert_layer_norm(y, **inputs).ratio, list[str]()
            for name, convert in converting.items():
                try:
                    given = {key: convert(value) for key, value in inputs.items()}
                    mine, other = convert(y), convert(wrong)
                except Exception as error:  # it has no such dtype, or cannot take it from NumPy
                    told.append(f"{name} has none ({type(error).__name__})")
                    continue
                assert testing.assert_layer_norm(mine, **given).ratio == want
                assert _fails(other, given)
                told.append(name)
            print(f"{' x '.join(map(str, shape))} {dtype}: {', '.join(told)}", flush=True)


def _fails(y: Any, inputs: dict[str, Any]) -> bool:
    try:
        testing.assert_layer_norm(y, **inputs)
    except testing.OutsideEnvelope:
        return True
    return False
