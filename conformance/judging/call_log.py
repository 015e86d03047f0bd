"""A log of the calls that a check makes, so that a violation can be reported and repeated by hand as a sequence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs
import numpy as np

from ...spec.errors import SourceLine, TargetRaised
from ...spec.parts import Parts

Arrays = Mapping[str, "np.ndarray | None"]

#: Names of derivatives of derivatives, by kind.
_DERIVATIVES = {
    "vjp_vjp": "vjp of the vjp",
    "jvp_vjp": "jvp of the vjp",
    "vjp_jvp": "vjp of the jvp",
    "jvp_jvp": "jvp of the jvp",
}


#: The name under which a call has the layout of the cotangents of the gradients, for a vjp of the vjp.
COTANGENTS = "the cotangents of the gradients"


@attrs.frozen(eq=False)
class LoggedCall:
    """One call that a check makes of a target, or one reading of an earlier call."""

    #: What is done: "call", "vjp", "jvp", "vjp of the vjp", "jvp of the jvp", "read the outputs again", ...
    does: str
    #: The arguments: every tensor by name, the keyword arguments, and the parts of a composed operator.
    inputs: Arrays
    settings: Mapping[str, Any]
    parts: Parts
    #: The cotangent of y, if the derivative takes one.
    g: np.ndarray | None = None
    #: Tangents of the inputs by name; the second tangents of a jvp of the jvp; the cotangents of the gradients for a
    #: vjp of the vjp.
    tangents: Arrays = attrs.field(factory=dict)
    tangents_again: Arrays = attrs.field(factory=dict)
    cotangents: Arrays = attrs.field(factory=dict)
    #: Memory layouts that are not contiguous, of the inputs, of the cotangent "g" and of COTANGENTS
    #: (adapters/layouts.py).
    layouts: Mapping[str, str] = attrs.field(factory=dict)
    #: In "inference" nothing is tracked for gradients, and a layer is in inference mode.
    mode: str = "training"
    #: How often it is done, one time after the other.
    times: int = 1
    #: The inputs whose gradients are taken; None means all.
    wrt: tuple[str, ...] | None = None
    #: For a gradient or a second reading: index in the log of the call that it belongs to. None for a call of its own.
    of: int | None = None
    #: The exception, if the target raised one.
    raised: Raised | None = None


@attrs.frozen
class Raised:
    """An exception of a target."""

    #: ``ValueError: the message``, in one line.
    words: str
    #: The innermost line in the user's own file; None if the exception did not come from such a file.
    where: SourceLine | None = None

    @classmethod
    def of(cls, error: TargetRaised) -> Raised:
        """The part of a target's exception that is reported."""
        return cls(str(error), error.where)

    @property
    def type(self) -> str:
        """The class name of the exception."""
        return self.words.partition(":")[0]


class _Logging:
    """Adds a target's exception to the logged call. A class, because a generator's context costs twice as much."""

    __slots__ = ("_log", "_place")

    def __init__(self, log: list[LoggedCall], place: int) -> None:
        self._log, self._place = log, place

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, TargetRaised):
            self._log[self._place] = attrs.evolve(self._log[self._place], raised=Raised.of(error))


class LoggingSession:
    """An adapters.session.Session that logs its calls."""

    def __init__(self, session: Any, log: list[LoggedCall]) -> None:
        self._session, self.log = session, log
        #: Number of calls of the target, repetitions included.
        self.calls = 0

    def _logged(self, does: str, inputs: Arrays, settings: Mapping[str, Any], **rest: Any) -> _Logging:
        """Log a call, and within the context its exception too."""
        call = LoggedCall(does, inputs, settings, rest.pop("parts", None) or {}, **rest)
        self.log.append(call)
        self.calls += call.times
        return _Logging(self.log, len(self.log) - 1)

    def start(self, inputs: Arrays, settings: Mapping[str, Any], **options: Any) -> LoggingEvaluation:
        """Call the target."""
        given = {name: options.get(name) for name in ("parts", "layouts", "mode", "wrt")}
        place = len(self.log)
        with self._logged("call", inputs, settings, **{name: one for name, one in given.items() if one is not None}):
            return LoggingEvaluation(self._session.start(inputs, settings, **options), self, place)

    def call(
        self, inputs: Arrays, settings: Mapping[str, Any], *, parts: Parts | None = None, mode: str = "training",
        times: int = 1, **options: Any,
    ) -> list[dict[str, Any]]:  # fmt: skip
        """The results of several calls."""
        with self._logged("call", inputs, settings, parts=parts, mode=mode, times=times):
            return self._session.call(inputs, settings, parts=parts, mode=mode, times=times, **options)

    def vjp(
        self, inputs: Arrays, settings: Mapping[str, Any], g: np.ndarray, *, parts: Parts | None = None,
        times: int = 1, wrt: tuple[str, ...] | None = None, **options: Any,
    ) -> tuple[dict[str, Any], list[dict[str, Any]]]:  # fmt: skip
        """The outputs of the first call, and the gradients of all calls."""
        with self._logged("vjp", inputs, settings, parts=parts, g=g, times=times, wrt=wrt):
            return self._session.vjp(inputs, settings, g, parts=parts, times=times, wrt=wrt, **options)

    @property
    def tracks_calls(self) -> bool:
        """See Session.tracks_calls."""
        return self._session.tracks_calls

    def recall(
        self, inputs: Arrays, settings: Mapping[str, Any], then: Arrays, *, parts: Parts | None = None,
        g: np.ndarray | None = None, fresh: bool = False, mode: str = "training",
    ) -> tuple[dict[str, Any], dict[str, Any]]:  # fmt: skip
        """A second call in the memory of a first."""
        self.log.append(LoggedCall("call", inputs, settings, parts or {}, g, mode=mode))
        how = "new tensors on the memory of the last call" if fresh else "the last call's tensors, overwritten in place"
        with self._logged(f"call with {how}", then, settings, parts=parts, g=g, mode=mode):
            return self._session.recall(inputs, settings, then, parts=parts, g=g, fresh=fresh, mode=mode)

    def jvp(self, inputs: Arrays, settings: Mapping[str, Any], tangents: Arrays, *, parts: Parts | None = None) -> Any:
        """The tangent of y."""
        with self._logged("jvp", inputs, settings, parts=parts, tangents=tangents):
            return self._session.jvp(inputs, settings, tangents, parts=parts)

    def vjp_vjp(
        self, inputs: Arrays, settings: Mapping[str, Any], g: np.ndarray, cotangents: Arrays, *,
        parts: Parts | None = None, wrt: tuple[str, ...] | None = None, layout: str = "contiguous",
    ) -> dict[str, Any]:  # fmt: skip
        """Second-order gradients."""
        does, layouts = _DERIVATIVES["vjp_vjp"], {} if layout == "contiguous" else {COTANGENTS: layout}
        with self._logged(does, inputs, settings, parts=parts, g=g, cotangents=cotangents, wrt=wrt, layouts=layouts):
            return self._session.vjp_vjp(inputs, settings, g, cotangents, parts=parts, wrt=wrt, layout=layout)

    def nested(
        self, kind: str, inputs: Arrays, settings: Mapping[str, Any], tangents: Arrays, other: Any, *,
        parts: Parts | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """A derivative of a derivative in forward mode."""
        last = {"g": other} if isinstance(other, np.ndarray) else {"tangents_again": other}
        with self._logged(_DERIVATIVES[kind], inputs, settings, parts=parts, tangents=tangents, **last):
            return self._session.nested(kind, inputs, settings, tangents, other, parts=parts)

    def prefetch(self, calls: Iterable[Callable[[], object]], *, keep: bool = False) -> bool:
        """Send these calls ahead in one request. They are logged when the check makes them."""
        log, made = len(self.log), self.calls
        try:
            return self._session.prefetch(calls, keep=keep)
        finally:
            del self.log[log:]
            self.calls = made

    def seams(self, inputs: Arrays, settings: Mapping[str, Any], g: np.ndarray, **options: Any) -> list[dict[str, Any]]:
        """The recordings around a layer's own sublayers."""
        with self._logged("call and vjp, recorded at the layer's seams", inputs, settings, g=g):
            return self._session.seams(inputs, settings, g, **options)

    def again(self, place: int, does: str, **rest: Any) -> Any:
        """Log a gradient or a reading of an earlier call."""
        first = self.log[place]
        return self._logged(does, first.inputs, first.settings, parts=first.parts, of=place, **rest)


class LoggingEvaluation:
    """An adapters.evaluation.Evaluation that logs its calls."""

    def __init__(self, evaluation: Any, session: LoggingSession, place: int) -> None:
        self._evaluation, self._session, self._place = evaluation, session, place
        self.recorder = evaluation.recorder

    def outputs(self) -> dict[str, Any]:
        """The results as they are now."""
        if len(self._session.log) > self._place + 1:  # the check made another call in between
            with self._session.again(self._place, "read the outputs again"):
                return self._evaluation.outputs()
        return self._evaluation.outputs()

    def inputs(self) -> dict[str, Any]:
        """The inputs as they are now."""
        with self._session.again(self._place, "read the inputs again"):
            return self._evaluation.inputs()

    def pull(self, g: np.ndarray, layout: str = "contiguous", *, keep: bool = False) -> LoggingPulled:
        """The gradients of sum(y * g)."""
        layouts = {} if layout == "contiguous" else {"g": layout}
        place = len(self._session.log)
        with self._session.again(self._place, "vjp", g=g, layouts=layouts):
            return LoggingPulled(self._evaluation.pull(g, layout, keep=keep), self._session, place)


class LoggingPulled:
    """An adapters.evaluation.EvaluationGradients that logs its calls."""

    def __init__(self, pulled: Any, session: LoggingSession, place: int) -> None:
        self._pulled, self._session, self._place = pulled, session, place

    def gradients(self) -> dict[str, Any]:
        """The gradients as they are now."""
        if len(self._session.log) > self._place + 1:
            with self._session.again(self._place, "read the gradients again"):
                return self._pulled.gradients()
        return self._pulled.gradients()

    def cotangent(self) -> Any:
        """The cotangent as it is now."""
        with self._session.again(self._place, "read the cotangent again"):
            return self._pulled.cotangent()
