"""The known targets and what they offer here; each is asked in its own worker."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import metadata
from typing import Any

import attrs

from ..adapters.dtypes import DTYPES
from ..adapters.frameworks import KNOWN, command_of, missing
from ..adapters.remote.host import Host, Limits
from ..adapters.remote.launching import ISOLATES, opened_target, start_host
from ..adapters.target import Target
from ..adapters.targets import resolve
from ..spec.errors import NormspecError
from ..spec.operators import OPERATORS
from .engine.progress import Listener, Progress

#: The states of a target.
INSTALLED, MISSING, BROKEN = "installed", "missing", "broken"


@attrs.frozen
class Entry:
    """A known target, and its operators, dtypes and devices here."""

    name: str
    #: INSTALLED, MISSING, or BROKEN (installed, but its import fails).
    status: str
    #: The version of its framework; empty if it is not known.
    version: str = ""
    operators: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    #: The interpreter that runs it; empty for the current one.
    python: str = ""
    #: The command that installs it.
    install: str = ""
    #: Why it is broken, in one line.
    reason: str = ""

    def to_plain(self) -> dict[str, Any]:
        """The entry as values for JSON."""
        return attrs.asdict(self, value_serializer=lambda _, __, value: list(value) if type(value) is tuple else value)


def inventory(
    pythons: Mapping[str, str] | None = None, *, importing: bool = True, progress: Listener | None = None
) -> tuple[Entry, ...]:
    """
    Return an entry for each known target.

    ``pythons`` holds the interpreters by target name, with "" for all other targets. With ``importing``, all targets
    are imported at once and asked, which takes as long as the import. Without it, only versions are found, from the
    packages' metadata.
    """
    pythons = pythons or {}
    of = {name: pythons.get(name, pythons.get("", "")) for name in KNOWN}
    there = [name for name in KNOWN if of[name] or not missing(name)]
    if importing:
        found = _asked({name: of[name] for name in there}, progress)
    else:
        found = {name: _unasked(name, of[name]) for name in there}
    return tuple(found.get(name) or Entry(name, MISSING, install=command_of(name)) for name in KNOWN)


def _asked(pythons: Mapping[str, str], progress: Listener | None) -> dict[str, Entry]:
    """The entries of installed targets, from importing them."""
    found: dict[str, Entry] = {}
    hosts: dict[str, Host] = {}
    try:
        for name, python in pythons.items():
            try:
                if ISOLATES:
                    # A device may need more memory than the limit for checks on the CPU.
                    hosts[name] = start_host(name, python=python, limits=Limits(memory=None))
            except NormspecError as error:
                found[name] = _broken(name, python, error)
        for name, python in pythons.items():
            if progress is not None:
                progress(Progress(len(found), len(pythons), f"importing {name}"))
            if name not in found:
                found[name] = _opened(name, python, hosts.get(name))
    finally:
        for host in hosts.values():
            host.close()
    return found


def _opened(name: str, python: str, host: Host | None) -> Entry:
    try:
        target = resolve(name) if host is None else opened_target(host)
        entry = _entry(name, python, target)
        target.close()
    except NormspecError as error:
        return _broken(name, python, error)
    return entry


def _broken(name: str, python: str, error: NormspecError) -> Entry:
    reason = str(error)
    return Entry(name, BROKEN, python=python, reason=reason if python in reason else f"with {python}, {reason}")


def _entry(name: str, python: str, target: Target) -> Entry:
    offered = {binding.operator for binding in target.bindings}
    return Entry(
        name,
        INSTALLED,
        version=target.version,
        operators=tuple(operator for operator in OPERATORS if operator in offered),
        dtypes=tuple(dtype for dtype in DTYPES if dtype in target.dtypes),
        devices=tuple(target.devices()),
        python=python,
    )


def _unasked(name: str, python: str) -> Entry:
    return Entry(name, INSTALLED, version="" if python else _version(KNOWN[name].packages[0]), python=python)


def _version(package: str) -> str:
    """The version of the distribution that contains a package: for tensorflow it may be tensorflow-cpu."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        distributions = metadata.packages_distributions().get(package)
        return metadata.version(distributions[0]) if distributions else ""
