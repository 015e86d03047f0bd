"""Known violations: a check's findings without the errors that they cover. The rest is judged as usual."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import attrs
import numpy as np

from ...adapters.known import Failure, KnownViolation, Predicted
from ...spec.errors import BadOutput, TargetLost, TargetRaised, one_line
from ..cases.case import Case
from .findings import Elements, Finding, place_of_largest
from .verdicts import Deviation

#: A valid call returns, and its gradients exist. Every other requirement presupposes these two.
ABOUT_PLAIN_CALLS = ("CM-T1", "CM-T3")


def failure_shown(failed: Exception) -> str:
    """The failure that an exception of a call shows, in the words of adapters/known.py."""
    if isinstance(failed, BadOutput):
        return "missing" if failed.kind == "gradient" else failed.kind
    return "raises" if isinstance(failed, TargetRaised) else ""


def _kind(got: float | None) -> str:
    if got is None or np.isfinite(got):
        return "value"
    return "nan" if np.isnan(got) else "infinite"


@attrs.define
class KnownViolations:
    """The known violations of one subject, and the number of findings in which each showed."""

    entries: Sequence[KnownViolation] = ()
    shown: Counter[KnownViolation] = attrs.field(factory=Counter)
    #: Entries that were tested: something within their limits was judged.
    tested: set[KnownViolation] = attrs.field(factory=set)
    #: What an entry's own function raised when it was asked.
    raised: dict[KnownViolation, str] = attrs.field(factory=dict)

    def without_known(self, requirement: str, finding: Finding) -> Finding:
        """The finding without the errors that known violations cover; no violation if they cover all of it."""
        entries = [one for one in self.entries if one.requirement == requirement and _is_within_limits(one, finding)]
        if not (entries and finding.judged):
            return finding
        if not finding.violated:
            self._test(entries, finding)
            return finding
        if finding.elements is None:
            return self._whole_without_known(entries, finding)
        return self._elements_without_known(entries, finding, finding.elements)

    def known_failure(self, case: Case, output: str, failed: Exception) -> str:
        """
        Why a plain call of a case is known to fail; empty if no known violation says so.

        Such a call cannot show anything about the other requirements either.
        """
        for one in self.entries:
            within = one.requirement in ABOUT_PLAIN_CALLS and one.within(case.x.shape, case.settings, output, "")
            if within and failure_shown(failed) in one.failures and self._shows(one, case):
                return f"{one.reason} ({one.requirement})"
        return ""

    def deviations(self, requirement: str) -> tuple[Deviation, ...]:
        """The known violations of a requirement that showed, or that were tested and did not show."""
        return tuple(
            Deviation(one.reason + self.raised.get(one, ""), one.scope(), one.links, self.shown[one])
            for one in self.entries
            if one.requirement == requirement
            and (self.shown[one] or one in self.raised or (one in self.tested and one.always))
        )

    def _test(self, entries: Sequence[KnownViolation], finding: Finding) -> None:
        for one in entries:
            if one not in self.tested and not self.shown[one] and self._shows(one, finding.case):
                self.tested.add(one)

    def _whole_without_known(self, entries: Sequence[KnownViolation], finding: Finding) -> Finding:
        kind = finding.failure or _kind(finding.got)
        for one in entries:
            if (not one.failures or kind in one.failures) and self._covered(one, finding):
                self.shown[one] += 1
                return attrs.evolve(finding, violated=False, ratio=None, known=(one,))
        self._test(entries, finding)
        return finding

    def _elements_without_known(
        self, entries: Sequence[KnownViolation], finding: Finding, elements: Elements
    ) -> Finding:
        kinds = np.where(np.isnan(elements.got), "nan", np.where(np.isinf(elements.got), "infinite", "value"))
        left, used = elements.ratio > 1, []
        for one in entries:
            like = np.isin(kinds, one.failures) if one.failures else np.ones_like(left)
            if not (left & like).any():
                continue
            covered = left & like & self._covered(one, finding)
            if covered.any():
                self.shown[one] += 1
                used.append(one)
                left &= ~covered
        self._test([one for one in entries if one not in used], finding)
        if not used:
            return finding
        if left.any():
            return _at_worst(finding, elements, left)
        rest = elements.ratio[(elements.ratio >= 0) & (elements.ratio <= 1)]
        ratio = float(rest.max()) if rest.size else None
        return attrs.evolve(finding, violated=False, ratio=ratio, known=tuple(used))

    def _shows(self, entry: KnownViolation, case: Case) -> bool:
        return bool(np.all(self._answer_of(entry, lambda: entry.shows_in(case.inputs, case.settings))))

    def _covered(self, entry: KnownViolation, finding: Finding) -> Predicted:
        """Whether an entry covers a finding, or which of its elements."""

        def covered() -> Predicted:
            found, elements = np.asarray(entry.covers(_failure(finding)), bool), finding.elements
            return bool(found.all()) if elements is None else np.broadcast_to(found, elements.ratio.shape)

        return self._answer_of(entry, covered)

    def _answer_of(self, entry: KnownViolation, question: Callable[[], Predicted]) -> Predicted:
        """The answer of an entry; False if its author's function raises, makes no sense, or is lost with its worker."""
        try:
            return question()
        except TargetLost:
            return False
        except Exception as error:
            words = error.words if isinstance(error, TargetRaised) else one_line(error)
            self.raised.setdefault(entry, f" (a function of this entry raised {words})")
            return False


def _is_within_limits(entry: KnownViolation, finding: Finding) -> bool:
    case, surely = finding.case, finding.violated  # a finding that passes may name no output and no note
    return entry.within(case.x.shape, case.settings, finding.output, finding.note, surely=surely)


def _failure(finding: Finding) -> Failure:
    case, call = finding.case, finding.call
    found = Failure(finding.output, finding.note, case.inputs, case.settings, case.g)
    if (elements := finding.elements) is not None:
        found = replace(found, got=elements.got, expected=elements.expected, envelope=elements.envelope)
    return found if call is None else replace(found, tangents=call.tangents, tangents_again=call.tangents_again)


def _at_worst(finding: Finding, elements: Elements, left: np.ndarray) -> Finding:
    """The finding about the worst of the elements that are left."""
    ratio = np.where(left, elements.ratio, -1.0)
    index = place_of_largest(ratio)
    return attrs.evolve(
        finding,
        ratio=float(ratio[index]),
        index=index,
        expected=float(elements.expected[index]),
        got=float(elements.got[index]),
        envelope=float(elements.envelope[index]),
    )
