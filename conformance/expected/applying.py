"""Expected failures in a report: an expected violation becomes a deviation, an entry that is not met is reported."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import attrs

from ..judging.verdicts import Deviation, Result, Verdict
from ..requests.choosing import operators_of, selected
from ..requests.request import Request
from ..results.expectation import Expectation, UnexpectedPass
from ..results.report import Report
from .entry import Expected


def apply_expected(report: Report, entries: Sequence[Expected], request: Request) -> Report:
    """
    The report with expected failures turned into deviations, and with the outcome of each entry.

    An entry must be met where the run was asked about it; where the run left it out, nothing is required.
    """
    if not entries:
        return report
    ended = {entry: _targets_past_end(entry, report) for entry in entries}
    excused: dict[int, Expected] = {}
    for result in report.results:
        entry = next((one for one in entries if one.covers(result) and result.target not in ended[one]), None)
        if entry is not None and result.verdict.is_violation:
            excused[id(result)] = entry
    gone = {_place(one, one.requirement) for one in report.results if id(one) in excused}
    told = [one for entry in entries for one in _expectations(entry, report, request, ended[entry])]
    results = tuple(
        _deviating(one, excused[id(one)]) if id(one) in excused else _by_itself(one, gone) for one in report.results
    )
    causes = tuple(one for one in report.causes if any(one.explains_result(result) for result in results))
    failing = {(one.target, one.op, one.binding) for one in results if one.verdict is Verdict.FAIL}
    subjects = tuple(
        one if (one["target"], one["op"], one["binding"]) in failing else {**one, "passes_under": ()}
        for one in report.subjects
    )
    return attrs.evolve(report, results=results, causes=causes, subjects=subjects, expected=tuple(told))


def _place(result: Result, requirement: str) -> tuple[str, ...]:
    return result.target, result.op, result.binding, result.dtype, requirement


def _by_itself(result: Result, gone: Collection[tuple[str, ...]]) -> Result:
    """The result without references to excused violations, which are no longer shown as violations."""
    left = tuple(one for one in result.follows_from if _place(result, one) not in gone)
    leading = "" if _place(result, result.same_case_as) in gone else result.same_case_as
    if (left, leading) == (result.follows_from, result.same_case_as):
        return result
    return attrs.evolve(result, follows_from=left, same_case_as=leading)


def _deviating(result: Result, entry: Expected) -> Result:
    """An expected violation as a deviation: its case stays, and its reason is that of the entry."""
    until = f"; until {entry.until}" if entry.until else ""
    known = Deviation(entry.reason, f"expected{until}", (entry.link,) if entry.link else (), 1)
    return attrs.evolve(
        result,
        verdict=Verdict.DEVIATES,
        reason=entry.reason,
        known=(*result.known, known),
        same_case_as="",
        follows_from=(),
    )


def _targets_past_end(entry: Expected, report: Report) -> frozenset[str]:
    """The targets whose framework has reached the version until which the entry is expected."""
    return frozenset(str(one["target"]) for one in report.subjects if entry.has_ended(str(one.get("version") or "")))


def _expectations(entry: Expected, report: Report, request: Request, ended: frozenset[str]) -> list[Expectation]:
    """The outcome of an entry for each target that it is about; empty if the run was not asked about it."""
    if not _was_asked(entry, request):
        return []
    found = []
    for target in report.targets:
        if not entry.about(target):
            continue
        mine = [one for one in report.results if one.target == target and entry.covers(one)]
        if entry.target or mine:
            found.append(_expectation(entry, target, mine, report, target in ended))
    if not found and not entry.target and report.targets:  # reported with the first target
        found.append(_expectation(entry, report.targets[0], [], report, ended=False))
    return found


def _was_asked(entry: Expected, request: Request) -> bool:
    """Whether the run was asked about something that the entry is about."""
    operators = (entry.operator,) if entry.operator else operators_of(entry.requirements)
    return (
        not (request.op and set(request.op).isdisjoint(operators))
        and not (request.dtypes and entry.dtypes and set(request.dtypes).isdisjoint(entry.dtypes))
        and not (request.only and set(selected(request.only, "only")).isdisjoint(entry.requirements))
        and not (request.binding and entry.binding)
    )


def _expectation(entry: Expected, target: str, mine: Sequence[Result], report: Report, ended: bool) -> Expectation:
    shown = sum(one.verdict.is_violation for one in mine)
    held = [one for one in mine if one.verdict in (Verdict.PASS, Verdict.DEVIATES)]
    passes = tuple(UnexpectedPass(one.op, one.binding, one.requirement, one.dtype) for one in held)
    fields = attrs.asdict(entry) | {"target": target, "dtypes": entry.dtypes}
    whole = not (report.partial or report.replayed)
    wrong = ""
    if ended:
        wrong = (
            f"it was expected until {entry.until}, and the framework has reached that version: "
            "fix the failure, or give a later version"
        )
    elif passes:
        wrong = f"it passes ({_several(passes)}): remove it from the expected failures"
    elif not mine and whole:
        wrong = "it matches nothing that was checked: correct it, or remove it"
    elif not shown and whole and not any(one.verdict is Verdict.ERROR for one in mine):
        words = ", ".join(dict.fromkeys(one.verdict.value for one in mine))
        wrong = f"nothing that it is about could fail ({words}): correct it, or remove it"
    return Expectation(**fields, shown=0 if ended else shown, passes=passes, wrong=wrong)


def _several(passes: Sequence[UnexpectedPass]) -> str:
    words = list(dict.fromkeys(map(str, passes)))
    return ", ".join(words[:6]) + (f" and {len(words) - 6} more" if words[6:] else "")
