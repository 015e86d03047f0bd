"""
The operators of one target, as every study calls them: NumPy arrays in, results with pullbacks out.

A role (a branch, a sublayer, a gate) is filled with a step written in NumPy. In its place the target calls a part of
its own framework that returns the step's value and, on the way back, the step's cotangent. So the operator is the
target's, forward and backward, and the model around it is the same on every framework.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import attrs
import numpy as np

from ..adapters.session import Session
from ..adapters.target import Target
from ..adapters.targets import resolve
from ..spec.errors import NormspecError
from ..spec.parts import Part
from .result import Array, Result, Step

#: What may fill a role: a NumPy step, several for "branches", a part of the framework, or None.
Handed = Step | Sequence[Step] | Part | None


#: Empty settings: those of any call.
_ANY: Mapping[str, Any] = MappingProxyType({})


class NotStudied(NormspecError):
    """The target has none of the operators that a study needs."""


@attrs.frozen(eq=False)
class Operators:
    """
    The operators of a target; NumPy's replace those it lacks.

    Arrays keep their dtype; a parameter that is None is left out of the call.
    """

    #: The named target, and the one that replaces what it lacks.
    target: Target
    other: Target
    _sessions: dict[tuple[str, str], Session] = attrs.field(factory=dict, init=False, repr=False)

    @classmethod
    def of(
        cls, target: Any = "numpy", *, op: str | Sequence[str] | None = None, framework: str | None = None
    ) -> Operators:
        """
        The operators of a target, given as for `normspec check`: "torch", "mine.py:layer_norm", a function.

        Raises a NormspecError for an unknown target.
        """
        return cls(resolve(target, op=op, framework=framework), resolve("numpy"))

    def names(self, operators: Sequence[str]) -> dict[str, str]:
        """
        The name of the function or layer called for each of these operators, as its users write it.

        Raises NotStudied if the target has none of them, because then nothing of it would be studied.
        """
        if not {one.operator for one in self.target.bindings} & set(operators):
            raise NotStudied(
                f"this study calls {', '.join(operators)}, and {self.target.name} has none of them: name a target that"
                " has, or another study"
            )
        return {operator: self.session(operator).binding.name for operator in operators}

    def session(self, operator: str, shape: tuple[int, ...] = (), settings: Mapping[str, Any] = _ANY) -> Session:
        """
        Open a session of an operator: with the target's first binding of it, or with NumPy's.

        Given a shape of x and settings, it uses the first binding that takes such a call, if there is one.
        """
        for target in (self.target, self.other):
            found = [one for one in target.bindings if one.operator == operator]
            taking = [one for one in found if shape and one.accepts(shape, settings) is None]
            if found:
                binding = (taking or found)[0]
                key = operator, binding.name  # layers of several operators may have the same name
                if key not in self._sessions:
                    self._sessions[key] = target.session(binding)
                return self._sessions[key]
        raise NotStudied(f"there is no operator {operator!r}")

    # Normalisations -------------------------------------------------------------------------------------------

    def layer_norm(
        self, x: Array, gamma: Array | None = None, beta: Array | None = None, *, eps: float, axes=(-1,)
    ) -> Result:
        """LayerNorm over trailing axes, given as negative numbers; gamma and beta have their shape."""
        return self.call("layer_norm", {"x": x, "gamma": gamma, "beta": beta}, {"eps": eps, "axes": tuple(axes)})

    def rms_norm(self, x: Array, gamma: Array | None = None, *, eps: float, axes=(-1,)) -> Result:
        """RMSNorm over trailing axes, given as negative numbers."""
        return self.call("rms_norm", {"x": x, "gamma": gamma}, {"eps": eps, "axes": tuple(axes)})

    def group_norm(
        self,
        x: Array,
        gamma: Array | None = None,
        beta: Array | None = None,
        *,
        eps: float,
        groups: int,
        channel_axis=1,
    ) -> Result:
        """GroupNorm of samples along axis 0; gamma and beta have one value per channel."""
        settings = {"eps": eps, "groups": groups, "channel_axis": channel_axis}
        return self.call("group_norm", {"x": x, "gamma": gamma, "beta": beta}, settings)

    def instance_norm(
        self, x: Array, gamma: Array | None = None, beta: Array | None = None, *, eps: float, channel_axis=1
    ) -> Result:
        """InstanceNorm of samples along axis 0; gamma and beta have one value per channel."""
        settings = {"eps": eps, "channel_axis": channel_axis}
        return self.call("instance_norm", {"x": x, "gamma": gamma, "beta": beta}, settings)

    def batch_norm(
        self,
        x: Array,
        gamma: Array | None = None,
        beta: Array | None = None,
        running_mean: Array | None = None,
        running_var: Array | None = None,
        *,
        eps: float,
        momentum: float = 0.9,
        training: bool = True,
        channel_axis: int = 1,
    ) -> Result:
        """
        BatchNorm; gamma, beta and the running statistics have one value per channel.

        Statistics that are None are those of a new layer: zeros and ones. ``more`` of the result has the updated ones.
        """
        channels = x.shape[channel_axis]
        mean = np.zeros(channels, x.dtype) if running_mean is None else running_mean
        var = np.ones(channels, x.dtype) if running_var is None else running_var
        settings = {"eps": eps, "momentum": momentum, "training": training, "channel_axis": channel_axis}
        inputs = {"x": x, "gamma": gamma, "beta": beta, "running_mean": mean, "running_var": var}
        return self.call("batch_norm", inputs, settings)

    # Operators that take steps ---------------------------------------------------------------------------------

    def residual(self, x: Array, branch: Step, *, shortcut: Step | None = None, activation: str = "") -> Result:
        """activation(shortcut(x) + branch(x)); the activation is "relu", "tanh" or none."""
        after = Part(activation) if activation else None
        return self.call("residual", {"x": x}, {}, {"branch": branch, "shortcut": shortcut, "activation": after})

    def pre_norm(
        self, x: Array, sublayer: Step, gamma: Array | None = None, beta: Array | None = None, *, eps: float
    ) -> Result:
        """x + sublayer(LN(x)), LN over the last axis."""
        return self.call("pre_norm", {"x": x, "gamma": gamma, "beta": beta}, {"eps": eps}, {"sublayer": sublayer})

    def post_norm(
        self, x: Array, sublayer: Step, gamma: Array | None = None, beta: Array | None = None, *, eps: float
    ) -> Result:
        """LN(x + sublayer(x)), LN over the last axis."""
        return self.call("post_norm", {"x": x, "gamma": gamma, "beta": beta}, {"eps": eps}, {"sublayer": sublayer})

    def highway(self, x: Array, transform: Step, gate: Step, *, carry: Step | None = None) -> Result:
        """transform(x) * t + x * (1 - t), t the sigmoid of gate(x); a carry's sigmoid replaces 1 - t."""
        return self.call("highway", {"x": x}, {}, {"transform": transform, "gate": gate, "carry": carry})

    def mhc(self, x: Array, branches: Sequence[Step], logits: Array) -> Result:
        """x + the sum of the branches' values, weighted by softmax(logits), one logit per branch."""
        return self.call("mhc", {"x": x, "logits": logits}, {}, {"branches": tuple(branches)})

    # The call -------------------------------------------------------------------------------------------------

    def call(
        self,
        operator: str,
        inputs: Mapping[str, Array | None],
        settings: Mapping[str, Any],
        roles: Mapping[str, Handed] | None = None,
    ) -> Result:
        """
        Call an operator by its name.

        ``inputs`` has the tensors by name, including the leaves of parts; ``settings`` the keyword arguments; ``roles``
        the steps and parts of a composed operator. The pullback returns the gradient of every input that has one, and
        those of the steps' parameters as "branch.w". Raises TargetRaised, BadOutput or Unsupported.
        """
        session, roles = self.session(operator, np.asarray(inputs["x"]).shape, settings), roles or {}
        steps = _steps(roles)
        parts = {name: _parts(name, handed, steps, "zero") for name, handed in roles.items()} or None
        if not steps:
            return _plain(session, inputs, settings, parts)
        return _with_steps(session, inputs, settings, roles, steps)


def _plain(session: Session, inputs, settings, parts) -> Result:
    """A call with tensors and parts of the framework only."""
    outputs, gradients = _called(session, inputs, settings, parts)

    def pull(g: Array) -> dict[str, Array]:
        return {name: gradient for name, gradient in gradients(g).items() if gradient is not None}

    return Result(outputs.pop("y"), pull, outputs)


def _with_steps(session: Session, inputs, settings, roles: Mapping[str, Handed], steps: Mapping[str, Step]) -> Result:
    """A call with NumPy steps."""
    x = np.asarray(inputs["x"])

    def parts(kind: str) -> dict[str, Any]:
        return {name: _parts(name, handed, steps, kind) for name, handed in roles.items()}

    # The arguments that the target passes to each step; x for a step that it does not call.
    first = session.start(inputs, settings, parts=parts("zero"), mode="inference", record=True)
    calls = [] if first.recorder is None else first.recorder.calls
    handed: dict[str, Array] = dict.fromkeys(steps, x)
    handed.update({one.role: np.asarray(one.handed[0]) for one in reversed(calls) if one.role in steps})
    results = {role: step(handed[role]) for role, step in steps.items()}
    values = {f"{role}.value": result.y for role, result in results.items()}
    outputs, gradients = _called(session, {**inputs, **values}, settings, parts("leaf"))

    def pull(g: Array) -> dict[str, Array]:
        # The gradient with respect to a step's value is the step's cotangent.
        found = gradients(g)
        pulled = {role: result.pull(np.asarray(found[f"{role}.value"])) for role, result in results.items()}
        back = {f"{role}.replayed": of.pop("x") for role, of in pulled.items()}
        _, (own,) = session.vjp({**inputs, **values, **back}, settings, g, parts=parts("replayed"))
        kept = {name: one for name, one in own.items() if one is not None and name not in values}
        return {**kept, **{f"{role}.{name}": one for role, of in pulled.items() for name, one in of.items()}}

    return Result(outputs.pop("y"), pull, outputs)


def _called(
    session: Session, inputs: Mapping[str, Array | None], settings: Mapping[str, Any], parts: Mapping[str, Any] | None
) -> tuple[dict[str, Array], Callable[[Array], Mapping[str, Array | None]]]:
    """The results of a call, and a function that returns its gradients by name."""
    if "vjp" in session.binding.derivatives:  # written out: it needs only the results of the call, no graph
        evaluation = session.start(inputs, settings, parts=parts)
        return evaluation.outputs(), lambda g: evaluation.pull(g, keep=True).gradients()
    # Gradients are computed by a separate call, so that no framework has to keep its graph while a deep chain runs.
    outputs = session.start(inputs, settings, parts=parts, mode="inference").outputs()
    return outputs, lambda g: session.vjp(inputs, settings, g, parts=parts)[1][0]


def _steps(roles: Mapping[str, Handed]) -> dict[str, Step]:
    """The NumPy steps among `roles`, by the names of their roles."""
    found: dict[str, Step] = {}
    for name, handed in roles.items():
        if isinstance(handed, (tuple, list)):
            found |= {f"{name}.{place}": one for place, one in enumerate(handed)}
        elif handed is not None and not isinstance(handed, Part):
            found[name] = handed  # type: ignore[assignment]
    return found


#: The leaves of each part that replaces a step.
_LEAVES = {"zero": (), "leaf": ("value",), "replayed": ("value", "replayed")}


def _parts(name: str, handed: Handed, steps: Mapping[str, Step], kind: str) -> Any:
    """The parts of a kind that replace the steps of a role."""
    if handed is None or isinstance(handed, Part):
        return handed

    def part(role: str) -> Part:
        return Part(kind, tuple(f"{role}.{leaf}" for leaf in _LEAVES[kind]))

    if name in steps:
        return part(name)
    return tuple(part(f"{name}.{place}") for place in range(len(handed)))  # type: ignore[arg-type]
