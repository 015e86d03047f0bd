"""Proxies for sessions, evaluations and gradients in a worker; they have the methods of the local ones."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...spec.errors import TargetLost
from ...spec.operators import OPERATORS
from ...spec.parts import Part, Parts
from ..binding import differentiable
from ..recording import PartCall
from ..seam import RECORDED
from ..worker.codec import encode
from .host import Host

Arrays = Mapping[str, "np.ndarray | None"]

#: A session stops calling after this many losses: each costs a new worker, and some cost the whole time limit.
MOST_LOSSES = 5


@dataclass
class RemoteSession:
    """
    Proxy for adapters.session.Session, for a binding of a target in a worker.

    Any call may raise TargetLost. That same call is not made again, and after MOST_LOSSES losses no call is made.
    """

    host: Host
    place: int
    operator: str
    conventions: Mapping[str, str]
    device: str = "cpu"
    #: See Session.tracks_calls.
    tracks_calls: bool = True

    def start(
        self,
        inputs: Arrays,
        settings: Mapping[str, Any],
        *,
        parts: Parts | None = None,
        layouts: Mapping[str, str] | None = None,
        wrt: Sequence[str] | None = None,
        mode: str = "training",
        record: bool = False,
        defaults: bool = False,
        frozen: bool = False,
        intermediate: Sequence[str] | None = None,
    ) -> RemoteEvaluation:
        """Call the target; see Session.start."""
        request = {
            "layouts": dict(layouts) if layouts else None, "wrt": wrt, "mode": mode, "record": record,
            "defaults": defaults, "frozen": frozen, "intermediate": intermediate,
        }  # fmt: skip
        number = self.host.number()
        asked = self._request("start", inputs, settings, parts, request)
        found = asked.reply(OPERATORS[self.operator].outputs, evaluation=number)
        evaluation = RemoteEvaluation(
            asked, number, self.host.generation, found, self.host.requests, OPERATORS[self.operator].outputs,
            inputs.keys(), self._gradients(inputs, wrt), pending=self.host.prefetched.collecting,
        )  # fmt: skip
        if record:
            evaluation.recorder = RemoteRecorder(evaluation, [] if evaluation.pending else found["recorded"])
        return evaluation

    def call(
        self,
        inputs: Arrays,
        settings: Mapping[str, Any],
        *,
        parts: Parts | None = None,
        mode: str = "training",
        times: int = 1,
        alone: bool = False,
    ) -> list[dict[str, np.ndarray]]:
        """The results of ``times`` calls; see Session.call."""
        request = {"mode": mode, "times": times, "brief": times > 1, "alone": alone}
        asked = self._request("call", inputs, settings, parts, request)
        return _with_repeats(asked.reply(OPERATORS[self.operator].outputs)["outputs"])

    def vjp(
        self,
        inputs: Arrays,
        settings: Mapping[str, Any],
        g: np.ndarray,
        *,
        parts: Parts | None = None,
        wrt: Sequence[str] | None = None,
        times: int = 1,
        alone: bool = False,
        outputs: bool = False,
    ) -> tuple[dict[str, np.ndarray], list[dict[str, np.ndarray | None]]]:
        """The outputs of the first call if asked for, and the gradients in each of ``times`` calls; see Session.vjp."""
        request = {"g": g, "wrt": wrt, "times": times, "brief": times > 1, "alone": alone, "outputs": outputs}
        asked = self._request("vjp", inputs, settings, parts, request)
        found = asked.reply(self._gradients(inputs, wrt))
        known = OPERATORS[self.operator].outputs
        returned = {name: value for name, value in found.get("outputs", {}).items() if name in known}
        return returned, _with_repeats(found["gradients"])

    def recall(
        self,
        inputs: Arrays,
        settings: Mapping[str, Any],
        then: Arrays,
        *,
        parts: Parts | None = None,
        g: np.ndarray | None = None,
        fresh: bool = False,
        mode: str = "training",
    ) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray | None]]:
        """A second call on the memory of a first; see Session.recall."""
        request = {"then": dict(then), "g": g, "fresh": fresh, "mode": mode}
        asked = self._request("recall", inputs, settings, parts, request)
        found = asked.reply(OPERATORS[self.operator].outputs)
        gradients = found["gradients"]
        return found["outputs"], {name: gradients.get(name) for name in self._gradients(inputs, None) if gradients}

    def jvp(
        self, inputs: Arrays, settings: Mapping[str, Any], tangents: Arrays, *, parts: Parts | None = None
    ) -> np.ndarray:
        """The tangent of y; see Session.jvp."""
        return self._request("jvp", inputs, settings, parts, {"tangents": dict(tangents)}).reply()["tangent"]

    def vjp_vjp(
        self,
        inputs: Arrays,
        settings: Mapping[str, Any],
        g: np.ndarray,
        cotangents: Arrays,
        *,
        parts: Parts | None = None,
        wrt: Sequence[str] | None = None,
        layout: str = "contiguous",
    ) -> dict[str, np.ndarray | None]:
        """Second order; see Session.vjp_vjp."""
        request = {"g": g, "cotangents": dict(cotangents), "wrt": wrt, "layout": layout}
        asked = self._request("vjp_vjp", inputs, settings, parts, request)
        return asked.reply(OPERATORS[self.operator].second_order_results)["gradients"]

    def nested(
        self,
        kind: str,
        inputs: Arrays,
        settings: Mapping[str, Any],
        tangents: Arrays,
        other: np.ndarray | Arrays,
        *,
        parts: Parts | None = None,
    ) -> dict[str, np.ndarray | None]:
        """A nested derivative; see Session.nested."""
        last = other if isinstance(other, np.ndarray) else dict(other)
        request = {"kind": kind, "tangents": dict(tangents), "other": last}
        names = ("y",) if kind == "jvp_jvp" else OPERATORS[self.operator].differentiable
        return self._request("nested", inputs, settings, parts, request).reply(names)["results"]

    def prefetch(self, calls: Iterable[Callable[[], object]], *, keep: bool = False) -> bool:
        """Send the requests of these calls in one message; see Host.prefetch."""
        return self.host.prefetch(calls, keep=keep)

    def seams(
        self, inputs: Arrays, settings: Mapping[str, Any], g: np.ndarray, *, seed: int = 0
    ) -> list[dict[str, np.ndarray]]:
        """The records around the sublayers; see Session.seams."""
        return self._request("seams", inputs, settings, None, {"g": g, "seed": seed}).reply(RECORDED)["blocks"]

    def _gradients(self, inputs: Arrays, wrt: Sequence[str] | None) -> Collection[str]:
        """The names of the gradients in a reply."""
        wrt = differentiable(self.operator, inputs) if wrt is None else wrt
        return {*OPERATORS[self.operator].differentiable, *(name for name in wrt if "." in name)}

    def _request(
        self,
        do: str,
        inputs: Arrays,
        settings: Mapping[str, Any],
        parts: Parts | None,
        more: Mapping[str, Any],
    ) -> RemoteRequest:
        """The request for a call of the target."""
        conventions = {key: self.conventions[key] for key in ("momentum",) if key in self.conventions}
        request = {
            "do": do, "binding": self.place, "device": self.device, "conventions": conventions,
            "inputs": dict(inputs), "settings": dict(settings), "parts": _plain(parts), **more,
        }  # fmt: skip
        x = inputs["x"]
        return RemoteRequest(self.host, request, (self.place, None if x is None else x.dtype))


@dataclass(frozen=True)
class RemoteRequest:
    """A request about one subject, with the request it builds on, if any."""

    host: Host
    request: Mapping[str, Any]
    #: The binding and the dtype.
    subject: Any
    previous: RemoteRequest | None = None

    def then(self, do: str, **more: Any) -> RemoteRequest:
        """A request about the object that this request made."""
        return RemoteRequest(self.host, {"do": do, **more}, self.subject, self)

    def reply(self, names: Collection[str] = (), **numbers: int) -> dict[str, Any]:
        """The reply, with arrays of these names; ``numbers`` are those under which the worker keeps its objects."""
        try:
            return self._reply(names, numbers)
        except TargetLost as lost:
            self.host.unanswered = lost.reason
            raise

    def _reply(self, names: Collection[str], numbers: Mapping[str, int]) -> dict[str, Any]:
        host = self.host
        if host.losses[self.subject]:
            known = host.lost.get(self._fingerprint())
            if known is not None:
                raise TargetLost(known)
            if host.losses[self.subject] >= MOST_LOSSES:
                raise TargetLost(f"was lost {MOST_LOSSES} times before, and is called no more", called=False)
        try:
            return host.request({**self.request, **numbers}, names)
        except TargetLost as lost:
            if lost.called:  # else no worker was lost, and another check may still make this call
                host.lost[self._fingerprint()] = lost.reason
                host.losses[self.subject] += 1
            raise

    def _fingerprint(self) -> bytes:
        previous = self.previous._fingerprint() if self.previous is not None else b""
        return hashlib.blake2b(previous + encode(self.request), digest_size=16).digest()


@dataclass(eq=False)
class RemoteEvaluation:
    """Proxy for an adapters.evaluation.Evaluation in a worker."""

    _request: RemoteRequest
    _number: int
    _generation: int
    #: The reply, which holds the outputs.
    _found: dict[str, Any]
    #: The number of requests when the outputs came: until the next request, the outputs cannot have changed.
    _fresh: int
    #: The names of the results, of the inputs, and of the possible gradients.
    _results: Collection[str]
    _inputs: Collection[str]
    differentiable: Collection[str]
    #: Whether its request was only collected, so that the worker keeps nothing under its number.
    pending: bool = False
    recorder: RemoteRecorder | None = None

    def outputs(self) -> dict[str, np.ndarray]:
        """The present values of the results."""
        if self.fresh(self._fresh):
            return {name: value.copy() for name, value in self._found["outputs"].items()}
        return self.ask("outputs", self._results)["outputs"]

    def inputs(self) -> dict[str, np.ndarray | None]:
        """The present values of the inputs."""
        return self.ask("inputs", self._inputs)["inputs"]

    def pull(self, g: np.ndarray, layout: str = "contiguous", *, keep: bool = False) -> RemoteGradients:
        """The gradients of sum(y * g); see Evaluation.pull."""
        host = self._request.host
        number = host.number()
        found = self.ask("pull", self.differentiable, {"g": g, "layout": layout, "keep": keep}, pulled=number)
        return RemoteGradients(self, number, found, host.requests, pending=host.prefetched.collecting)

    def ask(
        self, do: str, names: Collection[str] = (), more: Mapping[str, Any] | None = None, **numbers: int
    ) -> dict[str, Any]:
        """The reply to a request about this evaluation."""
        if self._generation != self._request.host.generation:
            raise TargetLost("was lost meanwhile, and what it had returned with it")
        return self._request.then(do, **(more or {})).reply(names, evaluation=self._number, **numbers)

    @property
    def requests(self) -> int:
        """How many requests the target has had."""
        return self._request.host.requests

    def fresh(self, since: int) -> bool:
        """Whether the target has had no request since the count was ``since``."""
        return since == self.requests

    def release(self, number: int) -> None:
        """Tell the worker that it need not keep this object any longer."""
        self._request.host.release(number)

    def __del__(self) -> None:
        if not self.pending:
            self.release(self._number)


@dataclass(eq=False)
class RemoteGradients:
    """Proxy for an adapters.evaluation.EvaluationGradients in a worker."""

    _evaluation: RemoteEvaluation
    _number: int
    #: The reply, which holds the gradients.
    _found: dict[str, Any]
    _fresh: int
    #: Whether its request was only collected.
    pending: bool = False

    def gradients(self) -> dict[str, np.ndarray | None]:
        """The present values of the gradients."""
        if self._evaluation.fresh(self._fresh):
            found = self._found["gradients"]
            return {name: None if value is None else value.copy() for name, value in found.items()}
        names = self._evaluation.differentiable
        return self._evaluation.ask("gradients", names, pulled=self._number)["gradients"]

    def cotangent(self) -> np.ndarray:
        """The present value of the cotangent."""
        return self._evaluation.ask("cotangent", pulled=self._number)["cotangent"]

    def __del__(self) -> None:
        if not self.pending:
            self._evaluation.release(self._number)


@dataclass(eq=False)
class RemoteRecorder:
    """Proxy for the adapters.recording.Recorder of one evaluation in a worker."""

    _evaluation: RemoteEvaluation
    _found: list[dict[str, Any]]
    calls: list[PartCall] = field(default_factory=list)
    #: The number of requests at the last reading of the record, and what was read.
    _read: tuple[int, dict[str, Any]] = (-1, {})

    def __post_init__(self) -> None:
        self.calls = [PartCall(one["role"], one["handed"], one["returned"]) for one in self._found]

    def lists_are_whole(self) -> bool:
        """Whether each list of parts still has its original contents."""
        return self._now()["lists"]

    def handed_now(self, call: PartCall) -> list[np.ndarray | str]:
        """The present values of a part's arguments."""
        return self._now()["calls"][self._place(call)]["handed"]

    def returned_now(self, call: PartCall) -> np.ndarray | str | None:
        """The present value of a part's result."""
        return self._now()["calls"][self._place(call)]["returned"]

    def _place(self, call: PartCall) -> int:
        return next(place for place, one in enumerate(self.calls) if one is call)

    def _now(self) -> dict[str, Any]:
        if not self._evaluation.fresh(self._read[0]):
            found = self._evaluation.ask("recorded", [one["role"] for one in self._found])
            self._read = self._evaluation.requests, found
        return self._read[1]


def _with_repeats(results: list[Any]) -> list[Any]:
    """All results: each one that was left out, because it has the same bits as the first, becomes the first."""
    return [results[0] if one is None else one for one in results]


def _plain(parts: Parts | None) -> dict[str, Any] | None:
    """The parts as plain values for a request."""

    def plain(part: Part | tuple[Part, ...] | None) -> Any:
        if part is None:
            return None
        if isinstance(part, tuple):
            return [plain(one) for one in part]
        return {"kind": part.kind, "leaves": part.leaves, "number": part.number, "inner": plain(part.inner)}

    return None if parts is None else {role: plain(part) for role, part in parts.items()}
