"""Wrong numbers in one result: it differs from the exact value, or from the one without a NaN."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from ...reference.formats import FORMATS
from ..judging.call_log import LoggedCall
from ..judging.findings import Elements, WorstElement
from ..reporting.numbers import decimal, element_name
from .assertion_lines import Assertion, is_equal
from .probed_steps import ProbedSteps
from .spelling import literal


def lost_nan(probed: ProbedSteps) -> Assertion | None:
    """A number where NaN belongs."""
    if probed.found.expected is None or not math.isnan(probed.found.expected):
        return None
    step = probed.last_step
    variable = step.results.get(probed.found.output, "")
    handed = [one for one in (*step.call.inputs.values(), step.call.g) if one is not None]
    nan = any(np.isnan(one.astype(np.float64)).any() for one in handed)  # an infinity may stay one
    must, test = ("be NaN", "np.isnan(got)") if nan else ("not be finite", "not np.isfinite(got)")
    for got in probed.received(probed.last) if variable else ():
        if math.isfinite(got) or (nan and not math.isnan(got)):
            element = element_name(variable, probed.found.index)
            lines = (f"got = float({element})", f"assert {test}, f{f'{element} is {{got}}, and must {must}'!r}")
            return Assertion(probed.last, lines, f"{element} must {must}, and is {decimal(got)}")
    return None


def value(probed: ProbedSteps) -> Assertion | None:
    """An output or a gradient with a wrong value."""
    shown = [probed.last] if probed.found.output in probed.last_step.results else []
    for place in [*shown, *(one for one in range(probed.last, -1, -1) if one not in shown)]:
        step = probed.steps[place]
        if step.again is not None:
            continue
        wrong = dict(_violations(probed, place))
        for name in sorted(wrong, key=lambda one: one != probed.found.output):
            made = _value(probed, place, step.results[name], *_shown(probed, place, name, wrong[name]))
            if made is not None:
                return made
    return None


def _violations(probed: ProbedSteps, place: int) -> Iterator[tuple[str, WorstElement]]:
    step = probed.steps[place]
    for one in probed.happened[place]:
        seen = {name: one.seen[name] for name in step.results if name in one.seen}
        yield from probed.judge.violations(step.call, seen)


def _shown(
    probed: ProbedSteps, place: int, name: str, worst: WorstElement
) -> tuple[tuple[int, ...], float, float, float]:
    """The element of the counterexample, if it is wrong by itself; otherwise the one that is farthest off."""
    elements = worst.elements
    if place == probed.last and name == probed.found.output and elements is not None and probed.found.index:
        index = probed.found.index
        if len(index) == elements.ratio.ndim and elements.ratio[index] > 1:
            return index, *_numbers(elements, index)
    return worst.index, worst.expected, worst.got, worst.envelope


def _value(
    probed: ProbedSteps, place: int, variable: str, index: tuple[int, ...], expected: float, got: float, envelope: float
) -> Assertion | None:
    """An assertion that an element lies within the envelope; None if it is near the largest number of its dtype."""
    stored = FORMATS[probed.judge.subject.dtype]
    if abs(expected) + envelope >= stored.largest * (1 - 4 * stored.unit_roundoff):
        return None
    element = element_name(variable, index)
    lines = is_equal(element, literal(expected), envelope)
    within = f" within {decimal(envelope)}" if envelope else ""
    words = f"{element} must be {decimal(expected, got)}{within}, and is {decimal(got, expected)}"
    return Assertion(place, lines, words)


def derived(probed: ProbedSteps) -> Assertion | None:
    """A tangent, or a derivative of a derivative. Its exact value is in the counterexample."""
    found, variable = probed.found, probed.last_step.results.get(probed.found.output)
    if variable is None or " " not in found.output or None in (found.expected, found.got, found.envelope):
        return None
    assert found.expected is not None and found.envelope is not None
    for got in probed.received(probed.last):
        if not abs(got - found.expected) <= found.envelope:
            return _value(probed, probed.last, variable, found.index, found.expected, got, found.envelope)
    return None


def given(probed: ProbedSteps) -> Assertion | None:
    """A result with a known value: zero, an input, or an exact value out of range."""
    found, step = probed.found, probed.last_step
    variable = step.results.get(found.output)
    if variable is None or found.expected is None or found.got is None:
        return None
    for got in probed.received(probed.last):
        if got == found.expected or (math.isnan(got) and math.isnan(found.expected)):
            continue
        exact = probed.judge.exact(step.call, found.output, found.index)
        known = exact == found.expected
        if known and found.envelope is not None and not abs(got - found.expected) <= found.envelope:
            return _value(probed, probed.last, variable, found.index, found.expected, got, found.envelope)
        if found.envelope is None and not probed.differing() and (known or exact is None):
            return _value(probed, probed.last, variable, found.index, found.expected, got, 0.0)
    return None


def contained(probed: ProbedSteps) -> Assertion | None:
    """A result that must not be touched by a NaN or infinity elsewhere: it equals the one without it."""
    found, step = probed.found, probed.last_step
    if found.case is None or found.output not in step.results or found.expected is None:
        return None
    handed = [one for one in step.call.inputs.values() if one is not None]
    if all(np.isfinite(one.astype(np.float64)).all() for one in handed):
        return None
    clean = LoggedCall("vjp", found.case.inputs, found.case.settings, found.case.parts, found.case.g)
    for seen in probed.all(probed.last, found.output):
        compared = probed.judge.compared(clean, found.output, seen)
        if compared is None or compared.elements is None or len(found.index) != compared.elements.ratio.ndim:
            continue
        elements, index = compared.elements, found.index
        if elements.ratio[index] > 1:
            return _value(probed, probed.last, step.results[found.output], index, *_numbers(elements, index))
    return None


def _numbers(elements: Elements, index: tuple[int, ...]) -> tuple[float, float, float]:
    """The exact value, the received value and the envelope of one element."""
    return float(elements.expected[index]), float(elements.got[index]), float(elements.envelope[index])
