"""
Sets the conditions before a statement in a world: `F(x) = -x, eps > 0:`, `x = 1, H = 5, z = log 3:`.

A name before `=` takes the value. A part set to a number or an array returns that for any argument; one set by
`F(x) = ...` is that function. Where x or the sum s is given in numbers, everything not given is left out: gamma, beta,
eps and cotangents are 1, 0, 0 and 1. All other conditions must hold.
"""

from __future__ import annotations

import re
from typing import Any

import attrs
import numpy as np
from mpmath import mpf

from normspec.spec import requirement

from .page_blocks import RELATION, Statement, statements
from .page_notation import Bound, digits, evaluate
from .page_values import Linear, Matrix, array, value
from .page_worlds import SMALL, Part, World

#: Words before a statement for which scenes are drawn; and words that say where a number is rounded.
LABELS = frozenset(
    {
        "training",
        "inference",
        "with carry",
        "without carry",
        "with fuse",
        "without fuse",
        "without shortcut and activation",
    }
)
FORMATS = frozenset({"float32"})
#: The names of a call's parts on its page.
PARTS = {
    "branch": "F",
    "shortcut": "S",
    "activation": "A",
    "sublayer": "F",
    "transform": "H",
    "gate": "z",
    "carry": "k",
    "branches": "H_",
    "fuse": "f",
}
#: The shape in which the numbers of x are one group, if the group does not run along the last of two axes.
GROUPS = {"batch_norm": (-1, 1), "group_norm": (1, -1, 1), "instance_norm": (1, -1, 1)}
#: The axis along which the values of one group lie in a scene; for groups along several axes, one of these.
ALONG = {"batch_norm": 0, "group_norm": 1, "instance_norm": 1}
#: Words that say that the left side is one number.
ALIKE = re.compile(r"the same in every (?:group|channel)")
ABSENT = {"gamma": mpf(1), "beta": mpf(0)}
#: The order of arguments where the page calls the result of an operator by its own symbol.
SYMBOLS = {
    "y": ("x", "gamma", "beta"),
    "vjp": ("g",),
    **dict.fromkeys(("dx", "dgamma", "dbeta", "z", "new_running_mean", "new_running_var"), ("x", "eps")),
}


def signature(text: str) -> tuple[str, tuple[str, ...]]:
    """The name of an operator and of its arguments, as its page gives them."""
    match = re.search(r"^    (\w+)\((.*?)\)", text, re.M | re.S)
    assert match is not None
    return match[1], tuple(one.split("=")[0] for one in match[2].replace(" ", "").split(",") if one != "*")


def constant(z: Any) -> Part:
    """A part that returns this for any argument."""
    z = as_array(z)
    return Part(lambda handed, _: np.zeros_like(handed) + z)


def as_array(z: Any) -> Any:
    """A tuple as a group, a tuple of tuples as a matrix."""
    if isinstance(z, tuple) and z and isinstance(z[0], tuple):
        return Matrix(array(z))
    return array(z) if isinstance(z, tuple) else z


def calls(world: World, text: str) -> World:
    """The world in which the operator of a page, and results by their symbols, are functions."""
    operator, names = signature(text)
    found: dict[str, Any] = {operator: called(world, names, "y")}
    for symbol, arguments in {**SYMBOLS, **world.values.get("orders", {})}.items():
        found[f"{symbol}()"] = called(world, arguments, "dx" if symbol == "vjp" else symbol)
    return world.moved(**found)


def joined(world: World, z: Any) -> Any:
    """Two arrays of the shape of x as groups of twice the size: (x, x)."""
    shape = np.shape(world.values.get("x"))
    if isinstance(z, (tuple, list)) and len(z) > 1 and shape and all(np.shape(value(one)) == shape for one in z):
        return np.concatenate([value(one) for one in z], axis=ALONG.get(world.page, -1))
    return z


def of_two_values(world: World, number: str, of: str) -> Any:
    """A number made of two values of each group, of x and of a result y, as a function of e."""
    axis = ALONG.get(world.page, -1)

    def function(e: Any) -> Any:
        y = value(evaluate(of, Bound(world, {"e": e})))
        picked = {
            f"{name}_{at}": np.take(z, k, axis=axis)
            for name, z in (("x", world["x"]), ("y", y))
            for at, k in (("i", 0), ("j", -1), ("l", -1))
        }
        return evaluate(number, Bound(world, picked))

    return function


def called(world: World, names: tuple[str, ...], result: str) -> Any:
    """A result as a function of some of the inputs; inputs that are not passed stay as they are."""

    def call(*arguments: Any, **keywords: Any) -> Any:
        given = {**dict(zip(names, arguments, strict=False)), **keywords}
        moved: dict[str, Any] = {}
        for name, z in given.items():
            own = PARTS.get(name, name)
            if own == "H_":
                moved[own] = [one.part for one in z]
            elif name in PARTS:
                moved[own] = z.part if hasattr(z, "part") else constant(z)
            elif z is None:
                moved[own] = ABSENT[name]
            else:
                z = value(joined(world, z))
                moved[own] = z if np.ndim(z) or not np.ndim(world[own]) else np.zeros_like(world[own]) + z
        return world.moved(**moved)[result]

    call.takes_parts = True  # type: ignore[attr-defined]
    return call


@attrs.define(eq=False)
class Example:
    """A world in which the conditions before a statement are set."""

    world: World
    #: The text of the page.
    page: str

    def given(self, conditions: tuple[str, ...]) -> World:
        """The world in which all of it holds."""
        checked, functions = [], {}
        plain = any(re.fullmatch(r"[xs] = [-(\d].*", one) and "(x)" not in one for one in conditions)
        if plain and not any(one.startswith("x = (const") for one in conditions):
            self.put(gamma=mpf(1), beta=mpf(0), g=mpf(1))
        for condition in conditions:
            if condition in LABELS | FORMATS:
                continue
            referred = re.fullmatch(r"\w of (\w\w-F3)", condition)
            if referred:  # the conditions of another requirement
                condition = next(iter(statements(requirement(referred[1]).formula.splitlines()))).given[0]
            function = re.fullmatch(r"(\w)\(e\) = (.*) of y = (.*)", condition)
            if function:
                functions[f"{function[1]}()"] = function.groups()[1:]
                continue
            sides = [side.strip() for side in RELATION.split(f" {condition} ")]
            assert len(sides) > 1, f"{condition!r} is neither a relation nor known in words"
            if not self.assigned(sides):
                checked.append(sides)
        world = calls(self.world, self.page)
        if functions:
            world = world.moved(e=mpf(1) / 8)
        world = world.moved(**{name: of_two_values(world, *texts) for name, texts in functions.items()})
        for sides in checked:
            assert relates(world, sides[0], sides[1], sides[2]), f"{sides} does not hold"
        return world

    def put(self, **values: Any) -> None:
        self.world = self.world.moved(**values)

    def assigned(self, sides: list[str]) -> bool:
        """Take a condition as a value, if it is one."""
        if any(sign != "=" for sign in sides[1::2]):
            return False
        names, last = sides[:-1:2], sides[-1]
        function = re.fullmatch(r"(\w+)\(x\)", names[0])
        if function and isinstance(self.world.values.get(function[1]), Part):
            self.function(function[1], last)
            return True
        if not all(re.fullmatch(r"\w+", name) for name in names):
            return False
        if re.fullmatch(r"H_\d", last):
            first = self.world.values["H_"][0]
            self.put(H_=[first] * len(self.world.values["H_"]))
            return True
        for name in names:
            self.value(name, last)
        return True

    def function(self, name: str, text: str) -> None:
        """A part that is given as a function of x."""

        def returned(handed: Any, _: Any) -> Any:
            return as_array(evaluate(text, Bound(self.world, {"x": handed}))) + np.zeros_like(handed)

        at = self.world.values[name].at
        self.put(**{name: Part(returned, at)})

    def value(self, name: str, text: str) -> None:
        """A name that is given a value."""
        if name == "f" and text == "sum":
            return self.put(f=Part(lambda ys, _: sum(ys), "ys"))
        found = evaluate(text, calls(self.world, self.page))
        if isinstance(self.world.values.get(name), Part):
            at = self.world.values[name].at
            part = Part(lambda z, _: found(z)) if callable(found) else constant(found)
            return self.put(**{name: attrs.evolve(part, at=at)})
        if name.startswith("J_"):
            return self.put(**{name: Linear(lambda z: 0 * z, lambda z: 0 * z)})
        if name == "H":
            return self.put(H_=[constant(z) for z in found], K=len(found))
        if name == "logits":
            return self.put(logits=as_array(found), K=len(found))
        found = as_array(found)
        if name in ("x", "s") and not isinstance(found, np.ndarray):
            found = array([found])
        if isinstance(found, np.ndarray) and name in ("x", "s"):
            n = found.size
            found = found.reshape(GROUPS.get(self.world.page, (1, -1)))
            self.put(n=n, m=n)
        return self.put(**{name: found})


def relates(world: Any, left: str, sign: str, right: str) -> bool:
    """Whether a sign relates two sides, in exact arithmetic."""
    a = side(left, world)
    b = np.full_like(a, a.reshape(-1)[0]) if ALIKE.fullmatch(right) else side(right, world)
    if a.size == b.size:
        a, b = a.reshape(-1), b.reshape(-1)
    slack = SMALL * max([mpf(1), *map(abs, a.reshape(-1)), *map(abs, b.reshape(-1))]) if finite(a, b) else mpf(0)
    slack = slack + max(digits(left), mpf(0) if ALIKE.fullmatch(right) else digits(right)) / 2
    if sign.startswith("<"):
        return bool(np.all(a <= b + slack)) if sign != "<" else bool(np.all(a < b))
    if sign.startswith(">"):
        return bool(np.all(a + slack >= b)) if sign != ">" else bool(np.all(a > b))
    return bool(np.all((a == b) | (np.abs(a - b) <= slack)))


def finite(*arrays: Any) -> bool:
    """Whether no number is infinite."""
    return all(abs(z) < mpf("inf") for one in arrays for z in one.reshape(-1))


def side(text: str, world: Any) -> np.ndarray:
    """The value of one side, as an array."""
    found = evaluate(text, world)
    found = joined(world.env if isinstance(world, Bound) else world, found)
    if isinstance(found, (tuple, list)):
        found = [value(z) for z in found]
    return np.atleast_1d(np.asarray(value(found), dtype=object))


def holds(statement: Statement, world: Any) -> bool:
    """Whether every sign of a statement relates the sides next to it."""
    three = zip(statement.sides, statement.signs, statement.sides[1:], strict=False)
    return all(relates(world, *one) for one in three)
