"""
Sessions: calls of one binding, with NumPy arrays going in and coming out.

No framework object crosses this boundary, so a process boundary can be put here. Whatever a target does, a call of it
ends in a result or in one of three exceptions: TargetRaised, BadOutput or Unsupported. Only KeyboardInterrupt passes
through, because the user caused it and not the target.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Optional

import numpy as np

from ..spec.errors import BadOutput, MissingGradient, Unsupported
from ..spec.parts import Parts
from .binding import NESTED, differentiable
from .caller import Caller
from .evaluation import Evaluation, EvaluationGradients, checked_gradients, derivative_name
from .layouts import fitting
from .recording import Recorder
from .repeats import repeated
from .same_bits import same_bits
from .stage import Stage

__all__ = ["Evaluation", "EvaluationGradients", "Session"]

if TYPE_CHECKING:
    Arrays = Mapping[str, Optional[np.ndarray]]


@dataclass
class Session(Caller):
    """Calls of one binding of one target, with NumPy arrays in and out. Raises DeviceUnavailable."""

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
        alone: bool = False,
        frozen: bool = False,
        intermediate: Collection[str] | None = None,
    ) -> Evaluation:
        """
        Call the target.

        ``inputs`` holds every tensor by name, including the leaves of the parts. ``settings`` holds the keyword
        arguments. ``parts`` holds the parts of a composed operator by role. ``layouts`` gives the layout of each input
        that is not contiguous. ``wrt`` names the inputs whose gradients may be taken: by default all inputs that are
        given and have a gradient. In mode "inference" a binding with modes switches to inference, and nothing is
        tracked. ``record`` records the calls of the parts. ``defaults`` leaves eps and momentum out of the call, so
        that the framework's own values apply. ``alone`` runs the call on one thread, as small calls always run.
        ``frozen`` enables gradients though no input needs one, as in a network whose weights are frozen.
        ``intermediate`` makes the call as inside a network: what it names is passed as the result of another operation,
        and every other input that is tracked as a parameter of the framework's.
        Raises Unsupported if the binding does not take such a part, or has no defaults.
        """
        evaluation = self._prepared(inputs, settings, parts, layouts, wrt, mode, alone=alone)
        if intermediate is not None and evaluation.tracked:
            evaluation.enter_network(intermediate)
        evaluation.recorder = Recorder(self.bridge) if record else None
        return self._called(evaluation, mode, defaults=defaults, frozen=frozen)

    def _called(self, evaluation: Evaluation, mode: str, *, defaults: bool = False, frozen: bool = False) -> Evaluation:
        """Make the call of an evaluation and store its results."""
        bridge, arguments = self.bridge, evaluation.arguments
        gradients = evaluation.tracked or frozen
        guard = bridge.guarded(evaluation.size, gradients=gradients, training=mode == "training")
        with Stage("call", arguments.optional, framework=bridge.name), guard:
            returned = self.call_target(arguments, evaluation.tensors, mode, evaluation.recorder, defaults=defaults)
            bridge.synchronise(self.device)
        if evaluation.recorder is not None:
            evaluation.recorder.returned = True
        with Stage("read"):
            evaluation.results = self.results_by_name(returned)
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
        """Make ``times`` calls in a row, without tracking gradients, and return their results; see :meth:`start`."""

        def call() -> dict[str, np.ndarray]:
            return self.start(inputs, settings, parts=parts, wrt=(), mode=mode, alone=alone).outputs()

        return repeated(call, times, lambda results: self._spoiler(*inputs.values(), *results.values()))

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
        """
        The outputs of a call that tracks gradients, and the gradients of sum(y * g) in each of ``times`` calls.

        With ``outputs``, the outputs are those of the first call, where a functional framework returns y alone; without
        it there are none. See :meth:`Evaluation.pull`.
        """

        def evaluation() -> Evaluation:
            if not self.tracks_calls:  # pull makes the call
                return self._prepared(inputs, settings, parts, None, wrt, "training", alone=alone)
            return self.start(inputs, settings, parts=parts, wrt=wrt, alone=alone)

        returned: dict[str, np.ndarray] = {}

        def pull() -> dict[str, np.ndarray | None]:
            nonlocal returned
            made, wanted = evaluation(), outputs and not returned
            if wanted:
                returned = made.outputs()
            gradients = made.pull(g).gradients()
            if wanted and not returned:
                returned = made.tracked_outputs()
            return gradients

        found = repeated(pull, times, lambda results: self._spoiler(g, *inputs.values(), *results.values()))
        return returned, found

    def _spoiler(self, *arrays: np.ndarray | None) -> Callable[[], object]:
        """
        Return a function that fills memory with NaN, as much as a call with these arrays takes, and frees it.

        That is twice what the arrays take: each was a tensor of the framework, and an array of ours.
        """
        floats = [array for array in arrays if array is not None and array.dtype.kind not in "biu"]
        return self.bridge.filler([np.full_like(array, np.nan) for array in floats * 2], self.device)

    @property
    def tracks_calls(self) -> bool:
        """Whether a call tracks what its gradients take: a functional framework makes a further call for them."""
        return not self.bridge.functional or "vjp" in self.binding.derivatives

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
        """
        The outputs and gradients of a second call on the memory of a first.

        Between the two calls the arrays of ``then`` are written into the tensors; they have the names, shapes and
        dtypes of ``inputs``. The second call gets the same tensors, or with ``fresh`` new tensors on the same memory.
        A tensor whose values stay as they are is not written to.
        The gradients of sum(y * g) are taken after both calls. They are missing without ``g``, or if the target has
        no gradients. In mode "inference" there is no ``g``; see :meth:`start`.
        Raises Unsupported if normspec cannot write to the framework's tensors in place.
        """
        bridge = self.bridge
        if not bridge.rewrites:
            raise Unsupported(f"normspec writes to no tensor of {bridge.name} in place")
        wrt = () if g is None else differentiable(self.binding.operator, inputs)
        tensors = self.tensors(inputs, tracked=wrt)
        self._results(tensors, inputs, settings, parts, wrt, g, mode)
        with Stage("call"):
            for name, array in then.items():
                given = inputs[name]
                if array is not None and (fresh or given is None or not same_bits(array, given)):
                    tensors[name] = bridge.rewritten(tensors[name], array, fresh=fresh)
        return self._results(tensors, inputs, settings, parts, wrt, g, mode)

    def _results(
        self,
        tensors: dict[str, Any],
        inputs: Arrays,
        settings: Mapping[str, Any],
        parts: Parts | None,
        wrt: Sequence[str],
        g: np.ndarray | None,
        mode: str,
    ) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray | None]]:
        """Call the target on these tensors; return the outputs, and the gradients if ``g`` is given and they exist."""
        evaluation = self._called(self._evaluation(tensors, settings, parts, wrt, mode, _size(inputs)), mode)
        outputs = evaluation.outputs()
        try:
            return outputs, {} if g is None else evaluation.pull(g).gradients()
        except Unsupported:
            return outputs, {}

    def _prepared(
        self,
        inputs: Arrays,
        settings: Mapping[str, Any],
        parts: Parts | None,
        layouts: Mapping[str, str] | None,
        wrt: Sequence[str] | None,
        mode: str,
        *,
        alone: bool = False,
    ) -> Evaluation:
        """Make tensors of the inputs, and an evaluation on them that has not been called yet."""
        binding, training = self.binding, mode == "training"
        if wrt is None:
            wrt = differentiable(binding.operator, inputs)
        layouts = layouts or {}
        tensors = {
            name: None
            if array is None
            else self.tensor(array, layouts.get(name, "contiguous"), tracked=training and name in wrt)
            for name, array in inputs.items()
        }
        return self._evaluation(tensors, settings, parts, wrt, mode, 0 if alone else _size(inputs))

    def _evaluation(
        self,
        tensors: dict[str, Any],
        settings: Mapping[str, Any],
        parts: Parts | None,
        wrt: Sequence[str],
        mode: str,
        size: int,
    ) -> Evaluation:
        """An evaluation on these tensors that has not been called yet."""
        arguments = self.arguments(settings, parts)
        if self.binding.prepare is not None:
            self.binding.prepare(mode=mode, wrt=tuple(wrt))
        return Evaluation(self, tensors, arguments, tuple(wrt) if mode == "training" else (), size)

    def jvp(
        self, inputs: Arrays, settings: Mapping[str, Any], tangents: Arrays, *, parts: Parts | None = None
    ) -> np.ndarray:
        """
        The tangent of y for these tangents of the inputs, by name; a tangent that is None or absent is zero.

        Raises Unsupported if neither the framework nor the binding has forward mode.
        """
        bridge, binding = self.bridge, self.binding
        own = binding.derivatives.get("jvp")
        if own is None and not bridge.differentiates:
            raise Unsupported(
                f"{binding.name} has no forward-mode derivative: none named {derivative_name(binding, 'jvp')}"
            )
        arguments, tensors = self.arguments(settings, parts), self.tensors(inputs)
        names = differentiable(binding.operator, inputs)
        moving = {name: self.tensor(_given(tangents, name, inputs[name])) for name in names}
        with Stage("jvp"), bridge.guarded(_size(inputs), gradients=True):
            if own is not None:
                positional, keywords = arguments.with_tensors(tensors, tangents=moving)
                explicit = [moving.get(name) for name in binding.record.differentiable]
                tangent = own(*positional, *explicit, **keywords)
            else:
                call = self.y_of(arguments, tensors, names)
                tangent = bridge.jvp(call, [tensors[name] for name in names], list(moving.values()))
                if tangent is None:
                    raise MissingGradient("no tangent reaches y", ("x",))
            bridge.synchronise(self.device)
        return self.read(tangent, "the tangent of y")

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
        """
        Second order: the vjp of the map (arguments, g) -> gradients, at these cotangents of the gradients, by name.

        A cotangent that is None or absent is zero; leaves have none. Arrays that can have this ``layout`` do.
        ``wrt`` names the arguments of the map, the others being constants: by default all that have a gradient. A
        hand-written derivative always has them all. The result holds the gradients listed in the operator's
        ``second``, with None where the input is None or not in ``wrt``. Raises Unsupported if neither the framework nor
        the binding differentiates twice.
        """
        bridge, binding = self.bridge, self.binding
        own = binding.derivatives.get("vjp_vjp")
        if own is None and not bridge.differentiates:
            raise Unsupported(
                f"{binding.name} has no second-order derivative: none named {derivative_name(binding, 'vjp_vjp')}"
            )
        names, results = binding.record.differentiable, binding.record.second_order_results
        if wrt is not None and own is None:
            names = tuple(name for name in names if name in wrt)
        arguments = self.arguments(settings, parts)
        tensors = self.tensors(inputs, () if own else names, layout)
        cotangent = self.tensor(g, fitting(g, layout), tracked=own is None)
        # A hand-written derivative gets every cotangent, zeros included; autograd gets only the given ones.
        given = {
            name: _given(cotangents, name, inputs[name])
            for name in names
            if inputs[name] is not None and (own is not None or cotangents.get(name) is not None)
        }
        handed = {name: self.tensor(array, fitting(array, layout)) for name, array in given.items()}
        second = [handed.get(name) for name in names]
        with Stage("vjp_vjp"), bridge.guarded(_size(inputs), gradients=True):
            if own is not None:
                positional, keywords = arguments.with_tensors(tensors, notes={})
                returned = own(*positional, cotangent, *second, **keywords)
                found = dict(zip(results, checked_gradients(binding, "vjp_vjp", returned, len(results))))
            else:
                explicit = [tensors[name] for name in names]
                bars = bridge.vjp_vjp(self.y_of(arguments, tensors, names), explicit, cotangent, second)
                found = dict(zip((*names, "g"), bars))
            bridge.synchronise(self.device)
        for name, tensor in {**handed, "y": cotangent}.items():
            if not same_bits(bridge.array(tensor, "a cotangent"), {**given, "y": g}[name]):
                of = name if name == "y" else f"d{name}"
                raise BadOutput(f"the second derivative changed the cotangent of {of}", "changed")
        likes = {**{name: inputs[name] for name in names}, "g": g}
        return {
            name: self._zero_or(found.get(name), likes.get(name), f"the second-order gradient of {name}")
            for name in results
        }

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
        """
        A nested derivative (one of binding.NESTED) for these tangents of the inputs, by name.

        "jvp_vjp" and "vjp_jvp" take a cotangent of y as ``other``. They return the results of :meth:`Bridge.nested` by
        input name, with None where the input is None. "jvp_jvp" takes tangents as ``other``, and returns "y". A tangent
        that is None or absent is zero. Raises Unsupported if neither the framework nor the binding has the derivative.
        """
        bridge, binding = self.bridge, self.binding
        own = binding.derivatives.get(kind)
        if own is None and not bridge.differentiates:
            raise Unsupported(f"{binding.name} has no {NESTED[kind]}: none named {derivative_name(binding, kind)}")
        names = binding.record.differentiable
        arguments, tensors = self.arguments(settings, parts), self.tensors(inputs)

        def directions(given: Arrays) -> list[Any]:
            return [None if inputs[n] is None else self.tensor(_given(given, n, inputs[n])) for n in names]

        moving = directions(tangents)
        last = self.tensor(other) if isinstance(other, np.ndarray) else directions(other)
        with Stage(kind), bridge.guarded(_size(inputs), gradients=True):
            if own is not None:
                positional, keywords = arguments.with_tensors(tensors, notes={})
                ahead = [last, *moving] if kind == "jvp_vjp" else [*moving, *(last if kind == "jvp_jvp" else [last])]
                returned = own(*positional, *ahead, **keywords)
                found = (
                    [returned] if kind == "jvp_jvp" else list(checked_gradients(binding, kind, returned, len(names)))
                )
            else:
                explicit = [tensors[name] for name in names]
                found = bridge.nested(kind, self.y_of(arguments, tensors, names), explicit, moving, last)
            bridge.synchronise(self.device)
        results = ("y",) if kind == "jvp_jvp" else names
        likes = {**{name: inputs[name] for name in names}, "y": inputs["x"]}
        return {
            name: self._zero_or(value, likes[name], f"the {NESTED[kind]} of {name}")
            for name, value in zip(results, found)
        }

    def prefetch(self, calls: Iterable[Callable[[], object]], *, keep: bool = False) -> bool:
        """Return True, as nothing is lost: only a session in a worker sends several calls in one request."""
        return True

    def seams(
        self, inputs: Arrays, settings: Mapping[str, Any], g: np.ndarray, *, seed: int = 0
    ) -> list[dict[str, np.ndarray]]:
        """Run a layer that has its own sublayers, and return the record around each sublayer; see adapters/seam.py."""
        bridge, run = self.bridge, self.binding.seams
        if run is None:
            raise Unsupported(f"{self.binding.name} brings no sublayer of its own")
        tensors = self.tensors(inputs, tracked=tuple(inputs))
        with Stage("vjp"), bridge.guarded(_size(inputs), gradients=True):
            blocks = run(tensors["x"], tensors["gamma"], tensors["beta"], self.tensor(g), **settings, seed=seed)
            bridge.synchronise(self.device)
        return [{name: self.read(value, name) for name, value in block.items()} for block in blocks]

    def _zero_or(self, value: Any, like: np.ndarray | None, what: str) -> np.ndarray | None:
        if like is None:
            return None
        # If no gradient reaches an input, the map does not depend on it, so its gradient is zero.
        return np.zeros_like(like) if value is None else self.read(value, what)


def _given(arrays: Arrays, name: str, like: Any) -> np.ndarray:
    array = arrays.get(name)
    return np.zeros_like(like) if array is None else array


def _size(inputs: Arrays) -> int:
    x = inputs["x"]
    return 0 if x is None else x.size
