"""Situations in which a composed operator is called: inputs, parts, and what an implementation makes of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from normspec.adapters.build_parts import build_part
from normspec.adapters.numpy import BRIDGE
from normspec.conformance.sound import Implementation
from normspec.spec.operators import OPERATORS
from normspec.spec.parts import Part

from .probes import attempt, normal

#: The tensors that each operator is handed by position, x apart.
PARAMETERS = {
    "residual": (),
    "pre_norm": ("gamma", "beta"),
    "post_norm": ("gamma", "beta"),
    "highway": (),
    "mhc": ("logits",),
}
#: The parts that are handed by position; the others are keywords.
POSITIONAL = {
    "residual": ("branch",),
    "pre_norm": ("sublayer",),
    "post_norm": ("sublayer",),
    "highway": ("transform", "gate"),
    "mhc": ("branches",),
}


class Composition:
    """One call of a composed operator: its inputs by name, leaves included, its parts, eps and a cotangent."""

    def __init__(
        self,
        operator: str,
        inputs: Mapping[str, np.ndarray | None],
        parts: Mapping[str, Any],
        dtype: Any,
        *,
        eps: float = 1e-3,
        parameters: Any = None,
        g: np.ndarray | None = None,
    ) -> None:
        self.operator, self.parts, self.eps = operator, dict(parts), eps
        dtypes = dict.fromkeys(("gamma", "beta", "logits"), parameters or dtype)
        self.inputs = {
            name: None if array is None else array.astype(dtypes.get(name, dtype)) for name, array in inputs.items()
        }
        shape = self.inputs["x"].shape
        self.g = (normal(*shape, seed=99) if g is None else g).astype(dtype)
        self.memory: dict[Any, Any] = {}

    @property
    def settings(self) -> dict[str, Any]:
        """The keyword arguments that are no parts."""
        return {"eps": self.eps} if self.operator in ("pre_norm", "post_norm") else {}

    @property
    def tensors(self) -> list[np.ndarray | None]:
        """The tensors handed by position, x first."""
        return [self.inputs[name] for name in ("x", *PARAMETERS[self.operator])]

    def arguments(self, **making: Any) -> tuple[list[Any], dict[str, Any]]:
        """Positional and keyword arguments of the call, the parts made of their leaves."""

        def made(part: Any) -> Any:
            if part is None or callable(part):
                return part
            if isinstance(part, tuple | list):
                return [made(one) for one in part]
            return build_part(part, self.inputs, BRIDGE, memory=self.memory, **making)

        roles = {role: made(self.parts.get(role)) for role in OPERATORS[self.operator].roles}
        positional = POSITIONAL[self.operator]
        given = [self.inputs["x"], *(roles[role] for role in positional), *self.tensors[1:]]
        keywords = {role: part for role, part in roles.items() if role not in positional and part is not None}
        return given, {**keywords, **self.settings}

    def call(self, implementation: Implementation) -> Any:
        """y, or the name of what is raised."""
        given, keywords = self.arguments()
        return attempt(lambda: implementation.call(*given, **keywords))

    def vjp(self, implementation: Implementation) -> Any:
        """Gradients of the tensors and then of the leaves, or the name of what is raised."""
        notes: dict[str, np.ndarray] = {}
        given, keywords = self.arguments(notes=notes)
        found = attempt(lambda: implementation.vjp(*given, self.g, **keywords))
        leaves = tuple(notes[name] for name in self.inputs if name in notes)
        return found if isinstance(found, str) else (*found, *leaves)

    def jvp(self, implementation: Implementation, tangents: Mapping[str, np.ndarray]) -> Any:
        """The tangent of y, for those of inputs by name."""
        given, keywords = self.arguments(tangents=tangents)
        moved = [None if t is None else tangents[name] for name, t in self.named_tensors()]
        return attempt(lambda: implementation.jvp(*given, *moved, **keywords))

    def vjp_vjp(self, implementation: Implementation, second: Mapping[str, np.ndarray]) -> Any:
        """The second-order gradients, for cotangents of the tensors' gradients by name."""
        given, keywords = self.arguments(notes={})
        bars = [None if t is None else second[name] for name, t in self.named_tensors()]
        return attempt(lambda: implementation.vjp_vjp(*given, self.g, *bars, **keywords))

    def named_tensors(self) -> list[tuple[str, np.ndarray | None]]:
        """The tensors handed by position, with their names."""
        return list(zip(("x", *PARAMETERS[self.operator]), self.tensors, strict=True))

    def directions(self, seed: int) -> dict[str, np.ndarray]:
        """A random tangent, or cotangent, of every input that is given."""
        random = np.random.default_rng(seed)
        return {
            name: random.normal(size=array.shape).astype(array.dtype)
            for name, array in self.inputs.items()
            if array is not None
        }

    def both(self, implementation: Implementation) -> Any:
        """y and the gradients."""
        return self.call(implementation), self.vjp(implementation)

    def everything(self, implementation: Implementation) -> Any:
        """y, gradients, a tangent and second-order gradients."""
        yield self.call(implementation)
        yield self.vjp(implementation)
        yield self.jvp(implementation, self.directions(3))
        yield self.vjp_vjp(implementation, self.directions(4))


def flat(parts: Iterable[Any]) -> Iterator[Part]:
    """Every part, those in tuples one by one."""
    for part in parts:
        yield from part if isinstance(part, tuple) else () if part is None else (part,)


def leaf(name: str) -> Part:
    """A part that returns its leaf."""
    return Part("leaf", (name,))


def tanh_linear(name: str) -> Part:
    """A part that bends and mixes features."""
    return Part("tanh_linear", (name,))


def linear(name: str) -> Part:
    """A part that mixes features."""
    return Part("linear", (name,))


def composition(
    operator: str, dtype: Any, *, shape: tuple[int, ...] = (5, 6), seed: int = 1, **changes: Any
) -> Composition:
    """A plain situation of the operator: smooth, bent parts with leaves of their own.

    `parts` replaces parts, `inputs` adds or replaces inputs; `count` is the number of mhc's branches.
    """
    n, count = shape[-1], changes.pop("count", 3)
    inputs: dict[str, Any] = {"x": normal(*shape, seed=seed)}
    matrices = iter(range(10, 100))

    def matrix(name: str) -> str:
        inputs[name] = normal(n, n, seed=next(matrices)) / (2 * n)
        return name

    parts: dict[str, Any] = {}
    if operator == "residual":
        parts["branch"] = tanh_linear(matrix("branch.w"))
    elif operator in ("pre_norm", "post_norm"):
        parts["sublayer"] = tanh_linear(matrix("sublayer.w"))
        inputs["gamma"], inputs["beta"] = normal(n, seed=seed + 7) * 2, normal(n, seed=seed + 8)
    elif operator == "highway":
        parts["transform"], parts["gate"] = tanh_linear(matrix("transform.w")), linear(matrix("gate.w"))
    else:
        parts["branches"] = tuple(tanh_linear(matrix(f"branches.{k}.w")) for k in range(count))
        inputs["logits"] = normal(count, seed=seed + 7)
    parts |= changes.pop("parts", {})
    inputs |= changes.pop("inputs", {})
    if operator == "mhc" and parts.get("fuse") is not None:
        inputs["logits"] = None
    used = {name for part in flat(parts.values()) for name in part.all_leaves()}
    inputs = {name: array for name, array in inputs.items() if "." not in name or name in used}
    return Composition(operator, inputs, parts, dtype, **changes)
