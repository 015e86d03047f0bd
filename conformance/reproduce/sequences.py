"""The calls that a script may make to show a violation."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from ..judging.call_log import LoggedCall
from ..judging.verdicts import Counterexample


def sequences(found: Counterexample) -> Iterator[tuple[LoggedCall, ...]]:
    """
    The calls that may show a violation, the shortest sequence first.

    First the one call; then all calls of the check; then these after the plain call of the case and its gradients. A
    check does not repeat the plain call if another check has made it.
    """
    calls = found.calls if found.shown_by is None else found.calls[: found.shown_by + 1]
    if calls and calls[-1].of is None and not calls[-1].does.startswith("call with"):
        yield calls[-1:]
    elif calls and calls[-1].of is not None and calls[calls[-1].of].of is None:
        yield calls[calls[-1].of], attrs.evolve(calls[-1], of=0)
    if len(calls) > 1:
        yield calls
    plain = _plain(found)
    yield (*plain, *(one if one.of is None else attrs.evolve(one, of=one.of + len(plain)) for one in calls))


def _plain(found: Counterexample) -> tuple[LoggedCall, ...]:
    """The plain call of the case, and its gradients if these are wrong."""
    case = found.case
    inputs, g = (found.arguments, found.inputs["g"]) if case is None else (case.inputs, case.g)
    settings, parts = (found.settings, found.parts) if case is None else (case.settings, case.parts)
    call = LoggedCall("call", inputs, settings, parts)
    if found.output == "gradient" or found.output.removeprefix("d") in inputs:
        return (call, attrs.evolve(call, does="vjp", g=g))
    return (call,)
