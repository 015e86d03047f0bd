"""The causes in a report: the mistakes of each target, over all its dtypes and bindings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from ...adapters.binding import Binding
from ...adapters.dtypes import DTYPES
from ...adapters.target import Target
from ...reference.formats import FORMATS
from ...spec.errors import NormspecError, TargetLost
from ...spec.identifiers import is_common, kind_of
from ..engine.asking import asking
from ..engine.engine import Run
from ..engine.judged_under import WIDENING
from ..engine.pace import is_slow_once
from ..grouping import grouped
from ..judging.defects import words
from ..judging.subject import Subject
from ..judging.truth import is_about_gradients
from ..judging.verdicts import Result, Verdict
from ..results.report import Report
from .cause import Cause
from .consequences import Consequences, widest
from .convention_search import ConventionSearch, Excuse, in_one_class
from .convention_words import remedy_of, sentence_of
from .explanation import Explanation
from .merged_causes import merged_causes
from .patterns.describer import Describer
from .patterns.pattern import Pattern
from .remedies import or_declared, requirement_fields
from .search import Search
from .second import SecondSearch
from .violations import is_violation
from .wrong_in_inference import leading_in_inference, search_in_inference

#: The dtypes, those that show a mistake best first: float32 does not lose it in roundings; 16 bits hide what is small.
DTYPES_BY_CLARITY = ("float32", "float64", "float16", "bfloat16")

#: Conventions that only widen an envelope. That a violation is gone under a wider one does not say how it came about;
#: float64=float32 says it.
_SAYING_NOTHING = WIDENING - {"float64"}
#: What a description of memory explains first.
_OF_MEMORY = frozenset(("CM-P2", "CM-P5"))
#: What a function that rounds after each step in 16 bits needs. The search for conventions tells which explains what.
_OF_ROUNDING_STEPS = frozenset(("storage", "mixed_dtypes"))


@np.errstate(all="ignore")  # wrong values may overflow, and formulas on trial divide by zero
def diagnosed(run: Run, report: Report) -> Report:
    """
    Return the report with its causes; each result that a cause explains refers to it.

    A target that violates nothing is asked nothing.
    """
    if not run.plan.explain or report.stopped:
        return report
    failing = grouped(
        ((one.target, one.op, one.binding), one)
        for one in filter(is_violation, report.results)
        if one.upstream is None  # the framework's own mistake
    )
    causes: list[Cause] = []
    notes = list(report.notes)
    for target, binding in _diagnosed_bindings(run):
        place = (target.name, binding.operator, binding.name)
        if place in failing:
            try:
                with asking(target, report):
                    found = _causes_of_binding(run, target, binding, failing[place], report)
                causes += found  # not before the end of the questions, which raises if an answer was lost
            except TargetLost as lost:
                notes.append(_without_cause(binding, f"the target {lost.reason}"))
            except NormspecError as error:  # the user's own mistake
                notes.append(_without_cause(binding, str(error)))
            except Exception as error:  # our own error: the violations stand without a cause
                notes.append(_without_cause(binding, words(error)))
    causes = merged_causes(causes)
    with_causes = attrs.evolve(
        report, causes=tuple(causes), results=tuple(with_cause(result, causes) for result in report.results)
    )
    results, lost = _with_consequences(run, with_causes)
    causes = [or_declared(cause if cause.is_known else _led_by_standing(cause, results)) for cause in causes]
    return attrs.evolve(with_causes, causes=tuple(causes), results=results, notes=(*notes, *lost))


def _diagnosed_bindings(run: Run) -> list[tuple[Target, Binding]]:
    """The bindings whose violations are diagnosed, each with its target: no layer that has its own sublayers."""
    return [(target, one) for target in run.plan.targets for one in target.bindings if one.seams is None]


def _without_cause(binding: Binding, why: str) -> str:
    return f"the cause of the violations of {binding.name} was not found: {why}"


def _causes_of_binding(
    run: Run, target: Target, binding: Binding, violations: Sequence[Result], report: Report
) -> list[Cause]:
    """The mistakes in one binding. One found in a dtype is tried first in the next."""
    causes: list[Cause] = []
    declared = _telling_declarations(report, target, binding)
    known: tuple[tuple[str, ...], ...] = ()
    searches: list[Search] = []
    nameless: list[Search] = []
    excuses: list[Excuse] = []
    unexplained: set[str] = set()
    explains_all = True
    for dtype in sorted({result.dtype for result in violations}, key=DTYPES_BY_CLARITY.index):
        here = [result for result in violations if result.dtype == dtype]
        satisfied = _satisfied(report, (target.name, binding.operator, binding.name, dtype))
        search = Search(_subject(run, target, binding, dtype, report), here, satisfied, known)
        searches.append(search)
        conventions = ConventionSearch(search, frozenset(unexplained))
        # A mistake that is known from another dtype may be hidden here only by rounding. What is rounded in one 16-bit
        # dtype is so in the other, and a class of storage says more than two mistakes that only together match.
        first = bool(excuses) or (bool(known) and search.found_again is None)
        excused = conventions.found if not declared and (first or search.alone is None) else ()
        found = None if excused else search.alone or (None if declared else search.together)
        if excused:
            excuses += excused
            for excuse in excused:
                causes += [] if excuse.beside is None else _causes_of(search.subject, excuse.beside)
        elif found is not None:
            second = SecondSearch(search, found).found()
            found = second if second is not None and _causes_of(search.subject, second) else found
            found = None if search.lacks_gradients_beside(found) else found
        if found is not None:
            known = tuple(dict.fromkeys((*known, *(candidate.names for candidate in found.candidates))))
            causes += _causes_of(search.subject, found)
        elif not excused and not causes:
            nameless.append(search)
        explained = () if found is None else found.explains
        explains_all &= all(one.requirement in explained for one in here)
        if not FORMATS[dtype].narrow:
            unexplained.update(one.requirement for one in here if one.requirement not in explained)
    named = frozenset(name for cause in causes if cause.faults for name in cause.explains)
    if declared and not explains_all:  # which excuse more than the mistakes explain
        return _causes_of_declarations(searches, declared)
    causes = causes or _causes_in_inference(run, target, binding, nameless, report) or _descriptions(nameless)
    return causes + [
        _cause_of_excuse(excuse, left)
        for excuse in in_one_class(excuses)
        if (left := tuple(name for name in excuse.excuses if name not in named))
    ]


def _telling_declarations(report: Report, target: Target, binding: Binding) -> tuple[str, ...]:
    """The declarations under which a binding would conform; none if they do not tell what it does."""
    place = (target.name, binding.operator, binding.name)
    subject = next(one for one in report.subjects if (one["target"], one["op"], one["binding"]) == place)
    found = subject.get("passes_under", ())
    keys = {one.partition("=")[0] for one in found}
    return () if keys <= _SAYING_NOTHING or keys == _OF_ROUNDING_STEPS else found


def _causes_of_declarations(searches: Sequence[Search], declared: Sequence[str]) -> list[Cause]:
    """The declarations as the cause of everything that these searches are about."""
    violated = {one.requirement: None for search in searches for one in search.violations}
    explains = tuple(sorted(violated, key=is_common))  # the operator's own tell most
    words = {"sentence": sentence_of(declared, explains), "remedy": remedy_of(declared), "errata": ()}
    return [_cause(one.subject, explains[0], explains, convention=", ".join(declared), **words) for one in searches]


def _satisfied(report: Report, place: tuple[str, str, str, str]) -> frozenset[str]:
    """The requirements that a binding was judged by in a dtype and satisfies."""
    holds = (Verdict.PASS, Verdict.DEVIATES)
    return frozenset(one.requirement for one in report.results if _place(one) == place and one.verdict in holds)


def _cause(subject: Subject, identifier: str, explains: tuple[str, ...], **more: Any) -> Cause:
    """A cause in one binding and dtype, against a requirement; ``more``: its sentence, and other fields."""
    fields = {"faults": (), **requirement_fields(identifier), **more}
    return Cause(
        target=subject.target.name,
        op=subject.operator,
        bindings=(subject.binding.name,),
        dtypes=(subject.dtype,),
        explains=explains,
        **fields,
    )


def _cause_of_excuse(excuse: Excuse, explains: tuple[str, ...]) -> Cause:
    """A convention that the target follows without declaring it, as the cause of what no mistake explains."""
    fields = {"sentence": excuse.sentence, "convention": excuse.declaration, "remedy": excuse.remedy, "errata": ()}
    return _cause(excuse.subject, explains[0], explains, **fields)


def _descriptions(nameless: Sequence[Search]) -> list[Cause]:
    """Descriptions of the violations, where no mistake of the library matches in any dtype."""
    causes: list[Cause] = []
    pattern: Pattern | None = None
    #: The requirements whose violations were searched for a pattern, and have none.
    without_pattern: frozenset[str] = frozenset()
    for search in nameless:
        violated = frozenset(one.requirement for one in search.violations)
        describer = Describer.after(search, briefly=violated <= without_pattern)
        again = None if pattern is None else describer.again(pattern)
        found = again or describer.described()
        pattern = pattern or found
        if found is not None and found.tells_how_often_alone:
            without_pattern |= violated
        for one in () if found is None else (found, *describer.beside(found)):
            words = {"sentence": one.sentence, "begins": one.begins}
            causes.append(_cause(search.subject, one.explains[0], one.explains, **words))
    return causes


def _causes_in_inference(
    run: Run, target: Target, binding: Binding, nameless: Sequence[Search], report: Report
) -> list[Cause]:
    """The mistakes, or the descriptions, of a binding whose y is wrong in inference mode only; else none."""
    causes: list[Cause] = []
    described: list[Search] = []
    leading = ""
    for search in nameless:
        leading = leading or leading_in_inference(search.violations)
        there = search_in_inference(_subject(run, target, binding, search.subject.dtype, report)) if leading else None
        found = None if there is None else there.alone or there.together
        if found is not None:
            causes += _causes_of(search.subject, found)
        elif there is not None:
            described.append(there)
    return [
        attrs.evolve(
            one,
            sentence=f"In inference mode only: {one.sentence[:1].lower()}{one.sentence[1:]}",
            explains=(leading,),
            **requirement_fields(leading),
        )
        for one in causes or _descriptions(described)
    ]


def _causes_of(subject: Subject, found: Explanation) -> list[Cause]:
    """
    A cause for each mistake, together with the mistakes that cannot be told apart from it.

    The candidates have to be all combinations of the alternatives for each place, and each place has to explain a
    violation. Otherwise nothing is known of either mistake, and there is no cause.
    """
    first, there = found.candidates[0], {frozenset(one.faults) for one in found.candidates}
    every = tuple({fault.name: fault for one in found.candidates for fault in one.faults}.values())
    alike = [
        tuple(one for one in every if frozenset((*first.faults[:place], one, *first.faults[place + 1 :])) in there)
        for place in range(len(first.faults))
    ]
    explained = {place for places in found.explains.values() for place in places}
    if math.prod(map(len, alike)) != len(there) or explained != {*range(len(first.faults))}:
        return []
    causes = []
    for place, fault in enumerate(first.faults):
        faults = (fault, *(one for one in alike[place] if one is not fault))
        sentence = " Or: ".join(dict.fromkeys(one.summary for one in faults))
        explained = (name for name, places in found.explains.items() if place in places)
        explains = tuple(sorted(explained, key=lambda name: name != fault.requirement))
        names = tuple(one.name for one in faults)
        causes.append(_cause(subject, fault.requirement, explains, sentence=sentence, faults=names))
    return causes


def with_cause(result: Result, causes: Sequence[Cause]) -> Result:
    """The result; a violation refers to its cause."""
    if not is_violation(result):
        return result
    own = [cause for cause in causes if cause.explains_result(result)]
    if not own:
        return result
    leading = tuple(dict.fromkeys(cause.leading for cause in own if cause.is_known))
    follows = () if result.requirement in leading else leading
    return attrs.evolve(result, diagnosis=own[0].name or own[0].sentence, follows_from=follows)


def _with_consequences(run: Run, report: Report) -> tuple[tuple[Result, ...], list[str]]:
    """The results, with what the unexplained ones follow from; and notes on errors in finding that out."""
    found: dict[tuple[str, str, str, str], Mapping[str, tuple[str, ...]]] = {}
    notes: list[str] = []
    violations = grouped((_place(one), one) for one in filter(is_violation, report.results))
    for target, binding in _diagnosed_bindings(run):
        for dtype in DTYPES:
            place = (target.name, binding.operator, binding.name, dtype)
            here = violations.get(place, [])
            named = _explained_by_faults(here, report.causes)
            if all(one.requirement in named for one in here):
                continue
            try:  # where that fails, each violation stands by itself
                with asking(target, report):
                    subject = _subject(run, target, binding, dtype, report)
                    wide = widest(target.dtypes)
                    measured = _subject(run, target, binding, wide, report) if wide else None
                    known = {one.requirement: one.follows_from for one in here if one.follows_from}
                    found[place] = Consequences(subject, here, named, measured, known).found()
            except TargetLost:
                continue
            except Exception as error:  # our own error
                notes.append(f"the consequences of the violations of {binding.name} were not found: {words(error)}")
    results = (
        attrs.evolve(one, follows_from=found.get(_place(one), {}).get(one.requirement, one.follows_from))
        for one in report.results
    )
    return tuple(results), notes


def _subject(run: Run, target: Target, binding: Binding, dtype: str, report: Report) -> Subject:
    """The subject of a binding in a dtype, in the mode that the report judged it in."""
    subject = run.subject(target, binding, dtype)
    subject.mode = subject.mode or report.mode_of(target.name, binding.operator, binding.name, dtype)
    place = target.name, binding.operator, binding.name, dtype
    shown = (one.violated_on for one in report.failures() if _place(one) == place)
    case = next((one for one in shown if one is not None), None)
    asked = run.plan.slow is not None  # who says that calls are slow means each of them
    subject.slow_once = not asked and case is not None and is_slow_once(subject, case)
    return subject


def _explained_by_faults(violations: Sequence[Result], causes: Sequence[Cause]) -> frozenset[str]:
    """The requirements of the violations that a known mistake explains."""
    known = [cause for cause in causes if cause.is_known]
    return frozenset(one.requirement for one in violations if any(cause.explains_result(one) for cause in known))


def _led_by_standing(cause: Cause, results: Sequence[Result]) -> Cause:
    """A cause without a name, led by the first of its requirements that follows from no other."""
    explained = [one for one in results if cause.explains_result(one)]
    standing = [one for one in explained if not one.follows_from]
    names = {one.requirement for one in standing}
    # What is wrong only in gradients is led by a requirement about gradients.
    shown = [one.counterexample for one in standing]
    backward = all(one is not None and is_about_gradients(one.output, one.inputs) for one in shown)

    memory = cause.explains[0] in _OF_MEMORY

    def rank(name: str) -> tuple[bool, bool, bool, bool]:
        """What stands first; then memory; then, of gradients, those of the formula; then the operator's own page."""
        beside_memory = memory and name != cause.explains[0]
        return name not in names, beside_memory, backward and kind_of(name) != "G", is_common(name)

    explains = tuple(sorted(cause.explains, key=rank))
    return attrs.evolve(cause, explains=explains, **requirement_fields(explains[0]))


def _place(result: Result) -> tuple[str, str, str, str]:
    return result.target, result.op, result.binding, result.dtype
