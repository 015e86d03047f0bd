"""One test: a requirement of an operator in a dtype. Its verdict is read from work that all such tests share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest

from ...conformance.grouping import grouped
from ...conformance.judging.verdicts import Result, Verdict
from ...conformance.reporting.in_short import in_one_line
from ...conformance.reporting.located import definition
from ...conformance.reporting.results_text import results_text
from ...conformance.results.report import Report
from ...spec import Level, requirement
from ...spec.errors import NormspecError
from ...spec.operators import OPERATORS
from .target_run import OperatorDtype, TargetRun

#: The property of a test whose result was kept from an earlier run; its value is the time of that run.
KEPT = "normspec-kept"


class Violation(Exception):
    """A MUST is violated, or could not be judged; the message is what the test shows."""


class NormspecAdvice(UserWarning):
    """A SHOULD is violated; the target still conforms."""


def verdict_on(report: Report, identifier: str, test: pytest.Item) -> None:
    """
    Return if a requirement holds, or differs as declared, in every binding that it was judged in.

    Raises Violation, or pytest's skip where nothing was judged. A violated SHOULD becomes a warning of the test. A
    failure that the configuration expects becomes a strict xfail: if it passes nevertheless, that is a Violation.
    """
    results = [one for one in report.results if one.requirement == identifier]
    by_verdict = grouped((one.verdict, one) for one in results)
    if since := min((one.kept for one in results if one.kept), default=""):
        test.user_properties.append((KEPT, since))
    wrong = [*by_verdict.get(Verdict.FAIL, ()), *by_verdict.get(Verdict.ERROR, ())]
    if wrong:
        raise Violation(f"{results_text(report, wrong)}{_defined(report, wrong[0], test)}")
    for one in report.expected:
        if any(place.requirement == identifier for place in one.passes):
            raise Violation(
                f"it is expected to fail, and passes: remove it from the expected failures\nreason {one.reason}"
            )
    if report.defects:
        raise Violation("a defect of normspec, which says nothing of the target:\n" + "\n".join(report.defects))
    reasons = {one.reason for one in report.expected if one.shown}
    if reason := next((one.reason for one in by_verdict.get(Verdict.DEVIATES, ()) if one.reason in reasons), ""):
        pytest.xfail(reason)
    if Verdict.ADVICE in by_verdict:
        for one in by_verdict[Verdict.ADVICE]:
            test.warn(NormspecAdvice(in_one_line(one)))
    elif not {Verdict.PASS, Verdict.DEVIATES} & by_verdict.keys():
        pytest.skip(_why_not(results, report))


def _defined(report: Report, wrong: Result, test: pytest.Item) -> str:
    """The last line of a failure: the file and line of the target's definition; empty for a framework's own layers."""
    found = definition(report, wrong.target, wrong.binding)
    if found is None:
        return ""
    file, line = Path(found[0]), found[1]
    here = test.config.invocation_params.dir
    shown = file.relative_to(here) if file.is_relative_to(here) else file
    return f"\n\n{shown}:{line}: {'violates' if wrong.verdict is Verdict.FAIL else 'not judged by'} {wrong.requirement}"


def _why_not(results: list[Result], report: Report) -> str:
    reasons = dict.fromkeys(f"{one.verdict.value}: {one.reason or 'no reason given'}" for one in results)
    if reasons:
        return "; ".join(reasons)
    return "not-exercised: the target was lost before this was judged" if report.lost else "not-exercised"


class Requirement(pytest.Item):
    """The test of a requirement."""

    def __init__(
        self,
        *,
        target_run: TargetRun,
        operator_dtype: OperatorDtype,
        identifier: str,
        name: str,
        parent: Any,
        **node: Any,
    ) -> None:
        # The id is given in full: pytest recognises the part in brackets in an id, but not in a name.
        super().__init__(name, parent, nodeid=f"{parent.nodeid}::{name}", **node)
        self.target_run, self.operator_dtype, self.identifier = target_run, operator_dtype, identifier
        for marker in markers(identifier, operator_dtype):
            self.add_marker(marker)
        if self.config.pluginmanager.hasplugin("xdist"):  # for --dist loadgroup: one target, operator and dtype
            target = self.nodeid.rsplit("::", 2)[0]
            self.add_marker(pytest.mark.xdist_group(f"{target} {' '.join(operator_dtype)}"))

    def runtest(self) -> None:
        """Judge the requirement."""
        verdict_on(self.target_run.report(self.operator_dtype), self.identifier, self)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Where the function is defined, if it is the user's own."""
        where = Source.of(self.target_run)
        return where.file or self.path, where.line or 0, self.nodeid  # pytest wants a line for a warning

    def skipped_at(self) -> tuple[str, int]:
        """Where the test is located if it is skipped."""
        file, line, _ = self.reportinfo()
        return str(file), line + 1

    def repr_failure(self, excinfo: Any, style: Any = None) -> Any:
        """The findings, without a traceback of ours."""
        if isinstance(excinfo.value, (Violation, NormspecError)):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)


@attrs.frozen
class Source:
    """Where a target is defined."""

    file: Path | None
    line: int | None

    @classmethod
    def of(cls, target_run: TargetRun) -> Source:
        """The file and line of a user's own function or layer; None for a framework's."""
        found = next(iter(target_run.subjects()), {})
        file, line = found.get("file"), found.get("line")
        return cls(Path(file) if file else None, line - 1 if isinstance(line, int) and line else None)


def register_markers(config: pytest.Config) -> None:
    """Register a marker for each operator, so that `--strict-markers` accepts it."""
    for name in OPERATORS:
        config.addinivalue_line("markers", f"normspec_{name}: a requirement of {name}")


def expect(items: Sequence[pytest.Item]) -> None:
    """Tell the work of each target which of its tests are left after selection."""
    for item in items:
        if isinstance(item, Requirement):
            item.target_run.expect(item.operator_dtype, item.identifier)


def markers(identifier: str, operator_dtype: OperatorDtype) -> Iterator[pytest.MarkDecorator]:
    """The markers of a test: `normspec`, its level, and its operator."""
    yield pytest.mark.normspec
    yield pytest.mark.normspec_must if requirement(identifier).level is Level.MUST else pytest.mark.normspec_should
    yield getattr(pytest.mark, f"normspec_{operator_dtype[0]}")
