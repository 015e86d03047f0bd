"""
The formulas of the accuracy page, put together for a class of algorithms.

A formula is built in steps: it is set (`E_v = ...`), extended where a class adds a term (`F: + ...`), or replaced
(`H2, training: E_mu <- ...`). The words before the colon give the class, mode, step or numbers. A rule relates two
sides (`y: H r_1 <= largest/4`).
"""

from __future__ import annotations

import operator
import re
from collections import ChainMap
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from typing import Any

import attrs
import numpy as np
from mpmath import mpf

from normspec.spec import pages
from normspec.spec.typeset import plain

from .page_blocks import REMARK, indented, split
from .page_notation import Bound, evaluate
from .page_values import FUNCTIONS

NUMBER = re.compile(r"\(([AR]\d+)\)|\\tag\{([AR]\d+)\}")
#: Words that may precede a colon: a class, a mode, the subject of a formula; or a comparison.
WORDS = {
    *("rms_norm", "features", "channels", "training", "inference", "mean", "variance", "bessel"),
    *("shifted", "one-pass", "F", "H1", "H2", "native", "flushed", "float64", "narrower", "second order"),
    *(
        "y",
        "dx",
        "dgamma",
        "dbeta",
        "y and dx",
        "running",
        "each result",
        "given",
        "formed",
        "returned",
        "formed or returned",
    ),
    *("a + b or a - b", "of two tensors", "a b", "sum of n terms", "t among m others", "a / n", "x w", "over n terms"),
    *(
        "a times 2 to the k",
        "tanh",
        "relu",
        "slope of tanh",
        "slope of relu",
        "largest logit",
        "gamma",
        "beta",
        "received",
        "c a",
    ),
    *("c given", "left = right", "judged", "unmoved", "surely moved"),
}
COMPARED = re.compile(r"([^:=<>]+) (=|<|>|<=|>=) ([^:=<>]+)")
RELATIONS = {"=": operator.eq, "<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge}


@attrs.frozen
class Step:
    """One step in building the value of a name."""

    conditions: tuple[str, ...]
    name: str
    #: "=", "+" or "<-"; or the sign of a rule, whose left side is the name.
    sign: str
    text: str

    @property
    def rule(self) -> bool:
        """Whether it relates two sides."""
        return self.sign in RELATIONS and self.sign != "="

    def where(self, labels: Collection[str], env: Mapping[str, Any]) -> Any:
        """Where it holds: everywhere or nowhere by its words, element by element by its comparisons."""
        if not all(one in labels for one in self.conditions if one in WORDS):
            return False
        found: Any = True
        for one in self.conditions:
            if one not in WORDS:
                left, sign, right = _compared(one).groups()
                found = found & RELATIONS[sign](evaluate(left, env), evaluate(right, env))
        return found


def _compared(condition: str) -> re.Match[str]:
    match = COMPARED.fullmatch(condition)
    assert match is not None, condition
    return match


@cache
def blocks() -> Mapping[str, tuple[Step, ...]]:
    """The steps of each numbered formula."""
    text = pages()["accuracy"]
    found: dict[str, list[list[str]]] = {}
    for match in re.finditer(r"^```math\n(.*?)^```$", text, re.M | re.S):
        number = NUMBER.search(match[1])
        assert number is not None
        found.setdefault(number[2], []).append(plain(match[1]).splitlines())
    for block in indented(text):
        number = ""
        for line in block:
            match = re.match(r"\(([AR]\d+)\) +", line)
            if match:
                number, line = match[1], line[match.end() :]
                found.setdefault(number, []).append([])
            if number:
                found[number][-1].append(line.strip())
    return {number: tuple(steps(lines)) for number, those in found.items() for lines in those}


def steps(lines: list[str]) -> Iterator[Step]:
    """The steps that the lines of a block say."""
    name = ""
    for line in joined(lines):
        conditions, rest = conditioned(line)
        if rest.startswith("+"):
            yield Step(conditions, name, "+", rest[1:].strip())
            continue
        for statement in split(rest, ","):
            sides = re.split(r"\s(<-|<=|>=|=|<|>)\s", f" {statement.strip()} ")
            if len(sides) >= 3:
                step = Step(conditions, sides[0].strip(), sides[1], sides[-1].strip())
                name = name if step.rule else step.name
                yield step


def conditioned(line: str) -> tuple[tuple[str, ...], str]:
    """The text before the colon of a line, and the text after it."""
    match = re.fullmatch(r"([^:]+): +(.*)", line)
    conditions = tuple(match[1].split(", ")) if match else ()
    if match and all(one in WORDS or COMPARED.fullmatch(one) for one in conditions):
        return conditions, match[2]
    return (), line


def carried_out(
    number: str, labels: Collection[str], values: Mapping[str, Any], *, since: str = "", until: str = ""
) -> dict[str, Any]:
    """The values after the steps of a formula, one after the other, from where one name is set to where another is."""
    found, names = dict(values), [step.name for step in blocks()[number]]
    first, last = names.index(since) if since else 0, names.index(until) if until else len(names)
    for step in blocks()[number][first:last]:
        env = ChainMap(found, FUNCTIONS)
        if step.rule or (where := step.where(labels, env)) is False:
            continue
        more = evaluate(step.text, env)
        if step.sign == "+":
            more = found[step.name] + more
        if where is not True:
            more = np.where(where, more, found.get(step.name, mpf("nan")))
        found[step.name] = more
        if isinstance(more, Stated):  # a number with its own bounds
            found |= more.bounds(step.name)
        for name, one in list(found.items()):
            if isinstance(one, Stated) and step.name == one.error_of(name):
                found[name] = one.off_by(more)
    return found


def rules(number: str) -> list[Step]:
    """The sides that a formula relates."""
    return [step for step in blocks()[number] if step.rule]


class Stated:
    """A number that brings its bounds along, under the names that the page has for them."""

    def bounds(self, name: str) -> dict[str, Any]:
        """M, E and K of it."""
        raise NotImplementedError

    def off_by(self, error: Any) -> Stated:
        """The same number with another E."""
        raise NotImplementedError

    @staticmethod
    def error_of(name: str) -> str:
        """The page's name for the error of a name: E_t1 for t_1."""
        return f"E_{name.replace('_', '')}"


def joined(lines: list[str]) -> Iterator[str]:
    """Lines without remarks, each with those that go on with it."""
    pending = ""
    for line in lines:
        text = REMARK.sub("", line.strip())
        if pending and text.startswith(("+", "-")):
            pending = f"{pending} {text}"
            continue
        if pending:
            yield pending
        pending = text
    if pending:
        yield pending


class Bounds(Mapping[str, Any]):
    """The values of the names of the accuracy page for one class, on one set of inputs."""

    def __init__(self, values: Mapping[str, Any], holds: frozenset[str], numbers: tuple[str, ...]) -> None:
        self.values, self.classes, self.numbers = dict(values), holds, numbers
        self.memo: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name in self.values:
            return self.values[name]
        if name not in self.memo:
            self.memo[name] = self._built(name)
        return self.memo[name]

    def _built(self, name: str) -> Any:
        if name.endswith("_"):
            return [self._of(f"{name}k", Bound(self, {"k": k})) for k in range(self["K"])]
        return self._of(name, self)

    def _of(self, name: str, env: Mapping[str, Any]) -> Any:
        """The value of a name, the names in its formulas being those of env."""
        found: Any = None
        for number in self.numbers:
            within = False
            for step in blocks()[number]:
                if step.name != name or step.rule or not step.where(self.classes, self.values):
                    continue
                if step.sign == "=":
                    found, within = evaluate(step.text, env), True
                elif step.sign == "<-" or within:
                    before = Bounds({**self.values, name: found}, self.classes, self.numbers)
                    more = evaluate(step.text, before)
                    found = more if step.sign == "<-" else found + more
        if found is not None:
            return found
        if name.endswith("_k"):
            raise KeyError(name)
        symbol = symbols().get(name)
        return FUNCTIONS[name] if symbol is None else evaluate(symbol, self)

    def __iter__(self) -> Iterator[str]:
        return iter(self.values)

    def __len__(self) -> int:
        return len(self.values)


@cache
def symbols() -> Mapping[str, str]:
    """The meanings of the page's short names."""
    found: dict[str, str] = {}
    for page in ("notation", "accuracy"):
        text = pages()[page].partition("\n## Symbols\n")[2].partition("\n## ")[0]
        for block in indented(text):
            for line in block:
                for statement in split(REMARK.sub("", line), ","):
                    name, *sides = (side.strip() for side in statement.split(" = "))
                    if sides:
                        found[name] = sides[-1]
    return found
