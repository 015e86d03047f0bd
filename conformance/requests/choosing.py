"""
Words that select requirements: an id, a pattern of ids, a subject, or a bundle.

`LN-F3` is one requirement and `LN-G*` are several. A subject is the heading of a section on the pages, such as
`gradients` or `running-statistics`. The bundles are in bundles.py.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable
from fnmatch import fnmatchcase

from ...spec import requirements, withdrawn
from ...spec.errors import NormspecError, near
from ...spec.operators import OPERATORS
from .bundles import bundles
from .words import words_of

#: Number of names suggested for an unknown one.
_NEAREST = 3


class UnknownSelection(NormspecError):
    """A word is not a requirement, pattern, subject or bundle."""


class UnknownBinding(NormspecError):
    """No binding of the targets has this name."""


def binding_names_of(texts: Iterable[str]) -> tuple[str, ...]:
    """The bindings in some texts, names or patterns, each once. A comma in brackets belongs to a name: `f(x, n=2)`."""
    names = []
    for text in texts:
        depth = 0
        names.append("")
        for letter in text:
            depth = max(0, depth + (letter in "([{") - (letter in ")]}"))
            if letter == "," and not depth:
                names.append("")
            else:
                names[-1] += letter
    return tuple(dict.fromkeys(name for one in names if (name := one.strip())))


def checked_words(texts: Iterable[str], what: str) -> tuple[str, ...]:
    """The words in some texts, checked to select requirements. Raises UnknownSelection."""
    words = words_of(texts)
    selected(words or ("",), what)
    return words


def selected(words: Iterable[str], what: str) -> tuple[str, ...]:
    """
    The ids that the words select, in the order of the pages.

    Raises UnknownSelection, which names every word that selects nothing, and suggests others. ``what`` names the option
    in the message; it is empty if the caller adds that.
    """
    found: set[str] = set()
    unknown = []
    for word in words:
        ids = ids_of(word)
        found |= ids
        if not ids:
            unknown.append(f"{word!r}{_meant(word)}")
    if unknown:
        where = f"{what}: " if what else ""
        raise UnknownSelection(
            f"{where}no requirement, pattern, subject or bundle is {'; nor '.join(unknown)}. "
            f"Subjects are {', '.join(subjects())}; bundles are {', '.join(bundles())}"
        )
    return tuple(one for one in requirements() if one in found)


def subjects() -> tuple[str, ...]:
    """All subjects, in the form in which they are asked for."""
    return tuple(dict.fromkeys(subject_of(one.subject) for one in requirements().values()))


def subject_of(heading: str) -> str:
    """The word for a heading: `formula` for `The formula in training`."""
    plain = re.sub(r"^the | in training$", "", heading.lower())
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")


def operators_of(ids: Iterable[str]) -> tuple[str, ...]:
    """The operators that at least one of these requirements is about."""
    from ..checks.registry import is_about  # it imports the cases

    wanted = tuple(ids)
    return tuple(name for name in OPERATORS if any(is_about(one, name) for one in wanted))


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Whether a name is one of the names or matches one of the patterns; every name does if there are none."""
    given = tuple(patterns)
    return not given or any(name == pattern or fnmatchcase(name, pattern) for pattern in given)


def check_bindings(patterns: Iterable[str], names: Collection[str]) -> None:
    """Raise UnknownBinding unless each pattern matches one of these binding names."""
    for pattern in patterns:
        if not any(matches(name, (pattern,)) for name in names):
            meant = difflib.get_close_matches(pattern, names, n=_NEAREST, cutoff=0.5)
            there = f"there are {', '.join(names)}" if names else "there are none, as only frameworks have them"
            told = f"did you mean {' or '.join(meant)}?" if meant else there
            raise UnknownBinding(f"no binding that is checked is called {pattern!r}: {told}")


def ids_of(word: str) -> set[str]:
    """The ids that a word selects; none for a word that is unknown."""
    known, pattern = requirements(), word.upper()
    if any(sign in word for sign in "*?["):
        return {one for one in known if fnmatchcase(one, pattern)}
    if pattern in known:
        return {pattern}
    name = subject_of(word)
    if name in bundles():
        return set(bundles()[name].requirements)
    return {one.id for one in known.values() if name and subject_of(one.subject) == name}


def replacement(successors: tuple[str, ...]) -> str:
    """Which requirements replace a withdrawn one, in words."""
    return f"{', '.join(successors)} {'replaces' if len(successors) == 1 else 'replace'} it"


def _meant(word: str) -> str:
    """A suggestion for a word that selects nothing, as the end of a sentence about it."""
    successors = withdrawn().get(word.upper())
    if successors:
        return f" (it was withdrawn; {replacement(successors)})"
    if word.lower() in OPERATORS:
        return f" (it is an operator: use --op, or select {OPERATORS[word.lower()].prefix}-*)"
    name, names = subject_of(word), [*subjects(), *bundles()]
    meant = near(name, names) or [one for one in names if name in one.split("-")]
    meant = meant or near(word.upper(), requirements(), _NEAREST) or _titled(word)
    return f" (did you mean {', '.join(meant)}?)" if meant else ""


def _titled(word: str) -> list[str]:
    """The first six requirements with the word in their titles."""
    return [one.id for one in requirements().values() if word.lower() in re.findall(r"\w+", one.title.lower())][:6]
