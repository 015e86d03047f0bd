"""
Translated calls, for targets whose conventions say that they take other arrays than a case holds.

A case holds the operator's own arguments. A target that declares `gain=one-plus-gamma` receives gamma - 1. A target
that declares `float64=float32` receives a float32 case in float64, and its results are read in float32. Checks know
only the case and see no translation. It happens on this side of the session, so workers need not know of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs
import numpy as np

from ...spec.errors import BadOutput, Unsupported

#: Name of the gain among the inputs. Tangents and cotangents are differences, so the 1 does not change them.
_GAIN = "gamma"

#: Relative distance of a float64 number from the float32 number that it stands for: a quarter of float32's unit
#: roundoff. Rounding to nearest gives the float32 number back, even just below a power of two; truncation does not.
_OFF = 2.0**-26

Arrays = Mapping[str, "np.ndarray | None"]


@attrs.frozen
class Translation:
    """How the arrays of a case are translated for a target, and its results back."""

    #: Whether the target receives gamma - 1 for gamma.
    gain: bool = False
    #: Whether the target receives float64 arrays for float32 ones.
    wide: bool = False
    #: Whether x is then moved slightly off float32 numbers. Not for operators whose parts must receive the bits of x.
    beside: bool = False

    def __bool__(self) -> bool:
        return self.gain or self.wide

    def inputs(self, arrays: Arrays) -> dict[str, np.ndarray | None]:
        """The translated inputs by name. Raises Unsupported if gamma - 1 is not exact in its dtype."""
        found = {name: self.array(value) for name, value in arrays.items()}
        gamma = found.get(_GAIN)
        if self.gain:
            found.update({name: _less_one(found[name]) for name in _inner_gains(found)})
        if self.gain and gamma is not None:
            found[_GAIN] = less = _less_one(gamma)
            x = found.get("x")
            dtype = gamma.dtype if x is None else x.dtype
            if _is_exact_in(less, dtype) and not _is_exact_in(gamma, dtype):  # w of 1 + w is in x's dtype; see between
                found = {name: None if value is None else value.astype(dtype) for name, value in found.items()}
        if self.beside and found.get("x") is not None:
            found["x"] = _between_float32(np.asarray(found["x"]))
        return found

    def array(self, value: Any) -> Any:
        """One translated array from which no 1 is subtracted: a cotangent or a tangent."""
        return value.astype(np.float64) if self.wide and isinstance(value, np.ndarray) else value

    def arrays(self, arrays: Arrays) -> dict[str, Any]:
        """Several such arrays by name."""
        return {name: self.array(value) for name, value in arrays.items()}

    def result(self, value: Any, what: str) -> Any:
        """A result in the dtype of the case. Raises BadOutput if it does not have the dtype of the inputs."""
        if not self.wide or not isinstance(value, np.ndarray):
            return value
        if value.dtype != np.float64:
            raise BadOutput(f"{what} has dtype {value.dtype.name} in place of float64", "dtype")
        return _narrowed(value)

    def results(self, arrays: Arrays, what: str = "") -> dict[str, Any]:
        """Several results by name."""
        return {name: self.result(value, f"{what}{name}") for name, value in arrays.items()}

    def original_inputs(self, arrays: Arrays) -> dict[str, Any]:
        """Inputs that were read again, translated back to those of the case."""
        found = self.results(arrays)
        for name in (_GAIN, *_inner_gains(found)):
            gamma = found.get(name)
            if self.gain and gamma is not None:
                found[name] = (gamma.astype(np.float64) + 1).astype(gamma.dtype)
        return found

    def seen(self, value: Any) -> Any:
        """An input or result of a part, whether in the dtype of the call or in the one that it is computed in."""
        return _narrowed(value) if self.wide and isinstance(value, np.ndarray) else value


def _inner_gains(names: Iterable[str]) -> list[str]:
    """The names among these of the gains of parts that are the operator itself."""
    return [name for name in names if name.endswith(f".{_GAIN}")]


def _narrowed(value: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return value.astype(np.float32)


def _less_one(gamma: np.ndarray) -> np.ndarray:
    less, exact = _less(gamma)
    if not exact.all():
        raise Unsupported(f"gamma - 1, which is to be handed over, is not exact in {gamma.dtype.name}")
    return less


def _less(gamma: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """gamma - 1 in gamma's dtype, and a mask of where it is exact; a NaN counts as exact."""
    wide = gamma.astype(np.float64)
    less = wide - 1
    one = less - wide  # Knuth's error of a difference, since float64 need not hold gamma - 1 exactly either
    error = (wide - (less - one)) + (-1 - one)
    held = less.astype(gamma.dtype)
    return held, np.isnan(wide) | ((error == 0) & (held.astype(np.float64) == less))


def one_plus(gamma: np.ndarray) -> np.ndarray:
    """A gain whose gamma - 1 is exact in its dtype: one near this gain, or else 2."""
    less, exact = _less(gamma)
    near = np.where(exact, gamma, (less.astype(np.float64) + 1).astype(gamma.dtype)) + np.zeros((), gamma.dtype)
    return np.where(_less(near)[1], near, np.asarray(2, gamma.dtype))


def between(gamma: np.ndarray) -> np.ndarray | None:
    """
    Float32 gains 1 + w for w of gamma's 16-bit dtype, some of which that dtype does not hold; None if there are none.

    With an x of that dtype, an implementation that stores gamma - 1 receives w in it, and must add the 1 in more
    digits.
    """
    wide = (gamma * gamma.dtype.type(2.0**-6)).astype(np.float32) + np.float32(1)
    less, exact = _less(wide)
    return wide if exact.all() and _is_exact_in(less, gamma.dtype) and not _is_exact_in(wide, gamma.dtype) else None


def _is_exact_in(values: np.ndarray, dtype: np.dtype) -> bool:
    """Whether a dtype holds all of these values."""
    with np.errstate(all="ignore"):
        return bool(np.array_equal(values.astype(dtype).astype(values.dtype), values, equal_nan=True))


def _between_float32(x: np.ndarray) -> np.ndarray:
    """
    Float64 numbers that round to these float32 numbers without being equal.

    The last bit of each value decides on which side its neighbour lies, so equal values stay equal.
    """
    odd = x.astype(np.float32).view(np.uint32) & 1
    with np.errstate(all="ignore"):
        return x * np.where(odd == 1, 1 + _OFF, 1 - _OFF)


class TranslatedSession:
    """An adapters.session.Session with a translation before and after each call."""

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
        """The outputs of the first call, and the gradients of all calls."""
        handed = self._translation
        outputs, found = self._session.vjp(handed.inputs(inputs), settings, handed.array(g), **options)
        return handed.results(outputs), [handed.results(one, "the gradient of ") for one in found]

    @property
    def tracks_calls(self) -> bool:
        """See Session.tracks_calls."""
        return self._session.tracks_calls

    def recall(
        self, inputs: Arrays, settings: Mapping[str, Any], then: Arrays, *, g: np.ndarray | None = None, **options: Any
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """A second call in the memory of a first."""
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
        """Second-order gradients."""
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

    def prefetch(self, calls: Iterable[Callable[[], object]], *, keep: bool = False) -> bool:
        """Send these calls ahead in one request."""
        return self._session.prefetch(calls, keep=keep)

    def seams(self, inputs: Arrays, settings: Mapping[str, Any], g: np.ndarray, **options: Any) -> list[dict[str, Any]]:
        """The recordings around a layer's own sublayers."""
        handed = self._translation
        found = self._session.seams(handed.inputs(inputs), settings, handed.array(g), **options)
        return [{name: handed.seen(value) for name, value in block.items()} for block in found]


class TranslatedEvaluation:
    """An adapters.evaluation.Evaluation with translated arrays."""

    def __init__(self, evaluation: Any, translation: Translation) -> None:
        self._evaluation, self._translation = evaluation, translation
        recorder = evaluation.recorder
        self.recorder = None if recorder is None else TranslatedRecorder(recorder, translation.seen)

    def outputs(self) -> dict[str, Any]:
        """The results as they are now."""
        return self._translation.results(self._evaluation.outputs())

    def inputs(self) -> dict[str, Any]:
        """The inputs as they are now."""
        return self._translation.original_inputs(self._evaluation.inputs())

    def pull(self, g: np.ndarray, layout: str = "contiguous", *, keep: bool = False) -> TranslatedPulled:
        """The gradients of sum(y * g)."""
        pulled = self._evaluation.pull(self._translation.array(g), layout, keep=keep)
        return TranslatedPulled(pulled, self._translation)


class TranslatedPulled:
    """An adapters.evaluation.EvaluationGradients with translated arrays."""

    def __init__(self, pulled: Any, translation: Translation) -> None:
        self._pulled, self._translation = pulled, translation

    def gradients(self) -> dict[str, Any]:
        """The gradients as they are now."""
        return self._translation.results(self._pulled.gradients(), "the gradient of ")

    def cotangent(self) -> Any:
        """The cotangent as it is now."""
        return self._translation.result(self._pulled.cotangent(), "the cotangent")


class TranslatedRecorder:
    """An adapters.recording.Recorder with translated arrays."""

    def __init__(self, recorder: Any, seen: Callable[[Any], Any]) -> None:
        self._recorder, self._seen = recorder, seen
        #: Pairs of a recorded call and its translation.
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
        """The inputs of the part, as they are now."""
        return [self._seen(value) for value in self._recorder.handed_now(self._original(call))]

    def returned_now(self, call: Any) -> Any:
        """The result of the part, as it is now."""
        return self._seen(self._recorder.returned_now(self._original(call)))
