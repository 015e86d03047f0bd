"""Which violations follow from others: they fail only because the formula, or one aspect of it, is wrong."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence

import attrs
import numpy as np

from ...adapters.dtypes import DTYPES
from ...spec.errors import CALL_FAILED
from ...spec.identifiers import is_common
from ..cases.case import Case
from ..cases.description import Description
from ..checks.derivatives import KINDS
from ..checks.registry import Check
from ..engine.folding import priority
from ..engine.modes import checks_on
from ..engine.tally import Tally, stays_violated
from ..judging.library import fitted
from ..judging.subject import Subject
from ..judging.verdicts import Result
from .calls_again import CallsAgain, is_in_inference
from .following import is_derivative
from .higher_derivatives import follows_from_gradients
from .neutral import ASPECTS, Aspect, neutral
from .question import Question
from .running import has_the_weight_of_the_mean, is_of_the_variance_of_y, reads_running_statistics
from .unused import cases_of_unused_inputs, is_of_uncalled_parts

#: The formula of y as a whole. Each aspect is a part of it.
_FORMULA_OF_Y = ("LN-F1", "BN-F1", "RM-F1", "GN-F1", "IN-F1")

#: The formulas of the gradients, by the gradient.
_GRADIENTS = {
    "dx": ("LN-G1", "BN-G1", "RM-G1", "GN-G1", "IN-G1"),
    "dgamma": ("LN-G2", "BN-G2", "RM-G2", "GN-G2", "IN-G2"),
    "dbeta": ("LN-G3", "BN-G3", "GN-G3", "IN-G3"),
}

#: The formulas of batch_norm's new running statistics.
_STATISTICS = {"new_running_mean": ("BN-S1",), "new_running_var": ("BN-S2",)}

#: That y is the same in training and in inference mode; the formulas of composed operators, which hold in both.
_MODES = ("LN-L15", "RM-L15", "GN-L15", "IN-L15")
_COMPOSED = ("RS-F1", "PR-F1", "PO-F1", "HW-F1", "MH-F1")

#: Other requirements that compare with the exact values, and so fail where an aspect does. Below, those about several
#: groups or sizes: one group alone does not show them.
_ABOUT_EXACT_VALUES = frozenset({"BN-S1", "BN-S2", "BN-I1", "BN-I5"})
_ABOUT_SEVERAL_GROUPS = frozenset({"CM-N8", "CM-S1"})


@attrs.define
class Consequences:
    """The violations of one subject, some of which follow from others."""

    subject: Subject
    violations: Sequence[Result]
    #: The violated requirements that a known mistake explains. One of them stands for the mistake.
    explained: frozenset[str] = frozenset()
    #: The same function on wider data, to measure its derivatives; None if it takes none.
    wide: Subject | None = None
    #: Found so far: each requirement that follows from others, with its roots. Such a requirement is not a cause.
    roots: dict[str, tuple[str, ...]] = attrs.field(factory=dict)
    #: BN-F7, if it is violated because training reads the running statistics; otherwise empty.
    reading: str = attrs.field(init=False, default="")
    again: CallsAgain = attrs.field(init=False)
    _checks: dict[str, Check] = attrs.field(init=False)
    _by_id: dict[str, Result] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.again = CallsAgain(self.subject)
        self._checks = {check.requirement: check for check in checks_on(self.subject)}
        self._by_id = {result.requirement: result for result in self.violations}

    def found(self) -> Mapping[str, tuple[str, ...]]:
        """For each requirement that follows from others, its roots: those that follow from none themselves."""
        self._trace_exceptions()
        self._trace_inference()
        if self._remembers():
            self._trace_memory()
        else:
            self._note_reading()
            self._trace_aspects(lambda check: check.raising != "unsupported")
            self._trace_reading()
            self._trace_statistics()
            self._trace_gradients()
            if all(one in self.roots for one in map(self._violated, _GRADIENTS.values()) if one):
                self._trace_aspects(lambda check: check.raising == "unsupported")
            self._trace_formulas()
            self._trace_higher_derivatives()
            self._trace_unused()
        self._trace_same_case()
        return self.roots

    def _record(self, requirement: str, *leading: str) -> None:
        """Record that a requirement follows from others, or from their roots."""
        found = dict.fromkeys(root for one in leading for root in self.roots.get(one, (one,)))
        if requirement not in (*self.roots, *found):
            self.roots[requirement] = tuple(found)

    def _unexplained(self) -> Iterator[tuple[str, Result]]:
        """The violations that follow from none so far and are not explained by a known mistake."""
        left = [name for name in self._by_id if name not in self.roots and name not in self.explained]
        yield from [(name, self._by_id[name]) for name in left]

    def _violated(self, ids: Sequence[str]) -> str:
        """The first of these that is violated; empty if none is."""
        return next((name for name in ids if name in self._by_id), "")

    # -- the same exception ------------------------------------------------------------------------

    def _trace_exceptions(self) -> None:
        """If several violations raise the same exception in one place, all follow from the most telling of them."""
        first: dict[object, str] = {}
        for name, result in sorted(self._unexplained(), key=lambda one: priority(one[0])):
            shown = result.counterexample
            if shown is not None and shown.raised is not None:
                raised = shown.raised
                self._record(name, first.setdefault((raised.type, raised.where or raised.words), name))

    # -- inference mode ------------------------------------------------------------------------------

    def _trace_inference(self) -> None:
        """A wrong value in inference mode follows from another y there if the call has another y on plain data too."""
        leading = self._violated(_MODES) or self._violated(_COMPOSED)
        if not leading or not (leading in _MODES or is_in_inference(self._by_id[leading].counterexample)):
            return
        for name, result in self._unexplained():
            if result.counterexample is not None and self.again.is_wrong_in_inference(result.counterexample):
                self._record(name, leading)

    # -- memory of earlier calls ---------------------------------------------------------------------

    def _remembers(self) -> bool:
        """Whether calls depend on earlier calls. No other call then tells what such a function computes."""
        result = self._by_id.get("CM-P2")
        if result is None or "CM-P2" in self.roots:
            return False
        if "CM-P2" in self.explained or result.counterexample is None:
            return True
        return not self.again.repeat_themselves(result.counterexample)

    def _trace_memory(self) -> None:
        """A violation whose calls are right after a different call follows from what the function remembers (CM-P2)."""
        for name, result in self._unexplained():
            own = not is_common(name) or name == "CM-S1"
            if own and self.again.is_right_after_another(result):
                self._record(name, "CM-P2")

    # -- an aspect ---------------------------------------------------------------------------------

    def _trace_aspects(self, wanted: Callable[[Check], bool]) -> None:
        """
        A requirement that holds once a violated aspect does not matter follows from that aspect.

        First-order gradients and their laws are left to _trace_gradients: a backward pass may have a mistake in the
        same aspect. Those of higher order follow if no violated gradient stands.
        """
        for requirement, result in () if self.subject.always_slow else self._unexplained():
            check, violated = self._checks[requirement], self._violated_aspects(requirement)
            about_values = (
                requirement in {*_FORMULA_OF_Y, *_ABOUT_EXACT_VALUES, *_ABOUT_SEVERAL_GROUPS} or check.of == "formula"
            )
            if wanted(check) and (about_values or check.raising == "unsupported"):
                each = [((name,), (aspect,)) for name, aspect in violated]
                together = tuple(name for name, _ in violated), tuple(aspect for _, aspect in violated)
                for names, aspects in (*each, together) if len(each) > 1 else each:
                    if self._holds_without(check, result, aspects):
                        self._record(requirement, *names)
                        break

    def _violated_aspects(self, requirement: str) -> list[tuple[str, Aspect]]:
        """The violated aspects that stand, each with its id; none if the requirement is itself about an aspect."""
        found = [
            (self._violated(one.requirements), one)
            for one in ASPECTS
            if not (one.narrows and requirement in _ABOUT_SEVERAL_GROUPS)
        ]
        own = any(requirement in one.requirements for one in ASPECTS)
        known = ("", self.reading, *self.roots)
        return [] if own else [(name, one) for name, one in found if name not in known]

    def _holds_without(self, check: Check, result: Result, aspects: Sequence[Aspect]) -> bool:
        """
        Whether a requirement holds where these aspects do not matter, on the case that shows it and on some others.
        """
        in_y = check.requirement in _FORMULA_OF_Y or check.of == "formula"
        tally = Tally(check)
        own = self._holds_on_neutral_case(tally, result.violated_on, aspects, in_y=in_y)
        for description in self.again.other_descriptions() if own else ():
            self._holds_on_neutral_case(tally, description, aspects, in_y=in_y)
        return own and tally.violation is None and not tally.error

    def _holds_on_neutral_case(
        self, tally: Tally, description: Description, aspects: Sequence[Aspect], *, in_y: bool
    ) -> bool:
        """Whether a requirement is judged on the neutral case of a description and not violated there."""
        fit = fitted(description, self.subject.binding)
        if fit is None or tally.violation is not None:
            return False
        case = self.subject.new_library().fresh(fit)
        if not tally.check.when(case):
            return False
        made = neutral(case, aspects, in_y=in_y)
        if made is None or not tally.check.when(made):
            return False
        before = tally.judged
        tally.run(self.subject, made, fit)
        return tally.judged > before and tally.violation is None

    # -- another mode ------------------------------------------------------------------------------

    def _note_reading(self) -> None:
        """
        Note whether the group of a value seems wrong because it does not enter its own statistics.

        What is normalised with the running statistics is the wrong formula, on whatever values these are taken.
        """
        result = self._by_id.get("BN-F7")
        shown = None if result is None or self.subject.always_slow else result.counterexample
        if shown is not None and reads_running_statistics(self.subject, self.again.case_of(shown)):
            self.reading = "BN-F7"

    def _trace_reading(self) -> None:
        """BN-F7 then follows from the requirement on that, or from the formula."""
        leading = self._violated(("BN-S5", *_FORMULA_OF_Y))
        if self.reading and leading and self.reading not in self.explained:
            self._record(self.reading, leading)

    # -- running statistics ------------------------------------------------------------------------

    def _trace_statistics(self) -> None:
        """A running variance that is wrong by its weight follows from the mean; one that is wrong as in y, from y."""
        mean, variance, whole = (self._violated(ids) for ids in (*_STATISTICS.values(), _FORMULA_OF_Y))
        if not variance or variance in self.roots or self.subject.always_slow:
            return
        for leading, explains in ((mean, has_the_weight_of_the_mean), (whole, is_of_the_variance_of_y)):
            if leading and self._is_seen(self._by_id[variance], lambda case, found=explains: found(self.subject, case)):
                self._record(variance, leading)

    def _is_seen(self, result: Result, seen: Callable[[Case], bool | None]) -> bool:
        """Whether something is seen on the case that shows a violation or on another, and the contrary on none."""
        if result.counterexample is None:
            return False
        found = []
        for case in (self.again.case_of(result.counterexample), *self.again.other_cases()):
            with contextlib.suppress(*CALL_FAILED):
                found.append(seen(case))
        return True in found and False not in found

    # -- gradients ---------------------------------------------------------------------------------

    def _trace_gradients(self) -> None:
        """
        Wrong gradients that are derivatives of the wrong y follow from it; so do their laws if no gradient stands.
        """
        whole = self._violated(_FORMULA_OF_Y)
        if not whole or self.wide is None or self.subject.always_slow:
            return
        ids = [name for name in map(self._violated, _GRADIENTS.values()) if name]
        laws = [name for name, _ in self._unexplained() if self._checks[name].of == "gradients"]
        for name in (*ids, *laws):
            of_gradients_too = name in ids or all(one in self.roots for one in ids)
            if of_gradients_too and self._is_derivative_of_returned_y(self._by_id[name]):
                self._record(name, whole)

    def _is_derivative_of_returned_y(self, result: Result) -> bool:
        """Whether the wrong gradient is the derivative of the y that is returned."""
        shown, wide = result.counterexample, self.wide
        if shown is None or wide is None:
            return False
        name = _gradient(shown.output)

        def seen(case: Case) -> bool | None:
            def y_of(inputs: Mapping[str, np.ndarray | None], settings: Mapping[str, object]) -> np.ndarray:
                return wide.outputs(attrs.evolve(case, inputs=inputs, settings=settings))["y"].astype(np.float64)

            gradients = Question(case, result.violated_on, derivative=True).answered_by(self.subject).values
            if name not in gradients or gradients[name].worst_error() <= 1:
                return None
            return is_derivative(y_of, wide.dtype, case, name, gradients[name])

        return self._is_seen(result, seen)

    def _trace_higher_derivatives(self) -> None:
        """Wrong tangents and second derivatives that are derivatives of the returned gradients follow from these."""
        leading, wide = self._wrong_formula_or_gradient(), self.wide
        if not leading or wide is None or self.subject.always_slow:
            return
        for name, result in self._unexplained():
            kind, fit = KINDS.get(name), fitted(result.violated_on, wide.binding)
            if kind is not None and fit is not None:
                case = wide.new_library().fresh(fit)
                if follows_from_gradients(wide, case, kind):
                    self._record(name, leading)

    def _wrong_formula_or_gradient(self) -> str:
        """The violated formula of y, or else of a gradient; empty if all hold."""
        of_gradients = (
            name
            for name, check in self._checks.items()
            if name in self._by_id and check.gradient and not (check.of or name in KINDS or is_common(name))
        )
        return self._violated((*_FORMULA_OF_Y, *_COMPOSED)) or min(of_gradients, key=priority, default="")

    # -- theorems ----------------------------------------------------------------------------------

    def _trace_formulas(self) -> None:
        """A law derived from a formula follows from it if one of the law's calls is wrong by itself."""
        for name, result in self._unexplained():
            shown, of = result.counterexample, self._checks[name].of
            leading = "" if shown is None else self._formula_of(shown.output, of)
            if not leading or shown is None or (of == "gradients" and leading in self.roots):
                continue
            if of and self.again.is_wrong_alone(result, gradients=of == "gradients"):
                self._record(name, leading)
            if name == "CM-P2":  # its calls do repeat themselves
                self._record(name, leading)
            if name == "CM-N8" and self.again.is_same_with_variance(shown):
                self._record(name, leading)

    def _formula_of(self, output: str, of: str) -> str:
        """The violated formula of a wrong output; empty if that formula holds."""
        if of == "statistics" or output in _STATISTICS:
            return self._violated(_STATISTICS.get(output, ()))
        if of == "formula" or (not of and output == "y"):
            return self._violated(_FORMULA_OF_Y)
        return self._violated(_GRADIENTS.get(_gradient(output), ()))

    # -- what is not used --------------------------------------------------------------------------

    def _trace_unused(self) -> None:
        """
        A gradient that does not reach what y does not depend on follows from the wrong y, or from a part left out.

        So does what a part that is not called cannot do: raise, or return a wrong shape.
        """
        for name, result in () if self.subject.always_slow else self._unexplained():
            left_out = "CM-C1" in self._by_id and name != "CM-C1" and is_of_uncalled_parts(self.subject, result)
            if left_out:
                self._record(name, "CM-C1")
            elif cases := cases_of_unused_inputs(self.subject, result):
                self._record(name, *self._wrong_in_y(cases, result.violated_on)[:1])

    def _wrong_in_y(self, cases: Sequence[Case], description: Description) -> list[str]:
        """The violations in y that one of these cases shows, the most telling first; before them those that stand."""
        found = []
        for name, one in self._by_id.items():
            shown, check = one.counterexample, [self._checks[name]]
            of_y = shown is not None and shown.output == "y" and shown.got is not None and not check[0].gradient
            if of_y and any(stays_violated(check, self.subject, case, description) for case in cases):
                found.append(name)
        return sorted(found, key=lambda name: (name in self.roots, priority(name)))

    # -- the same value ----------------------------------------------------------------------------

    def _trace_same_case(self) -> None:
        """A violation follows too if one on the same case, for the same reason, follows."""
        for name, result in self._unexplained():
            if result.same_case_as in self.roots:
                self._record(name, result.same_case_as)


def _gradient(output: str) -> str:
    """The gradient that a law is about: "dx" of "sum of dx (x - mu)"."""
    return next((word for word in output.split() if word in _GRADIENTS), output)


def widest(dtypes: Sequence[str]) -> str:
    """The dtype in which derivatives are measured best, of those that a target takes; empty if none is good enough."""
    return next((name for name in ("float64", "float32") if name in dtypes and name in DTYPES), "")
