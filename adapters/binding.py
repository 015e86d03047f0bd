"""Bindings: how a target spells each operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..spec.conventions import validate
from ..spec.errors import Where, choices
from ..spec.operators import OPERATORS, Operator
from ..spec.parts import Part, Parts
from .fixed import Fixed
from .known import KnownViolation

#: The derivatives that a function's author may supply beside it, as NAME_vjp and so on.
DERIVATIVES: tuple[str, ...] = ("vjp", "jvp", "vjp_vjp", "jvp_vjp", "vjp_jvp", "jvp_jvp")

#: Those of them that nest forward mode with another: the derivative that is taken last is named first.
NESTED: Mapping[str, str] = {
    "jvp_vjp": "forward mode over reverse mode",
    "vjp_jvp": "reverse mode over forward mode",
    "jvp_jvp": "forward mode over forward mode",
}


def differentiable(operator: str, inputs: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of the inputs that are given and have a gradient: arguments first, then the parts' leaves."""
    leaves = [name for name in inputs if "." in name and not name.endswith((".mask", ".replayed"))]
    return tuple(name for name in (*OPERATORS[operator].differentiable, *leaves) if inputs.get(name) is not None)


def idle(operator: str, parts: Parts) -> tuple[str, ...]:
    """
    The names of the arguments that y does not depend on, whose gradient is zero, or need not be there at all.

    gamma and beta of pre_norm where the sublayer ignores what it is handed; the logits of mhc's single branch.
    """
    sublayer, branches = parts.get("sublayer"), parts.get("branches")
    if OPERATORS[operator].normalises_handed and isinstance(sublayer, Part) and sublayer.constant:
        return ("gamma", "beta")
    if OPERATORS[operator].has_branches and isinstance(branches, tuple) and len(branches) == 1:
        return ("logits",)
    return ()


def accepts_all(shape: tuple[int, ...], settings: Mapping[str, Any]) -> str | None:
    """The default of ``accepts``: every call is taken."""
    return None


@dataclass(frozen=True)
class Binding:
    """How one target spells one operator."""

    #: One of OPERATORS.
    operator: str
    #: What is called, as its users write it: "torch.nn.LayerNorm".
    name: str
    #: The canonical call on the framework's own tensors; with has_modes it takes ``mode`` as well.
    call: Callable[..., Any]
    #: "vjp", "jvp", "vjp_vjp": the canonical derivatives, where the framework does not differentiate by itself.
    derivatives: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    #: The conventions it follows, where they are not the normative ones.
    conventions: Mapping[str, str] = field(default_factory=dict)
    #: Those that it follows on one kind of device alone: {"cuda": {"storage": "H1"}}.
    conventions_on: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    #: For each of these conventions, why it differs and where that is written.
    reasons: Mapping[str, str] = field(default_factory=dict)
    #: What it is known to violate, where and how: reported as "deviates".
    known_violations: tuple[KnownViolation, ...] = ()
    #: (x's shape, settings) -> None, or the reason why this binding does not take such a call.
    accepts: Callable[[tuple[int, ...], Mapping[str, Any]], str | None] = accepts_all
    #: Called as prepare(mode=..., wrt=...) before each call and each vjp, for a function that depends on these
    #: and whose framework has no other way to say so; None for every real binding.
    prepare: Callable[..., None] | None = None
    #: Whether it behaves by mode, as a module with train() and eval() does.
    has_modes: bool = False
    #: Imports what its first call would, where that takes seconds.
    load: Callable[[], object] | None = None
    #: Those of OPTIONAL's keyword arguments that it does not take.
    unsupported_keywords: frozenset[str] = frozenset()
    #: For a layer that brings its own sublayers: seams(x, gamma, beta, g, eps=..., seed=...) runs it and its backward
    #: pass, and returns for each of its blocks what was recorded around the sublayer (see adapters/seam.py).
    seams: Callable[..., list[dict[str, Any]]] | None = None
    #: The canonical call without eps and momentum, which are then the framework's own; None where it has none.
    defaults: Callable[..., Any] | None = None
    #: What no call can vary: its cases are drawn with these settings and sizes.
    fixed: Fixed = field(default_factory=Fixed)
    #: The paths of the layers of a model that it stands for, the first of which is called; none for any other target.
    layers: tuple[str, ...] = ()
    #: The line that defines it, of a function or layer of the user's own; None for a framework's.
    where: Where | None = None

    def on(self, device: str) -> Binding:
        """The binding as it is on a device ("cuda:0"): what it follows there is among its conventions."""
        more = self.conventions_on.get(device.partition(":")[0])
        return replace(self, conventions={**self.conventions, **more}) if more else self

    @property
    def record(self) -> Operator:
        """What its operator is."""
        return OPERATORS[self.operator]

    def __post_init__(self) -> None:
        if self.operator not in OPERATORS:
            raise ValueError(f"no operator is called {self.operator!r}{choices(self.operator, OPERATORS)}")
        for conventions in (self.conventions, *self.conventions_on.values()):
            validate(conventions)
