"""`normspec explain`: the normative pages and the fault library, by id, name or text."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial

import attrs
import click
from rich.console import Console

from ...spec import Requirement, requirements
from ...spec.convention_sections import convention
from ...spec.errata import Erratum, errata
from ...spec.operators import Operator
from ...spec.words import Word
from ..explaining.explaining import ALL, FAULTS, SOUND, Declaration, Found, meant, search, titled
from ..reporting.explained import (
    print_erratum,
    print_faults,
    print_found,
    print_index,
    print_mistake,
    print_operator,
    print_requirement,
    print_sound,
    print_word,
)
from ..reporting.explained_convention import print_convention
from ..reporting.layout import console_on
from ..reporting.symbols import verdict_of
from ..sound import registered
from . import completing


def _printers(word: str) -> list[Callable[[Console], None]]:
    """The printers of everything that a word refers to."""
    if word.lower() == ALL:
        ones = [partial(print_requirement, one, figures=False) for one in requirements().values()]
        return [*ones, *(partial(print_erratum, one) for one in errata().values())]
    if word.lower() == FAULTS:
        return [print_faults]
    if word.lower() == SOUND:
        return [print_sound]
    if (name := word.lower().removeprefix("sound:")) in (one.name for one in registered()):
        return [partial(print_sound, names=(name,))]
    verdict = verdict_of(word)
    thing = meant(verdict.value if verdict else word)
    if isinstance(thing, Requirement):
        return [partial(print_requirement, thing)]
    if isinstance(thing, Erratum):
        return [partial(print_erratum, thing)]
    if isinstance(thing, Operator):
        return [partial(print_operator, thing)]
    if isinstance(thing, Declaration):
        printers = [partial(print_convention, convention(thing.key), thing.value)]
        mentioned = None if thing.value else search(thing.key)
        if mentioned is not None and not mentioned.passages:
            printers.append(partial(print_found, attrs.evolve(mentioned, explained=True)))
        return printers
    if isinstance(thing, Word):
        # The label of a row of a report may be any word of a title.
        named = None if thing.of_report else titled(thing.word)
        also = [] if named is None else [partial(print_found, attrs.evolve(named, explained=True))]
        return [partial(print_word, thing), *also]
    if isinstance(thing, Found):
        return [partial(print_found, thing)]
    return [partial(print_mistake, one) for one in thing]


@click.command(short_help="Print a requirement, a known mistake, an operator or a word.")
@click.argument(
    "words",
    metavar="[ID|FAULT|OPERATOR|CONVENTION|WORD|TEXT|all|faults|sound]...",
    nargs=-1,
    shell_complete=completing.EXPLAINED,
)
def explain(words: tuple[str, ...]) -> int:
    """
    Print a requirement, an erratum, a fault, an operator or a convention, each with the address of its page.

    A requirement (LN-F3) has its sentence, formula, reason, the faults that it excludes, what they cost on ordinary
    data, computed now, and how one is corrected. A convention (storage=H2, storage or H2) has its values and what they
    cost. A subject (gradients) or a bundle (strict) lists its requirements, a word of the pages (envelope), a verdict
    (deviates, or its symbol) and a sign of a formula ([~]) have their meaning, and any other text is searched for:
    "std + eps". Without a word it lists all these names; `faults` lists the faults, `sound` the sound functions,
    and `all` prints every requirement and erratum.
    """
    found = [printer for word in words for printer in _printers(word)] or [print_index]
    console = console_on(sys.stdout)
    for position, printer in enumerate(found):
        if position:
            console.print()
        printer(console)
    return 0
