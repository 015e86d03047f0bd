"""A report's words about a requirement, taken from the normative pages, the only place where they are written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...spec import Level, Requirement, requirements


def _find(identifier: str) -> Requirement | None:
    """The requirement with this id, or None if the pages have none (in a report from elsewhere)."""
    return requirements().get(identifier)


def title(identifier: str) -> str:
    """Its title; empty if the pages have none."""
    found = _find(identifier)
    return found.title if found else ""


def sentence(identifier: str) -> str:
    """Its sentence; empty if the pages have none."""
    found = _find(identifier)
    return found.sentence if found else ""


def is_advice(identifier: str) -> bool:
    """Whether its page calls it a SHOULD."""
    found = _find(identifier)
    return found is not None and found.level is Level.SHOULD


def page_order(identifiers: Iterable[str]) -> tuple[str, ...]:
    """The ids, each once, in the order of the pages; ids without a page come last."""
    position = {identifier: i for i, identifier in enumerate(requirements())}
    return tuple(sorted(dict.fromkeys(identifiers), key=lambda i: position.get(i, len(position))))


def counted(count: int, what: str) -> str:
    """A number of things: "1 case", "2,498 cases"."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def several(words: Sequence[str], most: int = 4) -> str:
    """The words, each once, in one line: the first few, and the number of the others."""
    kept = list(dict.fromkeys(words))
    more = f" and {len(kept) - most} more" if len(kept) > most else ""
    return ", ".join(kept[:most]) + more
