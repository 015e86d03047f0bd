"""Parts that wrap other parts or have side effects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...spec.errors import Unsupported, part_error
from ...spec.itself import FACTOR
from ..operation import Operation
from ..part_buffers import buffered
from .arithmetic import Array, widened
from .parts import Handed, NumpyPart


class Cascade(NumpyPart):
    """The inner parts one after the other."""

    def _handed(self, x: Handed) -> list[Handed]:
        """The input of each inner part."""
        handed = [x]
        for part in self.material.inner[:-1]:
            handed.append(part(handed[-1]))
        return handed

    def __call__(self, x: Handed) -> Array:
        for part in self.material.inner:
            x = part(x)
        return x

    def pulled(self, x: Handed, g: Array, *, note: bool) -> Handed:
        return self._pulled_through(self._handed(x), g, note=note)[0]

    def _pulled_through(self, handed: Sequence[Handed], g: Array, *, note: bool) -> list[Handed]:
        """The cotangents before each inner part, and after the last."""
        cotangents = [g]
        for part, x in zip(reversed(self.material.inner), reversed(handed)):
            cotangents.insert(0, part.pulled(x, cotangents[0], note=note))
        return cotangents

    def jvp(self, x: Handed, tx: Handed) -> Array:
        for part in self.material.inner:
            x, tx = part(x), part.jvp(x, tx)
        return tx

    def vjp_vjp(self, x: Handed, g: Array, a: Handed) -> tuple[Handed, Array]:
        inner, handed = self.material.inner, self._handed(x)
        cotangents = self._pulled_through(handed, g, note=False)
        bars = []
        for part, at, g_after in zip(inner, handed, cotangents[1:]):
            bar, a = part.vjp_vjp(at, g_after, a)
            bars.append(bar)
        # A part's output depends on its input, so the output's bar goes back through the part.
        total: Any = bars[-1]
        for part, at, bar in zip(reversed(inner[:-1]), reversed(handed[:-1]), reversed(bars[:-1])):
            back = part.pulled(at, total, note=False)
            total = [b + c for b, c in zip(bar, back)] if isinstance(bar, list) else bar + back
        return total, a

    def jvp_jvp(self, x: Handed, tx: Handed, sx: Handed) -> Array:
        bent: Any = None
        for part in self.material.inner:
            own = part.jvp_jvp(x, tx, sx)
            bent = own if bent is None else own + part.jvp(x, bent)
            x, tx, sx = part(x), part.jvp(x, tx), part.jvp(x, sx)
        return bent


class Scaled(NumpyPart):
    """The inner part times a factor that does not depend on x."""

    def factor(self) -> Any:
        """The factor of the value."""
        return widened(self.material.leaves[0].value)

    def _times(self, y: Array, factor: Any) -> Array:
        return (widened(y) * factor).astype(y.dtype)

    def __call__(self, x: Handed) -> Array:
        return self._times(self.material.inner[0](x), self.factor())

    def pulled(self, x: Handed, g: Array, *, note: bool) -> Handed:
        return self.material.inner[0].pulled(x, self._times(g, self.factor()), note=note)

    def jvp(self, x: Handed, tx: Handed) -> Array:
        return self._times(self.material.inner[0].jvp(x, tx), self.factor())

    def vjp_vjp(self, x: Handed, g: Array, a: Handed) -> tuple[Handed, Array]:
        factor = self.factor()
        x_bar, g_bar = self.material.inner[0].vjp_vjp(x, self._times(g, factor), a)
        return x_bar, self._times(g_bar, factor)

    def jvp_jvp(self, x: Handed, tx: Handed, sx: Handed) -> Array:
        return self._times(self.material.inner[0].jvp_jvp(x, tx, sx), self.factor())


@dataclass(eq=False)
class Counted(Scaled):
    """
    The inner part times the number of its calls.

    While derivatives are taken the part may be called again: then the factor is that of the one forward call.
    """

    calls: int = 0

    def factor(self) -> float:
        return 1.0

    def __call__(self, x: Handed) -> Array:
        if not self.material.derivative:
            self.calls += 1
        return self._times(self.material.inner[0](x), float(max(self.calls, 1)))


class Through(NumpyPart):
    """The inner part with nothing changed; subclasses change some of it."""

    def __call__(self, x: Handed) -> Array:
        return self.material.inner[0](x)

    def pulled(self, x: Handed, g: Array, *, note: bool) -> Handed:
        return self.material.inner[0].pulled(x, g, note=note)

    def jvp(self, x: Handed, tx: Handed) -> Array:
        return self.material.inner[0].jvp(x, tx)

    def vjp_vjp(self, x: Handed, g: Array, a: Handed) -> tuple[Handed, Array]:
        return self.material.inner[0].vjp_vjp(x, g, a)

    def jvp_jvp(self, x: Handed, tx: Handed, sx: Handed) -> Array:
        return self.material.inner[0].jvp_jvp(x, tx, sx)


class Buffered(Through):
    """The value, in a buffer that the part owns; every call returns the same buffer."""

    def __call__(self, x: Handed) -> Array:
        material = self.material
        return buffered(material.inner[0](x), material.part, material.bridge, material.memory)


class LaidOut(Through):
    """The value, and the cotangent of x, in another layout."""

    def _moved(self, array: Array) -> Array:
        return self.material.bridge.laid_out(array, self.material.part.kind)

    def __call__(self, x: Handed) -> Array:
        return self._moved(super().__call__(x))

    def pulled(self, x: Handed, g: Array, *, note: bool) -> Handed:
        found = super().pulled(x, g, note=note)
        return [self._moved(one) for one in found] if isinstance(found, list) else self._moved(found)


class Cut(Through):
    """The inner part's value in another shape: all features but the last, only the first, or all along one axis."""

    def _kept(self, y: Array) -> Array:
        kind = self.material.part.kind
        if kind == "flattened":
            return y.reshape(-1)
        return y[..., :-1] if kind == "misshapen" else y[..., :1]

    def __call__(self, x: Handed) -> Array:
        return self._kept(self.material.inner[0](x))

    def pulled(self, x: Handed, g: Array, *, note: bool) -> Handed:
        return self.material.inner[0].pulled(x, self._filled(x, g), note=note)

    def jvp(self, x: Handed, tx: Handed) -> Array:
        return self._kept(self.material.inner[0].jvp(x, tx))

    def vjp_vjp(self, x: Handed, g: Array, a: Handed) -> tuple[Handed, Array]:
        x_bar, g_bar = self.material.inner[0].vjp_vjp(x, self._filled(x, g), a)
        return x_bar, self._kept(g_bar)

    def jvp_jvp(self, x: Handed, tx: Handed, sx: Handed) -> Array:
        return self._kept(self.material.inner[0].jvp_jvp(x, tx, sx))

    def _filled(self, x: Handed, g: Array) -> Array:
        """The cotangent of the inner part's value, with zero for the features that were cut off."""
        like = x[0] if isinstance(x, (list, tuple)) else x
        full = np.zeros(like.shape, g.dtype)
        self._kept(full)[...] = g
        return full


class Raising(Through):
    """Always raises."""

    def __call__(self, x: Handed) -> Array:
        raise part_error(self.material.part.number)

    def pulled(self, x: Handed, g: Array, *, note: bool) -> Handed:
        raise part_error(self.material.part.number)

    def jvp(self, x: Handed, tx: Handed) -> Array:
        raise part_error(self.material.part.number)

    def vjp_vjp(self, x: Handed, g: Array, a: Handed) -> tuple[Handed, Array]:
        raise part_error(self.material.part.number)

    def jvp_jvp(self, x: Handed, tx: Handed, sx: Handed) -> Array:
        raise part_error(self.material.part.number)


class Itself(NumpyPart):
    """The operator itself; of its derivatives the vjp is called."""

    def _call(self, x: Handed) -> tuple[Operation, list[Any], dict[str, Any]]:
        material, operation = self.material, self.material.operation
        assert operation is not None
        leaves = {leaf.name: leaf.value for leaf in material.leaves}
        return (operation, *operation.arguments(material.part, leaves, material.inner, x))

    def __call__(self, x: Handed) -> Array:
        operation, positional, settings = self._call(x)
        return operation.call(*positional, **settings)

    def pulled(self, x: Handed, g: Array, *, note: bool) -> Handed:
        operation, positional, settings = self._call(x)
        if operation.vjp is None or not note:
            raise _lacking()
        found = operation.vjp(*positional, g, **settings)
        dx, *gradients = found if isinstance(found, (tuple, list)) else (found,)
        for leaf, gradient in zip(self.material.leaves, gradients):
            leaf.note(gradient)
        return FACTOR * dx

    def jvp(self, x: Handed, tx: Handed) -> Array:
        raise _lacking()

    def vjp_vjp(self, x: Handed, g: Array, a: Handed) -> tuple[Handed, Array]:
        raise _lacking()

    def jvp_jvp(self, x: Handed, tx: Handed, sx: Handed) -> Array:
        raise _lacking()


def _lacking() -> Unsupported:
    return Unsupported("a part that is the operator itself has a vjp of its own alone")


#: The classes of this file by kind.
BEHAVIOURS: Mapping[str, type[NumpyPart]] = {
    "cascade": Cascade,
    "dropout": Scaled,
    "counted": Counted,
    "buffered": Buffered,
    "transposed": LaidOut,
    "strided": LaidOut,
    "common": Through,
    "misshapen": Cut,
    "flattened": Cut,
    "broadcasting": Cut,
    "raising": Raising,
    "itself": Itself,
}
