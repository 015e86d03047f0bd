"""What a report says about a requirement: taken from the normative pages, the only place where it is written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...spec import Level, Requirement, requirements


def find(identifier: str) -> Requirement | None:
    """The requirement of this id, or None where the pages have none (a report read from elsewhere)."""
    return requirements().get(identifier)


def title(identifier: str) -> str:
    """Its title, or nothing."""
    found = find(identifier)
    return found.title if found else ""


def sentence(identifier: str) -> str:
    """Its sentence, or nothing."""
    found = find(identifier)
    return found.sentence if found else ""


def is_advice(identifier: str) -> bool:
    """Whether its page calls it a SHOULD."""
    found = find(identifier)
    return found is not None and found.level is Level.SHOULD


def page_order(identifiers: Iterable[str]) -> tuple[str, ...]:
    """The ids, each once, as the pages order them; ids that no page has come last."""
    position = {identifier: i for i, identifier in enumerate(requirements())}
    return tuple(sorted(dict.fromkeys(identifiers), key=lambda i: position.get(i, len(position))))


def cases_in_words(count: int) -> str:
    """How many cases there were: "1 case", "2,498 cases"."""
    return f"{count:,} case{'' if count == 1 else 's'}"


def several(words: Sequence[str], most: int = 4) -> str:
    """The words, each once, in one line: the first few, and how many there are beside them."""
    kept = list(dict.fromkeys(words))
    more = f" and {len(kept) - most} more" if len(kept) > most else ""
    return ", ".join(kept[:most]) + more
