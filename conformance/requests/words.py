"""Words in texts: names of operators, dtypes, requirements and conventions, with commas between them."""

from __future__ import annotations

from collections.abc import Iterable


def words_of(texts: Iterable[str]) -> tuple[str, ...]:
    """The words in some texts, each once. A text may hold several words with commas between them."""
    return tuple(dict.fromkeys(word for text in texts for part in text.split(",") if (word := part.strip())))


def names_of(texts: Iterable[str]) -> tuple[str, ...]:
    """The same; texts without a word are returned as they are, for the error of whoever looks the names up."""
    given = tuple(texts)
    return words_of(given) or given
