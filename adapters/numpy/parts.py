"""
Parts on NumPy arrays: callables with their own derivatives.

    part(x)                 the value
    part.vjp(x, g)          the cotangent of x; each call adds the leaves' gradients to the notes
    part.jvp(x, tx)         the tangent of the value, including the tangents of the leaves
    part.vjp_vjp(x, g, a)   (x_bar, g_bar): the vjp at cotangent a of the map (x, g) -> vjp(x, g); nothing is noted
    part.jvp_jvp(x, tx, sx) the tangent along sx of jvp(x, tx), with the leaves fixed

A part that fuses takes lists for x, tx, sx and a, and returns a list for a cotangent of x. 16-bit data is computed in
float32, other data in its own dtype; each result is rounded once.
"""

from __future__ import annotations

import abc
import typing
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...spec.parts import Part
from ..bridge import Bridge
from ..operation import Operation
from .arithmetic import Array, widened

#: The input of a part: an array, or the list of arrays that it fuses.
Handed = Any

#: The leaves of a formula, or their gradients or tangents, in the order of the part's kind.
Leaves = typing.Sequence[Array]


@dataclass(frozen=True)
class Leaf:
    """A tensor bound in a part, with its tangent and a place to note its gradient."""

    name: str
    value: Array
    tangent: Array | None = None
    notes: dict[Any, Any] | None = None

    def note(self, gradient: Array) -> None:
        """Add to the gradient; the unrounded sum is kept in addition to the sum rounded to the leaf's dtype."""
        if self.notes is not None:
            wide = ("sum", self.name)
            self.notes[wide] = self.notes[wide] + gradient if wide in self.notes else gradient
            self.notes[self.name] = self.notes[wide].astype(self.value.dtype)


@dataclass(frozen=True)
class Material:
    """The ingredients of a part."""

    part: Part
    bridge: Bridge
    leaves: Sequence[Leaf]
    inner: Sequence[NumpyPart]
    memory: dict[Any, Any]
    #: Whether derivatives are being taken; then a part may be called again.
    derivative: bool
    #: What a part that is the operator itself calls.
    operation: Operation | None = None


@dataclass(eq=False)
class NumpyPart(abc.ABC):
    """A callable with its derivatives."""

    material: Material

    @abc.abstractmethod
    def __call__(self, x: Handed) -> Array:
        """The value."""

    def vjp(self, x: Handed, g: Array) -> Handed:
        """The cotangent of x; the leaves' gradients are noted."""
        return self.pulled(x, g, note=True)

    @abc.abstractmethod
    def pulled(self, x: Handed, g: Array, *, note: bool) -> Handed:
        """The cotangent of x."""

    @abc.abstractmethod
    def jvp(self, x: Handed, tx: Handed) -> Array:
        """The tangent of the value."""

    @abc.abstractmethod
    def vjp_vjp(self, x: Handed, g: Array, a: Handed) -> tuple[Handed, Array]:
        """(x_bar, g_bar)."""

    @abc.abstractmethod
    def jvp_jvp(self, x: Handed, tx: Handed, sx: Handed) -> Array:
        """The second derivative of the value along tx and sx."""


class Formula(NumpyPart):
    """A part given by formulas; its methods get arrays in the dtype to compute in."""

    @abc.abstractmethod
    def value(self, x: Handed, leaves: Leaves) -> Array:
        """The value."""

    @abc.abstractmethod
    def cotangents(self, x: Handed, g: Array, leaves: Leaves) -> tuple[Handed, Leaves]:
        """The cotangent of x, and the gradients of the leaves."""

    @abc.abstractmethod
    def tangent(self, x: Handed, tx: Handed, leaves: Leaves, moved: Leaves) -> Array:
        """The tangent of the value, from the tangents of x and of the leaves."""

    @abc.abstractmethod
    def second(self, x: Handed, g: Array, a: Handed, leaves: Leaves) -> tuple[Handed, Array]:
        """(x_bar, g_bar)."""

    def second_tangent(self, x: Handed, tx: Handed, sx: Handed, leaves: Leaves) -> Array | None:
        """The second derivative along tx and sx; None if the part is linear in x."""
        return None

    def _leaves(self) -> list[Array]:
        return [widened(leaf.value) for leaf in self.material.leaves]

    def __call__(self, x: Handed) -> Array:
        return self.value(wide(x), self._leaves()).astype(_dtype(x))

    def pulled(self, x: Handed, g: Array, *, note: bool) -> Handed:
        cotangent, gradients = self.cotangents(wide(x), widened(g), self._leaves())
        if note:
            for leaf, gradient in zip(self.material.leaves, gradients):
                leaf.note(gradient)
        return narrow(cotangent, x)

    def jvp(self, x: Handed, tx: Handed) -> Array:
        moved = [
            np.zeros_like(widened(leaf.value)) if leaf.tangent is None else widened(leaf.tangent)
            for leaf in self.material.leaves
        ]
        return self.tangent(wide(x), wide(tx), self._leaves(), moved).astype(_dtype(x))

    def vjp_vjp(self, x: Handed, g: Array, a: Handed) -> tuple[Handed, Array]:
        x_bar, g_bar = self.second(wide(x), widened(g), wide(a), self._leaves())
        return narrow(x_bar, x), g_bar.astype(g.dtype)

    def jvp_jvp(self, x: Handed, tx: Handed, sx: Handed) -> Array:
        found = self.second_tangent(wide(x), wide(tx), wide(sx), self._leaves())
        like = x[0] if isinstance(x, (list, tuple)) else x
        return np.zeros(like.shape, like.dtype) if found is None else found.astype(like.dtype)


class LinearInX(Formula):
    """A part that is linear in x, and in its leaf if it has one."""

    def tangent(self, x: Handed, tx: Handed, leaves: Leaves, moved: Leaves) -> Array:
        found = self.value(tx, leaves)
        return found + self.value(x, moved) if moved else found

    def second(self, x: Handed, g: Array, a: Handed, leaves: Leaves) -> tuple[Handed, Array]:
        still = [np.zeros_like(one) for one in x] if isinstance(x, (list, tuple)) else np.zeros_like(x)
        return still, self.value(a, leaves)


def wide(x: Handed) -> Handed:
    """The array, or each array of a list, in the dtype to compute in."""
    return [widened(one) for one in x] if isinstance(x, (list, tuple)) else widened(x)


def narrow(x: Handed, like: Handed) -> Handed:
    """The array, or each array of a list, in the dtype of ``like``."""
    return [one.astype(_dtype(like)) for one in x] if isinstance(x, (list, tuple)) else x.astype(_dtype(like))


def _dtype(x: Handed) -> np.dtype:
    return (x[0] if isinstance(x, (list, tuple)) else x).dtype
