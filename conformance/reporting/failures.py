"""Under the table: each violation, with the requirement's sentence and the smallest case that shows it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import attrs
from rich.console import Console
from rich.text import Text

from ..engine.folding import priority
from ..grouping import grouped
from ..judging.verdicts import Counterexample, Result
from .counterexample_rows import input_rows, provocation_rows, raised_at, wrong_rows
from .layout import print_prose, print_title
from .numbers import ratio_text
from .symbols import Symbols, symbol_and_style
from .wording import page_order, sentence, title

#: How many violations are shown in full. One mistake often breaks many laws, and the first few tell what it is.
DETAILED = 5

#: A target, an operator and a requirement.
Place = tuple[str, str, str]

#: For each violated requirement, what is said about its script, if scripts were asked for.
Scripts = Mapping[str, str]
NO_SCRIPTS: Scripts = {}


@attrs.frozen
class ShownViolation:
    """One violated requirement of one target, with all dtypes and bindings in which it shows."""

    requirement: str
    results: tuple[Result, ...]
    #: The requirements that fail on the same case for the same reason.
    also: tuple[str, ...] = ()
    #: The requirements that fail only because of it.
    follow: tuple[str, ...] = ()

    @property
    def clearest(self) -> Result:
        """The result with the smallest case; among equals, the one furthest outside the envelope."""
        return min(self.results, key=lambda r: (size_of(r.counterexample), -(r.ratio or 0.0)))

    def where(self) -> str:
        """The bindings and dtypes in which it shows."""
        places = grouped((result.binding, result.dtype) for result in self.results)
        dtypes = grouped((tuple(dict.fromkeys(found)), place) for place, found in places.items())
        if list(places) == [self.results[0].target]:
            return ", ".join(next(iter(dtypes)))
        return "; ".join(f"{', '.join(names)}: {', '.join(found)}" for found, names in dtypes.items())


def size_of(case: Counterexample | None) -> int:
    """The number of values in a case; more than in any if there is none."""
    if case is None:
        return 1 << 62
    return sum(a.size for a in case.inputs.values() if a is not None)


def shown_violations(results: Sequence[Result], beside: Sequence[Result] = ()) -> tuple[ShownViolation, ...]:
    """
    The results grouped by target, operator and requirement; within these, the most telling requirement first.

    What the framework itself violates comes after the target's own violations.
    A requirement that always fails on the same case and for the same reason as another is listed with that one.
    ``beside``: results that are told elsewhere; only those that join another requirement are used here.
    """
    members = grouped((_place(one), one) for one in (*results, *beside))
    #: By the place of a requirement that is listed with another: the place of that one.
    joined: dict[Place, Place] = {}
    for (target, op, requirement), several in members.items():
        leading = (target, op, _leading(several))
        if leading in members:  # one that is not told leads no other
            joined[target, op, requirement] = leading
    runs = list(dict.fromkeys((target, op) for target, op, _ in members))
    targets = list(dict.fromkeys(target for target, _ in runs))
    pages = {name: number for number, name in enumerate(page_order(requirement for _, _, requirement in members))}

    def rank(place: Place) -> tuple[Any, ...]:
        target, op, requirement = place
        late = _is_upstream(members[place])
        return targets.index(target), late, runs.index((target, op)), priority(requirement), pages[requirement]

    places = sorted(members, key=rank)
    told = {_place(one) for one in results} - joined.keys()
    return tuple(
        ShownViolation(place[2], tuple(members[place]), tuple(one[2] for one in places if joined.get(one) == place))
        for place in places
        if place in told
    )


def _place(result: Result) -> Place:
    return result.target, result.op, result.requirement


def violated(results: Sequence[Result]) -> list[str]:
    """
    The requirements of these results: first the independent ones, the most telling of them before the others; last
    those that the framework itself violates.
    """
    found = shown_violations(results)
    names = dict.fromkeys([one.requirement for one in found] + [other for one in found for other in one.also])
    upstream = {name for name, ones in grouped((one.requirement, one) for one in results).items() if _is_upstream(ones)}
    return sorted(names, key=upstream.__contains__)


def _is_upstream(results: Sequence[Result]) -> bool:
    """Whether a layer of the framework does the same in each of these."""
    return all(one.upstream is not None for one in results)


def _leading(results: Sequence[Result]) -> str:
    """The requirement that these results join; empty if one of them stands by itself."""
    return results[0].same_case_as if all(one.same_case_as for one in results) else ""


def _following(violation: ShownViolation) -> str:
    """The violations that follow from a violation, in words."""
    return f"{', '.join(violation.follow)} {'fails' if len(violation.follow) == 1 else 'fail'} because of it"


def _upstream_rows(violation: ShownViolation) -> Iterator[tuple[str, str]]:
    """Which layers of the framework do the same, in which dtypes if not in all, and where that is told."""
    dtypes = grouped((one.upstream, one.dtype) for one in violation.results if one.upstream is not None)
    for one, found in dtypes.items():
        where = "" if len(found) == len(violation.results) else f" in {', '.join(found)}"
        yield "upstream", "; ".join((f"{one.binding} does the same{where}: {one.reason}", *one.links))


def _outcome_rows(violation: ShownViolation, result: Result, scripts: Scripts) -> list[tuple[str, str]]:
    case = result.counterexample
    rows = [] if case is None else provocation_rows(case)
    if result.reason and (case is None or result.reason != case.note):
        rows.append(("why" if case is None else "first", result.reason))
    if violation.also:
        rows.append(("also", f"{', '.join(violation.also)}: the same case, for the same reason"))
    if violation.follow:
        rows.append(("so", _following(violation)))
    rows += _upstream_rows(violation)
    if violation.requirement in scripts:
        rows.append(("script", scripts[violation.requirement]))
    return rows


def detail_rows(
    violation: ShownViolation, seen: dict[tuple[object, ...], str], scripts: Scripts = NO_SCRIPTS
) -> list[tuple[str, str]]:
    """
    Label and text of each line that describes the violation.

    `seen` maps printed inputs to the requirement under which they were printed. One case often shows one mistake best,
    and is printed once.
    """
    result = violation.clearest
    case = result.counterexample
    rows = [("where", violation.where())]
    if case is not None:
        if len(violation.results) > 1:
            binding = "" if result.binding == result.target else f"{result.binding}, "
            rows.append(("shown", binding + result.dtype))
        inputs = input_rows(case)
        first = seen.setdefault((result.target, result.op, *inputs), violation.requirement)
        rows += inputs if first == violation.requirement else [("case", f"the same as for {first}")]
        rows += wrong_rows(case)
    return rows + _outcome_rows(violation, result, scripts)


def _print_detail(
    violation: ShownViolation,
    seen: dict[tuple[object, ...], str],
    scripts: Scripts,
    console: Console,
    symbols: Symbols,
    *,
    stated: bool = False,
) -> None:
    """``stated``: its sentence stands above already."""
    symbol, style = symbol_and_style(violation.results[0], symbols)
    console.print()
    console.print(
        Text.assemble((f"{symbol} {violation.requirement}", style), "  ", (title(violation.requirement), "bold"))
    )
    words = "" if stated else sentence(violation.requirement)
    if words:
        print_prose(Text(words), console, indent=2)
    rows = detail_rows(violation, seen, scripts)
    indent = 4 + max(len(label) for label, _ in rows)
    for label, text in rows:
        print_prose(Text(text), console, indent=indent, first=Text(f"  {label}", style="dim"))


def _print_brief(violation: ShownViolation, console: Console, symbols: Symbols, scripts: Scripts = NO_SCRIPTS) -> None:
    symbol, style = symbol_and_style(violation.results[0], symbols)
    ratio = violation.clearest.ratio
    amount = f"; {ratio_text(ratio)} envelopes" if ratio is not None and ratio > 1 else ""
    case = violation.clearest.counterexample
    how = f"; {case.note}" if case is not None and case.note else ""
    how += f", at {raised_at(case)}" if case is not None and raised_at(case) else ""
    how += f"; also {', '.join(violation.also)}, for the same reason" if violation.also else ""
    how += f"; {_following(violation)}" if violation.follow else ""
    how += f"; script {scripts[violation.requirement]}" if violation.requirement in scripts else ""
    line = Text.assemble((title(violation.requirement), "bold"), f" ({violation.where()}{amount}{how})")
    print_prose(line, console, indent=10, first=Text(f"{symbol} {violation.requirement}", style=style))


def print_failures(
    results: Sequence[Result],
    console: Console,
    symbols: Symbols,
    advice: Sequence[Result] = (),
    scripts: Scripts = NO_SCRIPTS,
    following: Sequence[Result] = (),
    stated: Collection[str] = (),
) -> None:
    """
    Print the violated requirements: the first few in full, with the advice that joins them; the others in brief.

    ``following``: the violations that follow from these, printed as ids. ``stated``: the requirements whose sentences
    stand above.
    """
    found = [attrs.evolve(one, follow=_follow(one, following, results)) for one in shown_violations(results, advice)]
    seen: dict[tuple[object, ...], str] = {}
    for violation in found[:DETAILED]:
        _print_detail(violation, seen, scripts, console, symbols, stated=violation.requirement in stated)
    if found[DETAILED:]:
        console.print()
        console.print(Text("More violations (--json FILE writes their cases):", style="dim"))
    for violation in found[DETAILED:]:
        _print_brief(violation, console, symbols, scripts)


def _follow(violation: ShownViolation, following: Sequence[Result], results: Sequence[Result]) -> tuple[str, ...]:
    """The requirements that follow from a violation and are violated nowhere by themselves."""
    first = violation.results[0]
    standing = {one.requirement for one in results if (one.target, one.op) == (first.target, first.op)}
    found = [
        one.requirement
        for one in following
        if (one.target, one.op) == (first.target, first.op) and violation.requirement in one.follows_from
    ]
    return tuple(name for name in page_order(found) if name not in standing)


def print_advice(results: Sequence[Result], console: Console, symbols: Symbols) -> None:
    """Print the violated SHOULDs, with which a target still conforms, except those that join a violated MUST."""
    found = shown_violations(results)
    if not found:
        return
    print_title("Advice: recommended, but not required", console)
    for violation in found:
        _print_brief(violation, console, symbols)
