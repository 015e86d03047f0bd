"""The end of a report: what was asked, how many results of each verdict, the verdict on each target, the last word."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from ...adapters.frameworks import KNOWN
from ..grouping import grouped
from ..judging.verdicts import Verdict
from ..results.outcome import Outcome
from .conclusion import conclusion, target_conclusion
from .layout import print_conclusion, print_prose, print_title, width_of
from .selection_words import print_selection
from .symbols import COLOURS, Symbols
from .versions import versions_in_words
from .wording import counted, several

#: By exit status, the verdict whose sign marks a target.
SIGNS = {0: Verdict.PASS, 1: Verdict.FAIL, 2: Verdict.NOT_EXERCISED, 3: Verdict.ERROR}


def print_closing(report: Outcome, console: Console, symbols: Symbols) -> None:
    """Print the end of a report, after the sections of the targets."""
    print_selection(report, console)
    _print_counts(report, console)
    _print_how(report, console)
    if len(report.targets) > 1:
        _print_targets(report, console, symbols)
    print_conclusion(conclusion(report), console)


def _print_counts(report: Outcome, console: Console) -> None:
    """Print how many results have each verdict."""
    console.print()
    names, numbers = Text(" "), Text(" ")
    for name, number in report.counts().items():
        style = COLOURS[Verdict(name)]
        names.append(f" {name}", style="dim")
        numbers.append(f" {number:>{len(name)}}", style=style if number else "dim")
    if len(names) <= width_of(console):
        print_prose(names, console)
        print_prose(numbers, console)
    else:
        print_prose(Text(", ".join(f"{name} {number}" for name, number in report.counts().items())), console)


def _print_how(report: Outcome, console: Console) -> None:
    """Print what is needed to repeat the run, and notes on how it went."""
    told = [f"{run_in_words(report)}, {report.seconds:.1f} s", versions_in_words(report.all_versions)]
    # Which frameworks are slow is told by docs/checking.md.
    slow = [one for one in report.subjects if one.get("slow") and one.get("target") not in KNOWN]
    told += dict.fromkeys(
        f"{one['target']}: judged on fewer cases, because {one['slow']}; --no-slow runs all" for one in slow
    )
    for words in (*told, *_kept_in_words(report), *report.notes):
        print_prose(Text(words, style="dim"), console)


def run_in_words(report: Outcome) -> str:
    """What a run was made with, and how many cases it judged."""
    cases = sum(result.cases for result in report.results)
    return f"profile {report.profile}, seed {report.seed}, {counted(cases, 'case')}"


def _kept_in_words(report: Outcome) -> list[str]:
    """A sentence for each point in time from which results were kept from earlier runs; none if all are new."""
    found: list[tuple[tuple[str, str], str]] = []
    for name in report.targets:
        results = [one for one in report.results if one.target == name]
        kept = [one.kept for one in results if one.kept]
        if kept:
            share = "" if len(kept) == len(results) else f", {len(kept):,} of {len(results):,} results"
            found.append(((min(kept), share), name))
    return [
        f"results of {several(names)} are from {since[:16].replace('T', ' ')} UTC{share}, because nothing that they "
        "depend on has changed; --no-cache judges them again"
        for (since, share), names in grouped(found).items()
    ]


def _print_targets(report: Outcome, console: Console, symbols: Symbols) -> None:
    """Print each target with its verdict, and with the operators and bindings where it is violated."""
    print_title("Targets", console)
    indent = min(max(map(len, report.targets)) + 4, width_of(console) // 2)
    for name in report.targets:
        alone = report.target(name)
        verdict = SIGNS[alone.exit_status]
        first = Text.assemble((symbols.verdicts[verdict], COLOURS[verdict]), f" {name}")
        words = Text.assemble(target_conclusion(alone), (_where(alone), "dim"))
        print_prose(words, console, indent=indent, first=first)


def _where(alone: Outcome) -> str:
    """The operators and bindings that are violated, if a target has several; else empty."""
    there = dict.fromkeys((str(one["op"]), str(one["binding"])) for one in alone.subjects)
    if len(there) < 2:
        return ""
    failing = dict.fromkeys((one.op, one.binding) for one in alone.failures())
    if not failing:
        operators = several([op for op, _ in there], 10)
        return f" ({operators}: {len(there)} bindings)"
    return f" (in {several([binding for _, binding in failing], 6)}; {len(failing)} of {len(there)} bindings)"
