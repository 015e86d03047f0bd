"""
The notation of the pages, evaluated: an expression as it is printed becomes a number, an array or a linear map.

Values are mpmath numbers, NumPy arrays of them with a group along the last axis, and linear maps. Terms written side by
side are multiplied: numbers and arrays element by element, a map and an array by applying the map. A name that ends in
+ or - without a space before it is a separate name (`r+`). A name before an opening parenthesis, with no space between
them, is called if it is a function.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache, reduce
from typing import Any

import numpy as np
from mpmath import mpf

from .page_values import FUNCTIONS, Linear, Matrix, product, transposed, value

TOKEN = re.compile(
    r"""\s*(?:
    (?P<number>\d+(?:\.\d+)?(?:e[+-]?\d+)?)
  | (?P<over>sum\ over\ (?:the\ )?
        (?:groups|stretches|samples\ and\ positions|channel\ j|channel|all\ K\ derivatives)(?:\ of\b)?)
  | (?P<list>\[[A-Za-z]\w*_1(?:\(x\))?,\ \.\.\.,\ \w+_K(?:\(x\))?\])
  | (?P<range>sum_\{[^}]*\}(?:\^\{[^}]*\})?)
  | (?P<name>dot\ [A-Za-z]\w*|(?:envelope|tangent)\ of\ \w+|[A-Za-z]\w*(?:_\(\w+\))?'*(?:[+-](?=[\s,;)\]|^]|$))?)
  | (?P<sign>\.\.\.|[-+*/^()\[\]|<>,=:])
    )""",
    re.X,
)

Env = Mapping[str, Any]
Node = Callable[[Env], Any]


class Unreadable(ValueError):
    """An expression that is not in the notation."""


class Tokens:
    """The tokens of an expression, consumed from the left."""

    def __init__(self, text: str) -> None:
        self.text, self.list = text, list(self._split(text))
        self.position = 0
        #: The number of open bars in each parenthesis.
        self.bars = [0]

    @staticmethod
    def _split(text: str) -> Iterator[tuple[str, str, bool]]:
        """Kind, text, and whether the token touches the one before it."""
        position, text = 0, text.rstrip()
        while position < len(text):
            match = TOKEN.match(text, position)
            if match is None:
                raise Unreadable(f"{text!r} at {text[position:]!r}")
            kind = str(match.lastgroup)
            yield kind, match[kind], match.start(kind) == position
            position = match.end()

    def peek(self, ahead: int = 0) -> tuple[str, str, bool]:
        """The next token, and nothing at the end."""
        at = self.position + ahead
        return self.list[at] if at < len(self.list) else ("end", "", False)

    def next(self) -> tuple[str, str, bool]:
        """Take a token."""
        token = self.peek()
        self.position += 1
        return token

    def takes(self, sign: str) -> bool:
        """Take this sign, if it comes next."""
        if self.peek()[:2] == ("sign", sign):
            self.position += 1
            return True
        return False

    def expect(self, sign: str) -> None:
        """Take this sign, which must come next."""
        if not self.takes(sign):
            raise Unreadable(f"{self.text!r}: {sign!r} is missing before {self.peek()[1]!r}")


@cache
def read(text: str) -> Node:
    """Read an expression; call the result with the values of the names to evaluate it."""
    tokens = Tokens(text)
    node = _sum(tokens)
    if tokens.peek()[0] != "end":
        raise Unreadable(f"{text!r}: {tokens.peek()[1]!r} is out of place")
    return node


def evaluate(text: str, env: Env) -> Any:
    """The value of an expression."""
    return read(text)(env)


def _sum(tokens: Tokens) -> Node:
    terms: list[tuple[bool, Node]] = []
    negative = tokens.takes("-")
    if not negative:
        tokens.takes("+")
    terms.append((negative, _product(tokens)))
    while tokens.peek()[0] == "sign" and tokens.peek()[1] in "+-":
        negative = tokens.next()[1] == "-"
        terms.append((negative, _product(tokens)))

    def node(env: Env) -> Any:
        result = None
        for negative, term in terms:
            found = term(env)
            if len(terms) == 1 and not negative:
                return found
            found = found if isinstance(found, (Linear, tuple)) else value(found)
            if negative and not env.get("every term positive"):
                found = -found
            result = found if result is None else result + found
        return result

    return node


def _starts(tokens: Tokens) -> bool:
    """Whether a factor comes next."""
    kind, text, _ = tokens.peek()
    if kind in ("number", "name", "over", "list", "range"):
        return True
    if kind != "sign":
        return False
    if text == "|":
        return tokens.bars[-1] == 0
    return text in "([" or (text == "<" and tokens.peek(1)[2])


def _product(tokens: Tokens) -> Node:
    node = _factor(tokens)
    while True:
        if tokens.takes("*") or _starts(tokens):
            node = _times(node, _factor(tokens))
        elif tokens.takes("/"):
            node = _over(node, _factor(tokens))
        else:
            return node


def _times(a: Node, b: Node) -> Node:
    return lambda env: product(a(env), b(env))


def _over(a: Node, b: Node) -> Node:
    def node(env: Env) -> Any:
        above, below = value(a(env)), value(b(env))
        return (mpf(above) if isinstance(above, int) else above) / below

    return node


def _factor(tokens: Tokens) -> Node:
    node = _primary(tokens)
    while True:
        kind, text, touches = tokens.peek()
        if (kind, text) == ("sign", "^"):
            tokens.next()
            node = _power(tokens, node)
        elif (kind, text) == ("sign", "[") and touches:
            tokens.next()
            node = _indexed(tokens, node)
        else:
            return node


def _power(tokens: Tokens, base: Node) -> Node:
    if tokens.peek()[:2] == ("name", "T"):
        tokens.next()
        return lambda env: transposed(base(env))
    negative = tokens.takes("-")
    exponent = _primary(tokens)

    def node(env: Env) -> Any:
        power = value(exponent(env))
        return value(base(env)) ** (-power if negative else power)

    return node


def _indexed(tokens: Tokens, base: Node) -> Node:
    """An index as in Python: [p], [i:i+1], [..., p]."""
    parts: list[tuple[Node | None, ...]] = [()]
    whole = False
    while not tokens.takes("]"):
        if tokens.takes("..."):
            whole = True
        elif tokens.takes(":"):
            parts[-1] = (*parts[-1], None)
        elif tokens.takes(","):
            parts.append(())
        else:
            parts[-1] = (*parts[-1], _sum(tokens))

    def single(part: tuple[Node | None, ...], env: Env) -> Any:
        if None not in part:
            return part[0](env)  # type: ignore[misc]
        at = part.index(None)
        start = part[at - 1](env) if at else None  # type: ignore[misc]
        stop = part[at + 1](env) if at + 1 < len(part) else None  # type: ignore[misc]
        return slice(*(None if bound is None else int(bound) for bound in (start, stop)))

    def node(env: Env) -> Any:
        index = [single(part, env) for part in parts if part]
        found = base(env)
        if isinstance(found, list):
            return [found[int(k)] for k in index[0]]
        return found[(Ellipsis, *index) if whole else tuple(index)]

    return node


def _inside(tokens: Tokens, close: str) -> list[Node]:
    """Expressions parted by commas up to the closing sign."""
    tokens.bars.append(0)
    found = [_sum(tokens)]
    while tokens.takes(","):
        found.append(_sum(tokens))
    tokens.expect(close)
    tokens.bars.pop()
    return found


def _primary(tokens: Tokens) -> Node:
    kind, text, _ = tokens.next()
    if kind == "number":
        return lambda env: int(text) if text.isdigit() else mpf(text)
    if kind == "over":
        inner = _sum(tokens) if text.endswith(" of") else _primary(tokens)
        return lambda env: env[text.removesuffix(" of")](value(inner(env)))
    if kind == "list":
        family = text[1:].partition("_1")[0]
        return lambda env: [value(one) for one in env[f"{family}_"]]
    if kind == "range":
        return _ranged(text, _product(tokens))
    if kind == "name":
        return _name(tokens, text)
    if text == "(":
        inner = _inside(tokens, ")")
        if len(inner) == 1:
            return inner[0]
        return lambda env: tuple(one(env) for one in inner)
    if text == "[":
        inner = _inside(tokens, "]")
        return inner[0] if len(inner) == 1 else lambda env: [one(env) for one in inner]
    if text == "|":
        tokens.bars[-1] += 1
        inner_sum = _sum(tokens)
        tokens.bars[-1] -= 1
        tokens.expect("|")
        return lambda env: abs(value(inner_sum(env)))
    if text == "<":
        a, b = _inside(tokens, ">")
        return lambda env: np.sum(np.asarray(value(a(env)) * value(b(env)), dtype=object))
    raise Unreadable(f"{tokens.text!r}: {text!r} is out of place")


def _name(tokens: Tokens, name: str) -> Node:
    kind, sign, touches = tokens.peek()
    if name == "prod_f":
        factor = _product(tokens)
        return lambda env: math.prod((factor(Bound(env, {"f": f})) for f in env["factors"]), start=mpf(1))
    if re.fullmatch(r"(sum|min)_[a-z]", name):
        return _over_index(name[-1], _product(tokens), min if name.startswith("min") else operator.add)
    if (kind, sign) == ("sign", "(") and touches:
        return _called(tokens, name)
    if (kind, sign) == ("sign", "|") and touches and name in FUNCTIONS:
        inner = _primary(tokens)
        return lambda env: env[name](inner(env))
    if name in FUNCTIONS and _starts(tokens):
        operand = _product(tokens) if name in ("sum", "min_k") else _factor(tokens)
        return lambda env: env[name](value(operand(env)))
    return lambda env: env[name]


def _called(tokens: Tokens, name: str) -> Node:
    tokens.next()
    tokens.bars.append(0)
    arguments: list[tuple[str | None, Node]] = []
    while not tokens.takes(")"):
        keyword = None
        if tokens.peek()[0] == "name" and tokens.peek(1)[:2] == ("sign", "="):
            keyword = tokens.next()[1]
            tokens.next()
        arguments.append((keyword, _sum(tokens)))
        tokens.takes(",")
    tokens.bars.pop()

    def node(env: Env) -> Any:
        if name.startswith("grad_"):
            return env["grad"](name.removeprefix("grad_"), arguments[0][1])
        called = env.get(f"{name}()", env[name] if f"{name}()" not in env else None)
        found = [(keyword, argument(env)) for keyword, argument in arguments]
        if not getattr(called, "takes_parts", False):
            found = [(keyword, one if isinstance(one, (Matrix, list)) else value(one)) for keyword, one in found]
        if not callable(called):  # a product after all
            return product(called, found[0][1])
        return called(*(z for keyword, z in found if keyword is None), **{k: z for k, z in found if k is not None})

    return node


def _over_index(index: str, term: Node, joined: Callable[[Any, Any], Any]) -> Node:
    """sum_k, min_k: over the members of the families."""
    return lambda env: reduce(joined, (term(Bound(env, {index: k})) for k in range(env["K"])))


def _ranged(text: str, term: Node) -> Node:
    """sum_{k=2}^{n-1}, sum_{j>=1,2^j<n}: over the integers from the first on, as far as is said."""
    match = re.fullmatch(r"sum_\{(\w)(?:>=|=)(\d+)(?:,(.*))?\}(?:\^\{(.*)\})?", text)
    if match is None:
        raise Unreadable(text)
    index, first, condition, last = match.groups()
    small, large = condition.split("<") if condition else (index, f"{last.replace('-', ' - ')} + 1")

    def node(env: Env) -> Any:
        result, k = mpf(0), int(first)
        while evaluate(small, Bound(env, {index: k})) < evaluate(large, env):
            result = result + term(Bound(env, {index: k}))
            k += 1
        return result

    return node


class Bound(Mapping[str, Any]):
    """Values of names, with some bound to others."""

    def __init__(self, env: Env, more: Mapping[str, Any]) -> None:
        self.env, self.more = env, dict(more)

    def __getitem__(self, name: str) -> Any:
        if name in self.more:
            return self.more[name]
        base, _, index = name.rpartition("_")
        bare = index.rstrip("+-'")
        if base and bare in self.more:
            family = base + index[len(bare) :]
            found = value(self.env[f"{family}_"] if f"{family}_" in self.env else self.env[family])
            return found[self.more[bare]] if isinstance(found, (list, tuple)) else found[..., self.more[bare]]
        return self.env[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**self.env, **self.more})

    def __len__(self) -> int:
        return len(set(self))


def digits(text: str) -> Any:
    """The error that an expression may have from its printed decimals; 0 if all numbers are integers."""
    found = [(len(match[1]), int(match[2] or 0)) for match in re.finditer(r"\d\.(\d+)(?:e(-?\d+))?", text)]
    return max((mpf(10) ** (exponent - decimals) for decimals, exponent in found), default=mpf(0))
