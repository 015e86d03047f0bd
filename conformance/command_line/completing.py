"""What a shell completes: names of targets, operators, dtypes, profiles, requirements and so on (click's own part)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import click
from click.shell_completion import CompletionItem

#: What click calls for the words that an option or an argument may have.
Completion = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def completing(words: Callable[[], Iterable[str]], *, several: bool = False, files: bool = False) -> Completion:
    """
    Complete these words, whatever the case of what is typed.

    ``words`` is called only where a shell asks, because it may import much. ``several``: commas divide words, and the
    last is completed. ``files``: a file may stand there too.
    """

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        before, comma, last = incomplete.rpartition(",") if several else ("", "", incomplete)
        found = [CompletionItem(incomplete, type="file")] if files else []  # first: bash drops what comes before it
        known = dict.fromkeys(word for word in words() if word.lower().startswith(last.lower()))
        return [*found, *(CompletionItem(f"{before}{comma}{word}") for word in known)]

    return complete


def _targets() -> Iterable[str]:
    from ...adapters.targets import TARGETS

    return TARGETS


def _targets_of_a_campaign() -> Iterable[str]:
    from ..requests.library_names import SOUND

    return (*_targets(), SOUND)


def _operators() -> Iterable[str]:
    from ...spec.operators import OPERATORS

    return OPERATORS


def _dtypes() -> Iterable[str]:
    from ...adapters.dtypes import DTYPES

    return DTYPES


def _profiles() -> Iterable[str]:
    from ..requests.profiles import PROFILES

    return PROFILES


def _frameworks() -> Iterable[str]:
    from ...adapters.frameworks import FRAMEWORKS

    return FRAMEWORKS


def _modes() -> Iterable[str]:
    from ..requests.mode import MODES

    return MODES


def _layouts() -> Iterable[str]:
    from ...adapters.declarations import LAYOUTS

    return LAYOUTS


def _conventions() -> Iterable[str]:
    from ...spec.conventions import CONVENTIONS

    return [f"{key}={value}" for key, values in CONVENTIONS.items() for value in values]


def _selections() -> Iterable[str]:
    from ...spec import requirements
    from ..requests.bundles import bundles
    from ..requests.choosing import subjects

    return (*subjects(), *bundles(), *requirements())


def _studies() -> Iterable[str]:
    from ...studies.catalogue import STUDIES

    return STUDIES


def _explained() -> Iterable[str]:
    from ...spec.conventions import CONVENTIONS
    from ...spec.errata import errata
    from ...spec.words import words
    from ..explaining.explaining import ALL, FAULTS, SOUND
    from ..faults import registered

    faults = (fault.name for fault in registered())
    return (*_selections(), *errata(), *_operators(), *CONVENTIONS, *words(), ALL, FAULTS, SOUND, *faults)


TARGETS = completing(_targets, files=True)
CAMPAIGN_TARGETS = completing(_targets_of_a_campaign, files=True)
OPERATORS = completing(_operators, several=True)
DTYPES = completing(_dtypes, several=True)
PROFILES = completing(_profiles)
FRAMEWORKS = completing(_frameworks)
MODES = completing(_modes)
LAYOUTS = completing(_layouts)
CONVENTIONS = completing(_conventions, several=True)
SELECTIONS = completing(_selections, several=True)
STUDIES = completing(_studies)
EXPLAINED = completing(_explained)
