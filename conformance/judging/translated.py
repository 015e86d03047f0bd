"""
Translated calls: what a target is handed and returns where its conventions say that it takes something else.

A case holds what the operator is of. A target that declares `gain=one-plus-gamma` is handed gamma - 1; one that
declares `float64=float32` is handed a float32 case in float64, and has its results read in float32. Checks see neither:
they know the case alone. It is done on this side of a session, so that no worker has to know of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs
import numpy as np

from ...spec.errors import BadOutput, Unsupported

#: Names that a gain has: among inputs, tangents, and cotangents of its gradient. The others are differences.
_GAIN = "gamma"

#: How far from a float32 number the float64 number lies that stands for it: half of half a unit roundoff, so that
#: rounding to nearest leads back, wherever between two powers of two it lies, and cutting off digits does not.
_OFF = 2.0**-26

Arrays = Mapping[str, "np.ndarray | None"]


@attrs.frozen
class Translation:
    """What a target is handed in the place of a case's arrays."""

    #: Whether gamma - 1 stands for gamma.
    gain: bool = False
    #: Whether float64 stands for float32.
    wide: bool = False
    #: Whether x lies beside float32 numbers there: not where parts are to be handed its own bits.
    beside: bool = False

    def __bool__(self) -> bool:
        return self.gain or self.wide

    def inputs(self, arrays: Arrays) -> dict[str, np.ndarray | None]:
        """The inputs by name. Raises Unsupported where gamma - 1 is no number of its dtype."""
        found = {name: self.array(value) for name, value in arrays.items()}
        gamma = found.get(_GAIN)
        if self.gain and gamma is not None:
            found[_GAIN] = less = _less_one(gamma)
            x = found.get("x")
            dtype = gamma.dtype if x is None else x.dtype
            if _held(less, dtype) and not _held(gamma, dtype):  # 1 + w of a w in the dtype of x; see between
                found = {name: None if value is None else value.astype(dtype) for name, value in found.items()}
        if self.beside and found.get("x") is not None:
            found["x"] = _beside(np.asarray(found["x"]))
        return found

    def array(self, value: Any) -> Any:
        """One array of which nothing is taken away: a cotangent, a tangent."""
        return value.astype(np.float64) if self.wide and isinstance(value, np.ndarray) else value

    def arrays(self, arrays: Arrays) -> dict[str, Any]:
        """Several of these."""
        return {name: self.array(value) for name, value in arrays.items()}

    def result(self, value: Any, what: str) -> Any:
        """A result as the case has it. Raises BadOutput where it is not in the dtype that was handed over."""
        if not self.wide or not isinstance(value, np.ndarray):
            return value
        if value.dtype != np.float64:
            raise BadOutput(f"{what} has dtype {value.dtype.name} in place of float64", "dtype")
        return _narrowed(value)

    def results(self, arrays: Arrays, what: str = "") -> dict[str, Any]:
        """Several results by name."""
        return {name: self.result(value, f"{what}{name}") for name, value in arrays.items()}

    def given_back(self, arrays: Arrays) -> dict[str, Any]:
        """Inputs that were read again, as the case has them."""
        found = self.results(arrays)
        gamma = found.get(_GAIN)
        if self.gain and gamma is not None:
            found[_GAIN] = (gamma.astype(np.float64) + 1).astype(gamma.dtype)
        return found

    def seen(self, value: Any) -> Any:
        """What a part was handed or returned: in the dtype of the call, or in the one that it is computed in."""
        return _narrowed(value) if self.wide and isinstance(value, np.ndarray) else value


def _narrowed(value: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return value.astype(np.float32)


def _less_one(gamma: np.ndarray) -> np.ndarray:
    less, exact = _less(gamma)
    if not exact.all():
        raise Unsupported(f"gamma - 1, which is to be handed over, is not exact in {gamma.dtype.name}")
    return less


def _less(gamma: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """gamma - 1 in gamma's dtype, and where that is exact; that of a NaN is one."""
    wide = gamma.astype(np.float64)
    less = wide - 1
    one = less - wide  # with the error of the difference, as Knuth has it, float64 need not hold it either
    error = (wide - (less - one)) + (-1 - one)
    held = less.astype(gamma.dtype)
    return held, np.isnan(wide) | ((error == 0) & (held.astype(np.float64) == less))


def one_plus(gamma: np.ndarray) -> np.ndarray:
    """A gain near this one, or 2, of which gamma - 1 is exact in its dtype."""
    less, exact = _less(gamma)
    near = np.where(exact, gamma, (less.astype(np.float64) + 1).astype(gamma.dtype)) + np.zeros((), gamma.dtype)
    return np.where(_less(near)[1], near, np.asarray(2, gamma.dtype))


def between(gamma: np.ndarray) -> np.ndarray | None:
    """
    Gains 1 + w in float32, for w of gamma's 16-bit dtype, of which some are no number of that dtype; None for none.

    Beside an x of that dtype, who stores gamma - 1 is handed w in it, and has to add the 1 in more digits.
    """
    wide = (gamma * gamma.dtype.type(2.0**-6)).astype(np.float32) + np.float32(1)
    less, exact = _less(wide)
    return wide if exact.all() and _held(less, gamma.dtype) and not _held(wide, gamma.dtype) else None


def _held(values: np.ndarray, dtype: np.dtype) -> bool:
    """Whether all of these are numbers of a dtype."""
    with np.errstate(all="ignore"):
        return bool(np.array_equal(values.astype(dtype).astype(values.dtype), values, equal_nan=True))


def _beside(x: np.ndarray) -> np.ndarray:
    """Numbers of float64 that round to these of float32, on either side by the last digit: a function of the value."""
    odd = x.astype(np.float32).view(np.uint32) & 1
    with np.errstate(all="ignore"):
        return x * np.where(odd == 1, 1 + _OFF, 1 - _OFF)


class TranslatedSession:
    """As adapters.session.Session, with a translation before and after each call."""

    def __init__(self, session: Any, translation: Translation) -> None:
        self._session, self._translation = session, translation

    def start(self, inputs: Arrays, settings: Mapping[str, Any], **options: Any) -> Any:
        """Call the target."""
        evaluation = self._session.start(self._translation.inputs(inputs), settings, **options)
        return TranslatedEvaluation(evaluation, self._translation)

    def call(self, inputs: Arrays, settings: Mapping[str, Any], **options: Any) -> list[dict[str, Any]]:
        """The results of several calls."""
        found = self._session.call(self._translation.inputs(inputs), settings, **options)
        return [self._translation.results(one) for one in found]

    def vjp(
        self, inputs: Arrays, settings: Mapping[str, Any], g: np.ndarray, **options: Any
    ) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """The gradients of several calls, and what the first returned."""
        handed = self._translation
        tracked, found = self._session.vjp(handed.inputs(inputs), settings, handed.array(g), **options)
        return handed.results(tracked), [handed.results(one, "the gradient of ") for one in found]

    def recall(
        self, inputs: Arrays, settings: Mapping[str, Any], then: Arrays, *, g: np.ndarray | None = None, **options: Any
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """A second call on the memory of a first."""
        handed = self._translation
        outputs, gradients = self._session.recall(
            handed.inputs(inputs), settings, handed.inputs(then), g=handed.array(g), **options
        )
        return handed.results(outputs), handed.results(gradients, "the gradient of ")

    def jvp(self, inputs: Arrays, settings: Mapping[str, Any], tangents: Arrays, **options: Any) -> Any:
        """The tangent of y."""
        handed = self._translation
        found = self._session.jvp(handed.inputs(inputs), settings, handed.arrays(tangents), **options)
        return handed.result(found, "the tangent of y")

    def vjp_vjp(
        self, inputs: Arrays, settings: Mapping[str, Any], g: np.ndarray, cotangents: Arrays, **options: Any
    ) -> dict[str, Any]:
        """Second order."""
        handed = self._translation
        found = self._session.vjp_vjp(
            handed.inputs(inputs), settings, handed.array(g), handed.arrays(cotangents), **options
        )
        return handed.results(found, "the second-order gradient of ")

    def nested(
        self, kind: str, inputs: Arrays, settings: Mapping[str, Any], tangents: Arrays, other: Any, **options: Any
    ) -> dict[str, Any]:
        """A derivative of a derivative in forward mode."""
        handed = self._translation
        last = handed.array(other) if isinstance(other, np.ndarray) else handed.arrays(other)
        found = self._session.nested(kind, handed.inputs(inputs), settings, handed.arrays(tangents), last, **options)
        return handed.results(found, "the nested derivative of ")

    def ask_ahead(self, calls: Iterable[Callable[[], object]], *, keep: bool = False) -> bool:
        """Ask for what these calls ask for."""
        return self._session.ask_ahead(calls, keep=keep)

    def seams(self, inputs: Arrays, settings: Mapping[str, Any], g: np.ndarray, **options: Any) -> list[dict[str, Any]]:
        """What was recorded around a layer's own sublayers."""
        handed = self._translation
        found = self._session.seams(handed.inputs(inputs), settings, handed.array(g), **options)
        return [{name: handed.seen(value) for name, value in block.items()} for block in found]


class TranslatedEvaluation:
    """As adapters.evaluation.Evaluation."""

    def __init__(self, evaluation: Any, translation: Translation) -> None:
        self._evaluation, self._translation = evaluation, translation
        recorder = evaluation.recorder
        self.recorder = None if recorder is None else TranslatedRecorder(recorder, translation.seen)

    def outputs(self) -> dict[str, Any]:
        """The results as they are now."""
        return self._translation.results(self._evaluation.outputs())

    def inputs(self) -> dict[str, Any]:
        """The inputs as they are now."""
        return self._translation.given_back(self._evaluation.inputs())

    def pull(self, g: np.ndarray, layout: str = "contiguous", *, keep: bool = False) -> TranslatedPulled:
        """The gradients of sum(y * g)."""
        pulled = self._evaluation.pull(self._translation.array(g), layout, keep=keep)
        return TranslatedPulled(pulled, self._translation)


class TranslatedPulled:
    """As adapters.evaluation.Pulled."""

    def __init__(self, pulled: Any, translation: Translation) -> None:
        self._pulled, self._translation = pulled, translation

    def gradients(self) -> dict[str, Any]:
        """The gradients as they are now."""
        return self._translation.results(self._pulled.gradients(), "the gradient of ")

    def cotangent(self) -> Any:
        """The cotangent as it is now."""
        return self._translation.result(self._pulled.cotangent(), "the cotangent")


class TranslatedRecorder:
    """As adapters.recording.Recorder."""

    def __init__(self, recorder: Any, seen: Callable[[Any], Any]) -> None:
        self._recorder, self._seen = recorder, seen
        #: The calls as they were recorded, each beside its translation.
        self._pairs = [(call, self._translated(call)) for call in recorder.calls]
        self.calls = [translated for _, translated in self._pairs]

    def _translated(self, call: Any) -> Any:
        return type(call)(call.role, [self._seen(value) for value in call.handed], self._seen(call.returned))

    def _original(self, call: Any) -> Any:
        return next(original for original, translated in self._pairs if translated is call)

    def lists_are_whole(self) -> bool:
        """Whether each list of parts still holds what it held."""
        return self._recorder.lists_are_whole()

    def handed_now(self, call: Any) -> list[Any]:
        """What the part was handed, as it is now."""
        return [self._seen(value) for value in self._recorder.handed_now(self._original(call))]

    def returned_now(self, call: Any) -> Any:
        """What the part returned, as it is now."""
        return self._seen(self._recorder.returned_now(self._original(call)))
