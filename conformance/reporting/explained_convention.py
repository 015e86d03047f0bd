"""A convention for the terminal: its values, what they cost, why one is normative, and how another is declared."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from ...spec.address import address
from ...spec.convention_sections import Convention, ConventionValue
from ...spec.conventions import operators_about
from ...spec.operators import OPERATORS
from .explained import print_heading, print_sources
from .layout import print_labelled, print_prose


def print_convention(convention: Convention, value: str, console: Console) -> None:
    """Print a convention; one of its values first, unless that is empty."""
    key, (normative, *others) = convention.key, convention.values
    print_heading(f"{key}={value}" if value else key, "convention", convention.head, console)
    for one in convention.values:
        if one.name == value:
            print_labelled(value, f"{one.meaning}. It costs {one.cost}.", console)
            console.print()
    for paragraph in convention.before:
        print_prose(Text(paragraph), console)
        console.print()
    print_prose(Text("Its values, the normative one first:", "bold"), console)
    width = max(len(one.name) for one in convention.values)
    for one in convention.values:
        _print_value(one, width, console)
    for paragraph in convention.after:
        console.print()
        label, colon, text = paragraph.partition(": ")
        if colon and len(label.split()) <= 2:
            print_labelled(label, text, console)
        else:
            print_prose(Text(paragraph), console)
    console.print()
    about = operators_about(key)
    operators = "every operator" if about == tuple(OPERATORS) else ", ".join(about)
    example = others[0].name if value in ("", normative.name) else value
    declared = f'--convention {key}={example}, or NAME_conventions = {{"{key}": "{example}"}} beside a function NAME'
    print_labelled("About", operators, console)
    print_labelled("Declared by", declared, console)
    console.print()
    print_sources(convention.sources, address("conventions", key), console)


def _print_value(one: ConventionValue, width: int, console: Console) -> None:
    first = Text.assemble("  ", (one.name, "cyan"), "  ")
    print_prose(Text(one.meaning), console, indent=width + 4, first=first)
    print_prose(Text(f"costs {one.cost}", "dim"), console, indent=width + 4)
