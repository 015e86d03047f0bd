"""Reads the errata from their page.

An erratum is an anchor, a third-level heading and three paragraphs, separated by blank lines:

    <a id="ERR-2"></a>

    ### ERR-2: eps added to the deviation

    *Printed:* what is printed.

    *Correct:* what is right, with the requirements that say so.

    *Counter-example:* numbers to follow by hand.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from .malformed import MalformedErrata, MissingAnchor
from .reader import Section, pages, prefixes, sections

PAGE = "errata"
HEADING = re.compile(r"### (?P<id>ERR-[1-9][0-9]*): (?P<title>\S.*)")
MARKS = ("*Printed:*", "*Correct:*", "*Counter-example:*")
#: A reference link, [LN-F3], and its target, which the foot of the page gives.
REFERENCE = re.compile(r"\[([A-Z]+-[A-Z]?\d+)\](?!:)")
TARGET = re.compile(r"\[[A-Z]+-[A-Z]?\d+\]: \S+")


@dataclass(frozen=True)
class Erratum:
    """A printed statement about these operators that is wrong."""

    #: "ERR-2".
    id: str
    title: str
    printed: str
    correct: str
    example: str
    #: The ids of the requirements that it cites, in the order of the text.
    requirements: tuple[str, ...]


@cache
def errata() -> Mapping[str, Erratum]:
    """Return every erratum by its id, in page order; MalformedPage if the page breaks the format."""
    found = (_erratum(section) for section in sections(pages()[PAGE]))
    return MappingProxyType({one.id: one for one in found})


def _erratum(section: Section) -> Erratum:
    match = HEADING.fullmatch(section.heading)
    if match is None:
        raise MalformedErrata(PAGE, section.line, f"{section.heading!r} is not of the form '### ERR-2: title'")
    if section.anchor != match["id"]:
        raise MissingAnchor(PAGE, section.line, f"""the heading has no '<a id="{match["id"]}"></a>' above it""")
    text = "\n".join(line for line in section.body if not TARGET.fullmatch(line)).strip()
    paragraphs = [" ".join(paragraph.split()) for paragraph in text.split("\n\n")]
    begun = tuple(next((mark for mark in MARKS if one.startswith(mark)), "") for one in paragraphs)
    if begun != MARKS:
        raise MalformedErrata(PAGE, section.line, f"{match['id']} is not three paragraphs, {', '.join(MARKS)}")
    prefix = "|".join(filter(None, prefixes().values()))
    cited = [id for id in REFERENCE.findall(text) if re.match(prefix, id)]
    printed, correct, example = (
        REFERENCE.sub(r"\1", one.removeprefix(mark).strip()) for one, mark in zip(paragraphs, MARKS)
    )
    return Erratum(match["id"], match["title"], printed, correct, example, tuple(dict.fromkeys(cited)))
