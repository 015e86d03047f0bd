"""Checks for a user's own layer in any framework: its call is the operator's, with the tensors lent to it."""

from __future__ import annotations

from typing import Any

import numpy as np

from normspec.adapters.binding import Binding
from normspec.adapters.declarations import Declarations
from normspec.adapters.targets import resolve
from normspec.spec.operators import OPERATORS, Groups

#: The error that float32 may have.
_NEAR = 2e-5


def agrees(layer: Any, *, op: str | None = None, **declared: Any) -> Binding:
    """Hold results and gradients of a layer, in both modes, to those of the NumPy target; return its binding."""
    target = resolve(layer, op=op, declared=Declarations(**declared))
    (binding,) = target.bindings
    record, fixed = OPERATORS[binding.operator], binding.fixed
    rng = np.random.Generator(np.random.Philox(4))
    size = fixed.shape or (fixed.channels or 8,)
    first = record.groups is not Groups.TRAILING and fixed.channel_axis == 1
    shape = (3, *size, 4) if first else (3, 4, *size)
    given = (fixed.given or (tuple(name for name in ("gamma", "beta") if name in record.arguments),))[0]
    inputs = {"x": rng.normal(size=shape), **{name: rng.normal(size=size) for name in given}}
    inputs.update({name: rng.uniform(1, 2, size=size) for name in record.statistics})
    tensors = {name: inputs[name].astype("float32") if name in inputs else None for name in record.arguments}
    numbers = {
        "eps": fixed.eps or 0.25,
        "axes": (-1,),
        "momentum": fixed.momentum or 0.25,
        "training": True,
        "channel_axis": fixed.channel_axis,
        "groups": fixed.groups or 2,
    }
    settings = {name: numbers[name] for name in record.settings}
    reference = resolve("numpy", op=binding.operator)
    wide = {name: None if one is None else one.astype("float64") for name, one in tensors.items()}
    g = rng.normal(size=shape)
    sessions = target.session(binding), reference.session(reference.bindings[0])
    for mode in ("training", "inference") if record.statistics else ("training",):
        if record.statistics:
            settings["training"] = mode == "training"
        got, want = (one.start(held, settings, mode=mode) for one, held in zip(sessions, (tensors, wide), strict=True))
        for name, expected in want.outputs().items():
            np.testing.assert_allclose(got.outputs()[name], expected, rtol=_NEAR, atol=_NEAR, err_msg=name)
        if mode == "training":
            found = got.pull(g.astype("float32")).gradients()
            for name, expected in want.pull(g).gradients().items():
                if expected is not None:
                    np.testing.assert_allclose(found[name], expected, rtol=_NEAR, atol=20 * _NEAR, err_msg=name)
    return binding
