"""Special values and memory layouts that a target misreads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ....adapters.layouts import LAYOUTS, why_not
from ....spec.errors import CALL_FAILED, LayoutNotApplicable, TargetRaised, Unsupported
from ...cases.case import Case
from ...judging.subject import Subject
from .memory import is_right
from .pattern import with_verb

_SPECIAL_VALUES = ((np.nan, "a NaN"), (np.inf, "an infinity"), (-np.inf, "a negative infinity"))
_CASES = 3

#: Layouts in words (adapters/layouts.py).
_LAYOUTS = {
    "transposed": "stored with its axes reversed",
    "leading_transposed": "stored with the axes before the last reversed",
    "middle_transposed": "stored with the second and third axis exchanged",
    "strided": "strided",
    "sliced_last_axis": "a slice of a longer last axis",
    "sliced_second_axis": "a slice of a longer second axis",
    "channels_last_sliced": "a slice of the channels, which lie last in memory",
    "offset": "stored at an offset",
    "offset_by_16_bytes": "stored at an offset of 16 bytes",
    "channels_last": "stored with its channels last",
    "zero_stride": "expanded with a stride of zero",
    "negative": "stored with a negative stride",
}
#: Of these, those without gaps, in which the values lie in their usual order.
_IN_ONE_PIECE = frozenset({"offset", "offset_by_16_bytes"})
#: How a failure begins among the results that are wrong.
_FAILING = "the call"
#: More layouts than this are not told one by one.
_FEW = 3


def _chosen(cases: Sequence[Case]) -> list[Case]:
    """Cases with every parameter, more than one group, and more than one value in each."""
    whole = [one for one in cases if one.x.size > 3 and one.whole]
    return [one for one in whole if one.layout.count > 1 and one.layout.size > 1][:_CASES]


def misread_special_values(subject: Subject, cases: Sequence[Case]) -> str:
    """Which values that are not finite leave no trace, or reach values that do not depend on them."""
    chosen = _chosen(cases)
    if len(chosen) < _CASES:
        return ""
    found: dict[str, None] = {}
    for name in [one for one in chosen[0].inputs if "." not in one]:
        for poison, words in _SPECIAL_VALUES:
            told = {_effect_of(subject, case, name, poison) for case in chosen if _reaches_y(case, name, poison)}
            if len(told) == 1 and (effect := told.pop()):
                found[f"{words} in {name} {effect}"] = None
    return "; ".join(found)


def _reaches_y(case: Case, name: str, poison: float) -> bool:
    """Whether y depends on a value: on running statistics in inference alone, where 1/sqrt(inf) is 0."""
    if name not in case.record.statistics:
        return True
    return not case.settings["training"] and not (name == "running_var" and np.isinf(poison))


def _effect_of(subject: Subject, case: Case, name: str, poison: float) -> str:
    given = case.inputs[name]
    if given is None or not given.size:
        return ""
    value = given.copy()
    value.reshape(-1)[value.size // 2] = poison
    if name == "logits" and poison == -np.inf:
        return ""  # a branch of weight 0: y is finite
    subject.target.begin()
    try:
        y = subject.outputs(case.replace(**{name: value}))["y"]
        clean = subject.outputs(case)["y"]
    except CALL_FAILED:
        return "makes the call fail"
    lost = ~np.isfinite(y.astype(np.float64)) & np.isfinite(clean.astype(np.float64))
    if name == "x":
        place = np.zeros(given.size, bool)
        place[given.size // 2] = True
        rows = case.layout.rows(place.reshape(given.shape)).any(axis=1, keepdims=True)
        inside = case.layout.back(np.broadcast_to(rows, (case.layout.count, case.layout.size)))
        if not case.record.composed and case.settings.get("training", True) and (lost & ~inside).any():
            return "reaches groups that do not hold it"
        if not (np.isnan(poison) or case.record.composed):
            return ""
    return "" if lost.any() else "leaves y finite everywhere"


def misread_layouts(subject: Subject, cases: Sequence[Case]) -> str:
    """Which results are wrong for which memory layout of which input; empty if none is."""
    if len(chosen := _chosen(cases)) < _CASES:
        return ""
    names = [name for name in chosen[0].inputs if "." not in name]
    return "; ".join(words for name in (*names, "g") for words in _misread_layouts_of(subject, name, cases))


def _misread_layouts_of(subject: Subject, name: str, cases: Sequence[Case]) -> Iterator[str]:
    """What is wrong in which layouts of one input, or of the cotangent, and in which all is right."""
    told: dict[str, list[frozenset[str]]] = {}
    for layout in subject.target.layouts:
        fitting = [one for one in cases if one.whole and _fits(one.g if name == "g" else one.inputs[name], layout)]
        seen = (_wrong(subject, case, name, layout) for case in _chosen(fitting))
        told[layout] = [wrong for wrong in seen if wrong is not None]
    plain = frozenset[str]().union(*told.pop("contiguous", ()))
    tried = {layout: [one - plain for one in wrong] for layout, wrong in told.items() if wrong}
    bad = {layout: frozenset.intersection(*wrong) for layout, wrong in tried.items()}
    fine = [layout for layout, wrong in tried.items() if not any(wrong)]
    for results in dict.fromkeys(value for value in bad.values() if value):
        layouts = [layout for layout in bad if bad[layout] == results]
        failures = [one for one in results if one.startswith(_FAILING)]
        what, link = (f"{failures[0]},", "returns") if failures else (f"{with_verb(sorted(results))} wrong", "right")
        yield f"{what} where {'the cotangent' if name == 'g' else name} {_where(layouts, fine, link)}"


def _where(layouts: Sequence[str], fine: Sequence[str], link: str) -> str:
    """The layouts in words, and those in which all is right, if they are few."""
    if len(layouts) > _FEW and {*fine} <= _IN_ONE_PIECE:
        return f"is not contiguous in memory, and {link} where it is"
    others = fine if len(fine) <= _FEW else ["in most other layouts"]
    right = " or ".join(["contiguous", *(_LAYOUTS.get(one, one) for one in others)])
    return f"is {' or '.join(_LAYOUTS.get(one, one) for one in layouts)}, and {link} where it is {right}"


def _fits(array: np.ndarray | None, layout: str) -> bool:
    return array is not None and (layout not in LAYOUTS or why_not(array, layout) is None)


def _wrong(subject: Subject, case: Case, name: str, layout: str) -> frozenset[str] | None:
    """The results of a call that are wrong, or how it fails; None if it cannot be made in this layout."""
    subject.target.begin()
    try:
        if name == "g":
            if subject.forward_only:
                return None
            results = subject.named_gradients(subject.start(case).pull(case.g, layout).gradients(), case)
        else:
            results = subject.start(case, layouts={name: layout}).outputs()
    except (LayoutNotApplicable, Unsupported):
        return None
    except TargetRaised as raised:
        return frozenset([f"{_FAILING} raises {raised.words}"])
    except CALL_FAILED:
        return frozenset([f"{_FAILING} fails"])
    return frozenset(result for result, got in results.items() if not is_right(subject, case, result, got))
