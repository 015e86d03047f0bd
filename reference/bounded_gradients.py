"""Reverse mode over a tape of bounded numbers; the gradients are bounded numbers too."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .bounded import Array, Number


def gradients(
    outputs: Sequence[tuple[Number, Number]], inputs: Sequence[Number], *, differentiable: bool
) -> list[Number | None]:
    """
    Return the gradients of sum <output, seed> with respect to the inputs, in reverse mode.

    A gradient is None where no output depends on the input. `outputs` are pairs (output, seed). Gradients that are
    `differentiable` keep what they were computed from.
    """
    tape = outputs[0][0].tape
    numbers = ancestors([output for output, _ in outputs])
    wanted, depends = {number.index for number in inputs}, set[int]()
    for number in numbers:
        if number.index in wanted or any(parent.index in depends for parent, _ in number.parents):
            depends.add(number.index)
    arriving: dict[int, list[Number]] = {}
    for output, seed in outputs:
        arriving.setdefault(output.index, []).append(seed)
    found: dict[int, Number] = {}
    before, tape.recording = tape.rounding, differentiable
    for number in reversed(numbers):
        terms = arriving.pop(number.index, None)
        if terms is None or number.index not in depends:
            continue
        tape.rounding = number.rounding
        gradient = accumulated(terms, number)
        if number.index in wanted:
            found[number.index] = gradient
        for parent, pull in number.parents:
            if parent.index in depends:
                arriving.setdefault(parent.index, []).append(pull(gradient))
    tape.rounding, tape.recording = before, True
    return [found.get(number.index) for number in inputs]


def ancestors(outputs: Sequence[Number]) -> list[Number]:
    """The outputs, and all numbers that they were computed from, each after its parents."""
    found, open_ends = {number.index: number for number in outputs}, list(outputs)
    while open_ends:
        for parent, _ in open_ends.pop().parents:
            if parent.index not in found:
                found[parent.index] = parent
                open_ends.append(parent)
    return [found[index] for index in sorted(found)]


def accumulated(terms: Sequence[Number], at: Number) -> Number:
    """The gradient of a number with several uses: its terms and `extra_terms` more, added in any order."""
    # A term computed in a wider format may be rounded to this number's format before the addition.
    wider = sum(term.rounding.u < at.rounding.u for term in terms)
    if len(terms) == 1 and not (wider and at.extra_terms):
        return terms[0]
    value, magnitude, error, product_bound = (
        terms[0].value,
        terms[0].magnitude,
        terms[0].error,
        _in_format(terms[0], at),
    )
    size = _formed(terms[0], at)
    for term in terms[1:]:
        value, magnitude, error = value + term.value, magnitude + term.magnitude, error + term.error
        product_bound, size = product_bound + _in_format(term, at), size + _formed(term, at)
    if at.extra_terms:  # an algorithm adds other terms, which may cancel among themselves
        size = magnitude
    error = error + (len(terms) - 1 + at.extra_terms + (wider > 0)) * at.rounding.u * size
    error = (
        error + (wider + at.extra_terms) * at.rounding.eta + 3 * (len(terms) - 1 + at.extra_terms) * at.rounding.flush
    )
    return Number(at.tape, value, magnitude, error, product_bound, tuple((term, lambda g: g) for term in terms))


def _formed(term: Number, at: Number) -> Array:
    """Size of a term when it is rounded to `at`'s format; a term formed in a wider format has cancelled by then."""
    return np.abs(term.as_float64) + term.error if term.rounding.u < at.rounding.u else term.magnitude


def _in_format(term: Number, at: Number) -> Array:
    """Product bound of a term in `at`'s arithmetic; recomputed from the value if that has the smaller range."""
    if term.rounding.largest <= at.rounding.largest:
        return term.product_bound
    return np.where(
        term.product_bound < term.rounding.largest / 4, np.maximum(term.magnitude + term.error, 1.0), np.inf
    )
