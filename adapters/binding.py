"""Targets and bindings: what is checked, and how it spells each operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..spec.conventions import validate
from ..spec.errors import choices
from ..spec.operators import OPERATORS
from ..spec.parts import Part, Parts
from .known import KnownViolation

if TYPE_CHECKING:
    from .bridge import Bridge
    from .session import Session
    from .traits import Trait

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
    if operator == "pre_norm" and isinstance(sublayer, Part) and sublayer.constant:
        return ("gamma", "beta")
    if operator == "mhc" and isinstance(branches, tuple) and len(branches) == 1:
        return ("logits",)
    return ()


def accepts_all(shape: tuple[int, ...], settings: Mapping[str, Any]) -> str | None:
    """What a binding accepts that says nothing of it: every call."""
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
    #: For each of these conventions, why it differs and where that is written.
    reasons: Mapping[str, str] = field(default_factory=dict)
    #: What it is known to violate, where and how: reported as "deviates".
    expected: tuple[KnownViolation, ...] = ()
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
    lacking: frozenset[str] = frozenset()
    #: For a layer that brings its own sublayers: seams(x, gamma, beta, g, eps=..., seed=...) runs it and its backward
    #: pass, and returns for each of its blocks what was recorded around the sublayer (see adapters/seam.py).
    seams: Callable[..., list[dict[str, Any]]] | None = None
    #: The canonical call without eps and momentum, which are then the framework's own; None where it has none.
    defaults: Callable[..., Any] | None = None

    def __post_init__(self) -> None:
        if self.operator not in OPERATORS:
            raise ValueError(f"no operator is called {self.operator!r}{choices(self.operator, OPERATORS)}")
        validate(self.conventions)


@dataclass(frozen=True)
class Target:
    """What is checked: a framework's own layers, or one function."""

    #: As the user named it.
    name: str
    #: The framework whose tensors it takes: "numpy", "torch".
    framework: str
    #: The framework's version.
    version: str
    #: The mechanics of that framework.
    bridge: Bridge
    #: Its spellings of the operators.
    bindings: tuple[Binding, ...]
    #: The dtypes to check by default: all of the bridge's, unless it is written for fewer.
    dtypes: tuple[str, ...] = ()
    #: Whether a call of a new shape takes 10 to 100 ms, since it is traced, compiled or dispatched step by step.
    slow: bool = False
    #: The traits of its framework, by device: measured once.
    _traits: dict[str, tuple[Trait, ...]] = field(default_factory=dict, init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not self.dtypes:
            object.__setattr__(self, "dtypes", self.bridge.dtypes)

    @property
    def layouts(self) -> tuple[str, ...]:
        """Those of the layouts that its tensors can have."""
        return self.bridge.layouts

    def check_device(self, device: str) -> None:
        """Raise DeviceUnavailable, saying what to do, unless it can run there."""
        self.bridge.check_device(device)

    def devices(self) -> tuple[str, ...]:
        """The devices that it can run on; the first is the CPU."""
        return self.bridge.devices()

    def traits(self, device: str) -> tuple[Trait, ...]:
        """What its framework does on a device, whatever function runs there."""
        if device not in self._traits:
            self._traits[device] = self.measured_traits(device)
        return self._traits[device]

    def measured_traits(self, device: str) -> tuple[Trait, ...]:
        """The same, measured now."""
        return self.bridge.traits(device)

    @property
    def calls(self) -> int:
        """How often it has been called, where that is counted."""
        return 0

    def begin(self) -> None:
        """The clock of one requirement on one case starts, where there is one."""

    def close(self) -> None:
        """Nothing more is asked of it."""

    def session(self, binding: Binding, device: str = "cpu") -> Session:
        """Calls of one of its bindings. Raises DeviceUnavailable."""
        from .session import Session

        return Session(self, binding, device)
