"""
What a run is asked for, in words: the id of a requirement, a pattern of ids, a subject, or a bundle.

`LN-F3` is a requirement and `LN-G*` are several. A subject is the heading of a section of the pages: `gradients`,
`running-statistics`. The bundles are those of bundles.py.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable
from fnmatch import fnmatchcase

from ...spec import requirements, withdrawn
from ...spec.errors import NormspecError
from ...spec.operators import OPERATORS
from .bundles import bundles

#: How many names are suggested for one that does not exist.
_NEAREST = 3


class UnknownSelection(NormspecError):
    """A word is no requirement, pattern, subject or bundle."""


class UnknownBinding(NormspecError):
    """No binding of the targets has such a name."""


def words_of(texts: Iterable[str]) -> tuple[str, ...]:
    """The words of some texts, each of which may hold several with commas between them; each word once."""
    return tuple(dict.fromkeys(word for text in texts for part in text.split(",") if (word := part.strip())))


def checked_words(texts: Iterable[str], what: str) -> tuple[str, ...]:
    """The words of some texts, each of which selects requirements. Raises UnknownSelection."""
    words = words_of(texts)
    selected(words or ("",), what)
    return words


def selected(words: Iterable[str], what: str) -> tuple[str, ...]:
    """
    The ids that words select, in the order of the pages.

    Raises UnknownSelection, which names every word that selects nothing, and what may have been meant; ``what`` says
    what the words were given for, and is empty where that is told elsewhere.
    """
    found: set[str] = set()
    unknown = []
    for word in words:
        ids = _ids(word)
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
    """Every subject, as it is asked for."""
    return tuple(dict.fromkeys(subject_of(one.subject) for one in requirements().values()))


def subject_of(heading: str) -> str:
    """A subject as it is asked for: `The formula in training` is about the `formula`."""
    plain = re.sub(r"^the | in training$", "", heading.lower())
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")


def operators_of(ids: Iterable[str]) -> tuple[str, ...]:
    """The operators that some of these requirements are about."""
    from ..checks.registry import is_about  # it imports the cases

    wanted = tuple(ids)
    return tuple(name for name in OPERATORS if any(is_about(one, name) for one in wanted))


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Whether a name is one of these, or matches one of them; every name does where there are none."""
    given = tuple(patterns)
    return not given or any(fnmatchcase(name, pattern) for pattern in given)


def check_bindings(patterns: Iterable[str], names: Collection[str]) -> None:
    """Raise UnknownBinding unless each pattern matches one of these names of bindings."""
    for pattern in patterns:
        if not any(matches(name, (pattern,)) for name in names):
            near = difflib.get_close_matches(pattern, names, n=_NEAREST, cutoff=0.5)
            told = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(names) or 'none'}"
            raise UnknownBinding(f"no binding that is checked is called {pattern!r}: {told}")


def _ids(word: str) -> set[str]:
    known, pattern = requirements(), word.upper()
    if any(sign in word for sign in "*?["):
        return {one for one in known if fnmatchcase(one, pattern)}
    if pattern in known:
        return {pattern}
    name = subject_of(word)
    if name in bundles():
        return set(bundles()[name].requirements)
    return {one.id for one in known.values() if name and subject_of(one.subject) == name}


def _meant(word: str) -> str:
    """What may have been meant by a word that selects nothing, as the end of a sentence about it."""
    successors = withdrawn().get(word.upper())
    if successors:
        return f" (it was withdrawn; {', '.join(successors)} say now what it said)"
    if word.lower() in OPERATORS:
        return f" (it is an operator: ask with --op, or for {OPERATORS[word.lower()].prefix}-*)"
    name, names = subject_of(word), [*subjects(), *bundles()]
    near = difflib.get_close_matches(name, names, n=1) or [one for one in names if name in one.split("-")]
    near = near or difflib.get_close_matches(word.upper(), requirements(), n=_NEAREST) or _titled(word)
    return f" (did you mean {', '.join(near)}?)" if near else ""


def _titled(word: str) -> list[str]:
    """The first requirements that have the word in their titles."""
    return [one.id for one in requirements().values() if word.lower() in re.findall(r"\w+", one.title.lower())][:6]
