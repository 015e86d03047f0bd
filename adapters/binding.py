"""Bindings: how to call a target's implementation of each operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..spec.conventions import validate
from ..spec.errors import SourceLine, choices
from ..spec.operators import OPERATORS, Operator
from ..spec.parts import Part, Parts
from .fixed import FixedSettings
from .known import KnownViolation

#: The derivatives that an author may define beside a function NAME, as NAME_vjp and so on.
DERIVATIVES: tuple[str, ...] = ("vjp", "jvp", "vjp_vjp", "jvp_vjp", "vjp_jvp", "jvp_jvp")

#: The derivatives that nest forward mode with another derivative: the one taken last is named first.
NESTED: Mapping[str, str] = {
    "jvp_vjp": "forward mode over reverse mode",
    "vjp_jvp": "reverse mode over forward mode",
    "jvp_jvp": "forward mode over forward mode",
}


def differentiable(operator: str, inputs: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of the given inputs that have a gradient: arguments first, then the parts' leaves."""
    leaves = [name for name in inputs if "." in name and not name.endswith((".mask", ".replayed"))]
    return tuple(name for name in (*OPERATORS[operator].differentiable, *leaves) if inputs.get(name) is not None)


def idle(operator: str, parts: Parts) -> tuple[str, ...]:
    """
    The names of the arguments that y does not depend on. Their gradient is zero, and a target may return none.

    These are gamma and beta of pre_norm if the sublayer ignores its input, and the logits of mhc with one branch.
    """
    sublayer, branches = parts.get("sublayer"), parts.get("branches")
    if OPERATORS[operator].normalises_handed and isinstance(sublayer, Part) and sublayer.constant:
        return ("gamma", "beta")
    if OPERATORS[operator].has_branches and isinstance(branches, tuple) and len(branches) == 1:
        return ("logits",)
    return ()


def accepts_all(shape: tuple[int, ...], settings: Mapping[str, Any]) -> str | None:
    """Default for ``accepts``: every call."""
    return None


@dataclass(frozen=True)
class Binding:
    """How to call one target's implementation of one operator."""

    #: One of OPERATORS.
    operator: str
    #: The implementation's name, as its users write it: "torch.nn.LayerNorm".
    name: str
    #: The canonical call on the framework's own tensors; with has_modes it takes ``mode`` too.
    call: Callable[..., Any]
    #: The canonical derivatives "vjp", "jvp", "vjp_vjp" ..., if the framework does not differentiate by itself.
    derivatives: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    #: The conventions it follows that differ from the normative ones.
    conventions: Mapping[str, str] = field(default_factory=dict)
    #: The conventions it follows on one kind of device only: {"cuda": {"storage": "H1"}}.
    conventions_on: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    #: For each of these conventions, the reason for the difference and the source.
    reasons: Mapping[str, str] = field(default_factory=dict)
    #: Its known violations; they are reported as "deviates".
    known_violations: tuple[KnownViolation, ...] = ()
    #: (x's shape, settings) -> None, or the reason why the binding declines such a call.
    accepts: Callable[[tuple[int, ...], Mapping[str, Any]], str | None] = accepts_all
    #: Called as prepare(mode=..., wrt=...) before each call and each vjp, for a function that depends on mode or wrt
    #: and whose framework cannot tell it; None for every real binding.
    prepare: Callable[..., None] | None = None
    #: Whether its behaviour depends on the mode, as that of a module with train() and eval() does.
    has_modes: bool = False
    #: Imports the modules that its first call needs, if that takes seconds.
    load: Callable[[], object] | None = None
    #: The operator's optional keyword arguments that it does not take.
    unsupported_keywords: frozenset[str] = frozenset()
    #: For a layer that has its own sublayers: seams(x, gamma, beta, g, eps=..., seed=...) runs the layer and its
    #: backward pass, and returns for each block the record around its sublayer (see adapters/seam.py).
    seams: Callable[..., list[dict[str, Any]]] | None = None
    #: The canonical call without eps and momentum: the framework's defaults apply. None if there are no defaults.
    defaults: Callable[..., Any] | None = None
    #: The settings and sizes that no call can vary: its cases are drawn with these values.
    fixed: FixedSettings = field(default_factory=FixedSettings)
    #: Whether it holds its parameters under names of its own, as a layer does.
    names_parameters: bool = False
    #: For a model: the paths of the layers this binding stands for, of which only the first is called. Else empty.
    layers: tuple[str, ...] = ()
    #: The line that defines a user's own function or layer; None for a framework's.
    where: SourceLine | None = None

    def on(self, device: str) -> Binding:
        """The binding on a device ("cuda:0"): its conventions include those it follows only there."""
        more = self.conventions_on.get(device.partition(":")[0])
        return replace(self, conventions={**self.conventions, **more}) if more else self

    @property
    def record(self) -> Operator:
        """The record of its operator."""
        return OPERATORS[self.operator]

    def __post_init__(self) -> None:
        if self.operator not in OPERATORS:
            raise ValueError(f"no operator is called {self.operator!r}{choices(self.operator, OPERATORS)}")
        for conventions in (self.conventions, *self.conventions_on.values()):
            validate(conventions)
