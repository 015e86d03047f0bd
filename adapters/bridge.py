"""Bridges: how a framework holds arrays, differentiates, and names its devices."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from ..spec.errors import Unsupported
from ..spec.parts import Part
from .known import KnownViolation
from .trait import Trait


class Bridge(abc.ABC):
    """
    The mechanics of one framework; it knows no operator.

    A bridge runs the target's code in its methods and lets pass what that raises: the session sorts it.
    """

    #: The framework: "numpy", "torch".
    name: str
    #: The framework's version.
    version: str
    #: Those of DTYPES that it holds.
    dtypes: tuple[str, ...]
    #: Those of the layouts that it can make.
    layouts: tuple[str, ...]
    #: Whether it differentiates by itself; otherwise derivatives come from the binding.
    differentiates: bool
    #: Whether gradients are those of a call that is made for them (:meth:`pullback`), and not those of a result.
    functional: bool = False
    #: Whether a tensor can be given other values in its own memory (:meth:`rewritten`).
    rewrites: bool = False
    #: What every function there violates, because an operation of the framework does.
    violations: tuple[KnownViolation, ...] = ()

    @abc.abstractmethod
    def check_device(self, device: str) -> None:
        """Raise DeviceUnavailable, saying what to do, unless tensors can live there."""

    def devices(self) -> tuple[str, ...]:
        """The devices that there are, each by a name that :meth:`check_device` takes; the first is the CPU."""
        return ("cpu",)

    @abc.abstractmethod
    def tensor(self, array: np.ndarray, layout: str, device: str, *, tracked: bool = False) -> Any:
        """
        A tensor of its own memory with the array's values, laid out so; tracked if a gradient will be taken.

        Raises LayoutNotApplicable.
        """

    def rewritten(self, tensor: Any, array: np.ndarray, *, fresh: bool) -> Any:
        """
        The tensor, with the values of an array of its shape and dtype written into its memory.

        With ``fresh``, another tensor on that memory, tracked as the first is; only where the bridge ``rewrites``.
        """
        raise NotImplementedError

    @abc.abstractmethod
    def check_tensor(self, value: Any, what: str) -> None:
        """Raise BadOutput unless the value is a tensor of this framework in one of its dtypes."""

    @abc.abstractmethod
    def describe(self, value: Any) -> tuple[tuple[int, ...], str]:
        """Shape and dtype name of a tensor that passed :meth:`check_tensor`."""

    @abc.abstractmethod
    def array(self, value: Any, what: str) -> np.ndarray:
        """The tensor's present values in a new array. Raises BadOutput, naming ``what``, if it is no such tensor."""

    @abc.abstractmethod
    def guarded(self, size: int, *, gradients: bool, training: bool = True) -> AbstractContextManager[Any]:
        """
        The surroundings in which the target's code runs: gradients tracked or not, the framework's own mode of training
        or inference where it has one, and its warnings and threads set. ``size`` is the number of elements of x.
        """

    def warm(self) -> None:  # noqa: B027 - most import all of themselves at once
        """Have the framework import what it imports with its first derivative."""

    def forget(self) -> None:  # noqa: B027 - most keep nothing
        """Let go of what was compiled for calls that are not made again."""

    def finish(self, device: str) -> None:  # noqa: B027 - nothing to wait for, unless a device works on its own time
        """Wait until the device has done what was asked, so that its errors are raised here."""

    def compiled(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function of tensors as one program, where the framework runs nothing but what it has compiled."""
        return function

    def own_traits(self, device: str) -> tuple[Trait, ...]:
        """Traits of this framework alone, measured now, beside those that are measured of all (adapters/traits.py)."""
        return ()

    def tracks(self, output: Any) -> bool:
        """Whether the framework can differentiate this output."""
        return False

    def vjp(self, output: Any, inputs: Sequence[Any], cotangent: Any, *, keep: bool = False) -> list[Any | None]:
        """
        The gradient of <output, cotangent> with respect to each input; None where none reaches it.

        With ``keep``, another cotangent can be pulled back through the same output afterwards.
        """
        raise NotImplementedError

    def pullback(self, call: Callable[..., Any], inputs: Sequence[Any], cotangent: Any) -> tuple[Any, list[Any | None]]:
        """
        y = call(*inputs), and the gradient of <y, cotangent> with respect to each input, of a functional bridge.

        Raises BadOutput, by evaluation.check_like, unless y has the cotangent's shape and dtype.
        """
        raise NotImplementedError

    def jvp(self, call: Callable[..., Any], inputs: Sequence[Any], tangents: Sequence[Any]) -> Any | None:
        """The tangent of call(*inputs); None where none reaches it. An input and its tangent may be None."""
        raise NotImplementedError

    def vjp_vjp(
        self, call: Callable[..., Any], inputs: Sequence[Any], cotangent: Any, second: Sequence[Any]
    ) -> list[Any | None]:
        """
        The vjp, at the cotangents ``second``, of the map (inputs, cotangent) -> gradients of call(*inputs).

        Inputs that are None have none; a second cotangent that is None counts as zero. Results: one for each
        input and one for the cotangent, None where nothing reaches it.
        """
        raise NotImplementedError

    def nested(
        self, kind: str, call: Callable[..., Any], inputs: Sequence[Any], tangents: Sequence[Any], other: Any
    ) -> list[Any | None]:
        """
        A derivative of a derivative of call(*inputs), of binding.NESTED; inputs that are None have no tangent.

        "jvp_vjp": the tangents of the gradients of <y, other>, one for each input. "vjp_jvp": the gradients of <ty,
        other>, ty the tangent of y for the tangents, one for each input. "jvp_jvp": the tangent of ty for the tangents
        ``other``, alone. None where nothing reaches it. Raises Unsupported where normspec asks a framework for none.
        """
        raise Unsupported(f"normspec nests no derivatives of {self.name} in forward mode")

    # Calls of what takes x in another layout -------------------------------------------------------------

    def moved(self, tensor: Any, source: int, destination: int) -> Any:
        """
        The tensor with an axis in another place.

        One that is contiguous becomes another contiguous one, which kernels that read memory by themselves rely on.
        """
        raise Unsupported(f"normspec moves no axis of {self.name}")

    def written_back(self, handed: Any, x: Any, source: int, destination: int) -> None:  # noqa: B027 - most write none
        """What was written into the moved x that a target was handed, written into x: a fault has to show."""

    # What parts are made of, beside Python's operators ----------------------------------------------------

    @abc.abstractmethod
    def zeros(self, x: Any) -> Any:
        """Zeros of x's shape and dtype, on its device."""

    @abc.abstractmethod
    def tanh(self, x: Any) -> Any:
        """tanh(x), elementwise."""

    @abc.abstractmethod
    def relu(self, x: Any) -> Any:
        """max(x, 0), elementwise; a NaN stays one."""

    @abc.abstractmethod
    def matmul(self, x: Any, w: Any) -> Any:
        """x @ w over the last axis of x; w has two axes."""

    @abc.abstractmethod
    def shift(self, x: Any, offset: int, axis: int) -> Any:
        """result[t] = x[t + offset] along the axis, zero where t + offset lies beyond the ends."""

    @abc.abstractmethod
    def view(self, x: Any) -> Any:
        """Another tensor on the same memory as x, of its shape and dtype."""

    @abc.abstractmethod
    def buffer(self, value: Any) -> Any:
        """New memory for tensors of the value's shape and dtype."""

    @abc.abstractmethod
    def write(self, value: Any, buffer: Any) -> Any:
        """The value, written into what :meth:`buffer` made: a tensor on that memory, differentiable as the value is."""

    def part_with_derivatives(
        self,
        part: Part,
        tensors: Mapping[str, Any],
        *,
        memory: dict[Any, Any],
        notes: dict[Any, Any] | None,
        tangents: Mapping[str, Any] | None,
    ) -> Callable[..., Any]:
        """The part with its derivatives written out, where the framework has none; see build_parts.build_part."""
        raise NotImplementedError

    def replay(self, x: Any, value: Any, cotangent: Any) -> Any:
        """The value, as a function of x whose cotangent of x is the given one, whatever the value's cotangent is."""
        raise NotImplementedError
