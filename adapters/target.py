"""Targets: what is checked, and how it is called."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from .binding import Binding
from .bridge import Bridge
from .session import Session
from .trait import Trait
from .traits import measured


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

    def on(self, device: str) -> Target:
        """The target as it is on a device: each binding with the conventions that it follows there."""
        bindings = tuple(binding.on(device) for binding in self.bindings)
        return self if bindings == self.bindings else replace(self, bindings=bindings)

    def traits(self, device: str) -> tuple[Trait, ...]:
        """What its framework does on a device, whatever function runs there."""
        if device not in self._traits:
            self._traits[device] = self.measured_traits(device)
        return self._traits[device]

    def measured_traits(self, device: str) -> tuple[Trait, ...]:
        """The same, measured now."""
        return measured(self.bridge, device)

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
        return Session(self.bridge, binding, device)
