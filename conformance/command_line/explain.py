"""`normspec explain`: one requirement, as the normative pages say it."""

from __future__ import annotations

import difflib
import sys

import click
from rich.console import Console
from rich.text import Text

from ...spec import Requirement, requirements, withdrawn
from ...spec.errors import NormspecError
from ...spec.operators import OPERATORS
from ..reporting.layout import print_prose
from .console import console_on


class NoSuchRequirement(NormspecError):
    """No page has a requirement of this id."""


def find(identifier: str) -> Requirement:
    """The requirement of this id, written in any case; `NoSuchRequirement` names the nearest ids."""
    known = requirements()
    if identifier.upper() in known:
        return known[identifier.upper()]
    successors = withdrawn().get(identifier.upper())
    if successors:
        raise NoSuchRequirement(f"{identifier.upper()} was withdrawn; {', '.join(successors)} say now what it said")
    near = difflib.get_close_matches(identifier.upper(), known, n=3, cutoff=0.5)
    hint = f"did you mean {', '.join(near)}?" if near else f"ids look like {next(iter(known), 'LN-F1')}"
    raise NoSuchRequirement(f"no requirement has the id {identifier!r}; {hint}")


def print_requirement(requirement: Requirement, console: Console) -> None:
    """Print the id, level, title, sentence, formula, reason, faults, sources and page of the requirement."""
    level = getattr(requirement.level, "value", requirement.level)
    print_prose(Text.assemble((requirement.id, "bold cyan"), f"  {level}  ", (requirement.title, "bold")), console)
    console.print()
    print_prose(Text(requirement.sentence), console)
    if requirement.formula:
        console.print()
        print_prose(Text(requirement.formula.rstrip("\n"), style="green"), console, indent=4)
    if requirement.reason:
        console.print()
        print_prose(Text.assemble(("Why: ", "bold"), requirement.reason), console)
    console.print()
    print_faults(requirement, console)
    if requirement.sources:
        console.print()
    for source in requirement.sources:
        # Not wrapped: a link is to be clicked, or copied whole.
        console.print(Text.assemble(("See: ", "bold"), source), soft_wrap=True)
    console.print()
    record = OPERATORS.get(requirement.page)
    console.print(Text((record.file if record else "") or f"spec/{requirement.page}.md", style="dim"))


#: A longer name has a line of its own, so that in 80 columns a summary has 50 of them.
NAME_WIDTH = 26


def print_faults(requirement: Requirement, console: Console) -> None:
    """
    Print the faults that the requirement excludes: the name and the summary of each, in two columns.

    Faults of the common page stand once for all operators that have one of this name and summary: the name less its
    prefix, and the prefixes after the summary.
    """
    # Imported here: it builds every fault, a quarter of a second that no other command is to wait for.
    from ..faults import registered

    several = requirement.page not in OPERATORS
    prefixes: dict[tuple[str, str], list[str]] = {}
    for fault in registered():
        if fault.requirement == requirement.id:
            prefix, _, name = fault.name.partition("-")
            prefixes.setdefault((name if several else fault.name, fault.summary), []).append(prefix)
    print_prose(Text("Excludes:", "bold"), console)
    width = min(NAME_WIDTH, max((len(name) for name, _ in prefixes), default=0))
    for (name, summary), operators in prefixes.items():
        body = Text.assemble(summary, (f" ({', '.join(operators)})" if several else "", "dim"))
        print_prose(body, console, indent=width + 4, first=Text.assemble("  ", (name, "cyan"), "  "))


@click.command()
@click.argument("identifiers", metavar="ID...", nargs=-1, required=True)
def explain(identifiers: tuple[str, ...]) -> int:
    """Print a requirement: its sentence, formula, reason, and the faults it excludes."""
    found = [find(identifier) for identifier in identifiers]
    console = console_on(sys.stdout)
    for position, requirement in enumerate(found):
        if position:
            console.print()
        print_requirement(requirement, console)
    return 0
