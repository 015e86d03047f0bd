"""PyTorch's forward mode over the gradient of group_norm: its known mistake, compared with PyTorch's results."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from normspec.adapters.known import Failure, KnownViolation
from normspec.adapters.targets import resolve
from normspec.adapters.torch.group_norm_forward import FORWARD
from normspec.reference.group_norm import group_norm_jvp_jvp_exact, group_norm_vjp_vjp_exact

TARGET = resolve("torch", op="group_norm")
BINDINGS = {one.name: one for one in TARGET.bindings}
SETTINGS = {"eps": 2.0**-10, "groups": 1, "channel_axis": 1}
OUTPUTS = ("forward over reverse in x", "forward over reverse in gamma", "forward over forward of y")


def entry(output: str) -> KnownViolation:
    """The entry about this output."""
    (found,) = (one for one in FORWARD if output in one.outputs)
    return found


def draw(dtype: type, mean: float, tangent: float, seed: int = 0) -> dict[str, np.ndarray]:
    """x about a mean, and tangents of this size, in the shape (2, 3, 2); of gamma ones in (3,)."""
    random = np.random.Generator(np.random.Philox(seed))
    x = random.normal(mean, 0.7 * mean + 1, (2, 3, 2))
    t, s, g = random.normal(0, 1, (3, *x.shape))
    moved = {"x": x, "g": g, "t": tangent * t, "s": tangent * s, "gamma": np.ones(3)}
    return {name: one.astype(dtype) for name, one in moved.items()}


def of_torch(output: str, given: dict[str, np.ndarray], name: str = "torch.nn.functional.group_norm") -> np.ndarray:
    """PyTorch's result."""
    session, inputs = TARGET.session(BINDINGS[name]), {"x": given["x"], "gamma": given["gamma"], "beta": None}
    if output == OUTPUTS[2]:
        found = session.nested("jvp_jvp", inputs, SETTINGS, {"x": given["t"]}, {"x": given["s"]})["y"]
    else:
        moved = session.nested("jvp_vjp", inputs, SETTINGS, {"x": given["t"]}, given["g"])
        found = moved["x" if output == OUTPUTS[0] else "gamma"]
    assert found is not None
    return found


def exact(output: str, given: dict[str, np.ndarray]) -> np.ndarray:
    """The right result, in float64."""
    x, g, t, s, gamma = (given[name] for name in ("x", "g", "t", "s", "gamma"))
    if output == OUTPUTS[2]:
        return group_norm_jvp_jvp_exact(x, gamma, None, t, None, None, s, None, None, **SETTINGS).hi
    found = group_norm_vjp_vjp_exact(x, gamma, None, g, t, None, None, **SETTINGS)[OUTPUTS.index(output)]
    assert found is not None
    return found.hi


def failing(output: str, given: dict[str, np.ndarray]) -> Failure:
    """PyTorch's result as a failure of all elements, with an envelope of zero."""
    inputs = {"x": given["x"], "gamma": given["gamma"], "beta": None}
    got = of_torch(output, given).astype(np.float64)
    tangents = {"x": given["t"], "gamma": None}
    again = {"x": given["s"]} if output == OUTPUTS[2] else {}
    return Failure(
        output, "", inputs, SETTINGS, given["g"], got, exact(output, given), np.zeros(got.shape), tangents, again
    )


def test_the_tangent_is_not_proportional_to_the_direction() -> None:
    """The smaller the tangent, the fewer the digits, and a tangent of zero moves the gradient too."""
    lost = []
    for size in (1.0, 1e-4, 1e-8):
        given = draw(np.float64, mean=1e4, tangent=size)
        right = exact(OUTPUTS[0], given)
        lost.append(np.abs(of_torch(OUTPUTS[0], given) - right).max() / np.abs(right).max())
    assert lost[1] > 1e3 * lost[0]
    assert lost[2] > 1e3 * lost[1]
    assert of_torch(OUTPUTS[0], draw(np.float64, mean=1e4, tangent=0.0)).any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("output", OUTPUTS)
def test_what_is_lost_is_predicted(output: str, dtype: type) -> None:
    """With tangents far below the mean the roundings of mean(x) are all of the error: the entry covers each element."""
    for seed in range(20):
        given = draw(dtype, mean=1e3, tangent=1e-6, seed=seed)
        assert np.all(entry(output).covers(failing(output, given))), seed


@pytest.mark.parametrize("output", OUTPUTS)
def test_another_error_is_not_predicted(output: str) -> None:
    """A thousand times what PyTorch is off by is a violation; so is a thousandth of the value where the mean is 0."""
    failure = failing(output, draw(np.float64, mean=1e3, tangent=1e-6))
    much = failure.expected + 1000 * (failure.got - failure.expected)
    assert not np.all(entry(output).covers(replace(failure, got=much)))
    failure = failing(output, draw(np.float64, mean=0.0, tangent=1.0))
    assert not np.any(entry(output).covers(replace(failure, got=1.001 * failure.expected)))
