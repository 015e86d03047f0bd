"""A violation that a layer of the framework shows too is told with that layer, its reason and its sources."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import attrs
import numpy as np
import pytest

from normspec.adapters.binding import Binding
from normspec.adapters.known import KnownViolation
from normspec.adapters.target import Target
from normspec.conformance.judging.verdicts import Upstream
from normspec.conformance.reporting.failures import ShownViolation, detail_rows
from normspec.conformance.reporting.in_short import in_one_line

from .runs import FAULT, VARIANT, result, run, specimen

KNOWN = KnownViolation("LN-F3", "it adds eps outside of the root", ("https://example.org",), ("value",))


@dataclass(frozen=True)
class Function(Target):
    """A function whose framework has layers of its own."""

    layers: tuple[Binding, ...] = ()

    def upstream(self, operator: str) -> tuple[Binding, ...]:
        assert operator == "layer_norm"
        return self.layers


def judged(name: str, layer: str, *known: KnownViolation, requirement: str = "LN-F3", call: Any = None) -> Any:
    """
    The result of a function with one mistake, whose framework has a layer with one.

    With ``call``, it stands in place of both.
    """
    own, other = (specimen({**FAULT, **VARIANT}[one]) for one in (name, layer))
    (binding,) = other.bindings
    layers = (replace(binding, name="framework.LayerNorm", known_violations=known),)
    bindings = own.bindings
    if call is not None:
        bindings, layers = ([replace(one, call=call) for one in several] for several in (bindings, layers))
    target = Function("mine", own.framework, own.version, own.bridge, tuple(bindings), layers=tuple(layers))
    return result(run(target, requirements={requirement}, explain=True), requirement)


def test_a_layer_that_is_known_for_the_same_wrong_value_is_named():
    """With the reason and the sources of its entry."""
    found = judged("ln-eps-on-std", "ln-eps-on-std", KNOWN)
    assert found.upstream == Upstream("framework.LayerNorm", KNOWN.reason, KNOWN.links)


@pytest.mark.parametrize(
    ("layer", "known"),
    [
        ("ln-eps-max", [KNOWN]),
        ("ln-eps-on-std", [replace(KNOWN, requirement="LN-F1")]),
        ("ln-eps-on-std", [replace(KNOWN, dtypes=("float64",))]),
        ("ln-eps-on-std", []),
    ],
    ids=["another value", "another requirement", "another dtype", "not known"],
)
def test_a_layer_that_does_something_else_is_not_named(layer: str, known: list[KnownViolation]):
    """The layer is called on the smallest case; it has to return the same there, and to be known for it."""
    assert judged("ln-eps-on-std", layer, *known).upstream is None


def test_a_call_that_must_raise_tells_no_mistake_from_another():
    """Both broadcast a gamma of one element, and no number says that they do it alike."""
    known = KnownViolation("CM-A1", "it broadcasts", failures=("accepts",))
    found = judged(*["ln-parameters-broadcast"] * 2, known, requirement="CM-A1")
    assert found.verdict.is_violation
    assert found.upstream is None


def test_nan_tells_no_mistake_from_another():
    """Two functions that return NaN may do so for two reasons."""

    def lost(x, gamma, beta, **settings):
        return np.full_like(x, np.nan)

    known = replace(KNOWN, requirement="LN-F1", failures=())
    found = judged(*["ln-two-pass"] * 2, known, requirement="LN-F1", call=lost)
    assert found.verdict.is_violation
    assert found.upstream is None


def test_the_same_exception_is_told_wherever_it_ends_a_call():
    """The entry is about a valid call, and the same call shows other requirements too."""

    def limited(x, gamma, beta, *, eps, axes):
        if x.size > 64:
            raise ValueError("it is too large")
        return sound(x, gamma, beta, eps=eps, axes=axes)

    sound = specimen(VARIANT["ln-two-pass"]).bindings[0].call
    known = KnownViolation("CM-T1", "it has a limit", failures=("raises",))
    found = judged(*["ln-two-pass"] * 2, known, requirement="CM-S1", call=limited)
    assert found.verdict.is_violation
    assert found.upstream == Upstream("framework.LayerNorm", "it has a limit", ())


def test_the_report_tells_the_layer_in_each_of_its_forms():
    """The text in which dtypes it is so, and one line its name."""
    found = judged(*["ln-eps-on-std"] * 2, KNOWN)
    results = (found, attrs.evolve(found, dtype="float64", upstream=None))
    words = dict(detail_rows(ShownViolation("LN-F3", results), {}))
    assert words["upstream"] == (
        "framework.LayerNorm does the same in float32: it adds eps outside of the root; https://example.org"
    )
    assert in_one_line(found).endswith("; framework.LayerNorm does the same")
