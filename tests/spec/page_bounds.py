"""
The formulas of the accuracy page, put together for a class of algorithms.

A formula is built in steps: it is set (`E_v = ...`), added to where a class has a term (`F: + ...`), or replaced
(`H2, training: E_mu <- ...`). What stands before the colon says for which class, mode or n.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import attrs

from normspec.spec import pages
from normspec.spec.typeset import plain

from .page_blocks import REMARK, indented, split
from .page_notation import Bound, evaluate
from .page_values import FUNCTIONS

NUMBER = re.compile(r"\(([AR]\d+)\)|\\tag\{([AR]\d+)\}")
FIRST = (
    "rms_norm|features|channels|training|inference|mean|variance|bessel|largest logit|shifted|one-pass|F|H1|H2|n [=>] 1"
)
CONDITION = re.compile(rf"((?:{FIRST})(?:, (?:F|training|bessel|n [=>] 1))*): +(.*)")


@attrs.frozen
class Step:
    """One step in building the value of a name."""

    conditions: tuple[str, ...]
    name: str
    #: "=", "+" or "<-".
    sign: str
    text: str


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
        match = CONDITION.fullmatch(line)
        conditions = tuple(match[1].split(", ")) if match else ()
        rest = match[2] if match else line
        if rest.startswith("+"):
            yield Step(conditions, name, "+", rest[1:].strip())
            continue
        for statement in split(rest, ","):
            sides = re.split(r"\s(<-|=)\s", f" {statement.strip()} ")
            if len(sides) >= 3:
                name = sides[0].strip()
                yield Step(conditions, name, sides[1], sides[-1].strip())


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

    def holds(self, step: Step) -> bool:
        """Whether a step is for this class, mode and n."""
        known = {"n = 1": self.values.get("n") == 1, "n > 1": self.values.get("n") != 1}
        return all(known.get(one, one in self.classes) for one in step.conditions)

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
                if step.name != name or not self.holds(step):
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
    """What the short names of the page stand for."""
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
