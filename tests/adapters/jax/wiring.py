"""Whether the layers of a target on JAX arrays are wired to the inputs that they belong to, against NumPy's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import ml_dtypes
import numpy as np

from normspec.adapters.binding import Binding
from normspec.adapters.numpy.operators import function
from normspec.adapters.target import Target

SHAPE = (3, 4, 3)
#: What each setting is; an operator takes those that its record names.
SETTINGS = {"eps": 0.01, "axes": (-2, -1), "momentum": 0.3, "channel_axis": 1, "groups": 2}


def modes(target: Target) -> Iterator[tuple[Binding, bool]]:
    """Each binding of a normalisation, and whether it is to train: BatchNorm both ways."""
    for binding in target.bindings:
        if binding.record.normalises and not binding.record.composed:
            yield binding, True
        if binding.record.has_modes:
            yield binding, False


def absences(bindings: Iterable[Binding]) -> list[tuple[Binding, tuple[str, ...]]]:
    """Each binding, without gamma, beta and both, as far as its operator has them."""
    combinations = (("gamma",), ("beta",), ("gamma", "beta"))
    return [(one, absent) for one in bindings for absent in combinations if set(absent) <= set(one.record.arguments)]


def name_of(value: Any) -> str:
    """The id of a parametrised test."""
    return value.name if isinstance(value, Binding) else str(value)


def problem(
    binding: Binding, training: bool, dtype: Any, parameters: Any = None
) -> tuple[dict[str, Any], dict[str, Any], Any, dict[str, Any]]:
    """Inputs, settings, a cotangent, and an array in the shape of each input that has a gradient."""
    rng = np.random.Generator(np.random.Philox(5))
    record = binding.record
    c: Any = SHAPE[1] if record.has_channels else SHAPE[1:]
    drawn = {
        "x": rng.normal(1, 2, SHAPE), "gamma": rng.normal(1, 0.5, c), "beta": rng.normal(0, 1, c),
        "running_mean": rng.normal(0, 1, c), "running_var": rng.uniform(0.5, 2, c),
    }  # fmt: skip
    inputs = {name: drawn[name].astype(dtype if name == "x" else parameters or dtype) for name in record.arguments}
    settings = {name: value for name, value in {**SETTINGS, "training": training}.items() if name in record.settings}
    along = {name: rng.normal(size=inputs[name].shape).astype(dtype) for name in record.differentiable}
    return inputs, settings, rng.normal(size=SHAPE).astype(dtype), along


def expected(binding: Binding, suffix: str, inputs: Any, settings: Any, *more: Any) -> tuple[Any, ...]:
    """What the plain NumPy operators say, in float64."""
    wide = [None if array is None else array.astype(np.float64) for array in (*inputs.values(), *more)]
    result = function(binding.operator, suffix.removeprefix("_") or "call")(*wide, **settings)
    return result if isinstance(result, tuple) else (result,)


def close(got: Any, exact: Any, dtype: Any) -> None:
    """20 units of the dtype, on values of a few units: loose, since only the wiring is in question here."""
    tolerance = 20 * float(ml_dtypes.finfo(dtype).eps)
    assert got.dtype == dtype
    np.testing.assert_allclose(got.astype(np.float64), exact, rtol=tolerance, atol=tolerance)


def check_derivatives(target: Target, binding: Binding, training: bool) -> None:
    """Forward, gradients, tangent and second order in float64 are those of NumPy's."""
    inputs, settings, g, along = problem(binding, training, np.float64)
    session = target.session(binding)
    evaluation = session.start(inputs, settings)
    for got, exact in zip(evaluation.outputs().values(), expected(binding, "", inputs, settings), strict=True):
        close(got, exact, np.float64)
    pulled = evaluation.pull(g).gradients().values()
    for got, exact in zip(pulled, expected(binding, "_vjp", inputs, settings, g), strict=True):
        close(got, exact, np.float64)
    directions = along.values()
    tangent = session.jvp(inputs, settings, along)
    close(tangent, expected(binding, "_jvp", inputs, settings, *directions)[0], np.float64)
    second = session.vjp_vjp(inputs, settings, g, along).values()
    for got, exact in zip(second, expected(binding, "_vjp_vjp", inputs, settings, g, *directions), strict=True):
        close(got, exact, np.float64)


def check_narrow(target: Target, binding: Binding, training: bool, parameters: Any) -> None:
    """bfloat16 x beside parameters of this dtype: each result and gradient has the dtype of what it belongs to."""
    inputs, settings, g, _ = problem(binding, training, ml_dtypes.bfloat16, parameters)
    evaluation = target.session(binding).start(inputs, settings)
    outputs, gradients = evaluation.outputs(), evaluation.pull(g).gradients()
    wanted = expected(binding, "", inputs, settings)
    close(outputs.pop("y"), wanted[0], ml_dtypes.bfloat16)
    assert gradients.pop("x").dtype == ml_dtypes.bfloat16  # type: ignore[union-attr]
    assert {array.dtype for array in (*outputs.values(), *gradients.values())} == {np.dtype(parameters)}  # type: ignore[union-attr]


def check_absent(target: Target, binding: Binding, absent: tuple[str, ...]) -> None:
    """Without gamma, beta or both, y and the gradients of the rest are those of NumPy's."""
    inputs, settings, g, _ = problem(binding, True, np.float64)
    inputs.update(dict.fromkeys(absent))
    evaluation = target.session(binding).start(inputs, settings)
    close(evaluation.outputs()["y"], expected(binding, "", inputs, settings)[0], np.float64)
    gradients = evaluation.pull(g).gradients()
    exact = dict(zip(binding.record.differentiable, expected(binding, "_vjp", inputs, settings, g), strict=True))
    for name, value in gradients.items():
        assert (value is None) is (name in absent)
        if value is not None:
            close(value, exact[name], np.float64)


def check_defaults(target: Target, binding: Binding, eps: float, momentum: float | None) -> None:
    """Without eps and momentum, the framework's own are used: this eps, and this weight of the new statistic."""
    inputs, settings, *_ = problem(binding, True, np.float64)
    inputs["x"] *= 1e-3  # where eps counts
    own = {name: value for name, value in settings.items() if name not in ("eps", "momentum")}
    outputs = target.session(binding).start(inputs, own, defaults=True).outputs().values()
    known = {**own, "eps": eps} if momentum is None else {**own, "eps": eps, "momentum": momentum}
    for got, exact in zip(outputs, expected(binding, "", inputs, known), strict=True):
        close(got, exact, np.float64)
