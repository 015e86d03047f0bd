"""Requests: what a user asks to be checked, in plain values, and the targets and the plan that come of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import attrs

from ..adapters.dtypes import DTYPES
from ..adapters.importable import importable_name
from ..adapters.remote.host import Host, Limits
from ..adapters.remote.launching import ISOLATES, hosted, ready
from ..adapters.target import Target
from ..adapters.targets import resolve
from ..spec.errors import UnknownDtype, choices
from .kept.place import store_at
from .plan import Plan
from .profiles import profile_of
from .sound_names import names_a_variant

#: A target as it is asked for: the name of one, or a callable.
Asked = str | Callable[..., Any]


@attrs.frozen
class Request:
    """What is to be checked."""

    targets: tuple[Asked, ...]
    op: tuple[str, ...] | None
    framework: str | None
    dtypes: tuple[str, ...] | None
    device: str
    conventions: Mapping[str, str]
    profile: str
    seed: int
    forward_only: bool = False
    slow: bool | None = None
    #: "training" or "inference" for batch_norm; "" for both.
    mode: str = ""
    #: The Python interpreter of a target's worker, by the target's name; "" is for all others.
    pythons: Mapping[str, str] = attrs.field(factory=dict)
    limits: Limits = attrs.field(factory=Limits)
    #: The folder where truths are kept, "none" for nowhere, "" for the usual place.
    cache: str = ""
    #: Where the file of a target FILE.py:NAME lies, by the target's name; empty where it lies there.
    files: Mapping[str, str] = attrs.field(factory=dict)

    def open(self) -> list[Target]:
        """
        The targets, each in a worker of its own but for callables that have no name to be imported by.

        All workers start at once, since importing a framework takes seconds. Raises the NormspecError of the first
        target that cannot be had.
        """
        hosts: list[Host] = []
        try:
            started = [self._started(target, hosts) for target in self.names]
            opened = [ready(one) if isinstance(one, Host) else self._resolved(one) for one in started]
            for target in opened:
                self._check(target)
        except BaseException:
            for host in hosts:
                host.close()
            raise
        return opened

    def plan(self, targets: Sequence[Target]) -> Plan:
        """The plan of this request for its opened targets."""
        return Plan(
            tuple(target.on(self.device) for target in targets),
            self.dtypes, self.device, dict(self.conventions), profile_of(self.profile), self.seed,
            self.forward_only, self.slow, mode=self.mode, store=store_at(self.cache),
        )  # fmt: skip

    def python_of(self, name: str) -> str:
        """The interpreter of a target's worker; empty for this one."""
        return self.pythons.get(name, self.pythons.get("", ""))

    @property
    def names(self) -> tuple[Asked, ...]:
        """The targets, callables by name where a worker would import the same one."""
        return tuple(one if isinstance(one, str) else importable_name(one) or one for one in self.targets)

    def _started(self, target: Asked, hosts: list[Host]) -> Asked | Host:
        """The host of a target by name, kept among the others; a callable as it is."""
        if not isinstance(target, str) or not ISOLATES or names_a_variant(target):
            return target
        host = hosted(
            target,
            op=self.op,
            framework=self.framework,
            python=self.python_of(target),
            limits=self.limits,
            file=self.files.get(target, ""),
        )
        hosts.append(host)
        return host

    def _resolved(self, target: Asked) -> Target:
        """A target that lives in this process."""
        if isinstance(target, str) and names_a_variant(target):
            from .specimens import variant  # it imports every sound function

            return variant(target, self.op)
        return resolve(target, op=self.op, framework=self.framework)

    def _check(self, target: Target) -> None:
        wanted = self.dtypes
        if wanted is not None and len(self.targets) == 1 and not set(wanted) & set(target.dtypes):
            raise UnknownDtype(f"{target.name} has no {', '.join(wanted)}; choose from {', '.join(target.dtypes)}")
        target.check_device(self.device)


def checked_dtypes(dtypes: Iterable[str] | None) -> tuple[str, ...] | None:
    """Return the dtypes, each once; None for none. Raises UnknownDtype."""
    if dtypes is None:
        return None
    names = tuple(dict.fromkeys([dtypes] if isinstance(dtypes, str) else dtypes))
    for name in names:
        if name not in DTYPES:
            raise UnknownDtype(f"unknown dtype {name!r}{choices(name, DTYPES)}")
    return names or None
