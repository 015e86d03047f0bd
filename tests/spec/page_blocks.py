"""
The formulas of a page, one statement after the other.

A statement is `sides related by signs`, after its conditions: `x = (1, 3), eps = 0:   y = (-1, 1)`. Statements are
separated by commas and semicolons, and conditions hold up to the next semicolon. Words after two spaces or more are a
remark, unless a comma, semicolon or colon precedes these. A line that is indented further than the one before it
continues that one if it begins with + or -, and is a remark otherwise. Below a line that ends in a colon, its
conditions hold for the lines that are indented further.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import attrs

RELATION = re.compile(r"\s(=\[~\]|<=\[~\]|\[~\]|\[=\]|<=|>=|=>|=|<|>)\s")
REMARK = re.compile(r"(?<=[^\s,;:])\s{2,}(?=[^\s=<>\[+-]|\[~\] for).*")


@attrs.frozen
class Statement:
    """Sides, the signs between them, and the conditions."""

    sides: tuple[str, ...]
    signs: tuple[str, ...]
    given: tuple[str, ...] = ()

    def __str__(self) -> str:
        said = " ".join(part for pair in zip(self.sides, (*self.signs, ""), strict=True) for part in pair).strip()
        return f"{', '.join(self.given)}: {said}" if self.given else said


def section(text: str, title: str) -> str:
    """The text under a heading of the second level."""
    return text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def indented(text: str) -> Iterator[list[str]]:
    """The blocks of lines that are indented by four spaces, less these."""
    block: list[str] = []
    for line in [*text.splitlines(), ""]:
        if line.startswith("    "):
            block.append(line[4:])
        elif block:
            yield block
            block = []


def split(text: str, sign: str) -> list[str]:
    """The parts between signs that are not inside a parenthesis, bracket or inner product."""
    parts, depth, start = [], 0, 0
    text = re.sub(r"\{[^}]*\}", lambda match: "~" * len(match[0]), shown := text)
    for at, letter in enumerate(text):
        after, before = text[at + 1 : at + 2], text[at - 1 : at]
        if letter in "([" or (letter == "<" and after not in ("=", "-", " ")):
            depth += 1
        elif letter in ")]" or (letter == ">" and before not in ("=", "-", " ")):
            depth -= 1
        elif letter == sign and depth == 0 and (sign != ":" or after in ("", " ")):
            parts.append(shown[start:at])
            start = at + 1
    return [*parts, shown[start:]]


def statements(lines: list[str]) -> list[Statement]:
    """The statements of a block."""
    found: list[Statement] = []
    headings: list[tuple[int, str]] = []
    for indent, line in _joined(lines):
        headings = [heading for heading in headings if heading[0] < indent]
        if line.endswith(":"):
            headings.append((indent, line[:-1].strip()))
            continue
        held = [given for _, heading in headings for given in split(heading, ",")]
        for clause in filter(str.strip, split(line, ";")):
            *given, claims = split(clause, ":")
            conditions = tuple(one.strip() for text in [*held, *given] for one in split(text, ",") if one.strip())
            for claim in filter(str.strip, split(claims, ",")):
                pieces = RELATION.split(f" {claim.strip()} ")
                found.append(Statement(tuple(p.strip() for p in pieces[::2]), tuple(pieces[1::2]), conditions))
    return found


def _joined(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Lines with their indent, without remarks, each with those that go on with it."""
    pending: tuple[int, str] | None = None
    for line in filter(str.strip, lines):
        indent = len(line) - len(line.lstrip())
        text = REMARK.sub("", line.strip())
        if pending and indent > pending[0] and not pending[1].endswith(":"):
            if text.startswith(("+", "-")):
                pending = (pending[0], f"{pending[1]} {text}")
            continue
        if pending:
            yield pending
        pending = (indent, text)
    if pending:
        yield pending
