"""A subject: one binding of a target in one dtype on one device, and how its results are judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from ...reference.accuracy import AccuracyClass, Arithmetic
from ...reference.double_double import DD
from ...reference.formats import FORMATS
from ...spec.conventions import CONVENTIONS, matters_in
from ..cases.case import Case
from .calling_subject import CallingSubject
from .findings import Finding, WorstElement, compare
from .known import KnownViolations
from .truth import arithmetic_of, is_about_gradients
from .truths import truth_of

if TYPE_CHECKING:  # a Python that was built without SQLite has none
    from ..kept.store import Store

#: envelope(normative): under the declared conventions, or under the normative ones.
Bound = Callable[[bool], np.ndarray]


@attrs.define(eq=False)
class Subject(CallingSubject):
    """One binding in one dtype on one device, judged under its conventions."""

    #: Formats whose subnormal numbers are lost if it may flush them. All formats, unless this was measured.
    flushes: frozenset[str] = frozenset(FORMATS)
    #: Conventions whose value was measured on the platform, each with the evidence.
    measured: Mapping[str, str] = attrs.field(factory=dict)
    #: Store that keeps truths for later runs; None keeps nothing.
    store: Store | None = None
    #: The binding's known violations for this dtype and device, and in how many findings each showed.
    known_violations: KnownViolations = attrs.field(init=False)
    _arithmetics: dict[Any, Arithmetic] = attrs.field(factory=dict)

    def __attrs_post_init__(self) -> None:
        violations = self.binding.known_violations
        self.known_violations = KnownViolations(
            tuple(one for one in violations if one.applies(dtype=self.dtype, device=self.device))
        )

    @property
    def narrow(self) -> bool:
        return FORMATS[self.format].narrow

    # -- the truth under the declared and the normative conventions ------------------------------

    def relevant(self, output: str) -> tuple[str, ...]:
        """The conventions that affect an output in this dtype and differ from the normative choice."""
        envelopes = ("variance_algorithm", "affine", "subnormals", "storage", "cast", "eps_dtype")
        keys = [key for key in envelopes if matters_in(key, self.format)]
        if self.format != self.dtype:
            keys.append("float64")
        if output == "new_running_var":
            keys.append("running_variance")
        return tuple(k for k in keys if self.conventions.get(k, CONVENTIONS[k][0]) != CONVENTIONS[k][0])

    def truth(self, case: Case, *, normative: bool = False) -> Any:
        """The exact values and envelopes of a case under the declared (or normative) conventions."""
        declared = {} if normative else self.conventions
        eps = declared.get("eps_dtype", "exact") if self.format == "float64" else "exact"
        running = declared.get("running_variance", "biased")
        return truth_of(case, self.store, eps, running)

    def exact(self, case: Case, name: str, *, normative: bool = False) -> DD | None:
        """The exact output or gradient of this name; None if the case has none."""
        truth = self.truth(case, normative=normative)
        return (truth.outputs() if name in case.record.outputs else truth.gradients()).get(name)

    def arithmetic(self, case: Case, *, normative: bool = False) -> Arithmetic:
        key = (normative, case.g.dtype, *(v.dtype for v in case.inputs.values() if v is not None))
        if key not in self._arithmetics:
            conventions = {} if normative else self.conventions
            accuracy = AccuracyClass.from_conventions(conventions, self.flushes)
            as_named = normative and self.format != self.dtype
            self._arithmetics[key] = Arithmetic.of(self.dtype) if as_named else arithmetic_of(case, accuracy)
        return self._arithmetics[key]

    # -- judging ---------------------------------------------------------------------------------

    def bound(self, case: Case, name: str, g: np.ndarray | None = None, *, range_rule: bool = True) -> Bound:
        """The envelope of an output or gradient under the declared, or the normative, conventions."""

        def envelope(normative: bool) -> np.ndarray:
            truth = self.truth(case, normative=normative)
            return truth.bound(name, self.arithmetic(case, normative=normative), g, range_rule=range_rule)

        return envelope

    def judge_output(
        self, case: Case, name: str, got: np.ndarray, *, note: str = "", where: np.ndarray | None = None,
        range_rule: bool = True,
    ) -> Finding:  # fmt: skip
        """Compare an output with the exact one, everywhere or only ``where`` it is true."""
        bound = self.bound(case, name, range_rule=range_rule)

        def measure(normative: bool) -> WorstElement:
            exact = self.truth(case, normative=normative).outputs()[name]
            return compare(got, exact, bound(normative), where=where)

        return self.finding(case, name, measure, note)

    def judge_gradient(
        self, case: Case, name: str, got: np.ndarray, *, note: str = "", range_rule: bool = True
    ) -> Finding:
        """Compare a gradient ("dx", "dgamma", ...) for the case's cotangent with the exact one."""
        bound = self.bound(case, name, range_rule=range_rule)

        def measure(normative: bool) -> WorstElement:
            exact = self.truth(case, normative=normative).gradients()[name]
            assert exact is not None
            return compare(got, exact, bound(normative))

        return self.finding(case, name, measure, note)

    def judge(
        self, case: Case, name: str, got: np.ndarray, exact: DD | Callable[[bool], DD], bounds: Bound, note: str = ""
    ) -> Finding:
        """
        Compare a result with exact values; ``bounds(normative)`` returns the envelope.

        ``exact`` is a function of ``normative`` too, where a convention changes the exact values.
        """

        def measure(normative: bool) -> WorstElement:
            return compare(got, exact if isinstance(exact, DD) else exact(normative), bounds(normative))

        return self.finding(case, name, measure, note)

    def related(self, finding: Finding, shape: tuple[int, ...]) -> Finding:
        """
        The finding, whose expected value comes from results of other calls, with the exact value if it is a violation.

        ``shape``: of what was compared, which may be only a part of a result; then nothing is added.
        """
        if not finding.violated:
            return finding
        case, name = finding.case, finding.output
        known = name in case.record.outputs or is_about_gradients(name, case.inputs)
        exact = self.exact(case, name) if known else None
        if exact is None or exact.hi.shape != shape:
            return finding
        return attrs.evolve(finding, exact=float(exact.hi[finding.index]))

    def finding(self, case: Case, name: str, measure: Callable[[bool], WorstElement], note: str) -> Finding:
        """
        The finding of ``measure`` under the declared conventions.

        If it passes, but would fail under the normative ones, it names the declared conventions that the output
        depends on.
        """
        result: WorstElement = measure(False)
        violated = result.judged > 0 and result.ratio > 1
        deviates: tuple[str, ...] = ()
        relevant = self.relevant(name)
        if result.judged and not violated and relevant:
            strict: WorstElement = measure(True)
            if strict.ratio > 1:
                deviates = relevant
        return Finding(
            case=case,
            violated=violated,
            judged=result.judged > 0,
            ratio=result.ratio if result.judged else None,
            output=name,
            index=result.index,
            expected=result.expected,
            got=result.got,
            envelope=result.envelope,
            note=note,
            deviates=deviates,
            elements=result.elements if violated else None,
        )
