"""A violation that a layer of the framework shows too is told with that layer, its reason and its sources."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest

from normspec.adapters.binding import Binding
from normspec.adapters.known import KnownViolation
from normspec.adapters.target import Target
from normspec.conformance.judging.verdicts import Upstream

from .runs import FAULT, result, run, specimen

KNOWN = KnownViolation("LN-F3", "it adds eps outside of the root", ("https://example.org",), ("value",))


@dataclass(frozen=True)
class Function(Target):
    """A function whose framework has layers of its own."""

    layers: tuple[Binding, ...] = ()

    def upstream(self, operator: str) -> tuple[Binding, ...]:
        assert operator == "layer_norm"
        return self.layers


def judged(name: str, layer: str, *known: KnownViolation) -> Any:
    """The result on LN-F3 of a function with one mistake, whose framework has a layer with one."""
    own, (binding,) = specimen(FAULT[name]), specimen(FAULT[layer]).bindings
    layers = (replace(binding, name="framework.LayerNorm", known_violations=known),)
    target = Function("mine", own.framework, own.version, own.bridge, own.bindings, layers=layers)
    return result(run(target, requirements={"LN-F3"}, explain=True), "LN-F3")


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
