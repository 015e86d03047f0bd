"""The worker: it holds one target, and answers one request after the other about it."""

from __future__ import annotations

import contextlib
import faulthandler
import io
import json
import os
import sys
from dataclasses import asdict, astuple, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Callable, Mapping

import numpy as np

from ...spec.errors import TargetRaised, Unsupported
from ...spec.parts import Part
from ..binding import Binding, accepts_all
from ..bridge import Bridge
from ..declarations import Declarations
from ..evaluation import Evaluation, EvaluationGradients
from ..known import Failure
from ..loading import load_operators
from ..memory import return_free_memory
from ..targets import resolve
from .codec import PROTOCOL, Frames, encode
from .failures import ends_worker, error_to_plain
from .limits import die_with_parent, disable_core_dumps, limit_memory

if TYPE_CHECKING:
    from ..session import Session
    from ..target import Target

#: A request, as decoded from its frame.
Request = Mapping[str, Any]


class Server:
    """One target, and the evaluations and gradients kept from calls of it."""

    def __init__(self) -> None:
        self._target: Target | None = None
        self._sessions: dict[Any, Session] = {}
        self._evaluations: dict[int, Evaluation] = {}
        self._pulled: dict[int, EvaluationGradients] = {}
        #: The operator and dtype of the last request.
        self._unit: Any = None

    def answer(self, request: Request) -> dict[str, Any]:
        """The reply to a request."""
        for number in request.get("release", ()):
            self._evaluations.pop(number, None)
            self._pulled.pop(number, None)
        do = request["do"]
        handlers: dict[str, Callable[[Request], dict[str, Any]]] = {
            "open": self._open, "upstream": self._upstream, "accepts": self._accepts, "known": self._known,
            "device": self._device, "traits": self._traits, "call": self._call, "vjp": self._vjp, "jvp": self._jvp,
            "vjp_vjp": self._vjp_vjp, "nested": self._nested, "recall": self._recall,
            "seams": self._seams, "start": self._start, "outputs": self._outputs, "inputs": self._inputs,
            "recorded": self._recorded, "pull": self._pull, "gradients": self._gradients, "cotangent": self._cotangent,
            "several": self._several,
        }  # fmt: skip
        if do not in handlers:
            raise Unsupported(f"the worker does not know the request {do!r}")
        return handlers[do](request)

    def _several(self, request: Request) -> dict[str, Any]:
        """The replies to several requests, one after the other, up to the first that ends this worker."""
        replies: list[dict[str, Any]] = []
        #: The error in which an evaluation or its gradients ended, by number. Requests about these end in it too:
        #: that they do not exist is no failure of the worker.
        not_made: dict[int, dict[str, Any]] = {}
        for one in request["requests"]:
            numbers = [one[key] for key in ("evaluation", "pulled") if key in one]
            raised = next((not_made[number] for number in numbers if number in not_made), None)
            if raised is None:
                try:
                    replies.append({"ok": self.answer(one)})
                    continue
                except BaseException as error:
                    raised = _checked_error(error)
            replies.append({"raised": raised})
            if ends_worker(raised):  # a new worker answers the others
                break
            if one["do"] in ("start", "pull"):
                not_made[numbers[-1]] = raised
        return {"replies": replies}

    # The target ----------------------------------------------------------------------------------------------

    def _open(self, request: Request) -> dict[str, Any]:
        limit_memory(request.get("memory"))
        path = request.get("path", ())
        sys.path[:] = [*path, *(entry for entry in sys.path if entry not in path)]
        op = request.get("op")
        load_operators(request.get("operators", ()))
        self._target = target = resolve(
            request["target"],
            op=op if op is None else tuple(op),
            framework=request.get("framework"),
            file=request.get("file", ""),
            declared=Declarations.from_plain(request.get("declared") or {}),
        )
        bridge = target.bridge
        if request.get("derivatives"):
            with contextlib.suppress(Exception):  # a call of a derivative will show the error
                bridge.import_derivatives()
        return {
            "protocol": PROTOCOL,
            "framework": target.framework,
            "version": target.version,
            "dtypes": target.dtypes,
            "slow": target.slow,
            "several": True,
            "layouts": bridge.layouts,
            "devices": bridge.devices(),
            "bindings": [_described(binding, bridge) for binding in target.bindings],
        }

    def _upstream(self, request: Request) -> dict[str, Any]:
        target = self._opened_target()
        found, place = target.upstream(request["operator"]), len(target.bindings)
        self._target = replace(target, bindings=(*target.bindings, *found))
        return {"bindings": [_described(binding, target.bridge) for binding in found], "place": place}

    def _device(self, request: Request) -> dict[str, Any]:
        self._opened_target().bridge.check_device(request["device"])
        return {}

    def _traits(self, request: Request) -> dict[str, Any]:
        return {"traits": [asdict(trait) for trait in self._opened_target().traits(request["device"])]}

    def _accepts(self, request: Request) -> dict[str, Any]:
        binding = self._opened_target().bindings[request["binding"]]
        return {"reason": binding.accepts(tuple(request["shape"]), _settings(request))}

    def _known(self, request: Request) -> dict[str, Any]:
        entry = self._opened_target().bindings[request["binding"]].known_violations[request["entry"]]
        inputs, settings, found = request["inputs"], _settings(request), request.get("failure")
        try:
            if found is None:
                return {"covers": entry.shows_in(inputs, settings)}
            covered = entry.covers(Failure(inputs=inputs, settings=settings, **found))
        except Exception as error:  # of the author's function: it predicts nothing, and the report says why
            raise TargetRaised(error, "call") from error
        return {"covers": covered if isinstance(covered, bool) else np.asarray(covered, np.float32)}

    def _opened_target(self) -> Target:
        assert self._target is not None, "a target is opened before it is used"
        return self._target

    def _session(self, request: Request) -> Session:
        self._free_if_changed(request)
        key = (request["binding"], request["device"], tuple(sorted(request["conventions"].items())))
        if key not in self._sessions:
            target = self._opened_target()
            binding = replace(target.bindings[request["binding"]], conventions=request["conventions"])
            self._sessions[key] = target.session(binding, request["device"])
        return self._sessions[key]

    def _free_if_changed(self, request: Request) -> None:
        """Free compiled programs and memory of earlier calls if the operator or the dtype has changed."""
        target, x = self._opened_target(), request["inputs"]["x"]
        unit = target.bindings[request["binding"]].operator, None if x is None else x.dtype
        if unit != self._unit:
            self._unit = unit
            target.bridge.free_compiled()
            return_free_memory()

    # Calls of which nothing is kept ---------------------------------------------------------------------------

    def _call(self, request: Request) -> dict[str, Any]:
        found = self._session(request).call(
            *_arguments(request), parts=_parts(request), mode=request["mode"], times=request["times"],
            alone=request.get("alone", False),
        )  # fmt: skip
        return {"outputs": _in_brief(found, request)}

    def _vjp(self, request: Request) -> dict[str, Any]:
        outputs, found = self._session(request).vjp(
            *_arguments(request), request["g"], parts=_parts(request), wrt=request["wrt"], times=request["times"],
            alone=request.get("alone", False), outputs=request.get("outputs", False),
        )  # fmt: skip
        return {"outputs": outputs, "gradients": _in_brief(found, request)}

    def _jvp(self, request: Request) -> dict[str, Any]:
        found = self._session(request).jvp(*_arguments(request), request["tangents"], parts=_parts(request))
        return {"tangent": found}

    def _vjp_vjp(self, request: Request) -> dict[str, Any]:
        found = self._session(request).vjp_vjp(
            *_arguments(request), request["g"], request["cotangents"], parts=_parts(request), wrt=request.get("wrt"),
            layout=request.get("layout", "contiguous"),
        )  # fmt: skip
        return {"gradients": found}

    def _nested(self, request: Request) -> dict[str, Any]:
        found = self._session(request).nested(
            request["kind"], *_arguments(request), request["tangents"], request["other"], parts=_parts(request)
        )
        return {"results": found}

    def _recall(self, request: Request) -> dict[str, Any]:
        outputs, gradients = self._session(request).recall(
            *_arguments(request),
            request["then"],
            parts=_parts(request),
            g=request["g"],
            fresh=request["fresh"],
            mode=request.get("mode", "training"),
        )
        return {"outputs": outputs, "gradients": gradients}

    def _seams(self, request: Request) -> dict[str, Any]:
        found = self._session(request).seams(*_arguments(request), request["g"], seed=request["seed"])
        return {"blocks": found}

    # Calls whose objects are kept for later requests ----------------------------------------------------------

    def _start(self, request: Request) -> dict[str, Any]:
        evaluation = self._session(request).start(
            *_arguments(request),
            parts=_parts(request),
            layouts=request.get("layouts"),
            wrt=request.get("wrt"),
            mode=request.get("mode", "training"),
            record=request.get("record", False),
            defaults=request.get("defaults", False),
            frozen=request.get("frozen", False),
            intermediate=request.get("intermediate"),
        )
        reply = {"outputs": evaluation.outputs(), "recorded": _recorded(evaluation)}
        self._evaluations[request["evaluation"]] = evaluation
        return reply

    def _outputs(self, request: Request) -> dict[str, Any]:
        return {"outputs": self._evaluations[request["evaluation"]].outputs()}

    def _inputs(self, request: Request) -> dict[str, Any]:
        return {"inputs": self._evaluations[request["evaluation"]].inputs()}

    def _recorded(self, request: Request) -> dict[str, Any]:
        recorder = self._evaluations[request["evaluation"]].recorder
        assert recorder is not None, "nothing was recorded"
        return {
            "lists": recorder.lists_are_whole(),
            "calls": [
                {"handed": recorder.handed_now(call), "returned": recorder.returned_now(call)}
                for call in recorder.calls
            ],
        }

    def _pull(self, request: Request) -> dict[str, Any]:
        evaluation = self._evaluations[request["evaluation"]]
        pulled = evaluation.pull(request["g"], request.get("layout", "contiguous"), keep=request.get("keep", False))
        reply = {"gradients": pulled.gradients()}
        self._pulled[request["pulled"]] = pulled
        return reply

    def _gradients(self, request: Request) -> dict[str, Any]:
        return {"gradients": self._pulled[request["pulled"]].gradients()}

    def _cotangent(self, request: Request) -> dict[str, Any]:
        return {"cotangent": self._pulled[request["pulled"]].cotangent()}


def _described(binding: Binding, bridge: Bridge) -> dict[str, Any]:
    """A binding as plain values."""
    return {
        "operator": binding.operator,
        "name": binding.name,
        "conventions": dict(binding.conventions),
        "conventions_on": {kind: dict(one) for kind, one in binding.conventions_on.items()},
        "reasons": dict(binding.reasons),
        "known": [entry.to_plain() for entry in binding.known_violations],
        "lacking": sorted(binding.unsupported_keywords),
        "accepts_all": binding.accepts is accepts_all,
        "has_seams": binding.seams is not None,
        "has_defaults": binding.defaults is not None,
        "has_modes": binding.has_modes,
        "fixed": binding.fixed.to_plain(),
        "names_parameters": binding.names_parameters,
        "layers": list(binding.layers),
        "where": None if binding.where is None else list(astuple(binding.where)),
        "tracks_calls": not bridge.functional or "vjp" in binding.derivatives,
    }


def _in_brief(results: list[Any], request: Request) -> list[Any]:
    """The results; if a brief reply is asked for, with None for each that is the first (``adapters/repeats.py``)."""
    if not request.get("brief"):
        return results
    return results[:1] + [None if one is results[0] else one for one in results[1:]]


def _arguments(request: Request) -> tuple[dict[str, Any], dict[str, Any]]:
    """The inputs and the settings of a call."""
    return request["inputs"], _settings(request)


def _settings(request: Request) -> dict[str, Any]:
    settings = dict(request["settings"])
    if isinstance(settings.get("axes"), list):
        settings["axes"] = tuple(settings["axes"])
    return settings


def _parts(request: Request) -> dict[str, Any] | None:
    """The parts of a request; equal descriptions give the same objects, because a part may own a buffer."""
    parts = request.get("parts")
    return None if parts is None else _made(json.dumps(parts))


@lru_cache(maxsize=256)
def _made(parts: str) -> dict[str, Any]:
    def made(found: Any) -> Any:
        if found is None:
            return None
        if isinstance(found, list):
            return tuple(made(one) for one in found)
        return Part(found["kind"], tuple(found["leaves"]), found["number"], tuple(made(one) for one in found["inner"]))

    return {role: made(found) for role, found in json.loads(parts).items()}


def _recorded(evaluation: Evaluation) -> list[dict[str, Any]] | None:
    recorder = evaluation.recorder
    if recorder is None:
        return None
    return [{"role": call.role, "handed": call.handed, "returned": call.returned} for call in recorder.calls]


#: A test message: it can be sent and received unless the target has broken NumPy or the worker.
_PROBE = np.zeros(1)


def _checked_error(error: BaseException) -> dict[str, Any]:
    """The exception as plain values. A target that has broken the worker breaks it here."""
    Frames(io.BytesIO(encode(_PROBE)).read).next()
    return error_to_plain(error)


def serve(read: Callable[[int], bytes], write: Callable[[Any], int]) -> None:
    """Answer requests until no more come."""
    server, process, requests = Server(), os.getpid(), Frames(read)
    while True:
        try:
            request = requests.next()
        except EOFError:
            return
        try:
            frame = encode({"id": request["id"], "ok": server.answer(request)})
        except BaseException as error:  # any exception is reported to the judge
            frame = encode({"id": request["id"], "raised": _checked_error(error)})
        if os.getpid() != process:  # the target forked, and the child also returned from the call
            os._exit(0)
        left = memoryview(frame)
        while left:
            left = left[write(left) :]


def main() -> None:
    """Serve on standard input and output. The target cannot reach them: it gets /dev/null and stderr instead."""
    die_with_parent()
    disable_core_dumps()
    requests, replies = os.dup(0), os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(2, 1)
    os.close(nowhere)
    for stream in (sys.stdout, sys.stderr):  # show output at once, so that a crash does not lose it
        stream.reconfigure(line_buffering=True, errors="backslashreplace")  # type: ignore[union-attr]
    faulthandler.enable(file=2)
    serve(lambda count: os.read(requests, count), lambda frame: os.write(replies, frame))
    # A target's threads and exit handlers must not keep the process alive.
    os._exit(0)
