"""The section of one target: its tables, violations, advice, differences, and verdict."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from ..grouping import grouped
from ..judging.verdicts import CaseCount, Deviation, Result, Verdict
from ..results.outcome import Outcome
from .causes import independent_violations, print_causes, scripts_without_cause, unexplained_consequences
from .conclusion import target_conclusion
from .failures import print_advice, print_failures, shown_violations
from .layout import print_prose, print_rows, print_rule, print_title
from .overview import print_legend, print_table, result_tables
from .symbols import COLOURS, Symbols
from .versions import version_label
from .wording import several

#: The printed advice, by requirement, place and reason, with the target in whose section it stands.
PrintedAdvice = dict[tuple[str, str, str], str]

#: How many paths of a model's layers are told; the JSON has all of them.
_LAYERS = 8

#: The headings under which results are told by their reasons, after the violations.
_HEADINGS = {
    Verdict.ERROR: "Could not be judged",
    Verdict.DEVIATES: "Differs as declared",
    Verdict.UNSUPPORTED: "Unsupported",
    Verdict.NOT_EXERCISED: "Not exercised, and so not a pass",
}


def _print_reasons(results: Sequence[Result], verdict: Verdict, console: Console, symbols: Symbols) -> None:
    reasons = grouped((_reason_in_words(one), one) for one in results if one.verdict is verdict)
    lines = [(reason, _where(members)) for reason, members in reasons.items()]
    _print_lines(_HEADINGS[verdict], lines, verdict, console, symbols)


def _print_lines(
    title: str, lines: Sequence[tuple[str, str]], verdict: Verdict, console: Console, symbols: Symbols
) -> None:
    """Print words and where they apply, each after the symbol of a verdict; without any, no title either."""
    if lines:
        print_title(title, console)
    for words, where in lines:
        line = Text.assemble(f"{words} ", (f"({where})", "dim"))
        print_prose(line, console, indent=2, first=Text(symbols.verdicts[verdict], style=COLOURS[verdict]))


def _where(results: Sequence[Result]) -> str:
    """The requirements, bindings and dtypes of some results."""
    return f"{several([one.requirement for one in results], 6)}; {_bindings_and_dtypes(results)}"


def _bindings_and_dtypes(found: Sequence[Result | CaseCount]) -> str:
    return f"{several([one.binding for one in found], 3)}; {several([one.dtype for one in found])}"


def _reason_in_words(result: Result) -> str:
    """The reason of a result; for a known violation, with its scope and links."""
    shown = [one for one in result.known if one.shown]
    if result.verdict is not Verdict.DEVIATES or not shown:
        return result.reason or "no reason given"
    told = result.reason
    for one in shown:
        told = told.replace(one.reason, deviation_in_words(one), 1)
    return told


def deviation_in_words(one: Deviation) -> str:
    """A known violation in words: the reason, its scope, and where to read about it."""
    scope = f" [{one.scope}]" if one.scope else ""
    links = f"; {', '.join(one.links)}" if one.links else ""
    return f"{one.reason}{scope}{links}"


def _print_unmet(report: Outcome, console: Console, symbols: Symbols) -> None:
    """Print the entries of expected failures that are wrong."""
    if report.unmet():
        print_title("Expected failures that did not happen", console, "bold red")
    for one in report.unmet():
        sign = Text(symbols.verdicts[Verdict.FAIL], style=COLOURS[Verdict.FAIL])
        words = f"{one.requirement} ({one.reason}): {one.wrong}"
        print_prose(Text(words), console, indent=2, first=sign)


def _print_unseen(report: Outcome, console: Console, symbols: Symbols) -> None:
    """Print the known violations that did not show, which the framework may have fixed."""
    deviations = grouped((deviation_in_words(one), result) for result, one in report.unseen())
    lines = [(words, _where(members)) for words, members in deviations.items()]
    _print_lines("Known violations that did not show: fixed upstream?", lines, Verdict.ADVICE, console, symbols)


def _print_declined(report: Outcome, console: Console, symbols: Symbols) -> None:
    """Print why calls were declined and for how many cases; if other cases were judged, for which requirements."""
    calls = grouped((reason, one) for one in report.taken for reason in one.declined)
    told = {*calls, *(r.reason for r in report.results if r.verdict is Verdict.UNSUPPORTED)}
    partly = grouped((reason, one) for one in report.results for reason in one.declined.keys() - told)
    lines = []
    for reason, members in calls.items():
        declined, cases = sum(m.declined[reason] for m in members), sum(m.cases for m in members)
        lines.append((reason, f"{declined:,} of {cases:,} cases; {_bindings_and_dtypes(members)}"))
    lines += [(reason, f"somewhere in {_where(results)}") for reason, results in partly.items()]
    # Part of what a requirement needs may be a derivative, or a part, rather than a call.
    title = "What the target declines or lacks in some cases" if partly else "Calls that the target declines"
    _print_lines(title, lines, Verdict.UNSUPPORTED, console, symbols)


def _print_modes(report: Outcome, console: Console) -> None:
    modes = grouped(((one.mode, one.mode_reason or "as asked"), one.binding) for one in report.taken if one.mode)
    rows = [(mode, f"{several(names)}: {reason}") for (mode, reason), names in modes.items()]
    print_rows("Judged in one mode", rows, console, indent=12)


def _print_own_settings(report: Outcome, console: Console) -> None:
    """Print, for each binding, the only settings, sizes and parameters that it was checked with."""
    found = [subject for subject in report.subjects if subject.get("fixed")]
    if found:
        print_title("Fixed, so no other value was tried", console)
    for subject in found:
        line = Text.assemble((", ".join(subject["fixed"]), "cyan"), (f" ({subject['binding']})", "dim"))
        layers = subject.get("layers", ())
        if len(layers) > 1:
            line.append(f"; {len(layers)} layers: {several(layers, _LAYERS)}")
        print_prose(line, console, indent=2, first=Text("="))


def _print_conventions(report: Outcome, console: Console) -> None:
    declared = grouped(
        ((f"{key}={value}", str((subject.get("reasons") or {}).get(key, ""))), str(subject.get("binding", "")))
        for subject in report.subjects
        for key, value in (subject.get("conventions") or {}).items()
    )
    rows = [
        (convention, f"{', '.join(dict.fromkeys(names))}{': ' if reason else ''}{reason}")
        for (convention, reason), names in declared.items()
    ]
    print_rows("Declared conventions", rows, console, indent=28)


def _print_excuses(report: Outcome, console: Console) -> None:
    """Print what a binding would have to declare to conform, once for all its violations."""
    rows = []
    for subject in report.subjects:
        declaration = subject.get("passes_under")
        if not declaration:
            continue
        binding = str(subject.get("binding", ""))
        own = [one for one in report.results if (one.binding, one.op) == (binding, subject.get("op"))]
        upstream = [one.requirement for one in own if one.upstream is not None]
        unjudged = [one.requirement for one in own if one.verdict is Verdict.ERROR]
        but = f", but for {several(upstream, 6)}, as upstream" if upstream else ""
        but += f"; {several(unjudged, 6)} could not be judged" if unjudged else ""
        rows.append((", ".join(declaration), f"{binding}{but}"))
    print_rows("Would pass if it declared this (judged on all of its cases)", rows, console, indent=28)


def _print_measured(report: Outcome, console: Console) -> None:
    """Print what every function on a platform does, which is therefore no choice of the functions judged."""
    rows: dict[tuple[str, str], None] = {}
    for subject in report.subjects:
        for trait in subject.get("measured") or ():
            place = f"{subject.get('framework', '')} on {subject.get('device', '')}"
            rows[(trait["convention"], f"{place}, {', '.join(trait['dtypes'])}: {trait['evidence']}")] = None
    print_rows("Measured on the platform, so it applies to every function there", rows, console, indent=28)


def print_target(
    report: Outcome, told: PrintedAdvice, console: Console, symbols: Symbols, *, legend: Outcome | None
) -> None:
    """
    Print the section of one target.

    ``report``: the report on this target alone. ``told``: the advice that earlier sections have printed. ``legend``:
    the whole report, to explain under the tables what all of its tables have; None to explain nothing.
    """
    _print_tables(report, console, symbols)
    if legend is not None and report.results:
        print_legend(legend, console, symbols)
    print_causes(report, console)
    print_failures(
        independent_violations(report),
        console,
        symbols,
        report.advice(),
        scripts_without_cause(report),
        unexplained_consequences(report),
        {cause.requirement for cause in report.causes if not cause.convention},
    )
    _print_advice(report, told, console, symbols)
    for verdict in _HEADINGS:
        _print_reasons(report.results, verdict, console, symbols)
    _print_unmet(report, console, symbols)
    _print_unseen(report, console, symbols)
    _print_declined(report, console, symbols)
    _print_modes(report, console)
    _print_own_settings(report, console)
    _print_conventions(report, console)
    _print_measured(report, console)
    _print_excuses(report, console)


def print_target_heading(name: str, number: int, count: int, console: Console, symbols: Symbols) -> None:
    """Print the name of a target and its number among the targets."""
    console.print()
    print_rule(symbols.heading, console)
    print_prose(Text.assemble((name, "bold cyan"), (f"   target {number} of {count}", "dim")), console)


def _print_tables(report: Outcome, console: Console, symbols: Symbols) -> None:
    """Print a table for each operator and device."""
    versions = {str(one.get("target")): version_label(one) for one in report.subjects}
    for table in result_tables(report):
        print_table(table, versions.get(table.target, ""), console, symbols)


def _print_advice(report: Outcome, told: PrintedAdvice, console: Console, symbols: Symbols) -> None:
    """Print the advice on the target; advice that an earlier target got in the same words takes one line."""
    new: list[Result] = []
    same: dict[str, list[str]] = {}
    for violation in shown_violations(report.advice()):
        result = violation.clearest
        said = (violation.requirement, violation.where(), result.reason)
        first = told.setdefault(said, result.target)
        if first == result.target:
            new += [one for one in report.advice() if one.requirement in (violation.requirement, *violation.also)]
        else:
            same.setdefault(first, []).extend((violation.requirement, *violation.also))
    print_advice(new, console, symbols)
    if same and not new:
        console.print()
    for first, identifiers in same.items():
        words = f"{', '.join(identifiers)}, as of {first}"
        print_prose(Text(words), console, indent=10, first=Text("Advice", style=COLOURS[Verdict.ADVICE]))


def print_target_verdict(name: str, report: Outcome, console: Console) -> None:
    """Print the verdict on a target."""
    console.print()
    print_prose(Text.assemble((name, "bold"), ": ", target_conclusion(report)), console)
