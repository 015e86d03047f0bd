"""Pages for the terminal: a requirement, an erratum, a fault or an operator in full, and the index of all."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from rich.console import Console
from rich.text import Text

from ...spec import Requirement, pages, requirements
from ...spec.address import address
from ...spec.contents import subjects
from ...spec.conventions import CONVENTIONS
from ...spec.errata import Erratum, errata
from ...spec.operators import OPERATORS, Operator
from ...spec.reader import LINK
from ...spec.words import Word, words
from ..explaining.costs import EPS, costs, measured_dtype
from ..explaining.explaining import Found, Mistake, mistakes
from ..explaining.mending import mended
from ..grouping import grouped
from ..requests.bundles import bundles
from ..requests.choosing import subject_of
from ..requests.library_names import FAULT_PREFIX
from ..sound import registered
from .layout import print_labelled, print_prose

#: A longer name gets a line of its own, so that a summary has 50 of 80 columns.
NAME_WIDTH = 26

#: Where mistakes show that no ordinary call reveals, by their kind (faults/registry.py).
_SHOWN_IN = {
    "value": "special values, shapes or settings",
    "gradient": "special gradients",
    "second-order": "second derivatives",
    "tangent": "forward mode",
    "statistics": "running statistics",
    "state": "repeated calls",
    "layout": "views that are not contiguous",
    "size": "other sizes",
    "non-finite": "NaN and infinity",
    "dtype": "other dtypes",
    "argument": "other arguments",
}

#: The number of mistakes of one requirement for which costs are computed.
MEASURED = 4


def print_requirement(requirement: Requirement, console: Console, *, figures: bool = True) -> None:
    """
    Print id, level, title, sentence, formula, reason, faults, sources, errata and address of the requirement.

    ``figures``: also print how the first fault is mended, and what faults cost: some hundredths of a second each.
    """
    print_heading(requirement.id, requirement.level.value, requirement.title, console)
    print_prose(Text(requirement.sentence), console)
    if requirement.formula:
        console.print()
        print_prose(Text(requirement.formula.rstrip("\n"), style="green"), console, indent=4)
    if requirement.reason:
        console.print()
        print_labelled("Why", requirement.reason, console)
    console.print()
    print_prose(Text("Excludes:", "bold"), console)
    excluded = mistakes(requirement.id)
    _print_mistakes(excluded, console)
    if figures:
        _print_costs(excluded, console)
        _print_mended(excluded[:1], console)
    if requirement.errata:
        console.print()
        _print_names("Contradicted in print:", {id: errata()[id].title for id in requirement.errata}, console)
    console.print()
    print_sources(requirement.sources, place_of(requirement), console)


def print_erratum(erratum: Erratum, console: Console) -> None:
    """Print id, title, printed text, correction, counter-example, requirements and address."""
    print_heading(erratum.id, "erratum", erratum.title, console)
    for label, text in (
        ("Printed", erratum.printed),
        ("Correct", erratum.correct),
        ("Counter-example", erratum.example),
    ):
        print_labelled(label, text, console)
        console.print()
    _print_names("Contradicts:", {id: requirements()[id].title for id in erratum.requirements}, console)
    console.print()
    print_address(address("errata", erratum.id), console)


def print_mistake(mistake: Mistake, console: Console) -> None:
    """Print what a fault does wrong, the requirement that excludes it, where it shows, its sources and the address."""
    first = mistake.faults[0]
    requirement = requirements()[first.requirement]
    print_heading(mistake.name, "fault of", ", ".join(fault.operator for fault in mistake.faults), console)
    print_prose(Text(mistake.summary), console)
    console.print()
    _print_names("Excluded by:", {requirement.id: f"{requirement.title}. {requirement.sentence}"}, console)
    console.print()
    if requirement.formula:
        print_prose(Text(requirement.formula.rstrip("\n"), style="green"), console, indent=4)
        console.print()
    print_labelled("Shows in", ", ".join(first.dtypes), console)
    print_labelled("Its report", f"normspec check {FAULT_PREFIX}{first.name}", console)
    _print_costs((mistake,), console)
    _print_mended((mistake,), console)
    console.print()
    links = dict.fromkeys(link for fault in mistake.faults for link in fault.sources)
    print_sources(links, place_of(requirement), console)


def print_operator(operator: Operator, console: Console) -> None:
    """Print how an operator is called, its definition, its requirements by subject, and the address of its page."""
    print_heading(operator.name, f"{operator.prefix}-", "", console)
    print_prose(Text(operator.signature, style="green"), console)
    console.print()
    definition = re.search(r"^## Definition\n+(.*?)(?=^#)", pages()[operator.name], re.M | re.S)
    if definition:
        for paragraph in LINK.sub(r"\1", definition[1]).rstrip().split("\n\n"):
            if paragraph.startswith("    "):
                console.print(Text(paragraph, style="green"), soft_wrap=True)
            else:
                print_prose(Text(" ".join(paragraph.split())), console)
            console.print()
    own = [one for one in requirements().values() if one.page == operator.name]
    for subject in dict.fromkeys(one.subject for one in own):
        titles = {one.id: _title(one) for one in own if one.subject == subject}
        _print_names(subject or "Requirements", titles, console)
        console.print()
    rest = "Requirements with the prefix CM- apply to every operator: `normspec explain` without a word lists them."
    print_prose(Text(rest), console)
    console.print()
    print_address(operator.file or address(operator.name), console)


def print_word(word: Word, console: Console) -> None:
    """Print what a word of the pages means, and the address of the page that says it."""
    print_heading(word.word, word.kind, "", console)
    print_prose(Text(re.sub(r"`", "", LINK.sub(r"\1", word.meaning)).strip()), console)
    console.print()
    print_address(address("notation", word.anchor), console)


def print_found(found: Found, console: Console) -> None:
    """Print what a search found or a word selects: a line for each requirement, erratum and fault."""
    unknown = f"Nothing is called {found.text!r}. It"
    said = f"{repr(found.text) if found.explained else unknown} is mentioned in:"
    print_prose(Text(f"`--only {found.text}` judges:" if found.selected else said), console)
    for label, names in (
        ("Errata", {one.id: one.title for one in found.errata}),
        ("Requirements", {one.id: _title(one) for one in found.requirements}),
    ):
        if names:
            console.print()
            _print_names(label, names, console)
    if found.mistakes:
        console.print()
        print_prose(Text("Faults", "bold"), console)
        _print_mistakes(found.mistakes, console)
    if found.passages:
        console.print()
        print_prose(Text("Pages", "bold"), console)
        for one in dict.fromkeys(passage.page for passage in found.passages):
            headings = [passage.heading for passage in found.passages if passage.page == one]
            print_prose(Text("; ".join(headings)), console, indent=4, first=Text.assemble("  ", (one, "cyan"), "  "))
            print_address(f"    {address(one)}", console)


def print_index(console: Console) -> None:
    """
    Print all requirements by subject, the errata, the operators, what else has a name, and the address of the pages.

    Of the faults and the sound functions, which are many, it says how many there are, and how to list them.
    """
    for subject, titles in subjects().items():
        print_prose(Text(subject, "bold"), console)
        for title, ones in titles.items():
            first = Text(f"  {title}{_should(*ones)}  ")
            print_prose(Text(", ".join(one.id for one in ones), "cyan"), console, indent=50, first=first)
        console.print()
    _print_names("Errata", {one.id: one.title for one in errata().values()}, console)
    console.print()
    for heading, names in (
        ("Operators", OPERATORS),
        ("Conventions", CONVENTIONS),
        ("Words", words()),
        ("Subjects and bundles, which --only and --require take", [*map(subject_of, subjects()), *bundles()]),
    ):
        print_prose(Text(heading, "bold"), console)
        print_prose(Text(", ".join(dict.fromkeys(names)), "cyan"), console, indent=2)
        console.print()
    print_prose(Text("Faults", "bold"), console)
    count = sum(len(one.faults) for one in mistakes())
    rest = "`normspec explain faults` lists them, `normspec explain LN-F3` those against LN-F3"
    print_prose(Text(f"{count:,} known mistakes: {rest}"), console, indent=2)
    console.print()
    print_prose(Text("Sound functions", "bold"), console)
    print_prose(Text(f"{len(registered())}: `normspec explain sound` lists them"), console, indent=2)
    console.print()
    print_prose(Text("`normspec explain` takes each of these names, and any text, which it searches for."), console)
    console.print()
    print_address(address("README"), console)


def print_faults(console: Console) -> None:
    """Print the name and the summary of every fault, under the requirement that excludes it."""
    excluded = grouped((one.faults[0].requirement, one) for one in mistakes())
    for position, id in enumerate(one for one in requirements() if one in excluded):
        if position:
            console.print()
        print_prose(Text.assemble((id, "bold cyan"), "  ", (requirements()[id].title, "bold")), console)
        _print_mistakes(excluded[id], console)


def print_sound(console: Console, names: Collection[str] = ()) -> None:
    """Print the name and the summary of these sound functions, or of all, under their operators."""
    by_operator = grouped((one.operator, one) for one in registered() if not names or one.name in names)
    for position, (operator, ones) in enumerate(by_operator.items()):
        if position:
            console.print()
        _print_names(operator, {one.name: one.summary for one in ones}, console)


def place_of(requirement: Requirement) -> str:
    """The address of a requirement, or the file of an operator that comes from elsewhere."""
    record = OPERATORS.get(requirement.page)
    return (record.file if record else "") or address(requirement.page, requirement.id)


def _title(one: Requirement) -> str:
    return f"{one.title}{_should(one)}"


def _should(*ones: Requirement) -> str:
    """What follows the title of requirements that are advice."""
    return " (should)" if all(one.level.value == "SHOULD" for one in ones) else ""


def print_heading(name: str, kind: str, title: str, console: Console) -> None:
    """Print a name, what it is the name of, and its title."""
    print_prose(Text.assemble((name, "bold cyan"), f"  {kind}  ", (title, "bold")), console)
    console.print()


def _print_names(heading: str, titles: Mapping[str, str], console: Console) -> None:
    """Print names under a heading, each with its title."""
    print_prose(Text(heading, "bold"), console)
    width = max((len(name) for name in titles), default=0)
    for name, title in titles.items():
        _print_named(name, Text(title), width, console)


def _print_named(name: str, body: Text, width: int, console: Console) -> None:
    """Print a name and what belongs to it, in two columns."""
    print_prose(body, console, indent=width + 4, first=Text.assemble("  ", (name, "cyan"), "  "))


def _print_mistakes(found: Iterable[Mistake], console: Console) -> None:
    """Print name and summary of each, in two columns. A mistake of several operators also shows their prefixes."""
    several = tuple(found)
    width = min(NAME_WIDTH, max((len(one.name) for one in several), default=0))
    for one in several:
        prefixes = [fault.name.partition("-")[0] for fault in one.faults if fault.name != one.name]
        body = Text.assemble(one.summary, (f" ({', '.join(prefixes)})" if prefixes else "", "dim"))
        _print_named(one.name, body, width, console)


def _print_costs(found: Sequence[Mistake], console: Console) -> None:
    """Print what a few mistakes cost on standard data, computed now; or that they show nothing there."""
    kinds = list(_SHOWN_IN)
    measured = sorted(found, key=lambda one: kinds.index(one.faults[0].kind))[:MEASURED]
    told = {one.name: [cost.words for cost in costs(one.faults[0])] for one in measured}
    if not told:
        return
    share = f" of {len(measured)} of {len(found)}" if len(measured) < len(found) else ""
    console.print()
    if not any(told.values()):
        shown_in = dict.fromkeys(_SHOWN_IN[one.faults[0].kind] for one in measured)
        words = f"nothing in ordinary data; it shows in {' and '.join(shown_in)}"
        print_labelled(f"Costs{share}", words, console)
        return
    dtypes = " or ".join(dict.fromkeys(measured_dtype(one.faults[0]) for one in measured if told[one.name]))
    head = f"the largest difference from the right y and gradients, computed in {dtypes} with eps = {EPS:g}:"
    print_labelled(f"Costs{share}", head, console)
    width = min(NAME_WIDTH, max(map(len, told)))
    for name, words in told.items():
        if words:
            _print_named(name, Text("; ".join(words)), width, console)


def _print_mended(found: Sequence[Mistake], console: Console) -> None:
    """Print the wrong step of a mistake, and the right one."""
    for mistake in found:
        for step in mended(mistake.faults[0]):
            console.print()
            print_labelled("Mended", f"{mistake.name} in place of the sound {step.name}", console)
            for sign, style, code in (("-", "red", step.wrong), ("+", "green", step.right)):
                for line in code.splitlines():
                    console.print(Text(f"  {sign} {line}", style=style), soft_wrap=True)


def print_sources(links: Collection[str], place: str, console: Console) -> None:
    """Print links, each on a line of its own, and where the page is."""
    for link in links:
        # Links are not wrapped, so that they can be clicked or copied whole.
        console.print(Text.assemble(("See: ", "bold"), link), soft_wrap=True)
    if links:
        console.print()
    print_address(place, console)


def print_address(place: str, console: Console) -> None:
    """Print where a page is."""
    console.print(Text(place, style="dim"), soft_wrap=True)
