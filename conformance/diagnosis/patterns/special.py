"""Special values and memory layouts that a target misreads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ....spec.errors import CALL_FAILED, LayoutNotApplicable, Unsupported
from ...cases.case import Case
from ...judging.subject import Subject
from .memory import is_right

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
    layouts = [one for one in subject.target.layouts if one != "contiguous"]
    chosen = _chosen(cases)
    if len(chosen) < _CASES:
        return ""
    found = []
    names = [name for name in chosen[0].inputs if "." not in name]
    for name in (*names, "g"):
        plain = {result for case in chosen for result in _wrong(subject, case, name, "contiguous")}
        told = [{one: frozenset(_wrong(subject, case, name, one)) - plain for one in layouts} for case in chosen]
        bad = {layout: frozenset.intersection(*(one[layout] for one in told)) for layout in layouts}
        for results in dict.fromkeys(value for value in bad.values() if value):
            where = [_LAYOUTS.get(layout, layout) for layout in layouts if bad[layout] == results]
            fine = [_LAYOUTS.get(layout, layout) for layout in layouts if not any(one[layout] for one in told)]
            verb, input_name = "is" if len(results) == 1 else "are", "the cotangent" if name == "g" else name
            right = f", and right where it is {' or '.join(['contiguous', *fine])}"
            found.append(
                f"{' and '.join(sorted(results))} {verb} wrong where {input_name} is {' or '.join(where)}{right}"
            )
    return "; ".join(found)


def _wrong(subject: Subject, case: Case, name: str, layout: str) -> Iterator[str]:
    subject.target.begin()
    try:
        if name == "g":
            if subject.forward_only:
                return
            results = subject.named_gradients(subject.start(case).pull(case.g, layout).gradients(), case)
        else:
            results = subject.start(case, layouts={name: layout}).outputs()
    except (LayoutNotApplicable, Unsupported):
        return
    except CALL_FAILED:
        yield "the call"
        return
    for result, got in results.items():
        if not is_right(subject, case, result, got):
            yield result
