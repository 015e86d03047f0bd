"""Data for a test, an operator's results on it, and the assertions of `normspec.testing` about them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import ml_dtypes
import numpy as np

from normspec import testing
from normspec.adapters.numpy.operators.implementation import Implementation

Array = np.ndarray
#: y, the new running statistics and the gradients by name; None for a missing one.
Results = Mapping[str, Any]

DTYPES = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float32": np.float32, "float64": np.float64}

#: Each operator's settings, and two shapes of x: a usual one, and one whose groups have 16,384 values.
CALLS: Mapping[str, tuple[Mapping[str, Any], tuple[int, ...], tuple[int, ...]]] = {
    "layer_norm": ({"eps": 1e-5, "axes": (-1,)}, (64, 256), (4, 16_384)),
    "rms_norm": ({"eps": 1e-5, "axes": (-1,)}, (64, 256), (4, 16_384)),
    "batch_norm": (
        {"eps": 1e-5, "momentum": 0.1, "training": True, "channel_axis": 1}, (32, 16, 32), (256, 4, 64),
    ),
    "group_norm": ({"eps": 1e-5, "groups": 2, "channel_axis": 1}, (16, 32, 32), (2, 8, 4096)),
    "instance_norm": ({"eps": 1e-5, "channel_axis": 1}, (16, 16, 64), (2, 4, 16_384)),
}  # fmt: skip

#: How x is made: a function of normal numbers, and whether the groups are long.
KINDS: Mapping[str, tuple[Callable[[Array], Array], bool]] = {
    "randn": (lambda z: z, False),
    "randn*1e-3": (lambda z: 1e-3 * z, False),
    "randn+100": (lambda z: z + 100, False),
    "long": (lambda z: z, True),
}


def drawn(
    op: str, dtype: str, rng: np.random.Generator, shape: tuple[int, ...], kind: str = "randn"
) -> tuple[dict[str, Any], Array]:
    """The inputs of an operator by name, and a cotangent: normal numbers except x and the running variance."""
    settings = CALLS[op][0]
    width = shape[-1:] if "axes" in settings else shape[1:2]
    inputs = {"x": KINDS[kind][0](rng.standard_normal(shape)), "gamma": rng.standard_normal(width)}
    if op != "rms_norm":
        inputs["beta"] = rng.standard_normal(width)
    if op == "batch_norm":
        inputs |= {"running_mean": rng.standard_normal(width), "running_var": rng.random(width) + 0.5}
    given = {name: value.astype(DTYPES[dtype]) for name, value in inputs.items()}
    return given, rng.standard_normal(shape).astype(DTYPES[dtype])


def results(made: Implementation, op: str, inputs: Mapping[str, Array], g: Array) -> dict[str, Any]:
    """The results of an implementation. It gets copies, because a mistake may write to its arguments."""
    settings, copies = CALLS[op][0], [value.copy() for value in inputs.values()]
    with np.errstate(all="ignore"):
        outputs = made.call(*copies, **settings)
        gradients = made.vjp(*copies, g.copy(), **settings)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    found: dict[str, Any] = dict(zip(("y", "new_running_mean", "new_running_var"), outputs, strict=False))
    return found | dict(zip(("dx", "dgamma", "dbeta"), gradients, strict=False))


def judge(op: str, found: Results, inputs: Mapping[str, Any], g: Any) -> None:
    """Assert that all results hold."""
    values, gradients, given, settings = _apart(op, found, inputs)
    getattr(testing, f"assert_{op}")(**values, **inputs, **CALLS[op][0])
    if gradients:
        getattr(testing, f"assert_{op}_grads")(**gradients, **given, g=g, **settings)


def holds(op: str, found: Results, inputs: Mapping[str, Any], g: Any) -> bool:
    """Whether all assertions hold."""
    try:
        judge(op, found, inputs, g)
    except AssertionError:
        return False
    return True


def exact(op: str, names: Results, inputs: Mapping[str, Array], g: Array) -> dict[str, Array]:
    """The exact values of these results in float64."""
    _, _, given, settings = _apart(op, names, inputs)
    values = getattr(testing, f"envelope_{op}")(**inputs, **CALLS[op][0])
    found = values if isinstance(values, dict) else {"y": values}
    found |= getattr(testing, f"envelope_{op}_grads")(**given, g=g, **settings)
    return {name: found[name].exact for name in names}


def _apart(
    op: str, found: Results, inputs: Mapping[str, Any]
) -> tuple[Results, Results, Mapping[str, Any], Mapping[str, Any]]:
    """Separate values and gradients; also return the inputs and settings for an assertion about gradients."""
    gradients = {name: value for name, value in found.items() if name in ("dx", "dgamma", "dbeta")}
    values = {name: value for name, value in found.items() if name not in gradients}
    given = {name: value for name, value in inputs.items() if name != "beta"}
    return values, gradients, given, {key: value for key, value in CALLS[op][0].items() if key != "momentum"}
