"""
The meaning of a word or a text to `normspec explain`.

It is a requirement, an erratum, a fault, an operator, a convention or a defined word; or a selection as for `--only`;
or else text to search for.
"""

from __future__ import annotations

import contextlib
import difflib
import re
from collections.abc import Iterator

import attrs

from ...spec import Requirement, requirements, withdrawn
from ...spec.conventions import CONVENTIONS
from ...spec.errata import Erratum, errata
from ...spec.errors import NormspecError, choices
from ...spec.operators import OPERATORS, Operator, operator_spelt
from ...spec.reader import pages
from ...spec.words import Word, words
from ..faults.registry import Fault
from ..requests.choosing import UnknownSelection, replacement, selected

#: The words for every requirement and every erratum, for the names of all faults, and for those of all sound functions.
ALL, FAULTS, SOUND = "all", "faults", "sound"
#: How many names are suggested in place of an unknown one.
NEAREST = 3
#: How similar a word has to be to an operator's name to be a misspelling of it: layernorm, RMSNorm.
SPELT_SO = 0.9
#: Endings of words; without them "cancellation" finds "cancels" too.
ENDINGS = re.compile(r"(?<=\w{4})(ations?|ings?|ions?|ed|es|e|s)$")
#: The convention whose values have names that stand for nothing else: H0, H1, H2, native.
_PRINTED_ALONE = "storage"
#: A word that looks like an id is not searched for: LN-F99, err-3.
LIKE_AN_ID = re.compile(r"[A-Za-z]{2,3}-[A-Za-z]?\d+")


class NothingToExplain(NormspecError):
    """No requirement, erratum, fault, operator or convention has the name, and no page has the text."""


@attrs.frozen
class Mistake:
    """Faults with one name and summary, of one operator or of several."""

    #: The full name if it is about one operator, the name without the operator's prefix if it is about several.
    name: str
    summary: str
    faults: tuple[Fault, ...]


@attrs.frozen
class Passage:
    """The text under one heading of a page."""

    page: str
    heading: str


@attrs.frozen
class Found:
    """What mentions a text, or what a word selects."""

    text: str
    requirements: tuple[Requirement, ...]
    errata: tuple[Erratum, ...] = ()
    mistakes: tuple[Mistake, ...] = ()
    #: Looked for where nothing else mentions the text.
    passages: tuple[Passage, ...] = ()
    #: Whether `--only` would judge this: a subject, a bundle or a pattern of ids.
    selected: bool = False
    #: Whether the text has a meaning of its own, and this is where else it stands.
    explained: bool = False


@attrs.frozen
class Declaration:
    """A convention, and one of its values or none."""

    key: str
    value: str = ""


def meant(word: str) -> Requirement | Erratum | Operator | Declaration | Word | Found | tuple[Mistake, ...]:
    """
    Return what a word names or selects, in upper or lower case, or else everything that mentions it.

    Raises NothingToExplain, which suggests what may have been meant.
    """
    id = word.strip().upper()
    if id in requirements():
        return requirements()[id]
    if id in errata():
        return errata()[id]
    if word.lower() in OPERATORS:
        return OPERATORS[word.lower()]
    if declaration := _declaration(word):
        return declaration
    if word.strip().lower() in words():
        return words()[word.strip().lower()]
    if successors := withdrawn().get(id):
        raise NothingToExplain(f"{id} was withdrawn; {replacement(successors)}")
    named = tuple(one for one in mistakes() if word.lower().removeprefix("fault:") in _names(one))
    if named:
        return named
    with contextlib.suppress(UnknownSelection):
        ids = selected((word,), "explain")
        return Found(word, tuple(requirements()[id] for id in ids), selected=True)
    if operator := operator_spelt(word):
        return OPERATORS[operator]
    misspelt = LIKE_AN_ID.fullmatch(word.strip()) or difflib.get_close_matches(word.lower(), OPERATORS, cutoff=SPELT_SO)
    found = None if misspelt else search(word)
    if found is None:
        raise NothingToExplain(f"nothing is called {word!r}, and no page mentions it; {_suggestion(word)}")
    return found


def _declaration(word: str) -> Declaration | None:
    """The convention that a word names: KEY=VALUE, KEY, or a class of storage, which reports and cards print alone."""
    key, equals, value = (part.strip() for part in word.partition("="))
    if not equals and key.lower() in (one.lower() for one in CONVENTIONS[_PRINTED_ALONE]):
        key, value = _PRINTED_ALONE, key
    key = key.lower()
    if key not in CONVENTIONS:
        return None
    if not value:
        return Declaration(key)
    found = next((one for one in CONVENTIONS[key] if one.lower() == value.lower()), None)
    if found is None:
        raise NothingToExplain(f"convention {key} has no value {value!r}{choices(value, CONVENTIONS[key])}")
    return Declaration(key, found)


def mistakes(of: str = "") -> tuple[Mistake, ...]:
    """Return the faults of the library, or those that a requirement excludes, each once for all its operators."""
    # Imported here because it builds every fault: a quarter of a second that other commands need not wait for.
    from ..faults import registered

    groups: dict[tuple[str, str, str], list[Fault]] = {}
    for fault in registered():
        if of in ("", fault.requirement):
            # A fault against a requirement of every operator is listed once, under its name without the prefix.
            common = requirements()[fault.requirement].page not in OPERATORS
            name = fault.name.partition("-")[2] if common else fault.name
            groups.setdefault((name, fault.summary, fault.requirement), []).append(fault)
    return tuple(Mistake(name, summary, tuple(ones)) for (name, summary, _), ones in groups.items())


def search(text: str) -> Found | None:
    """
    Return everything that contains the text, ignoring blanks and case, or else each of its words, or else each word
    without its ending. If no requirement, erratum or fault does, look through the pages. None if nothing is found.
    """
    phrase = _plain(text)
    each = [_plain(word) for word in text.split() if re.search(r"\w", word)]
    ways = ([phrase] if phrase else [], each, [_stem(word) for word in each])
    for tests in ways:
        found = Found(
            text,
            tuple(
                one for one in requirements().values() if _has(tests, one.title, one.sentence, one.formula, one.reason)
            ),
            tuple(one for one in errata().values() if _has(tests, one.title, one.printed, one.correct, one.example)),
            tuple(one for one in mistakes() if _has(tests, one.name, one.summary)),
        )
        if found.requirements or found.errata or found.mistakes:
            return found
    for tests in ways:
        if passages := tuple(_passages(tests)):
            return Found(text, (), passages=passages)
    return None


def titled(word: str) -> Found | None:
    """The requirements and errata whose titles have a word; None if none has."""
    in_title = re.compile(rf"\b{re.escape(word)}\b")
    found = Found(
        word,
        tuple(one for one in requirements().values() if in_title.search(one.title)),
        tuple(one for one in errata().values() if in_title.search(one.title)),
    )
    return found if found.requirements or found.errata else None


def _passages(wanted: list[str]) -> Iterator[Passage]:
    """The passages of the pages that contain all of these."""
    for page, text in pages().items():
        heading = ""
        for part in re.split(r"^(#+ .*)$", text, flags=re.M):
            if part.startswith("#"):
                heading = part.lstrip("# ")
            elif _has(wanted, heading, part):
                yield Passage(page, heading)


def _stem(word: str) -> str:
    """A word without its ending: "cancel" of "cancellation"."""
    short = ENDINGS.sub("", word)
    return short[:-1] if short != word and short[-2:-1] == short[-1:] else short


def _has(wanted: list[str], *texts: str) -> bool:
    whole = _plain("\n".join(texts))
    return bool(wanted) and all(one in whole for one in wanted)


def _plain(text: str) -> str:
    return re.sub(r"[\s`*]+", "", text).lower()


def _names(mistake: Mistake) -> set[str]:
    names = {fault.name for fault in mistake.faults}
    return names | {name.partition("-")[2] for name in names}


def _suggestion(word: str) -> str:
    ids = difflib.get_close_matches(word.upper(), [*requirements(), *errata()], n=NEAREST, cutoff=0.5)
    faults = [name for one in mistakes() for name in sorted(_names(one))]
    near = difflib.get_close_matches(word.lower(), OPERATORS, n=1, cutoff=SPELT_SO) or ids
    near = near or difflib.get_close_matches(word.lower(), [*OPERATORS, *faults], n=NEAREST)
    return f"did you mean {', '.join(near)}?" if near else "`normspec explain` without a word lists what there is"
