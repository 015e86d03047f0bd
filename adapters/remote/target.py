"""The proxy for a target in a worker process."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NoReturn, cast

from ...spec.errors import (
    CALL_FAILED,
    BadOutput,
    DeviceUnavailable,
    NormspecError,
    NotImportable,
    TargetLost,
    TargetRaised,
    Unsupported,
)
from ..binding import Binding, accepts_all
from ..bridge import Bridge
from ..fixed import fixed_from_plain
from ..known import Failure, KnownViolation, Predicted, RemoteKnownViolation, without_limits
from ..target import Target
from ..trait import Trait
from ..worker.failures import where_of
from .host import Host
from .process import NO_STEPS
from .replies import OPTIONAL
from .session import RemoteSession

if TYPE_CHECKING:
    from ..session import Session

#: How many answers of Binding.accepts are cached.
_ACCEPTED = 4096


@dataclass(frozen=True)
class RemoteTarget(Target):
    """Proxy for a target in a worker; it has no bridge in this process."""

    host: Host = field(kw_only=True)
    _layouts: tuple[str, ...] = ()
    _devices: tuple[str, ...] = ()
    #: The framework's own bindings by operator, as far as they were asked for, with the generation of the worker.
    _upstream: dict[str, tuple[int, tuple[Binding, ...]]] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def opened(cls, host: Host, meanwhile: Iterator[object] = NO_STEPS) -> RemoteTarget:
        """The target in the host's worker; see Host.opened. If there is none, raises a NormspecError that says why."""
        found = {**OPTIONAL, **host.opened(meanwhile)}
        try:
            return cls(
                name=host.launch.target,
                framework=found["framework"],
                version=found["version"],
                bridge=cast(Bridge, None),
                bindings=tuple(_binding(host, place, one) for place, one in enumerate(found["bindings"])),
                dtypes=tuple(found["dtypes"]),
                slow=found["slow"],
                host=host,
                _layouts=tuple(found["layouts"]),
                _devices=tuple(found["devices"]),
            )
        except (ValueError, NormspecError) as error:
            host.close()
            raise NotImportable(f"{host.launch.target} cannot be told what it is: {error}") from None

    @property
    def layouts(self) -> tuple[str, ...]:
        return self._layouts

    def check_device(self, device: str) -> None:
        try:
            self.host.aside({"do": "device", "device": device})
        except TargetLost as lost:
            raise DeviceUnavailable(f"{self.name} {lost.reason} when it was asked for device {device!r}") from None
        except (TargetRaised, BadOutput, Unsupported) as failed:
            raise DeviceUnavailable(f"{self.name} cannot say whether it runs on {device!r}: {failed}") from None

    def devices(self) -> tuple[str, ...]:
        return self._devices

    def measured_traits(self, device: str) -> tuple[Trait, ...]:
        try:
            found = self.host.aside({"do": "traits", "device": device})["traits"]
            return tuple(Trait(one["dtype"], one["key"], one["value"], one["evidence"]) for one in found)
        except CALL_FAILED:  # then the normative convention is assumed
            return ()

    @contextmanager
    def unreplaced(self) -> Iterator[None]:
        with self.host.unreplaced():
            yield

    def begin(self) -> None:
        self.host.begin()

    def close(self) -> None:
        self.host.close()

    def upstream(self, operator: str) -> tuple[Binding, ...]:
        generation, found = self._upstream.get(operator, (-1, ()))
        if generation < 0 or (found and generation != self.host.generation):  # a new worker has to be asked again
            found = self._asked_upstream(operator)
            self._upstream[operator] = self.host.generation, found
        return found

    def _asked_upstream(self, operator: str) -> tuple[Binding, ...]:
        try:
            found = self.host.aside({"do": "upstream", "operator": operator})
            return tuple(_binding(self.host, place, one) for place, one in enumerate(found["bindings"], found["place"]))
        except (*CALL_FAILED, NormspecError, ValueError):  # they tell more about a violation, and decide nothing
            return ()

    def session(self, binding: Binding, device: str = "cpu") -> Session:
        assert isinstance(binding, RemoteBinding)
        session = RemoteSession(
            self.host, binding.place, binding.operator, binding.conventions, device, binding.tracks_calls
        )
        return cast("Session", session)


@dataclass(frozen=True)
class RemoteBinding(Binding):
    """Proxy for a binding in a worker; ``place`` is its index among the target's bindings."""

    place: int = field(kw_only=True)
    #: See Session.tracks_calls.
    tracks_calls: bool = field(kw_only=True)


def _binding(host: Host, place: int, said: Mapping[str, Any]) -> RemoteBinding:
    found = {**OPTIONAL, **said}
    return RemoteBinding(
        operator=found["operator"],
        name=found["name"],
        call=_elsewhere,
        conventions=found["conventions"],
        conventions_on=found["conventions_on"],
        reasons=found["reasons"],
        known_violations=(
            *without_limits(found["expected"]),
            *(_known(host, place, entry, one) for entry, one in enumerate(found["known"])),
        ),
        accepts=accepts_all if found["accepts_all"] else _accepts(host, place),
        has_modes=found["has_modes"],
        unsupported_keywords=frozenset(found["lacking"]),
        seams=_elsewhere if found["has_seams"] else None,
        defaults=_elsewhere if found["has_defaults"] else None,
        fixed=fixed_from_plain(found["fixed"]),
        names_parameters=found["names_parameters"],
        layers=tuple(found["layers"]),
        where=where_of(found["where"]),
        place=place,
        tracks_calls=found["tracks_calls"],
    )


def _known(host: Host, place: int, entry: int, said: Mapping[str, Any]) -> KnownViolation:
    """A known violation, from the worker's description. Raises WrongEntry."""
    limits = {key: value for key, value in said.items() if key in _TOLD}

    def ask(inputs: Mapping[str, Any], settings: Mapping[str, Any], failure: Failure | None) -> Predicted:
        found = None
        if failure is not None:
            found = {key: getattr(failure, key) for key in _FOUND}
        request = {"do": "known", "binding": place, "entry": entry, "settings": dict(settings), "failure": found}
        covers = host.aside({**request, "inputs": dict(inputs)})["covers"]
        return covers if isinstance(covers, bool) else covers != 0

    return RemoteKnownViolation(**limits, ask=ask if said.get("asks") else None)


#: The fields of a failure that are sent to a worker in addition to the call.
_FOUND = tuple(one.name for one in dataclasses.fields(Failure) if one.name not in ("inputs", "settings"))

#: The fields of a known violation that a worker sends.
_TOLD = {one.name for one in dataclasses.fields(KnownViolation)} - {"cases", "predicts"}


def _elsewhere(*arguments: Any, **keywords: Any) -> NoReturn:
    raise Unsupported("the target lives in a worker and is called through its session")


def _accepts(host: Host, place: int) -> Callable[[tuple[int, ...], Mapping[str, Any]], str | None]:
    """Binding.accepts, with one request to the worker for each shape and settings; answers are cached."""

    @lru_cache(maxsize=_ACCEPTED)
    def asked(shape: tuple[int, ...], settings: tuple[tuple[str, Any], ...]) -> str | None:
        return host.aside({"do": "accepts", "binding": place, "shape": shape, "settings": dict(settings)})["reason"]

    def accepts(shape: tuple[int, ...], settings: Mapping[str, Any]) -> str | None:
        try:
            return asked(tuple(shape), tuple(settings.items()))
        except Unsupported as declined:
            return str(declined)
        except (TargetRaised, BadOutput, TargetLost):
            return None  # the call itself will show it

    return accepts
