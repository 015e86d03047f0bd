"""Under the table: each violation with the requirement's sentence and the smallest case that shows it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import attrs
from rich.console import Console
from rich.text import Text

from ..verdicts import Counterexample, Result
from .layout import print_prose
from .numbers import array_text, decimal, hex_float, ratio_text, setting_text
from .symbols import Symbols, look
from .wording import page_order, sentence, title

#: Violations shown in full. One mistake often breaks many laws, and the first few tell what it is.
DETAILED = 5

#: A call as anyone writes it: not worth a word.
_PLAIN_MODES = ("", "eager")


@attrs.frozen
class Finding:
    """One violated requirement of one target, wherever it shows: dtypes, bindings and modes."""

    requirement: str
    results: tuple[Result, ...]

    @property
    def clearest(self) -> Result:
        """The result with the smallest case, and of those the one furthest outside the envelope."""
        return min(self.results, key=lambda r: (_size(r.counterexample), -(r.ratio or 0.0)))

    def where(self) -> str:
        """The bindings and dtypes in which it shows."""
        places: dict[str, list[str]] = {}
        for result in self.results:
            mode = f" ({result.mode})" if result.mode not in _PLAIN_MODES else ""
            places.setdefault(result.binding + mode, []).append(result.dtype)
        dtypes: dict[tuple[str, ...], list[str]] = {}
        for place, found in places.items():
            dtypes.setdefault(tuple(dict.fromkeys(found)), []).append(place)
        if list(places) == [self.results[0].target]:
            return ", ".join(next(iter(dtypes)))
        return "; ".join(f"{', '.join(names)}: {', '.join(found)}" for found, names in dtypes.items())


def _size(case: Counterexample | None) -> int:
    if case is None:
        return 1 << 62
    return sum(a.size for a in case.inputs.values() if a is not None)


def findings(results: Sequence[Result]) -> tuple[Finding, ...]:
    """The results grouped by target, operator and requirement; within these, the most telling requirement first."""
    grouped: dict[tuple[str, str, str], list[Result]] = {}
    for result in results:
        grouped.setdefault((result.target, result.op, result.requirement), []).append(result)
    runs = list(dict.fromkeys(key[:2] for key in grouped))
    order = {identifier: i for i, identifier in enumerate(page_order(key[2] for key in grouped))}
    keys = sorted(grouped, key=lambda key: (runs.index(key[:2]), _telling(key[2]), order[key[2]]))
    return tuple(Finding(key[2], tuple(grouped[key])) for key in keys)


def _telling(identifier: str) -> int:
    """
    How early a violated requirement is told.

    A wrong shape breaks everything else, and so does what is done to a part, so the contract (CM-T, CM-C1 to C3) comes
    first; a wrong formula breaks most laws, so the operator's values, its gradients and its laws follow in this order;
    what else is common to all operators comes last.
    """
    page, _, rest = identifier.partition("-")
    if page == "CM":
        return 0 if rest[:1] == "T" or rest in ("C1", "C2", "C3") else 9
    return "_FSIEGRL".find(rest[:1]) % 9


def _multiple(case: Counterexample) -> float | None:
    """The error of this very case in envelopes, where it is a number."""
    if case.expected is None or case.got is None or not case.envelope:
        return None
    multiple = abs(case.got - case.expected) / case.envelope
    return multiple if math.isfinite(multiple) else None


def _input_rows(case: Counterexample) -> list[tuple[str, str]]:
    rows = [(name, array_text(array)) for name, array in case.inputs.items()]
    return rows + [(name, setting_text(value)) for name, value in case.settings.items()]


def _value_rows(case: Counterexample) -> list[tuple[str, str]]:
    place = case.output + (f"[{', '.join(map(str, case.index))}]" if case.index else "")
    rows = [("wrong", place)]
    for label, value in (("expected", case.expected), ("got", case.got), ("envelope", case.envelope)):
        if value is not None:
            rows.append((label, f"{decimal(value)}   {hex_float(value)}"))
    multiple = _multiple(case)
    if multiple is not None:
        rows.append(("error", f"{ratio_text(multiple)} envelopes"))
    return rows


def _outcome_rows(result: Result) -> list[tuple[str, str]]:
    case = result.counterexample
    rows = [("how", case.note)] if case is not None and case.note else []
    if result.reason and (case is None or result.reason != case.note):
        rows.append(("first", result.reason))
    if result.diagnosis is not None:
        rows.append(("diagnosis", result.diagnosis))
    return rows


def detail_rows(finding: Finding, seen: dict[tuple[object, ...], str]) -> list[tuple[str, str]]:
    """
    Label and text of each line that describes the finding.

    `seen` remembers the inputs already printed, by the requirement under which they stand: one mistake is often shown
    best by one case, and that is printed once.
    """
    result = finding.clearest
    case = result.counterexample
    rows = [("where", finding.where())]
    if case is not None:
        if len(finding.results) > 1:
            binding = "" if result.binding == result.target else f"{result.binding}, "
            rows.append(("shown", binding + result.dtype))
        inputs = _input_rows(case)
        first = seen.setdefault((result.target, result.op, *inputs), finding.requirement)
        rows += inputs if first == finding.requirement else [("case", f"the same as for {first}")]
        rows += _value_rows(case)
    return rows + _outcome_rows(result)


def _print_detail(finding: Finding, seen: dict[tuple[object, ...], str], console: Console, symbols: Symbols) -> None:
    symbol, style = look(finding.results[0], symbols)
    console.print()
    console.print(Text.assemble((f"{symbol} {finding.requirement}", style), "  ", (title(finding.requirement), "bold")))
    words = sentence(finding.requirement)
    if words:
        print_prose(Text(words), console, indent=2)
    rows = detail_rows(finding, seen)
    indent = 4 + max(len(label) for label, _ in rows)
    for label, text in rows:
        print_prose(Text(text), console, indent=indent, first=Text(f"  {label}", style="dim"))


def _print_brief(finding: Finding, console: Console, symbols: Symbols) -> None:
    symbol, style = look(finding.results[0], symbols)
    ratio = finding.clearest.ratio
    amount = f"; {ratio_text(ratio)} envelopes" if ratio is not None and ratio > 1 else ""
    case = finding.clearest.counterexample
    how = f"; {case.note}" if case is not None and case.note else ""
    line = Text.assemble((title(finding.requirement), "bold"), f" ({finding.where()}{amount}{how})")
    print_prose(line, console, indent=10, first=Text(f"{symbol} {finding.requirement}", style=style))


def print_failures(results: Sequence[Result], console: Console, symbols: Symbols) -> None:
    """Print the violated requirements: the first few in full, a line for each of the others."""
    found = findings(results)
    seen: dict[tuple[object, ...], str] = {}
    for finding in found[:DETAILED]:
        _print_detail(finding, seen, console, symbols)
    if found[DETAILED:]:
        console.print()
        console.print(Text("And also, with their cases in --json:", style="dim"))
    for finding in found[DETAILED:]:
        _print_brief(finding, console, symbols)


def print_advice(results: Sequence[Result], console: Console, symbols: Symbols) -> None:
    """Print the violated SHOULDs, which leave a target conforming."""
    found = findings(results)
    if not found:
        return
    console.print()
    console.print(Text("Advice: what a target should do, and need not", style="bold"))
    for finding in found:
        _print_brief(finding, console, symbols)
