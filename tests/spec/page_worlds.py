"""
Small inputs of every operator, and the values of its page's formulas on them.

A `World` knows inputs and parts by their names on the page, and evaluates every other name by the statement that
defines it: on the operator's page, or under the symbols of the page of notation. Jacobians and second derivatives of
parts are differences in 120 digits, with steps of 10^-40. For polynomials of second degree they are exact except for
roundings; the others are right to about 10^-75.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import attrs
import mpmath
import numpy as np
from mpmath import mpf

from normspec.spec import pages

from .page_blocks import Statement, indented, section, statements
from .page_notation import Bound, evaluate
from .page_values import FUNCTIONS, Linear, array

#: The step of every difference.
STEP = mpf(10) ** -40
#: More than any difference errs by here, and less than anything that a formula says.
SMALL = mpf(10) ** -30

Array = np.ndarray


def zeros(shape: tuple[int, ...]) -> Array:
    """Zeros of this shape."""
    return array(np.zeros(shape))


def units(shape: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], Array]]:
    """Each index of an array of this shape, and the array that is 1 there and 0 elsewhere."""
    for index in np.ndindex(shape):
        unit = zeros(shape)
        unit[index] = mpf(1)
        yield index, unit


def along(function: Callable[[Any], Any], at: Any, direction: Any) -> Any:
    """The derivative of a function along a direction."""
    return (function(at + STEP * direction) - function(at - STEP * direction)) / (2 * STEP)


def gradient(function: Callable[[Any], Any], at: Array) -> Array:
    """The gradient of a function whose value is one number."""
    found = zeros(at.shape)
    for index, unit in units(at.shape):
        found[index] = along(function, at, unit)
    return found


def jacobian(function: Callable[[Any], Any], at: Array) -> Linear:
    """The derivative of a function as a linear map."""
    return Linear(
        lambda direction: along(function, at, direction),
        lambda cotangent: gradient(lambda z: np.sum(function(z) * cotangent), at),
    )


@attrs.frozen(eq=False)
class Part:
    """A part: its result for a tensor and its leaf, and the name of its argument."""

    function: Callable[[Any, Any], Any]
    at: str = "x"
    leaf: str | None = None


@attrs.frozen(eq=False)
class Called:
    """A part in a world: it can be called, and as a factor it stands for its result."""

    part: Part
    world: World
    name: str

    def __call__(self, handed: Any) -> Any:
        leaf = None if self.part.leaf is None else self.world[self.part.leaf]
        found = self.part.function(handed, leaf)
        nudge = f"nudge of {self.name}"
        return found + self.world[nudge] if nudge in self.world.values else found

    def returned(self) -> Any:
        """The part's result for its argument."""
        return self(self.world[self.part.at])

    def jacobian(self) -> Linear:
        """The derivative at the part's argument."""
        return jacobian(self, self.world[self.part.at])

    def in_leaf(self) -> Linear:
        """The derivative in its leaf."""
        handed = self.world[self.part.at]
        return jacobian(lambda leaf: self.part.function(handed, leaf), self.world[str(self.part.leaf)])

    def hess(self, cotangent: Any, direction: Any) -> Any:
        """The gradient of <cotangent, J(x) direction> with both held."""
        return gradient(lambda z: np.sum(cotangent * along(self, z, direction)), self.world[self.part.at])


@cache
def rules(page: str) -> Mapping[str, tuple[Statement, ...]]:
    """The definition of each name: the statements of a page's definition and derivatives."""
    found: dict[str, list[Statement]] = {}
    sections = ("Definition", "Derivatives") if page != "notation" else ("Symbols",)
    for title in sections:
        for block in indented(section(pages()[page], title)):
            for statement in statements(block):
                if statement.signs:
                    found.setdefault(statement.sides[0], []).append(statement)
    return {name: tuple(one) for name, one in found.items()}


class World(Mapping[str, Any]):
    """The values of the names on a page."""

    def __init__(
        self, page: str, values: Mapping[str, Any], *, labels: frozenset[str] = frozenset(), normalised: str = "x",
    ) -> None:  # fmt: skip
        self.page, self.values, self.labels, self.normalised = page, dict(values), labels, normalised
        self.memo: dict[str, Any] = {}

    def moved(self, **values: Any) -> World:
        """The same world with other inputs."""
        return World(self.page, {**self.values, **values}, labels=self.labels, normalised=self.normalised)

    def holds(self, statement: Statement) -> bool:
        """Whether a condition in words holds here."""
        return all(label in self.labels for label in statement.given)

    def __getitem__(self, name: str) -> Any:
        if name in self.values:
            found = self.values[name]
            if name.endswith("_") and isinstance(found, list):
                return [Called(part, self, f"{name}{k}") for k, part in enumerate(found)]
            return Called(found, self, name) if isinstance(found, Part) else found
        if name not in self.memo:
            self.memo[name] = self._found(name)
        return self.memo[name]

    def _found(self, name: str) -> Any:
        for page in (self.page, "notation"):
            for statement in rules(page).get(name, ()):
                if self.holds(statement):
                    return evaluate(statement.sides[-1], self._seen_from(page))
            for defined, those in rules(page).items():
                made = self._made(name, defined, next(filter(self.holds, those), None), page)
                if made is not None:
                    return made
        for prefix, method in (("J_", Called.jacobian), ("hess_", lambda part: part.hess)):
            part = self.values.get(name.removeprefix(prefix))
            if name.startswith(prefix) and isinstance(part, Part):
                return method(self[name.removeprefix(prefix)])
        for part in self.values.values():
            if isinstance(part, Part) and name == f"J_{part.leaf}":
                return Called(part, self, name).in_leaf()
        if name.endswith("_") and isinstance(self.values.get("H_"), list):
            return self._family(name)
        if name.startswith("dot "):
            return self._moving(lambda world: world[name.removeprefix("dot ")].returned())
        if name == "LN":
            return self._normal
        if name.startswith("tangent of "):
            return self._moving(lambda world: world[name.removeprefix("tangent of ")], "s")
        if name.startswith("envelope of "):
            return self._envelope(name.removeprefix("envelope of "))
        if name == "grad":
            return lambda of, node: gradient(lambda z: node(self.moved(**{of: z})), self[of])
        if name == "H" and "H_" in self.values:
            return self["H_"]
        if name == "ys":
            return [branch.returned() for branch in self["H_"]]
        if name.startswith("d") and name[1:] in self.values:
            return self._cotangent(name[1:])
        if f"{name}_k" in rules(self.page):
            return self[f"{name}_"]
        base, _, index = name.rpartition("_")
        if index.isdigit() and (f"{base}_k" in rules(self.page) or f"{base}_" in self.values):
            return self[f"{base}_"][int(index) - 1]
        if name == "e":
            return mpmath.e
        return FUNCTIONS[name]

    def _seen_from(self, page: str) -> Mapping[str, Any]:
        """The values that a page speaks of: the symbols of the notation are about the groups that are normalised."""
        if page == self.page or self.normalised == "x":
            return self
        return Bound(self, {"x": self[self.normalised]})

    def _envelope(self, name: str) -> Any:
        """In exact arithmetic nothing is off by more than the differences taken here."""
        tiny = lambda z: zeros(np.shape(z)) + SMALL  # noqa: E731
        return [tiny(z) for z in self[name]] if name.endswith("_") else tiny(self[name])

    def _cotangent(self, name: str) -> Any:
        """The gradient of <y, g> in a leaf, or in a part's result."""
        if not isinstance(self.values[name], Part):
            return gradient(lambda z: np.sum(self.moved(**{name: z})["y"] * self["g"]), self[name])
        nudge = f"nudge of {name}"
        return gradient(lambda z: np.sum(self.moved(**{nudge: z})["y"] * self["g"]), zeros(self["x"].shape))

    def _moving(self, of: Callable[[World], Any], letter: str = "t") -> Any:
        """The derivative of a value along the tangents of x, of parameters and of leaves."""
        names = [name for name in self.values if f"{letter}{name}" in self.values]

        def at(step: Any) -> Any:
            return of(self.moved(**{name: self[name] + step * self[f"{letter}{name}"] for name in names}))

        return along(at, mpf(0), 1)

    def _normal(self, x: Any) -> Any:
        """LN of any x, with this gamma, beta and eps."""
        return evaluate("gamma xhat + beta", World("notation", {**self.values, "x": x}))

    def _made(self, name: str, defined: str, rule: Statement | None, page: str) -> Any:
        """The value that a rule about several names gives for this one."""
        if rule is None:
            return None
        if defined == f"{name} z":  # P z
            inner = lambda z: evaluate(rule.sides[1], Bound(self._seen_from(page), {"z": z}))  # noqa: E731
            return Linear(inner, inner)
        if defined == f"{name}(z)":
            return lambda z: evaluate(rule.sides[1], Bound(self, {"z": z}))
        if defined == f"{name}k" and name.endswith("_"):
            return [evaluate(rule.sides[1], Bound(self, {"k": k})) for k in range(self["K"])]
        if defined.endswith("_z") and name.startswith(defined[:-1]) and name[len(defined) - 1 :] in self:
            of = self[name[len(defined) - 1 :]]
            return evaluate(rule.sides[1], Bound(self._seen_from(page), {"z": of}))
        return None

    def _family(self, name: str) -> list[Any]:
        """The value for each branch."""
        branches = self["H_"]
        if name == "J_":
            return [branch.jacobian() for branch in branches]
        if name == "hess_":
            return [branch.hess for branch in branches]
        if name == "dot H_":
            return [self._moving(lambda world, k=k: world["H_"][k].returned()) for k in range(len(branches))]
        if name == "f_":
            ys = [branch.returned() for branch in branches]
            return [jacobian(self._fused(ys, k), ys[k]) for k in range(len(ys))]
        if name == "e_":
            ys, moved = ([one(b) for b in branches] for one in (Called.returned, lambda b: b.jacobian()(self["a"])))

            def along_all(now: list[Any]) -> Any:
                return along(lambda t: self["f"]([y + t * m for y, m in zip(now, moved, strict=True)]), mpf(0), 1)

            held = [lambda y, k=k: np.sum(self["g"] * along_all([*ys[:k], y, *ys[k + 1 :]])) for k in range(len(ys))]
            return [gradient(one, y) for one, y in zip(held, ys, strict=True)]
        raise KeyError(name)

    def _fused(self, ys: list[Any], k: int) -> Callable[[Any], Any]:
        """fuse's result, as a function of the output of one branch."""
        return lambda y: self["f"]([*ys[:k], y, *ys[k + 1 :]])

    def __iter__(self) -> Iterator[str]:
        return iter(self.values)

    def __len__(self) -> int:
        return len(self.values)
