"""A report in a few lines: the verdict on each target, and its most telling violations."""

from __future__ import annotations

from ..judging.verdicts import Result
from ..results.outcome import Outcome
from .conclusion import conclusion, target_conclusion
from .failures import ShownViolation, shown_violations
from .numbers import decimal, element_name
from .wording import title

#: How many violations of a target are told, and how many characters of each.
_SHOWN, _WORDS = 3, 160


def in_short(report: Outcome) -> str:
    """The conclusion, and under it each target that does not conform, with its most telling violations."""
    lines = [conclusion(report)[0]]
    for name in report.targets:
        alone = report.target(name)
        if alone.conforms:
            continue
        if len(report.targets) > 1:
            lines.append(f"{name}: {target_conclusion(alone)[0]}")
        found = shown_violations(alone.failures())
        lines += [f"  {_told(one)}" for one in found[:_SHOWN]]
        lines += [f"  {one.requirement} is expected to fail ({one.reason}): {one.wrong}" for one in alone.unmet()]
        if found[_SHOWN:]:
            lines.append(f"  and {len(found) - _SHOWN} more: print(report) shows them")
    return "\n".join(lines)


def in_one_line(result: Result) -> str:
    """A violation in one line: the requirement, where it fails, what came and what was expected."""
    return _told(ShownViolation(result.requirement, (result,)))


def _told(violation: ShownViolation) -> str:
    case = violation.clearest.counterexample
    how = violation.clearest.reason
    if case is not None and case.expected is not None and case.got is not None:
        should, right = "should be", case.expected
        if case.exact is not None:  # what implies the expected value may be wrong, and the received value right
            off = case.envelope is None or not abs(case.got - case.exact) <= case.envelope
            should, right = ("should be", case.exact) if off else ("other results imply", case.expected)
        place = element_name(case.output, case.index)
        how = f"{place} is {decimal(case.got, right)}, and {should} {decimal(right, case.got)}"
    upstream = violation.clearest.upstream
    how = how if upstream is None else f"{how}; {upstream.binding} does the same"
    how = how if len(how) <= _WORDS else f"{how[: _WORDS - 3]}..."
    return f"{violation.requirement} {title(violation.requirement)} ({violation.where()}): {how}"
