"""Build a part as a callable on the tensors of one framework, with the leaves bound."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add, mul
from typing import Any

from ..spec.errors import part_error
from ..spec.parts import Part
from .bridge import Bridge
from .operation import Operation
from .part_buffers import buffered


def build_part(
    part: Part,
    tensors: Mapping[str, Any],
    bridge: Bridge,
    *,
    memory: dict[Any, Any],
    notes: dict[Any, Any] | None = None,
    tangents: Mapping[str, Any] | None = None,
    operation: Operation | None = None,
) -> Callable[..., Any]:
    """
    The part as a callable on the bridge's tensors; KINDS in spec/parts.py says what each kind computes.

    ``tensors`` holds the leaves by name. ``memory`` holds the buffers that parts own, and outlives one evaluation.
    A part that counts its calls starts again each time it is built. A part that is the operator itself calls
    ``operation``.

    If the framework does not differentiate by itself, the callable has ``vjp``, ``jvp`` and ``vjp_vjp`` (see
    adapters/numpy/parts.py). These write the gradients of leaves by name to ``notes``, and read their tangents from
    ``tangents``; a missing tangent is zero.
    """
    if not bridge.differentiates:
        return bridge.part_with_derivatives(
            part, tensors, memory=memory, notes=notes, tangents=tangents, operation=operation
        )
    inner = [build_part(one, tensors, bridge, memory=memory, operation=operation) for one in part.inner]
    leaves = [tensors[name] for name in part.leaves]
    return _MAKERS[part.kind](_Material(part, leaves, inner, bridge, memory, operation))


@dataclass(frozen=True)
class _Material:
    """The ingredients of one callable."""

    part: Part
    leaves: Sequence[Any]
    inner: Sequence[Callable[..., Any]]
    bridge: Bridge
    memory: dict[Any, Any]
    operation: Operation | None


def _plain(made: Callable[..., Any]) -> Callable[[_Material], Callable[[Any], Any]]:
    """A maker for a part that is a function of its material and its argument."""
    return lambda material: lambda handed: made(material, handed)


def _tanh_linear(material: _Material, x: Any) -> Any:
    functions = material.bridge.functions
    return functions.tanh(functions.matmul(x, material.leaves[0]))


def _convolution(material: _Material, x: Any) -> Any:
    (k,) = material.leaves
    return reduce(add, (k[j] * material.bridge.functions.shift(x, o, -2) for j, o in enumerate(material.part.offsets)))


def _cascade(material: _Material, x: Any) -> Any:
    return reduce(lambda value, inner: inner(value), material.inner, x)


def _counted(material: _Material) -> Callable[[Any], Any]:
    calls, (inner,) = 0, material.inner

    def counted(handed: Any) -> Any:
        nonlocal calls
        calls += 1
        return inner(handed) * float(calls)

    return counted


def _laid_out(material: _Material, handed: Any) -> Any:
    return material.bridge.laid_out(material.inner[0](handed), material.part.kind)


def _itself(material: _Material, x: Any) -> Any:
    part, operation = material.part, material.operation
    assert operation is not None
    leaves = dict(zip(part.leaves, material.leaves))
    positional, settings = operation.arguments(part, leaves, material.inner, x)
    return operation.call(*positional, **settings)


def _raising(material: _Material, handed: Any) -> Any:
    raise part_error(material.part.number, material.bridge.memory_errors)


def _fuse_weighted(material: _Material, ys: Sequence[Any]) -> Any:
    (a,) = material.leaves
    return reduce(add, (a[k] * y for k, y in enumerate(ys)))


def _fuse_coupled(material: _Material, ys: Sequence[Any]) -> Any:
    tanh = material.bridge.functions.tanh
    return reduce(add, [*ys, *(tanh(before) * y for before, y in zip(ys, ys[1:]))])


_MAKERS: Mapping[str, Callable[[_Material], Callable[[Any], Any]]] = {
    "identity": _plain(lambda m, x: x),
    "view": _plain(lambda m, x: m.bridge.view(x)),
    "zero": _plain(lambda m, x: m.bridge.functions.zeros(x)),
    # A view, because reentrant checkpointing takes over the result, and the leaf would then depend on itself.
    "leaf": _plain(lambda m, x: m.bridge.view(m.leaves[0])),
    "negated": _plain(lambda m, x: -x),
    "scaled": _plain(lambda m, x: m.part.number * x),
    "linear": _plain(lambda m, x: m.bridge.functions.matmul(x, m.leaves[0])),
    "tanh_linear": _plain(_tanh_linear),
    "square": _plain(lambda m, x: x * x),
    "relu": _plain(lambda m, x: m.bridge.functions.relu(x)),
    "tanh": _plain(lambda m, x: m.bridge.functions.tanh(x)),
    "convolution": _plain(_convolution),
    "causal": _plain(_convolution),
    "cascade": _plain(_cascade),
    "dropout": _plain(lambda m, x: m.inner[0](x) * m.leaves[0]),
    "counted": _counted,
    "buffered": _plain(lambda m, x: buffered(m.inner[0](x), m.part, m.bridge, m.memory)),
    "transposed": _plain(_laid_out),
    "strided": _plain(_laid_out),
    "common": _plain(lambda m, x: m.inner[0](x)),
    "misshapen": _plain(lambda m, x: m.inner[0](x)[..., :-1]),
    "flattened": _plain(lambda m, x: m.bridge.flattened(m.inner[0](x))),
    "broadcasting": _plain(lambda m, x: m.inner[0](x)[..., :1]),
    "raising": _plain(_raising),
    "itself": _plain(_itself),
    "replayed": _plain(lambda m, x: m.bridge.functions.replay(x, *m.leaves)),
    "fuse_sum": _plain(lambda m, ys: reduce(add, ys)),
    "fuse_product": _plain(lambda m, ys: reduce(mul, ys)),
    "fuse_weighted": _plain(_fuse_weighted),
    "fuse_coupled": _plain(_fuse_coupled),
}
