"""One counterexample as rows of a label and a text: the target's input, what is wrong, and which call shows it."""

from __future__ import annotations

from itertools import groupby

import numpy as np

from ..judging.call_log import LoggedCall
from ..judging.verdicts import Counterexample
from ..replay.writing import memory, same_values
from .numbers import array_text, decimal, element_name, hex_float, ratio_text, setting_text

Row = tuple[str, str]

#: The most runs of equal calls that are listed; with more, only the number of calls is shown.
_CALLS = 6

#: The names of the directions of a derivative.
_DIRECTIONS = {"tangents": "tangent", "tangents_again": "2nd tangent", "cotangents": "cotangent"}


def input_rows(case: Counterexample) -> list[Row]:
    """The target's input: arrays, the cotangent if a gradient was taken, settings, parts and directions."""
    call = case.call
    layouts = {} if call is None else call.layouts
    shown = {name: array for name, array in case.inputs.items() if name != "g" or call is None or call.g is not None}
    rows = [(name, array_text(array) + _laid(array, layouts.get(name, ""))) for name, array in shown.items()]
    rows += [(name, setting_text(value)) for name, value in {**case.settings, **case.parts}.items()]
    for field, word in _DIRECTIONS.items() if call is not None else ():
        given = getattr(call, field)
        rows += [(f"{word} {name}", array_text(array)) for name, array in given.items() if array is not None]
    return rows


def _laid(array: np.ndarray | None, layout: str) -> str:
    """How an array lies in memory; empty if row after row."""
    if array is None or not layout:
        return ""
    found = memory(array, layout)
    beginning = f" from element {found['offset']} on" if found["offset"] else ""
    return f", {layout} in memory: strides {tuple(found['strides'])}{beginning}"


def wrong_rows(case: Counterexample) -> list[Row]:
    """What is wrong, with its numbers, or with the reason if the numbers do not tell."""
    rows = [("wrong", element_name(case.output, case.index))]
    must = "expected" if case.exact is None else "implied"
    numbers = {"exact": case.exact, must: case.expected, "got": case.got, "envelope": case.envelope}
    given = [value for label, value in numbers.items() if value is not None and label != "envelope"]
    for label, value in numbers.items():
        if value is not None:
            rows.append((label, f"{decimal(value, *given)}   {hex_float(value)}"))
    if case.multiple is not None:
        rows.append(("error", f"{ratio_text(case.multiple)} envelopes"))
    elif case.why not in ("", case.note):
        rows.append(("why", case.why))
    return rows


def provocation_rows(case: Counterexample) -> list[Row]:
    """What was done to provoke it, the line that raised, and which of the calls shows it."""
    rows = [("how", case.note)] if case.note else []
    if where := raised_at(case):
        rows.append(("at", where))
    if case.call is not None and not _is_plain(case):
        told = [_in_words(call, case) for call in case.calls]
        runs = [(words, len(list(alike))) for words, alike in groupby(told)]
        listed = ", ".join(words + _so_often(count) for words, count in runs)
        place = len(told) if case.shown_by is None else case.shown_by + 1
        counted = f"the last of {len(told)} calls" if place == len(told) else f"number {place} of {len(told)} calls"
        rows.append(("call", f"{counted}: {listed}" if len(runs) <= _CALLS else counted))
    return rows


def raised_at(case: Counterexample) -> str:
    """The line of the user's own file that raised; empty if none did."""
    where = None if case.raised is None else case.raised.where
    return "" if where is None else where.with_source


def _is_plain(case: Counterexample) -> bool:
    """Whether every call of the check has the same input and is an ordinary single call."""
    return all(
        same_values(call.inputs, case.calls[0].inputs)
        and call.times == 1
        and not call.layouts
        and call.does in ("call", "vjp")
        for call in case.calls[:-1]
    )


def _in_words(call: LoggedCall, case: Counterexample) -> str:
    words = call.does + _so_often(call.times)
    if call.layouts:
        words += " with " + " and ".join(f"{name} {layout}" for name, layout in call.layouts.items())
    shown = case.call
    assert shown is not None
    if call.of is None and not same_values(call.inputs, shown.inputs):
        words += " with other values"
    return words


def _so_often(count: int) -> str:
    return {1: "", 2: " (twice)"}.get(count, f" ({count} times)")
