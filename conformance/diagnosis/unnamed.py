"""The cause of what no mistake of the library explains, if a declaration would make the target conform."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from ..engine.declaration_search import with_passing_declarations
from ..engine.engine import Run
from ..judging.verdicts import Result
from ..results.report import Report
from .cause import Cause
from .causes import diagnosed, with_cause
from .convention_words import remedy_of, sentence_of

#: The declarations under which each binding would conform, by target, operator and binding.
Declarations = Mapping[tuple[str, str, str], tuple[str, ...]]


#: Conventions that only widen an envelope. That a violation is gone under a wider one does not say how it came about.
_WIDENING = frozenset(("variance_algorithm", "affine", "storage", "cast", "subnormals"))


def explained(run: Run, report: Report) -> Report:
    """The report with the causes of its violations, and the declarations under which bindings would conform."""
    return _named_by_declaration(with_passing_declarations(run, diagnosed(run, report)))


def _named_by_declaration(report: Report) -> Report:
    """The report, in which a declaration stands in place of the description of what it would excuse."""
    declarations = {(one["target"], one["op"], one["binding"]): one.get("passes_under", ()) for one in report.subjects}
    causes = tuple(_named(cause, declarations, report) for cause in report.causes)
    changed = [after for before, after in zip(report.causes, causes, strict=True) if after is not before]
    if not changed:
        return report

    def with_new_cause(result: Result) -> Result:
        return with_cause(result, changed) if any(cause.explains_result(result) for cause in changed) else result

    return attrs.evolve(report, causes=causes, results=tuple(map(with_new_cause, report.results)))


def _named(cause: Cause, declarations: Declarations, report: Report) -> Cause:
    """The cause, with the one declaration that would excuse it in every binding."""
    found = {declarations.get((cause.target, cause.op, binding), ()) for binding in cause.bindings}
    if cause.is_known or len(found) != 1 or not (declared := found.pop()):
        return cause
    if not _WIDENING.isdisjoint(one.partition("=")[0] for one in declared):
        return cause
    # It excuses all that its bindings violate, more than a description of their values explains.
    others = (one for one in report.failures() if one.diagnosis is None and cause.is_about(one))
    explains = tuple(dict.fromkeys((*cause.explains, *(one.requirement for one in others))))
    return attrs.evolve(
        cause,
        explains=explains,
        convention=", ".join(declared),
        sentence=sentence_of(declared, explains),
        remedy=remedy_of(declared),
        errata=(),
    )
