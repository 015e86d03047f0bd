"""The page of conventions by section: what each value of a convention means, and what it costs."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .conventions import CONVENTIONS
from .reader import LINK, pages


@dataclass(frozen=True)
class ConventionValue:
    """A row of a convention's table."""

    name: str
    #: What a target does that declares it, as the end of the sentence that the table's head begins.
    meaning: str
    cost: str


@dataclass(frozen=True)
class Convention:
    """A section of the page."""

    key: str
    #: The head of the column of meanings: "the variance is formed".
    head: str
    #: The normative value first, as in `CONVENTIONS`.
    values: tuple[ConventionValue, ...]
    #: The paragraphs before and after the table, in plain text.
    before: tuple[str, ...]
    after: tuple[str, ...]
    sources: tuple[str, ...]


def convention(key: str) -> Convention:
    """The section of a convention. Raises KeyError."""
    (text,) = re.findall(rf"^## {key}\n(.*?)(?=^## |\Z)", pages()["conventions"], re.M | re.S)
    paragraphs = text.strip().split("\n\n")
    place = next(number for number, one in enumerate(paragraphs) if one.startswith("|"))
    head, _, *rows = ([part.strip() for part in line.strip("|").split("|")] for line in paragraphs[place].splitlines())
    values = {
        name.strip("`"): ConventionValue(name.strip("`"), _plain(what), _plain(cost)) for name, what, cost in rows
    }
    links = [one for one in paragraphs if one.startswith("*Sources:*")]
    return Convention(
        key=key,
        head=_plain(head[1]),
        values=tuple(values[name] for name in CONVENTIONS[key]),
        before=tuple(map(_plain, paragraphs[:place])),
        after=tuple(_plain(one) for one in paragraphs[place + 1 :] if one not in links),
        sources=tuple(link for one in links for link in re.findall(r"<(https://[^>]+)>", one)),
    )


def _plain(text: str) -> str:
    """A paragraph in one line, without links and emphasis."""
    return re.sub(r"\*(\w[^*]*:)\*", r"\1", LINK.sub(r"\1", " ".join(text.split())))
