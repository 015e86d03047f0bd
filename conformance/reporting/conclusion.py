"""The conclusion on a report, or on one target of it: the verdict in one line."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ..results.outcome import Outcome
from .failures import violated
from .selection_words import required_in_words, selection_in_words, violated_advice_in_words
from .wording import counted, several

#: The exit status of a check that was done in part.
_EXIT_PARTIAL = 3


def conclusion(report: Outcome) -> tuple[str, str]:
    """The line that ends the report, and its colour: a verdict on its target, or on all of them."""
    return target_conclusion(report) if len(report.targets) < 2 else _conclusion_on_all(report)


def _conclusion_on_all(report: Outcome) -> tuple[str, str]:
    """How many of several targets conform, and which do not."""
    each = {name: report.target(name) for name in report.targets}
    failing = [name for name, one in each.items() if one.failures()]
    unmet = [name for name, one in each.items() if one.unmet()]
    stopped = [name for name, one in each.items() if one.exit_status == _EXIT_PARTIAL]
    nothing = report.unchecked
    if report.partial or (stopped and not failing):
        first = f"{_share(failing, each)} violated something: {several(failing)}; " if failing else ""
        return f"PARTIAL: {first}not judged to the end: {several(stopped)}.", "bold yellow"
    unchecked = f" Nothing was checked of {several(nothing)}." if nothing else ""
    rest = [name for name in stopped if name not in nothing]
    unchecked += f" Not judged to the end: {several(rest)}." if rest else ""
    if failing:
        return f"DOES NOT CONFORM: {_share(failing, each)}: {several(failing)}.{unchecked}", "bold red"
    if report.unmet():
        whose = f": {several(unmet)}" if unmet else ""
        return f"AN EXPECTED FAILURE DID NOT HAPPEN{whose}.", "bold red"
    if len(nothing) == len(each):
        return "NOTHING WAS CHECKED", "bold yellow"
    if nothing:
        return f"PARTIAL: no violation.{unchecked}", "bold yellow"
    return target_conclusion(report)


def _share(names: Sequence[str], each: Collection[str]) -> str:
    return f"{len(names)} of {len(each)} targets"


def _with_remedy(reason: str) -> str:
    """Why nothing could be judged, with the option that allows a target more."""
    return f"{reason}; --time-limit allows more" if reason.endswith("and was stopped") else reason


def target_conclusion(report: Outcome) -> tuple[str, str]:
    """The verdict on the one target of a report, and its colour."""
    failures, errors = report.failures(), report.errors()
    broken = several(violated(failures), 8)
    broken = f"{len({r.requirement for r in failures})} violated: {broken}"
    if report.lost and len(report.unchecked) == len(report.targets) and not failures:
        return (
            f"PARTIAL: nothing could be judged: {_with_remedy(errors[0].reason)}." if errors else "NOTHING WAS CHECKED",
            "bold yellow",
        )
    if report.partial:
        found = broken if failures else "no violation so far"
        words = f"PARTIAL: stopped before the end ({found}). What is shown was established; the rest was not."
        return words, "bold yellow"
    unmet = several([one.requirement for one in report.unmet()], 8)
    if failures:
        also = f"; expected failures that did not happen: {unmet}" if unmet else ""
        return f"DOES NOT CONFORM: {broken}{also}.{_not_replayed(report)}", "bold red"
    if unmet:
        return f"AN EXPECTED FAILURE DID NOT HAPPEN: {unmet}.", "bold red"
    if report.defects or any(result.traceback for result in report.results):
        words = (
            "PARTIAL: a defect of normspec left something unjudged. Please report it: --json FILE keeps the traceback."
        )
        return words, "bold yellow"
    if errors:
        return (
            f"PARTIAL: the target could not be judged on {several([one.requirement for one in errors], 8)}.",
            "bold yellow",
        )
    if report.not_replayed and not report.unchecked:
        first = report.not_replayed[0]
        judged = first.of - sum(one.cases for one in report.not_replayed)
        words = f"PARTIAL: no violation in {judged} of the {first.of} cases of {report.replayed}"
        return f"{words}.{_not_replayed(report)}", "bold yellow"
    if report.unjudged_layers and not report.unchecked:
        return f"PARTIAL: no violation. Nothing was checked of {several(report.unjudged_layers)}.", "bold yellow"
    if report.conforms:
        limits = selection_in_words(report) + _where(report)
        shown = several([one.requirement for one in report.expected if one.shown], 8)
        apart = f" except for expected failures ({shown})" if shown else ""
        words = f"CONFORMS{apart}{limits}{required_in_words(report)}{violated_advice_in_words(report)}"
        return words, "bold yellow" if limits or apart else "bold green"
    if report.taken and not report.share:
        return "NOTHING WAS CHECKED: every call was declined.", "bold yellow"
    left = _not_replayed(report)
    return f"NOTHING WAS CHECKED{left and '.'}{left}", "bold yellow"


def _not_replayed(report: Outcome) -> str:
    """A sentence about the failed cases of another report that were not judged again; empty if all were."""
    parts = [f"{counted(one.cases, 'case')}, because {one.why}" for one in report.not_replayed]
    return f" Not judged: {'; '.join(parts)}." if parts else ""


def _where(report: Outcome) -> str:
    """The only mode in which a conforming target was judged, and the share of cases that it takes."""
    words = ""
    alone = [one for one in report.taken if one.mode]
    if alone:
        names = "" if len(alone) == len(report.taken) else f", {several([one.binding for one in alone])}"
        words = f"{names} only in {several([one.mode for one in alone])}"
    if report.share < 1:
        percent = int(100 * report.share)
        share = "more than 99 %" if percent == 99 else f"{percent} %" if percent else "less than 1 %"
        words += f"{',' if words else ''} where it takes the call: {share} of the cases"
    return words
