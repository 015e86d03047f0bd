"""Calls of the composed operators, with their parts, for tests of whole targets."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import numpy as np

from normspec.adapters.binding import differentiable
from normspec.spec.operators import OPERATORS
from normspec.spec.parts import Part, Parts

SHAPE = (3, 5, 4)
_W = (4, 4)


@attrs.frozen
class Problem:
    """One call: the parts, and the shapes of everything that is drawn besides x."""

    operator: str
    parts: Parts
    shapes: Mapping[str, tuple[int, ...] | None]

    @property
    def settings(self) -> dict[str, float]:
        """eps, for the operators that have one."""
        return {"eps": 0.1} if self.operator in ("pre_norm", "post_norm") else {}

    def drawn(self, dtype=np.float64, seed=21) -> dict[str, np.ndarray | None]:
        """The inputs by name."""
        rng = np.random.Generator(np.random.Philox(seed))
        shapes = {"x": SHAPE, **self.shapes}
        return {
            name: None if shape is None else rng.normal(0.3, 0.8, shape).astype(dtype) for name, shape in shapes.items()
        }

    def names(self) -> tuple[str, ...]:
        """The inputs that have gradients."""
        return differentiable(self.operator, self.drawn())

    def explicit(self) -> tuple[str, ...]:
        """The inputs that are arguments."""
        return tuple(name for name in self.names() if name in OPERATORS[self.operator].differentiable)


def _bent(role):
    return Part("tanh_linear", (f"{role}.w",))


def _linear(role):
    return Part("linear", (f"{role}.w",))


_NORM: dict[str, tuple[int, ...] | None] = {"gamma": (4,), "beta": (4,)}
_BRANCHES = (_bent("branches.0"), Part("leaf", ("branches.1.h",)), Part("square"))
_BRANCH_LEAVES = {"branches.0.w": _W, "branches.1.h": SHAPE}

PROBLEMS = {
    "residual": Problem("residual", {"branch": _bent("branch")}, {"branch.w": _W}),
    "residual, projected": Problem(
        "residual", {"branch": _bent("branch"), "shortcut": _linear("shortcut")}, {"branch.w": _W, "shortcut.w": _W}
    ),
    "residual, post-activation": Problem(
        "residual", {"branch": _bent("branch"), "activation": Part("tanh")}, {"branch.w": _W}
    ),
    "residual, all": Problem(
        "residual",
        {"branch": _bent("branch"), "shortcut": Part("square"), "activation": _bent("activation")},
        {"branch.w": _W, "activation.w": _W},
    ),
    "residual, shared": Problem(
        "residual", {"branch": _bent("branch"), "shortcut": _linear("branch")}, {"branch.w": _W}
    ),
    **{
        f"{operator}{label}": Problem(operator, {"sublayer": part}, {"sublayer.w": _W, **_NORM, **absent})
        for operator in ("pre_norm", "post_norm")
        for label, part, absent in (
            ("", _bent("sublayer"), {}),
            (", linear", _linear("sublayer"), {}),
            (", no gamma", _bent("sublayer"), {"gamma": None}),
            (", no beta", _bent("sublayer"), {"beta": None}),
        )
    },
    "highway": Problem(
        "highway", {"transform": _bent("transform"), "gate": _linear("gate")}, {"transform.w": _W, "gate.w": _W}
    ),
    "highway, leaves": Problem(
        "highway",
        {"transform": Part("leaf", ("transform.h",)), "gate": Part("leaf", ("gate.z",))},
        {"transform.h": SHAPE, "gate.z": SHAPE},
    ),
    "highway, carry": Problem(
        "highway",
        {"transform": _bent("transform"), "gate": _linear("gate"), "carry": Part("square")},
        {"transform.w": _W, "gate.w": _W},
    ),
    "mhc": Problem("mhc", {"branches": _BRANCHES}, {"logits": (3,), **_BRANCH_LEAVES}),
    "mhc, one branch": Problem("mhc", {"branches": _BRANCHES[:1]}, {"logits": (1,), "branches.0.w": _W}),
    "mhc, coupled": Problem(
        "mhc", {"branches": _BRANCHES, "fuse": Part("fuse_coupled")}, {"logits": None, **_BRANCH_LEAVES}
    ),
    "mhc, weighted": Problem(
        "mhc",
        {"branches": _BRANCHES, "fuse": Part("fuse_weighted", ("fuse.a",))},
        {"logits": None, "fuse.a": (3, 4), **_BRANCH_LEAVES},
    ),
}
