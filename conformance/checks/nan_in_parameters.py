"""
A NaN in gamma, beta, a running statistic or the cotangent shows in every result that depends on it.

So does an infinity in gamma, beta or the cotangent of a normalisation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ...reference.double_double import DD
from ..cases.case import Case
from ..judging.findings import Finding, place_of_largest
from ..judging.subject import Subject
from .derived import with_value
from .registry import check, laws_in_inference, recipes
from .showing import judge_shown

#: The inputs besides x, the logits and the leaves of parts; CM-N3 and CM-N5 are about those three.
_PARAMETERS = ("gamma", "beta", "running_mean", "running_var")


def _depends_on_most_values(case: Case) -> bool:
    """Cases in which most results depend on most values: the parts of a composed operator must read x."""
    return not case.record.composed or recipes("linear", "chain", "mixed")(case)


def _largest(values: np.ndarray) -> tuple[int, ...]:
    """The place of the largest magnitude: a factor there is not multiplied by 0."""
    return place_of_largest(np.abs(values.astype(np.float64)))


def _exact(subject: Subject, case: Case, *, gradients: bool) -> Mapping[str, DD]:
    """The exact results of a case by name: the outputs, and on request the gradients."""
    truth = subject.truth(case)
    found: dict[str, Any] = dict(truth.outputs())
    if gradients:
        found |= {name: value for name, value in truth.gradients().items() if value is not None}
    return found


def _dependent(subject: Subject, case: Case, moved: Case, *, gradients: bool) -> dict[str, np.ndarray]:
    """
    Where the results of a case depend on the number that differs in ``moved``.

    Only a change beyond the envelope counts: a sound algorithm may round a factor to 0 and then skip the product.
    """
    before, after = (_exact(subject, one, gradients=gradients) for one in (case, moved))
    masks = {}
    for name, value in before.items():
        change = np.abs((after[name].hi - value.hi) + (after[name].lo - value.lo))
        masks[name] = change > subject.bound(case, name)(False)
    return {name: mask for name, mask in masks.items() if mask.any()}


def _shown(
    subject: Subject, case: Case, name: str, place: tuple[int, ...], masks: Mapping[str, np.ndarray]
) -> Iterator[Finding]:
    """
    Judge whether a NaN in a place of an input, or of the cotangent ("g"), makes the results NaN where they must be.

    An infinity of the sign of what it replaces must leave them not finite. A running variance may be infinite.
    """
    given = case.g if name == "g" else case.given(name)
    what = "the cotangent" if name == "g" else name
    infinite = not case.record.composed and name not in case.record.statistics
    for poison in (np.nan, *((np.copysign(np.inf, float(given[place])),) if infinite else ())):
        bad = case.replace(**{name: with_value(given, place, poison)})
        note, nan = f"{'a NaN' if np.isnan(poison) else poison} in {what} does not show here", bool(np.isnan(poison))
        outputs = bad.record.outputs
        if any(one in outputs for one in masks):
            for where_called, found in subject.outputs_in_modes(bad):
                yield from judge_shown(bad, found, masks, f"{note}{where_called}", nan=nan)
        if any(one not in outputs for one in masks):
            tracked, gradients = subject.tracked(bad)
            yield from judge_shown(bad, gradients, masks, note, nan=nan)
            yield from judge_shown(bad, tracked, masks, f"{note} where gradients are tracked", nan=nan)


@check("CM-N6", every=laws_in_inference, when=_depends_on_most_values, raising="violates")
def parameter_shows(subject: Subject, case: Case) -> Iterator[Finding]:
    """A NaN in gamma, beta or a running statistic shows in every output and gradient that depends on it."""
    _ = subject.observe(case).outputs
    lacking = None if subject.forward_only else subject.lacking_gradients(case)
    gradients = not subject.forward_only and lacking is None
    for name in _PARAMETERS:
        given = case.inputs.get(name)
        if given is None:
            continue
        place = _largest(given)
        # Half of it is a different valid number for every parameter, a variance included; 0 has no half and becomes 1.
        moved = case.replace(**{name: with_value(given, place, given[place] / 2 if given[place] else 1)})
        yield from _shown(subject, case, name, place, _dependent(subject, case, moved, gradients=gradients))
    if lacking is not None:
        raise lacking


@check("CM-N7", every=laws_in_inference, when=_depends_on_most_values, raising="violates", gradient=True)
def cotangent_shows(subject: Subject, case: Case) -> Iterator[Finding]:
    """A NaN in the cotangent shows in every gradient that depends on it."""
    _ = subject.observe(case).gradients
    place = _largest(case.g)
    masks = _dependent(subject, case, case.replace(g=with_value(case.g, place, case.g[place] / 2)), gradients=True)
    gradients = {name: mask for name, mask in masks.items() if name not in case.record.outputs}
    yield from _shown(subject, case, "g", place, gradients)
