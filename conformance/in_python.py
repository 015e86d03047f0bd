"""Errors in Python's words: where a message names an option of the command, Python has an argument."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from ..spec.errors import NormspecError

P = ParamSpec("P")
R = TypeVar("R")

#: Options with pairs, and with one value, each with its argument; and options without a value.
_PAIRS = {"fixed": "fixed", "parameters": "parameters", "convention": "conventions", "python": "python"}
_VALUES = {"layout": "layout", "framework": "framework", "device": "device", "op": "op", "mode": "mode"}
_FLAGS = {"layers": "layers=True", "resume": "resume=True", "no-cache": "cache=False", "cache-dir": "cache"}

#: Words that may follow an option and are not its value: "leave --device out".
_NO_VALUE = "out|is|and|or|to"

_OPTION = re.compile(
    rf"--(?:(?P<pairs>{'|'.join(_PAIRS)})(?P<given>(?: [\w\[\]]+=[^\s:;)]+)?)"
    rf"|(?P<name>{'|'.join(_VALUES)})(?: (?!(?:{_NO_VALUE})\b)(?P<value>[\w\[\]/-]+))?"
    rf"|(?P<flag>{'|'.join(_FLAGS)}))(?![\w-])"
)


def says_python(function: Callable[P, R]) -> Callable[P, R]:
    """The function, whose errors name its arguments in place of options of the command."""

    @functools.wraps(function)
    def saying(*args: P.args, **keywords: P.kwargs) -> R:
        __tracebackhide__ = True  # pytest then shows the line of the test and not this one
        try:
            return function(*args, **keywords)
        except NormspecError as error:
            error.args = tuple(in_python(one) if isinstance(one, str) else one for one in error.args)
            raise

    return saying


def in_python(message: str) -> str:
    """A message with arguments in place of options: `fixed={"eps": 1e-6}` for `--fixed eps=1e-6`."""
    return _OPTION.sub(_argument, message)


def _argument(found: re.Match[str]) -> str:
    if found["flag"]:
        return _FLAGS[found["flag"]]
    if found["pairs"]:
        name, pairs = _PAIRS[found["pairs"]], [one.partition("=")[::2] for one in found["given"].split(",") if one]
        value = ", ".join(f'"{key.strip()}": {_literal(text)}' for key, text in pairs)
        value = f"{{{value}}}" if value else ""
    else:
        name, value = _VALUES[found["name"]], f'"{found["value"]}"' if found["value"] else ""
    after = found.string[found.end() : found.end() + 1]
    return f"{name}={value}" if value or after != ":" else name  # "layout: residual has no channels"


def _literal(text: str) -> str:
    """A value as Python has it: numbers as they are, and other texts in quotes."""
    try:
        float(text)
    except ValueError:
        return f'"{text}"'
    return text
