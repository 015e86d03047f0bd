"""The end of a report: what was not judged and why, what was declared, how many of each verdict, and the last word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from ...adapters.frameworks import KNOWN
from ..report import Report
from ..verdicts import Deviation, Result, Taken, Verdict
from .chosen import against_advice, print_asked, required
from .chosen import in_words as in_what_was_asked
from .failures import violated
from .layout import print_prose
from .symbols import COLOURS, Symbols
from .versions import in_words

_HEADINGS = {
    Verdict.ERROR: "Could not be judged",
    Verdict.DEVIATES: "Differs as declared",
    Verdict.UNSUPPORTED: "Unsupported",
    Verdict.NOT_EXERCISED: "Not exercised, and so not a pass",
}


def _several(words: Sequence[str], most: int = 4) -> str:
    kept = list(dict.fromkeys(words))
    more = f" and {len(kept) - most} more" if len(kept) > most else ""
    return ", ".join(kept[:most]) + more


def _print_reasons(results: Sequence[Result], verdict: Verdict, console: Console, symbols: Symbols) -> None:
    grouped: dict[str, list[Result]] = {}
    for result in results:
        if result.verdict is verdict:
            grouped.setdefault(_told(result), []).append(result)
    if not grouped:
        return
    console.print()
    console.print(Text(_HEADINGS[verdict], style="bold"))
    for reason, members in grouped.items():
        ids = _several([m.requirement for m in members], 6)
        places = _several([m.binding for m in members], 3)
        dtypes = _several([m.dtype for m in members])
        line = Text.assemble(f"{reason} ", (f"({ids}; {places}; {dtypes})", "dim"))
        print_prose(line, console, indent=2, first=Text(symbols.verdicts[verdict], style=COLOURS[verdict]))


def _told(result: Result) -> str:
    """The reason of a result; that of a known violation with its scope and links."""
    shown = [one for one in result.known if one.shown]
    if result.verdict is not Verdict.DEVIATES or not shown:
        return result.reason or "no reason given"
    told = result.reason
    for one in shown:
        told = told.replace(one.reason, deviation_in_words(one), 1)
    return told


def deviation_in_words(one: Deviation) -> str:
    """What is known, in which scope, and where that can be read."""
    scope = f" [{one.scope}]" if one.scope else ""
    links = f"; {', '.join(one.links)}" if one.links else ""
    return f"{one.reason}{scope}{links}"


def _print_unseen(report: Report, console: Console, symbols: Symbols) -> None:
    """The known violations that did not show, which the framework may have mended."""
    grouped: dict[str, list[Result]] = {}
    for result, one in report.unseen():
        grouped.setdefault(deviation_in_words(one), []).append(result)
    if not grouped:
        return
    console.print()
    console.print(Text("Known violations that did not show: mended upstream?", style="bold"))
    for words, members in grouped.items():
        ids, places = _several([m.requirement for m in members], 6), _several([m.binding for m in members], 3)
        line = Text.assemble(f"{words} ", (f"({ids}; {places}; {_several([m.dtype for m in members])})", "dim"))
        print_prose(
            line, console, indent=2, first=Text(symbols.verdicts[Verdict.ADVICE], style=COLOURS[Verdict.ADVICE])
        )


def _print_declined(report: Report, console: Console, symbols: Symbols) -> None:
    """Print why calls were declined, and of how many cases; in part, where a requirement was judged on others."""
    calls: dict[str, list[Taken]] = {}
    for one in report.taken:
        for reason in one.declined:
            calls.setdefault(reason, []).append(one)
    told = {*calls, *(r.reason for r in report.results if r.verdict is Verdict.UNSUPPORTED)}
    partly: dict[str, list[Result]] = {}
    for result in report.results:
        for reason in result.declined.keys() - told:
            partly.setdefault(reason, []).append(result)
    lines = []
    for reason, members in calls.items():
        declined, cases = sum(m.declined[reason] for m in members), sum(m.cases for m in members)
        places, dtypes = _several([m.binding for m in members], 3), _several([m.dtype for m in members])
        lines.append((reason, f"{declined:,} of {cases:,} cases; {places}; {dtypes}"))
    for reason, results in partly.items():
        ids, places = _several([r.requirement for r in results], 6), _several([r.binding for r in results], 3)
        lines.append((reason, f"somewhere in {ids}; {places}; {_several([r.dtype for r in results])}"))
    if not lines:
        return
    console.print()
    console.print(Text("Calls that the target declines", style="bold"))
    for reason, where in lines:
        sign = Text(symbols.verdicts[Verdict.UNSUPPORTED], style=COLOURS[Verdict.UNSUPPORTED])
        print_prose(Text.assemble(f"{reason} ", (f"({where})", "dim")), console, indent=2, first=sign)


def _print_modes(report: Report, console: Console) -> None:
    modes: dict[tuple[str, str], list[str]] = {}
    for one in report.taken:
        if one.mode:
            modes.setdefault((one.mode, one.mode_reason or "as asked"), []).append(one.binding)
    if not modes:
        return
    console.print()
    console.print(Text("Judged in one mode", style="bold"))
    for (mode, reason), names in modes.items():
        print_prose(Text(f"{_several(names)}: {reason}"), console, indent=12, first=Text(mode, style="cyan"))


def _print_conventions(report: Report, console: Console) -> None:
    declared: dict[tuple[str, str], list[str]] = {}
    for subject in report.subjects:
        reasons = subject.get("reasons") or {}
        for key, value in (subject.get("conventions") or {}).items():
            name = str(subject.get("binding", ""))
            declared.setdefault((f"{key}={value}", str(reasons.get(key, ""))), []).append(name)
    if not declared:
        return
    console.print()
    console.print(Text("Declared conventions", style="bold"))
    for (convention, reason), names in declared.items():
        line = Text(f"{', '.join(dict.fromkeys(names))}{': ' if reason else ''}{reason}")
        print_prose(line, console, indent=28, first=Text(convention, style="cyan"))


def _print_excuses(report: Report, console: Console) -> None:
    """What a binding would have to declare to conform, once for all that it violates."""
    found = [(subject, subject["passes_under"]) for subject in report.subjects if subject.get("passes_under")]
    if not found:
        return
    console.print()
    console.print(Text("Would pass, declared: judged so on all of its cases", style="bold"))
    for subject, declaration in found:
        print_prose(
            Text(str(subject.get("binding", ""))), console, indent=28, first=Text(", ".join(declaration), style="cyan")
        )


def _print_measured(report: Report, console: Console) -> None:
    """What every function on a platform does, so that it is no choice of those that are judged."""
    found: dict[tuple[str, str, str], None] = {}
    for subject in report.subjects:
        for trait in subject.get("measured") or ():
            place = f"{subject.get('framework', '')} on {subject.get('device', '')}"
            found[(trait["convention"], place, f"{', '.join(trait['dtypes'])}: {trait['evidence']}")] = None
    if not found:
        return
    console.print()
    console.print(Text("Measured on the platform, and so of every function there", style="bold"))
    for convention, place, evidence in found:
        print_prose(Text(f"{place}, {evidence}"), console, indent=28, first=Text(convention, style="cyan"))


def _ids(results: Sequence[Result]) -> str:
    return _several([r.requirement for r in results], 8)


def last_word(report: Report) -> tuple[str, str]:
    """The line that ends the report, and its colour."""
    failures, errors = report.failures(), report.errors()
    broken = _several(violated(failures), 8)
    broken = f"{len({r.requirement for r in failures})} violated: {broken}"
    if report.partial:
        found = broken if failures else "no violation so far"
        words = f"PARTIAL: stopped before the end ({found}). What is shown was established; the rest was not."
        return words, "bold yellow"
    if failures:
        return f"DOES NOT CONFORM: {broken}.", "bold red"
    if report.defects or any(result.traceback for result in report.results):
        words = (
            "PARTIAL: a defect of normspec left something unjudged. Please report it: --json FILE keeps the traceback."
        )
        return words, "bold yellow"
    if errors:
        return f"PARTIAL: the target could not be judged on {_ids(errors)}.", "bold yellow"
    if report.conforms:
        limits = in_what_was_asked(report) + _where(report)
        words = f"CONFORMS{limits}{required(report)}{against_advice(report)}"
        return words, "bold yellow" if limits else "bold green"
    if report.taken and not report.share:
        return "NOTHING WAS CHECKED: every call was declined.", "bold yellow"
    return "NOTHING WAS CHECKED", "bold yellow"


def _timed(subject: Mapping[str, Any]) -> bool:
    """Whether a function was found to be slow, or said to be; of frameworks docs/checking.md tells."""
    return bool(subject.get("slow")) and subject.get("target") not in KNOWN


def _fewer(subject: Mapping[str, Any]) -> str:
    """That a target was put to fewer cases, and why."""
    return f"{subject['target']}: put to fewer cases, because {subject['slow']}; --no-slow puts it to all"


def _where(report: Report) -> str:
    """In which mode alone, and for how many of the cases, a conforming target was found to conform."""
    words = ""
    alone = [one for one in report.taken if one.mode]
    if alone:
        names = "" if len(alone) == len(report.taken) else f", {_several([one.binding for one in alone])}"
        words = f"{names} in {_several([one.mode for one in alone])} alone"
    if report.share < 1:
        percent = int(100 * report.share)
        share = "more than 99 %" if percent == 99 else f"{percent} %" if percent else "less than 1 %"
        words += f"{',' if words else ''} where it takes the call: {share} of the cases"
    return words


def print_closing(report: Report, console: Console, symbols: Symbols) -> None:
    """Print everything that follows the violations."""
    for verdict in _HEADINGS:
        _print_reasons(report.results, verdict, console, symbols)
    _print_unseen(report, console, symbols)
    _print_declined(report, console, symbols)
    print_asked(report, console)
    _print_modes(report, console)
    _print_conventions(report, console)
    _print_measured(report, console)
    _print_excuses(report, console)

    console.print()
    names, numbers = Text(" "), Text(" ")
    for name, number in report.counts().items():
        style = COLOURS[Verdict(name)]
        names.append(f" {name}", style="dim")
        numbers.append(f" {number:>{len(name)}}", style=style if number else "dim")
    console.print(names)
    console.print(numbers)
    cases = sum(r.cases for r in report.results)
    console.print(
        Text(f"profile {report.profile}, seed {report.seed}, {cases:,} cases, {report.seconds:.1f} s", style="dim")
    )
    print_prose(Text(in_words(), style="dim"), console)
    for words in dict.fromkeys(_fewer(subject) for subject in report.subjects if _timed(subject)):
        print_prose(Text(words, style="dim"), console)
    for words in report.notes:
        print_prose(Text(words, style="dim"), console)
    console.print()
    words, style = last_word(report)
    print_prose(Text(words, style=style), console)
