"""A target: the layers or the function to check, and how to call them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace

from .binding import Binding
from .bridge import Bridge
from .session import Session
from .trait import Trait
from .traits import measured
from .upstream import upstream_bindings


@dataclass(frozen=True)
class Target:
    """Something to check: a framework's own layers, or one function."""

    #: The name the user gave.
    name: str
    #: The framework whose tensors the target takes: "numpy", "torch".
    framework: str
    #: The framework's version.
    version: str
    #: The bridge to that framework.
    bridge: Bridge
    #: One binding for each operator the target implements, sometimes several.
    bindings: tuple[Binding, ...]
    #: The dtypes to check by default: all of the bridge's, unless the target is written for fewer.
    dtypes: tuple[str, ...] = ()
    #: Whether a call with a new shape takes 10 to 100 ms, because the framework traces, compiles or dispatches it step
    #: by step.
    slow: bool = False
    #: The framework's traits by device, each measured once; those of the CPU before the target's file was imported, if
    #: its framework was known by then.
    _traits: dict[str, tuple[Trait, ...]] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not self.dtypes:
            object.__setattr__(self, "dtypes", self.bridge.dtypes)

    @property
    def layouts(self) -> tuple[str, ...]:
        """The layouts its tensors can have."""
        return self.bridge.layouts

    def check_device(self, device: str) -> None:
        """Raise DeviceUnavailable unless the target can run on this device; the message says what to do."""
        self.bridge.check_device(device)

    def devices(self) -> tuple[str, ...]:
        """The devices the target can run on; the first is the CPU."""
        return self.bridge.devices()

    def on(self, device: str) -> Target:
        """The target on a device: each binding has the conventions it follows there."""
        bindings = tuple(binding.on(device) for binding in self.bindings)
        return self if bindings == self.bindings else replace(self, bindings=bindings)

    def traits(self, device: str) -> tuple[Trait, ...]:
        """The framework's traits on a device; they hold for every function that runs there."""
        if device not in self._traits:
            self._traits[device] = self.measured_traits(device)
        return self._traits[device]

    def measured_traits(self, device: str) -> tuple[Trait, ...]:
        """The framework's traits on a device, measured now."""
        return measured(self.bridge, device)

    @contextmanager
    def unreplaced(self) -> Iterator[None]:
        """Within this, a lost worker is not replaced, and the end raises TargetLost. A target here has no worker."""
        yield

    def begin(self) -> None:
        """Start the clock for one requirement on one case. A target in this process has no clock."""

    def close(self) -> None:
        """End the target's worker, if it has one."""

    def upstream(self, operator: str) -> tuple[Binding, ...]:
        """The bindings of its framework's own layers that have known violations, for an operator."""
        return upstream_bindings(self.framework, operator)

    def session(self, binding: Binding, device: str = "cpu") -> Session:
        """A session to call one of the target's bindings. Raises DeviceUnavailable."""
        if binding.load is not None:
            with suppress(Exception):  # each call will report why the import fails
                binding.load()
        return Session(self.bridge, binding, device)
