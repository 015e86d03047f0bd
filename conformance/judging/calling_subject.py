"""The calls of one binding of a target in one dtype on one device."""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar, cast

import attrs
import numpy as np

from ...adapters.binding import Binding, differentiable
from ...adapters.session import Evaluation, Session
from ...adapters.target import Target
from ...spec.errors import (
    CALL_FAILED,
    BadOutput,
    CannotVary,
    MissingGradient,
    TakesNoPart,
    TargetRaised,
    Unsupported,
)
from ...spec.operators import OPERATORS
from ..cases.case import Case
from ..cases.description import Description
from .call_log import LoggedCall, LoggingSession
from .calls import checked_derivatives, checked_shapes
from .inference_session import InferenceSession
from .library import Library
from .observation import Observation
from .translated import TranslatedSession, Translation
from .truth import gradient_name

_AnySubject = TypeVar("_AnySubject", bound="CallingSubject")

#: A call with this many values or more is large: it takes milliseconds, and may be split over threads.
LARGE = 1 << 16

#: A case with fewer values than this is observed in one request together with others.
_SMALL_CASE = 1 << 14

#: Number of cases whose results are kept. Few are enough: the checks of one case run soon after one another.
_REMEMBERED_CASES = 64


@attrs.define(eq=False)
class CallingSubject:
    """Calls one binding in one dtype on one device, and remembers what came."""

    target: Target
    binding: Binding
    dtype: str
    device: str = "cpu"
    #: Every convention and its value, declared or normative.
    conventions: Mapping[str, str] = attrs.field(factory=dict)
    #: Whether the user said that there are no gradients.
    forward_only: bool = False
    #: The only mode of batch_norm that it is judged in; empty for both.
    mode: str = ""
    #: Whether all its calls are made in inference mode, to find out what is wrong there.
    in_inference: bool = False
    #: Whether its calls are slow. If so, fewer cases run on it.
    slow: bool = False
    #: Whether a call is slow only where its shape is new, as where a framework compiles.
    slow_once: bool = False
    #: How often one call is repeated to provoke a race (CM-P2, CM-P3).
    repeats: int = 128
    #: The same for a call of many values.
    large_repeats: int = 128
    #: The last case that was run. If a call raises, this is the case of that call.
    last_case: Case | None = None
    #: The calls that the current check has made.
    log: list[LoggedCall] = attrs.field(factory=list)
    _session: Session | None = None
    _logging: LoggingSession | None = None
    #: Results of repeated calls by case, kept because two checks use them (checks/repetitions.py).
    repeated: dict[Case, Any] = attrs.field(factory=dict)
    #: Whether tracking makes the difference in the outputs of a case, kept for the same reason.
    by_tracking: dict[Case, bool] = attrs.field(factory=dict)
    #: Recordings at the seams of a layer by case, kept because several checks use them (checks/seams.py).
    recorded: dict[Case, Any] = attrs.field(factory=dict)
    #: Whether calls for several cases go to the worker in one request (see ``prefetch_cases``).
    _prefetches: bool = True
    _observed: OrderedDict[int, Observation] = attrs.field(factory=OrderedDict)
    _reached: bool | None = None

    @property
    def operator(self) -> str:
        return self.binding.operator

    @property
    def always_slow(self) -> bool:
        """Whether each call is slow, so that the search for a cause makes few."""
        return self.slow and not self.slow_once

    @property
    def format(self) -> str:
        """The dtype of its cases: float32 for a float64 subject that computes in float32."""
        return "float32" if self.dtype == "float64" and self.conventions.get("float64") == "float32" else self.dtype

    def new_library(self) -> Library:
        """A new, empty library of cases that this subject can take."""
        promoted = self.conventions.get("mixed_dtypes") == "promoted"
        return Library(self.format, one_plus=self._translation.gain, promoted=promoted)

    @property
    def one_plus(self) -> bool:
        """Whether the target receives gamma - 1 in place of gamma."""
        return self.binding.record.has_gain and self.conventions.get("gain") == "one-plus-gamma"

    @property
    def _translation(self) -> Translation:
        gain = self.one_plus
        wide = self.format != self.dtype
        return Translation(gain, wide, beside=wide and not OPERATORS[self.operator].composed)

    @property
    def session(self) -> Session:
        if self._session is None:
            binding = replace(self.binding, conventions=dict(self.conventions))
            session = self.target.session(binding, self.device)
            translation = self._translation
            if translation:
                session = cast(Session, TranslatedSession(session, translation))
            if self.in_inference:
                session = cast(Session, InferenceSession(session))
            self._logging = LoggingSession(session, self.log)
            self._session = cast(Session, self._logging)
        return self._session

    @property
    def calls(self) -> int:
        """Number of calls made for this subject."""
        return 0 if self._logging is None else self._logging.calls

    def prefetch(self, case: Case, calls: Iterable[Callable[[], object]]) -> None:
        """
        Send these calls of a case, or of variations of it, to the worker in one request.

        This only saves time: the check makes the calls afterwards, in this order, and finds their replies. Without a
        worker it does nothing.
        """
        if case.x.size >= LARGE:  # the trip to a worker then hardly matters, and results take memory
            return
        last_case = self.last_case
        self.session.prefetch(calls)
        self.last_case = last_case

    def prefetch_cases(self, cases: Iterable[tuple[Case, bool]]) -> None:
        """
        Send all calls that observing these cases takes in one request; the replies are kept whatever runs in between.

        Each case comes with whether its gradients are needed. Once the target is lost on one of them, this does nothing
        more, because each loss takes a new worker.
        """
        small = [(case, gradients) for case, gradients in cases if case.x.size < _SMALL_CASE]
        if small and self._prefetches:
            self.target.begin()
            last_case = self.last_case
            calls = [call for case, gradients in small for call in self.missing_calls(case, gradients=gradients)]
            if self.has_inference_path:
                calls += [partial(self.outputs, case, "inference") for case, gradients in small if gradients]
            self._prefetches = self.session.prefetch(calls, keep=True)
            self.last_case = last_case

    def missing_calls(
        self, case: Case, *, outputs: bool = True, gradients: bool = True, untracked: bool = False
    ) -> Iterator[Callable[[], object]]:
        """
        The calls that observing a case still takes, for its outputs, its gradients or both.

        With ``untracked``, also for its outputs in the last of ``modes``.
        """
        observed = self._observed.get(id(case))
        if outputs and (observed is None or observed.lacks_outputs):
            yield partial(self.outputs, case)
        if gradients and not self.forward_only and (observed is None or observed.lacks_gradients):
            yield partial(self.tracked, case)
        mode = self.modes(case)[-1]
        if untracked and mode != "training" and (observed is None or observed.lacks_untracked):
            yield partial(self.outputs, case, mode)

    # -- calls -----------------------------------------------------------------------------------

    def start(self, case: Case, **options: Any) -> Evaluation:
        """Call the target once. Raises Unsupported if the binding does not take such a call."""
        self._require_accepted(case)
        if self.forward_only:
            options.setdefault("wrt", ())
        return self.session.start(case.inputs, case.settings, parts=case.parts, **options)

    def recall(
        self, case: Case, later: Case, *, fresh: bool, tracked: bool = True
    ) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """
        Outputs, and gradients if ``tracked``, of a later case in a first one's memory; see Session.recall.

        What is not tracked is called as a layer is where it serves: in inference mode, if it has modes.
        """
        self._require_accepted(case)
        g = later.g if tracked and not self.forward_only else None
        outputs, gradients = self.session.recall(
            case.inputs, case.settings, later.inputs, parts=case.parts, g=g, fresh=fresh,
            mode="training" if tracked else self.modes(case)[-1],
        )  # fmt: skip
        return checked_shapes(outputs, later), self.named_gradients(gradients, later)

    def jvp(self, case: Case, tangents: Mapping[str, np.ndarray | None]) -> np.ndarray:
        """The target's tangent of y."""
        self._require_accepted(case)
        found = self.session.jvp(case.inputs, case.settings, tangents, parts=case.parts)
        checked_derivatives({"y": found}, case, "tangent of {}")
        return found

    def vjp_vjp(
        self, case: Case, second: Mapping[str, np.ndarray | None], **options: Any
    ) -> dict[str, np.ndarray | None]:
        """The target's second-order gradients, at the case's cotangent and these second ones; see Session.vjp_vjp."""
        self._require_accepted(case)
        found = self.session.vjp_vjp(case.inputs, case.settings, case.g, second, parts=case.parts, **options)
        return checked_derivatives(found, case, "second-order gradient of {}")

    def nested(
        self, kind: str, case: Case, tangents: Mapping[str, np.ndarray | None], other: Any
    ) -> dict[str, np.ndarray | None]:
        """The target's derivative of a derivative; see Session.nested."""
        self._require_accepted(case)
        found = self.session.nested(kind, case.inputs, case.settings, tangents, other, parts=case.parts)
        return checked_derivatives(found, case, "derivative of a derivative in {}")

    def seams(self, case: Case) -> list[dict[str, np.ndarray]]:
        """The recordings around the sublayers of a layer that has its own."""
        self._require_accepted(case)
        inputs = {name: case.inputs[name] for name in ("x", "gamma", "beta")}
        return self.session.seams(inputs, case.settings, case.g)

    def _require_accepted(self, case: Case) -> None:
        self.last_case = case
        if reason := self.cannot_vary(case):
            raise CannotVary(reason)
        reason = self.binding.accepts(case.x.shape, case.settings)
        if reason:
            raise Unsupported(reason)

    def cannot_vary(self, case: Case) -> str | None:
        """Why the call of a case cannot be made: the binding fixes a setting, size or parameter; None if it can."""
        own = self.binding.fixed
        if not own:
            return None
        return own.declines(case.operator, case.x.shape, case.settings) or own.lacks(case.inputs)

    def modes(self, case: Case) -> tuple[str, ...]:
        """
        The modes in which a call without gradients may run code of its own: inference too, for a layer that has modes.

        The mode of a batch_norm is a setting of the case.
        """
        both = self.binding.has_modes and not case.record.has_modes
        return ("training", "inference") if both else ("training",)

    def strictest_mode(self, case: Case) -> str:
        """
        The mode of a call without gradients that runs all code for such calls.

        It is the framework's own inference mode for a function without modes: nothing is tracked there either.
        """
        return self.modes(case)[-1] if self.binding.has_modes else "inference"

    def outputs_in_modes(
        self, case: Case, *, but_training: bool = False
    ) -> Iterator[tuple[str, dict[str, np.ndarray]]]:
        """The outputs of a fresh call in each of these modes, with words that tell the mode if it is not training."""
        modes = self.modes(case)
        for mode in modes[1:] if but_training else modes:
            yield "" if mode == "training" else " in inference mode", self.outputs(case, mode)

    def outputs(self, case: Case, mode: str = "training") -> dict[str, np.ndarray]:
        """The outputs of a fresh call, with their shapes checked."""
        return self.repeated_outputs(case, 1, mode)[0]

    def repeated_outputs(
        self, case: Case, times: int, mode: str = "training", *, alone: bool = False
    ) -> list[dict[str, np.ndarray]]:
        """The outputs of ``times`` calls, one after the other; with ``alone``, each on one thread."""
        self._require_accepted(case)
        found = self.session.call(case.inputs, case.settings, parts=case.parts, mode=mode, times=times, alone=alone)
        return [checked_shapes(outputs, case) for outputs in found]

    def in_other_mode(self, case: Case) -> Case | None:
        """The case in the other mode; None where there is none, or where it is not judged."""
        if self.mode or "training" not in case.settings:
            return None
        return case.replace(training=not case.settings["training"])

    def repetitions(self, case: Case) -> int:
        """How often a call of this case is repeated to provoke a race."""
        return self.repeats if case.x.size < LARGE else self.large_repeats

    def observe(self, case: Case) -> Observation:
        """The results of the target on a case, remembered."""
        self.last_case = case
        key = id(case)
        if key in self._observed:
            self._observed.move_to_end(key)
            return self._observed[key]
        observation = Observation(self, case)
        self._observed[key] = observation
        if len(self._observed) > _REMEMBERED_CASES:
            self._observed.popitem(last=False)
        return observation

    def anew(self: _AnySubject, **changes: Any) -> _AnySubject:
        """The subject with these changes, of which nothing was asked."""
        fresh = {"session": None, "logging": None, "log": [], "observed": OrderedDict(), "reached": None}
        kept: dict[str, Any] = {name: {} for name in ("repeated", "by_tracking", "recorded")}
        return attrs.evolve(self, **fresh, **kept, prefetches=True, **changes)

    def forget(self) -> None:
        """Forget all results: the next check calls the target again."""
        self._observed.clear()
        self.repeated.clear()
        self.by_tracking.clear()
        self.recorded.clear()

    def repeats_itself(self, case: Case, name: str, value: np.ndarray, times: int) -> bool:
        """Whether ``times`` more calls of a case give this output or gradient with the same bits."""
        if name in case.record.outputs:
            runs = self.repeated_outputs(case, times)
        else:
            runs = self.repeated_gradients(case, times)
        return all(name in run and np.array_equal(run[name], value, equal_nan=True) for run in runs)

    def declines(self, case: Case) -> str:
        """Why the target declines the plain call of a case; empty if it takes the call, even if the call then fails."""
        if self.binding.seams is not None:  # it has no plain call: it is judged at its seams
            return ""
        self.target.begin()
        try:
            _ = self.observe(case).outputs
        except TakesNoPart:  # it takes the same call without that part
            return ""
        except Unsupported as declined:
            return str(declined)
        except CALL_FAILED:
            return ""
        return ""

    def lacking_gradients(self, case: Case) -> Unsupported | None:
        """Why the target gives no gradients of a case; None if it gives them. Other exceptions propagate."""
        try:
            _ = self.observe(case).gradients
        except Unsupported as lacking:
            return lacking
        return None

    def has_gradients(self, case: Case) -> bool:
        """Whether the target gives gradients of a case. A plain call that fails raises, and is judged elsewhere."""
        observed = self.observe(case)
        _ = observed.outputs
        with contextlib.suppress(TargetRaised, BadOutput, Unsupported):  # CM-T3 and those of gradients say so
            _ = observed.gradients
        return observed.has_gradients

    def require_gradients(self) -> None:
        """Raise Unsupported if the user said that there are no gradients."""
        if self.forward_only:
            raise Unsupported("declared forward-only")

    def pull(
        self, case: Case, g: np.ndarray | None = None, wrt: tuple[str, ...] | None = None
    ) -> dict[str, np.ndarray]:
        """The gradients of a fresh call by name: of all inputs, or only of those in ``wrt``."""
        return self.repeated_gradients(case, 1, g, wrt)[0]

    def repeated_gradients(
        self,
        case: Case,
        times: int,
        g: np.ndarray | None = None,
        wrt: tuple[str, ...] | None = None,
        *,
        alone: bool = False,
    ) -> list[dict[str, np.ndarray]]:
        """The gradients of ``times`` calls, one after the other; with ``alone``, each on one thread."""
        self.require_gradients()
        self._require_accepted(case)
        g = case.g if g is None else g
        _, found = self.session.vjp(case.inputs, case.settings, g, parts=case.parts, wrt=wrt, times=times, alone=alone)
        named_of = self._all_gradients if wrt is None else self.named_gradients
        named = {id(gradients): named_of(gradients, case) for gradients in found}
        return [named[id(gradients)] for gradients in found]  # one object for those that agree, as a session returns

    def results(self, case: Case, *, gradients: bool) -> dict[str, np.ndarray]:
        """The gradients of a fresh call, or its outputs, by name."""
        return self.pull(case) if gradients else self.outputs(case)

    def tracked(
        self, case: Case, wrt: tuple[str, ...] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """The outputs of a fresh call with gradients tracked, of all inputs or those in ``wrt``, and its gradients."""
        self.require_gradients()
        self._require_accepted(case)
        outputs, (found,) = self.session.vjp(
            case.inputs, case.settings, case.g, parts=case.parts, wrt=wrt, outputs=True
        )
        named_of = self._all_gradients if wrt is None else self.named_gradients
        return checked_shapes(outputs, case), named_of(found, case)

    def _all_gradients(self, gradients: Mapping[str, np.ndarray | None], case: Case) -> dict[str, np.ndarray]:
        """The gradients of all inputs by name. Raises MissingGradient if leaves lack one and have it elsewhere."""
        named = self.named_gradients(gradients, case)
        lost = tuple(name for name in _leaves(case) if gradient_name(name) not in named)
        if lost and self._reaches_leaves:
            raise MissingGradient(f"no gradient reaches {', '.join(lost)}", lost)
        return named

    @property
    def may_track(self) -> bool:
        """Whether a call may know that its gradients are taken: a plain function on NumPy arrays is not told."""
        return self.target.framework != "numpy" or getattr(self.binding, "prepare", None) is not None

    @property
    def has_inference_path(self) -> bool:
        """Whether a function may do something else in its framework's inference mode, and calls of it are quick."""
        return self.may_track and not (self.slow or self.binding.has_modes or self.forward_only)

    @property
    def _reaches_leaves(self) -> bool:
        """
        Whether gradients reach what the parts close over in the plainest case.

        A target that cannot differentiate by closures reaches none in any case; one that reaches them here loses them
        elsewhere.
        """
        if self._reached is None:
            last_case, logged = self.last_case, len(self.log)
            groups = (("normal", 0), ("normal", 1))
            case = self.new_library().case(Description(self.operator, 4, groups, recipe="leaf"))
            try:
                _, (found,) = self.session.vjp(case.inputs, case.settings, case.g, parts=case.parts, outputs=True)
                self._reached = any(found.get(name) is not None for name in _leaves(case))
            except CALL_FAILED:
                self._reached = False
            self.last_case = last_case
            del self.log[logged:]
        return self._reached

    def named_gradients(self, gradients: Mapping[str, np.ndarray | None], case: Case) -> dict[str, np.ndarray]:
        """Gradients under the names "dx", "dgamma" and so on. Raises BadOutput if a shape is wrong."""
        named = {}
        for name, value in gradients.items():
            owner = case.inputs[name]
            if value is None or owner is None:
                continue
            if value.shape != owner.shape:
                raise BadOutput(
                    f"the gradient of {name} has shape {value.shape} in place of {owner.shape}",
                    "shape",
                )
            named[gradient_name(name)] = value
        return named


def _leaves(case: Case) -> tuple[str, ...]:
    """The names of the leaves that the parts of a case close over."""
    return tuple(name for name in differentiable(case.operator, case.inputs) if "." in name)
