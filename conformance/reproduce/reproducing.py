"""`--reproduce`: a script for each cause in a report, and for each violation that no cause explains."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from ...reference.formats import FORMATS
from ...spec import pages, requirement
from ..engine.progress import Listener, Progress
from ..judging.verdicts import Result
from ..reporting.failures import shown_violations, size_of
from ..requests.request import Request
from ..results.report import Report
from .files import file_name, free_name, write
from .probe import in_a_process
from .reproducer import Reproducer
from .script import script
from .source import Source
from .spelling import CannotWrite

#: How many results of one mistake are tried until a script can be written for one.
_TRIED = 4
#: The most characters of the reason why there is no script.
_REASON = 200


@attrs.frozen
class _Mistake:
    """The subject of one script."""

    #: The results that it explains, in the order in which they are tried.
    results: tuple[Result, ...]
    fault: str
    sentence: str
    #: The requirements that it violates.
    violated: tuple[str, ...]

    def reproducer(self, result: Result, *, file: str = "", why_not: str = "") -> Reproducer:
        """The script for one of its results, or why there is none."""
        one = result
        return Reproducer(one.target, one.op, one.binding, one.dtype, one.requirement, self.fault, file, why_not)


def reproduced(report: Report, request: Request, folder: str, listener: Listener | None) -> Report:
    """The report with its scripts, which are written to an existing folder."""
    found: list[Reproducer] = []
    mistakes = list(_mistakes(report))
    for place, mistake in enumerate(mistakes, 1):
        taken = [Path(one.file).name for one in found if one.file]
        found.append(_reproducer(report, request, folder, mistake, taken))
        if listener is not None:
            listener(Progress(place, len(mistakes), "writing scripts", len(report.failures())))
    return attrs.evolve(report, reproducers=tuple(found))


def _mistakes(report: Report) -> Iterator[_Mistake]:
    explained: set[int] = set()
    for cause in report.causes:
        results = [one for one in report.failures() if cause.explains_result(one)]
        explained |= {id(one) for one in results}
        results.sort(key=lambda one: (_plainness(one), one.requirement != cause.requirement))
        yield _Mistake(tuple(results), cause.name, cause.sentence, cause.explains)
    own = [one for one in report.failures() if id(one) not in explained and not one.follows_from]
    for violation in shown_violations(own):
        results = tuple(sorted(violation.results, key=_plainness))
        also = (violation.requirement, *violation.also)
        yield _Mistake(results, "", f"Not so: {requirement(violation.requirement).sentence}", also)


def _plainness(result: Result) -> tuple[bool, int]:
    """Sort key: cases with a wrong result come before those of laws, and small ones before large ones."""
    case = result.counterexample
    plain = (
        case is not None and case.output in ("y", "dx", "dgamma", "dbeta") and case.index != () and len(case.calls) <= 1
    )
    return not plain, size_of(case)


def _reproducer(report: Report, request: Request, folder: str, mistake: _Mistake, taken: Sequence[str]) -> Reproducer:
    """The script for a mistake, for the first of its results that allows one; ``taken``: names of other scripts."""
    why_not = ""
    for result in mistake.results[:_TRIED]:
        try:
            text = _written(report, request, result, mistake)
            place, _, name = result.target.rpartition(":")
            words = [Path(place).stem, name, mistake.fault or result.requirement, result.dtype]
            return mistake.reproducer(result, file=write(folder, free_name(file_name(words), taken), text))
        except CannotWrite as why:
            why_not = why_not or " ".join(str(why).split())[:_REASON]
    return mistake.reproducer(mistake.results[0], why_not=why_not)


def _written(report: Report, request: Request, result: Result, mistake: _Mistake) -> str:
    subject = next(
        one for one in report.subjects
        if (one["target"], one["binding"], one["op"]) == (result.target, result.binding, result.op)
    )  # fmt: skip
    if request.declared_of(result.target):
        raise CannotWrite("it is called as declared, not as its operator is called")
    source = Source.of(result.target, request.files.get(result.target, ""))
    if source.is_class or subject["fixed"] or result.binding != result.target:
        raise CannotWrite("it is a layer, which normspec calls with parameters that it sets")
    conventions, flushes = _conventions(subject, result.dtype)
    head = [
        f"{result.target}, {result.op} in {result.dtype}: {mistake.sentence}",
        f"It violates {', '.join(mistake.violated)} of normspec, edition {_edition()}.",
    ]
    if source.file:
        head.append("To run this script on another file, name it: python SCRIPT.py FILE.py")
    run = in_a_process(request.python_of(result.target) or sys.executable)
    return script(result, source, str(subject["framework"]), conventions, flushes, run, head)


def _conventions(subject: Mapping[str, Any], dtype: str) -> tuple[dict[str, str], frozenset[str]]:
    """A binding's declarations, measurements on its platform, and the formats whose subnormals may be lost."""
    conventions: dict[str, str] = {}
    flushed = set[str]()
    for one in subject.get("measured") or ():
        key, _, value = str(one["convention"]).partition("=")
        formats = set(one["dtypes"])
        if key == "subnormals":
            flushed |= formats
        if dtype in formats or (FORMATS[dtype].narrow and "float32" in formats):
            conventions[key] = value
    conventions |= dict(subject.get("conventions") or {})
    declared = "subnormals" in (subject.get("conventions") or {})
    return conventions, frozenset(FORMATS if declared else flushed)


def _edition() -> str:
    found = re.search(r"^\*Edition (\d+)\.", "\n".join(pages().values()), re.M)
    return found[1] if found else ""
