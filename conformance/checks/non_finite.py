"""NaN and infinity reach the results that depend on them (spec/common.md has the table), and no others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

import attrs
import numpy as np

from ...spec.errors import BadOutput, TargetRaised, Unsupported
from ...spec.parts import every_part
from ..cases.case import Case
from ..judging.calls import checked_shapes
from ..judging.findings import Finding
from ..judging.known import failure_shown
from ..judging.subject import Subject
from .groups import group_count
from .registry import check, recipes
from .relations import same
from .showing import judge_shown
from .ways_to_call import ways_to_call

_INFINITIES = (np.inf, -np.inf)


def _inference(case: Case) -> bool:
    return not case.settings.get("training", True)


def _by_place(case: Case) -> bool:
    """Whether y in a place depends only on x there, whatever the parts read. With gates, the same holds for dx."""
    return case.record.composed and not case.record.normalises


@attrs.frozen(eq=False)
class PoisonedCase:
    """A case with one value of x that is not finite, and where y and dx may depend on it, also through parts."""

    case: Case
    y: np.ndarray
    dx: np.ndarray
    #: Where y depends on it, whatever the parts read.
    surely: np.ndarray

    @property
    def shown(self) -> np.ndarray:
        """Where y must show it. A gamma of 0 hides it."""
        own = ~np.isfinite(self.case.x.astype(np.float64))
        return (self.surely & _nonzero_gain(self.case)) | (own & self.case.record.normalises_handed)


def _nonzero_gain(case: Case) -> np.ndarray:
    """Where gamma is not 0, in a shape that broadcasts against x."""
    gamma = case.inputs.get("gamma")
    if gamma is None:
        return np.ones((), bool)
    return (gamma if case.record.composed else case.layout.spread(gamma)) != 0


def _poisoned(case: Case, poison: float) -> PoisonedCase:
    """The case with this value in a middle group."""
    rows = case.layout.rows(case.x).copy()
    group, place = group_count(case) // 2, case.layout.size // 2
    rows[group, place] = poison
    own, whole = np.zeros(rows.shape, bool), np.zeros(rows.shape, bool)
    own[group, place], whole[group] = True, True
    own, whole = case.layout.back(own), case.layout.back(whole)
    none = np.zeros_like(own)
    bad = case.replace(x=case.layout.back(rows))
    if _inference(case):
        return PoisonedCase(bad, own, none, own)
    if case.record.normalises_handed:
        # LN(x) has a derivative even where no part reads it, and its whole group with it.
        there = own if _reads_nothing(case) else whole
        return PoisonedCase(bad, there, whole, there)
    if not _by_place(case):
        # A finite x divided by an infinite root is 0. Where the mean is subtracted, the numerator is infinite too.
        return PoisonedCase(bad, whole, whole, whole if case.record.centred or np.isnan(poison) else own)
    if not _reads_nothing(case):
        return PoisonedCase(bad, whole, whole, own)
    return PoisonedCase(bad, own, own if case.record.has_gates else none, own)


def _reads_nothing(case: Case) -> bool:
    """Whether the parts return values that do not depend on their inputs."""
    return all(part.constant for part in every_part(case.parts))


@check("CM-N1", raising="violates")
def contained(subject: Subject, case: Case) -> Iterator[Finding]:
    """Results that do not depend on a non-finite value stay as they are."""
    if group_count(case) < 2 and not _inference(case):
        return
    clean, lacking = subject.observe(case), None
    y = clean.started["y"]
    poisoned = {poison: _poisoned(case, poison) for poison in (np.nan, *_INFINITIES)}

    for poison, bad in poisoned.items():
        for where_called, outputs in subject.outputs_in_modes(bad.case, but_training=True):
            got, note = np.where(bad.y, y, outputs["y"]), f"{poison} elsewhere in x{where_called}"
            yield attrs.evolve(same(subject, case, "y", got, y, note), case=bad.case)

    def pulled(bad: Case) -> object:
        return subject.start(bad).pull(case.g)

    ask = pulled if clean.has_gradients else subject.start
    subject.prefetch(case, (partial(ask, bad.case) for bad in poisoned.values()))
    for poison, bad in poisoned.items():
        note = f"{poison} elsewhere in x"
        evaluation = subject.start(bad.case)
        outputs = checked_shapes(evaluation.outputs(), bad.case)
        for name, may_change in {"y": bad.y, **_statistics_shown(bad.case)}.items():
            known = clean.started[name]
            finding = same(subject, case, name, np.where(may_change, known, outputs[name]), known, note)
            yield attrs.evolve(finding, case=bad.case)
        if subject.forward_only:
            continue
        try:
            before = clean.gradients["dx"]
            dx = subject.named_gradients(evaluation.pull(case.g).gradients(), bad.case)["dx"]
        except Unsupported as found:
            lacking = found
            continue
        finding = same(subject, case, "dx", np.where(bad.dx, before, dx), before, note)
        yield attrs.evolve(finding, case=bad.case)
    if lacking is not None:
        raise lacking


def _shows(case: Case) -> bool:
    """Whether values of x must show in y: a group of one value is its own mean, and tanh turns infinity into 1."""
    several = case.layout.size > 1 or _inference(case) or _by_place(case)
    return several and not case.parts.get("activation")


def _judged(
    subject: Subject, case: Case, bad: Case, masks: Mapping[str, np.ndarray], what: str, *, nan: bool, gradients: bool
) -> Iterator[Finding]:
    """Judge whether ``what`` makes each result NaN, or at least not finite, where it must, in each way to call."""
    ways = ways_to_call(subject, bad, gradients=gradients)
    subject.prefetch(case, [partial(way.call, bad) for way in ways])
    for way in ways:
        try:
            results = way.call(bad)
        except Unsupported:
            if way.plain:
                raise
            continue
        except (TargetRaised, BadOutput) as failed:
            if way.plain:
                raise
            if way.works(case):
                why = f"raised {failed}" if isinstance(failed, TargetRaised) else str(failed)
                note = f"{what}{way.words}: {why}"
                yield Finding(bad, violated=True, output="y", note=note, failure=failure_shown(failed))
            continue
        for finding in judge_shown(bad, results, masks, f"{what} does not show here{way.words}", nan=nan):
            if not (finding.violated and way.layout and not way.is_right(subject, case)):  # CM-V1 is about x misread
                yield finding


def _outputs_shown(bad: PoisonedCase) -> dict[str, np.ndarray]:
    """Where each output must show the bad value of x."""
    return {"y": bad.shown, **_statistics_shown(bad.case)}


def _statistics_shown(bad: Case) -> dict[str, np.ndarray]:
    """Where new running statistics depend on a bad value of x: in its channel, if their momentum takes any of x."""
    if _inference(bad) or not bad.settings.get("momentum"):
        return {}
    channels = np.asarray(~np.isfinite(bad.layout.rows(bad.x).astype(np.float64)).all(axis=1))
    return {f"new_{name}": channels for name in bad.record.statistics}


@check("CM-N3", when=_shows, raising="violates")
def nan_shows(subject: Subject, case: Case) -> Iterator[Finding]:
    """A NaN in x makes every element of an output that depends on it NaN, and of the dx of a normalisation."""
    gradients = subject.has_gradients(case)
    bad = _poisoned(case, np.nan)
    masks = _outputs_shown(bad)
    if case.record.normalises and not (case.record.composed or _inference(case)):
        masks["dx"] = bad.dx  # the root of its group is NaN, and a factor of all of its dx
    yield from _judged(subject, case, bad.case, masks, "a NaN in x", nan=True, gradients=gradients)


@check("CM-N4", when=_shows, raising="violates")
def infinity_shows(subject: Subject, case: Case) -> Iterator[Finding]:
    """An infinity in x leaves no element of an output that depends on it finite."""
    gradients = subject.has_gradients(case)
    for poison in _INFINITIES:
        bad = _poisoned(case, poison)
        what = f"{poison} in x"
        yield from _judged(subject, case, bad.case, _outputs_shown(bad), what, nan=False, gradients=gradients)


# The parts of these recipes return their leaves, which a check can make NaN.
@check("CM-N5", when=recipes("leaf", "leaf_carry"), raising="violates")
def parts_show(subject: Subject, case: Case) -> Iterator[Finding]:
    """A NaN in the output of a part, or in a logit, makes every y that depends on it NaN."""
    gradients = subject.has_gradients(case)
    for name in _leaves_that_count(case):
        bad, shown = _nan_in_leaf(case, name)
        what = f"a NaN in {name}"
        yield from _judged(subject, case, bad, {"y": shown}, what, nan=True, gradients=gradients)


def _leaves_that_count(case: Case) -> list[str]:
    """The leaves that no gate or weight multiplies by 0, and the logits."""
    if case.description is None or case.description.logits not in ("mixed", "moderate"):
        return []
    names = [name for name in case.inputs if name.endswith((".h", ".z")) or name == "logits"]
    return [name for name in names if case.inputs[name] is not None]


def _nan_in_leaf(case: Case, name: str) -> tuple[Case, np.ndarray]:
    """The case with a NaN in one element of a leaf, and a mask of where y must show it."""
    values = case.given(name).copy()
    values.reshape(-1)[values.size // 2] = np.nan
    bad = case.replace(**{name: values})
    hit = np.isnan(values.astype(np.float64)) if values.shape == case.x.shape else np.ones(case.x.shape, bool)
    if not case.record.normalises_sum:
        return bad, hit
    hit = np.broadcast_to(hit.any(axis=-1, keepdims=True), hit.shape)
    return bad, hit & _nonzero_gain(case)
