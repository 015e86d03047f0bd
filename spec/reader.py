"""Reads the requirements from the normative pages.

A requirement is an anchor, a third-level heading and the paragraphs under it, in this order, separated by blank lines:

    <a id="LN-F3"></a>                                  (by which it is linked, whatever becomes of its title)

    ### LN-F3 (MUST): eps inside the root
    One sentence.

    ```formula                                          (where there is one; ```math where it is typeset)
    r = 1 / sqrt(var + eps)
    ```

    *Why:* the reason.

    *Sources:* <https://...>, <https://...>             (where there are some)

    *Errata:* [ERR-1](errata.md#ERR-1)                  (those that cite it)

Its subject is the second-level heading above it. Anything else under it is an error that names the page and the line.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from .malformed import (
    DuplicateRequirement,
    ForeignRequirement,
    MalformedErrata,
    MalformedHeading,
    MalformedSources,
    MisplacedText,
    MissingAnchor,
    MissingReason,
    MissingSentence,
    NotOneSentence,
    UnclosedFormula,
    UnknownRequirement,
)
from .operators import OPERATORS
from .typeset import plain

HEADING = re.compile(r"### (?P<id>(?P<prefix>[A-Z]{2})-[A-Z][1-9][0-9]*) \((?P<level>MUST|SHOULD)\): (?P<title>\S.*)")
#: The end of a sentence inside a paragraph.
SENTENCE_END = re.compile(r"[.!?] +(?=[A-Z`*])")
#: The beginning of a paragraph. GitHub joins it to the paragraph above unless there is a blank line between them.
MARK = re.compile(r"\*[A-Z][a-z]+:\*|```")
#: A link in the text; a reader without the page sees only its words.
LINK = re.compile(r"\[([^\]]+)\]\([^)\s]+\)")
LINKS = re.compile(r"<https://[^<>\s]+>(, <https://[^<>\s]+>)*")
ERRATA = re.compile(r"ERR-\d+(, ERR-\d+)*")
#: An anchor, to which one can link.
ANCHOR = re.compile(r'<a id="([^"]+)"></a>')


class Level(str, enum.Enum):
    """The level of a requirement, in the words of RFC 2119."""

    #: A violation makes a target non-conforming.
    MUST = "MUST"
    #: A violation is reported as advice.
    SHOULD = "SHOULD"


@dataclass(frozen=True)
class Requirement:
    """One normative sentence, with everything that its page says about it."""

    #: Stable, never reused: "LN-F3".
    id: str
    level: Level
    title: str
    #: What is required, in one sentence.
    sentence: str
    #: The same as a formula, in plain notation even where the page has it typeset; "" where there is none.
    formula: str
    #: Why it is required.
    reason: str
    #: The name of its page, without the ending.
    page: str
    #: Links to where an implementation violated it, or was fixed.
    sources: tuple[str, ...] = ()
    #: Its subject: the heading of its section, such as "Running statistics"; "" where there is none.
    subject: str = ""
    #: The ids of the errata that cite it: printed statements that contradict it and are wrong.
    errata: tuple[str, ...] = ()


def prefixes() -> dict[str, str]:
    """Return every page in reading order, with the prefix of its ids ("" where it has none)."""
    general = {"notation": "", "accuracy": "", "conventions": "", "common": "CM"}
    return {**general, **{name: one.prefix for name, one in OPERATORS.items()}, "errata": ""}


def pages() -> Mapping[str, str]:
    """Return the text of every normative page by its name, in reading order."""
    return _pages(tuple(OPERATORS))


@cache
def _pages(operators: tuple[str, ...]) -> Mapping[str, str]:
    folder = files(__name__.rpartition(".")[0])
    brought = {name: OPERATORS[name].page for name in operators if OPERATORS[name].page}
    return MappingProxyType(
        {name: brought.get(name) or (folder / f"{name}.md").read_text(encoding="utf-8") for name in prefixes()}
    )


def requirements() -> Mapping[str, Requirement]:
    """Return every requirement by its id, in page order; MalformedPage if a page breaks the format."""
    return _requirements(tuple(OPERATORS))


@cache
def _requirements(operators: tuple[str, ...]) -> Mapping[str, Requirement]:
    return read(_pages(operators))


@cache
def withdrawn() -> Mapping[str, tuple[str, ...]]:
    """Return the ids that are no longer in force, each with the ids that replace it."""
    rows = re.findall(r"^\| ([A-Z]{2}-[A-Z][0-9]+) \| ([A-Z0-9, -]+) \|$", pages()["notation"], re.M)
    return MappingProxyType({id: tuple(successors.split(", ")) for id, successors in rows})


def requirement(id: str) -> Requirement:
    """Return the requirement with this id; raise UnknownRequirement if there is none."""
    try:
        return requirements()[id]
    except KeyError:
        raise UnknownRequirement(id) from None


def read(texts: Mapping[str, str]) -> Mapping[str, Requirement]:
    """Return the requirements on pages given by name, in the order of the pages and of the text."""
    found: dict[str, Requirement] = {}
    prefix_of = prefixes()
    for page, text in texts.items():
        for section in sections(text):
            line, match = section.line, HEADING.fullmatch(section.heading)
            if match is None and not prefix_of[page]:
                continue  # pages without requirements use such headings freely
            if match is None:
                raise MalformedHeading(page, line, f"{section.heading!r} is not of the form '### LN-F3 (MUST): title'")
            id, prefix = match["id"], match["prefix"]
            if prefix != prefix_of[page]:
                raise ForeignRequirement(page, line, f"{id} does not belong on this page")
            if id in found:
                raise DuplicateRequirement(page, line, f"{id} is the id of another requirement already")
            if section.anchor != id:
                raise MissingAnchor(page, line, f"""the heading has no '<a id="{id}"></a>' and a blank line above it""")
            fields = _Body(page, line, section.body).fields()
            found[id] = Requirement(
                id=id,
                level=Level(match["level"]),
                title=match["title"],
                page=page,
                subject=section.subject,
                **fields,
            )
    return MappingProxyType(found)


@dataclass
class Section:
    """A third-level heading and the text that belongs to it."""

    #: The line of the heading, counted from 1.
    line: int
    heading: str
    #: The second-level heading above, without its mark.
    subject: str
    #: The id of the anchor above the heading; "" where there is none.
    anchor: str
    #: The lines below the heading, up to the next heading or its anchor.
    body: list[str]


def sections(text: str) -> Iterator[Section]:
    """Yield the third-level headings of a page, in order."""
    lines, subject, anchor = text.splitlines(), "", ""
    starts = [number for number, line in enumerate(lines) if re.match(r"#{1,3} ", line)] + [len(lines)]
    for start, end in pairwise(starts):
        heading, body, own = lines[start], lines[start + 1 : end], anchor
        following = ANCHOR.fullmatch(body[-2]) if body[-1:] == [""] and len(body) > 1 else None
        anchor = following[1] if following else ""
        if following:
            del body[-2:]
        if heading.startswith("### "):
            yield Section(start + 1, heading, subject, own, body)
        else:
            subject = heading.removeprefix("## ").strip() if heading.startswith("## ") else ""


@dataclass
class _Body:
    """The lines under one requirement's heading; they are consumed from the top."""

    page: str
    #: The line of the heading; body[0] is the next line.
    line: int
    body: list[str]
    position: int = 0

    def fields(self) -> dict[str, Any]:
        """Return every field that the body holds, checked."""
        fields: dict[str, Any] = {
            "sentence": self.sentence(),
            "formula": self.formula(),
            "reason": self.reason(),
            "sources": self.sources(),
            "errata": self.errata(),
        }
        self.skip_blank()
        if self.position < len(self.body):
            raise MisplacedText(self.page, self.here, f"{self.body[self.position]!r} has no place in a requirement")
        return fields

    @property
    def here(self) -> int:
        return self.line + 1 + min(self.position, max(len(self.body) - 1, 0))

    def skip_blank(self) -> None:
        while self.position < len(self.body) and not self.body[self.position].strip():
            self.position += 1

    def paragraph(self, mark: str = "") -> str:
        """Take the paragraph that begins with the mark, up to a blank line, without the mark and the links."""
        taken: list[str] = []
        while self.position < len(self.body) and self.body[self.position].strip():
            text = self.body[self.position].strip()
            if taken and MARK.match(text):
                raise MisplacedText(
                    self.page, self.here, f"{text!r} is read as part of the line above: a blank line parts it"
                )
            taken.append(text)
            self.position += 1
        return LINK.sub(r"\1", " ".join(taken).removeprefix(mark).strip())

    def begins(self, mark: str) -> bool:
        self.skip_blank()
        return self.position < len(self.body) and self.body[self.position].startswith(mark)

    def sentence(self) -> str:
        if self.begins("*") or self.begins("```") or self.position >= len(self.body):
            raise MissingSentence(self.page, self.line, "the requirement does not begin with its sentence")
        here, sentence = self.here, self.paragraph()
        if not sentence.endswith(".") or SENTENCE_END.search(sentence):
            raise NotOneSentence(self.page, here, "the first paragraph is not exactly one sentence")
        return sentence

    def formula(self) -> str:
        typeset = self.begins("```math")
        if not typeset and not self.begins("```formula"):
            return ""
        opened = self.here
        try:
            closing = self.body.index("```", self.position + 1)
        except ValueError:
            raise UnclosedFormula(self.page, opened, "the formula is not closed") from None
        lines = self.body[self.position + 1 : closing]
        self.position = closing + 1
        return plain("\n".join(lines)) if typeset else "\n".join(lines)

    def reason(self) -> str:
        found, here = self.begins("*Why:*"), self.here
        if not found and self.position < len(self.body) and not self.body[self.position].startswith("*"):
            raise MisplacedText(self.page, here, f"{self.body[self.position]!r} has no place in a requirement")
        if found and (reason := self.paragraph("*Why:*")):
            return reason
        raise MissingReason(self.page, here, "the requirement has no '*Why:*' with a reason")

    def sources(self) -> tuple[str, ...]:
        if not self.begins("*Sources:*"):
            return ()
        here, text = self.here, self.paragraph("*Sources:*")
        if LINKS.fullmatch(text) is None:
            raise MalformedSources(self.page, here, f"{text!r} is not a list of links in angle brackets")
        return tuple(link.strip("<>") for link in text.split(", "))

    def errata(self) -> tuple[str, ...]:
        if not self.begins("*Errata:*"):
            return ()
        here, text = self.here, self.paragraph("*Errata:*")
        if ERRATA.fullmatch(text) is None:
            raise MalformedErrata(self.page, here, f"{text!r} is not a list of links to errata")
        return tuple(text.split(", "))
