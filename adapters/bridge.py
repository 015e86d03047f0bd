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
from .operation import Operation
from .trait import Trait


class Bridge(abc.ABC):
    """
    The mechanics of one framework; it knows no operator.

    A bridge's methods run the target's code and let its exceptions pass: the session sorts them.
    """

    #: The framework: "numpy", "torch".
    name: str
    #: The framework's version.
    version: str
    #: The dtypes it supports, of DTYPES.
    dtypes: tuple[str, ...]
    #: The layouts it can make, of LAYOUTS.
    layouts: tuple[str, ...]
    #: Whether the framework differentiates by itself; otherwise derivatives come from the binding.
    differentiates: bool
    #: Whether gradients need a call of their own (:meth:`pullback`); otherwise they are taken of a result.
    functional: bool = False
    #: Whether new values can be written into a tensor's memory (:meth:`rewritten`).
    rewrites: bool = False
    #: The exceptions besides MemoryError by which the framework says that memory ran out, if a part can raise them.
    memory_errors: tuple[type[Exception], ...] = ()
    #: What parts are made of besides Python's operators: an object with the functions zeros, tanh, relu, matmul, shift
    #: and replay, as adapters/jax/part_functions.py has. If the framework does not differentiate, matmul is enough.
    functions: Any
    #: Violations of every function on this framework, because one of the framework's operations violates them.
    violations: tuple[KnownViolation, ...] = ()

    @abc.abstractmethod
    def check_device(self, device: str) -> None:
        """Raise DeviceUnavailable unless tensors can live on this device; the message says what to do."""

    def devices(self) -> tuple[str, ...]:
        """The names of the available devices, as :meth:`check_device` takes them; the first is the CPU."""
        return ("cpu",)

    @abc.abstractmethod
    def tensor(self, array: np.ndarray, layout: str, device: str, *, tracked: bool = False) -> Any:
        """
        A tensor with the array's values in memory of its own, in this layout.

        ``tracked``: a gradient will be taken with respect to it. Raises LayoutNotApplicable.
        """

    def filler(self, arrays: Sequence[np.ndarray], device: str) -> Callable[[], object]:
        """Return a function that makes a new tensor of each array; dropping what it returns frees them all."""
        return lambda: [self.tensor(array, "contiguous", device) for array in arrays]

    def rewritten(self, tensor: Any, array: np.ndarray, *, fresh: bool) -> Any:
        """
        Write the values of an array of the same shape and dtype into the tensor's memory, and return the tensor.

        With ``fresh``, return another tensor on that memory, tracked if the first is. Only a bridge that ``rewrites``
        has this method.
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
        """The tensor's present values in a new array. Raises BadOutput with ``what`` if it is not a valid tensor."""

    @abc.abstractmethod
    def guarded(self, size: int, *, gradients: bool, training: bool = True) -> AbstractContextManager[Any]:
        """
        A context in which the target's code runs.

        It turns gradient tracking on or off, sets the framework's own mode of training or inference if it has one, and
        sets its warnings and threads. ``size`` is the number of elements of x.
        """

    def import_derivatives(self) -> None:  # noqa: B027 - most import all of themselves at once
        """Import now the modules that the framework would import with its first derivative."""

    def free_compiled(self) -> None:  # noqa: B027 - most keep nothing
        """Free compiled programs whose calls will not be made again."""

    def synchronise(self, device: str) -> None:  # noqa: B027 - nothing to wait for, unless a device works on its own time
        """Wait until the device has finished its work, so that its errors are raised here."""

    def compiled(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function of tensors, compiled to one program if the framework runs only compiled programs."""
        return function

    def own_traits(self, device: str) -> tuple[Trait, ...]:
        """Extra traits of this framework, measured now; adapters/traits.py measures the traits of every framework."""
        return ()

    def tracks(self, output: Any) -> bool:
        """Whether the framework can take gradients of this output."""
        return False

    def vjp(self, output: Any, inputs: Sequence[Any], cotangent: Any, *, keep: bool = False) -> list[Any | None]:
        """
        The gradient of <output, cotangent> with respect to each input; None for an input that no gradient reaches.

        With ``keep``, another cotangent can be pulled back through the same output afterwards.
        """
        raise NotImplementedError

    def gradient_left(self, tensor: Any) -> bool:
        """Whether the target wrote a gradient beside this input, where the framework itself adds up gradients."""
        return False

    def pullback(self, call: Callable[..., Any], inputs: Sequence[Any], cotangent: Any) -> tuple[Any, list[Any | None]]:
        """
        y = call(*inputs), and the gradient of <y, cotangent> with respect to each input; for a functional bridge.

        Raises BadOutput, by evaluation.check_like, unless y has the cotangent's shape and dtype.
        """
        raise NotImplementedError

    def jvp(self, call: Callable[..., Any], inputs: Sequence[Any], tangents: Sequence[Any]) -> Any | None:
        """The tangent of call(*inputs); None if no tangent reaches it. An input and its tangent may be None."""
        raise NotImplementedError

    def vjp_vjp(
        self, call: Callable[..., Any], inputs: Sequence[Any], cotangent: Any, second: Sequence[Any]
    ) -> list[Any | None]:
        """
        The vjp, at the cotangents ``second``, of the map (inputs, cotangent) -> gradients of call(*inputs).

        An input that is None has no second cotangent; a second cotangent that is None counts as zero. Results: one for
        each input and one for the cotangent, None if nothing reaches it.
        """
        raise NotImplementedError

    def nested(
        self, kind: str, call: Callable[..., Any], inputs: Sequence[Any], tangents: Sequence[Any], other: Any
    ) -> list[Any | None]:
        """
        A nested derivative of call(*inputs): ``kind`` is one of binding.NESTED. An input that is None has no tangent.

        Let ty be the tangent of y for ``tangents``. "jvp_vjp": the tangents of the gradients of <y, other>, one for
        each input. "vjp_jvp": the gradients of <ty, other>, one for each input. "jvp_jvp": a list of one, the tangent
        of ty for the tangents ``other``. A result that nothing reaches is None. Raises Unsupported if normspec nests
        no derivatives of this framework.
        """
        raise Unsupported(f"normspec nests no derivatives of {self.name} in forward mode")

    # Calls of functions that take x with its axes in another order ---------------------------------------

    def move_axis(self, tensor: Any, source: int, destination: int) -> Any:
        """
        The tensor with one axis moved.

        A contiguous tensor gives a contiguous one, because kernels that read memory directly rely on it.
        """
        raise Unsupported(f"normspec moves no axis of {self.name}")

    def written_back(self, handed: Any, x: Any, source: int, destination: int) -> None:  # noqa: B027 - most write none
        """Copy into x whatever the target wrote into ``handed``, the moved x it was given, so that the fault shows."""

    # Tensors inside a network ----------------------------------------------------------------------------

    def intermediate(self, tensor: Any) -> Any:
        """The tensor as another operation's result, which is no leaf; itself where a framework tells no difference."""
        return tensor

    def parameter(self, tensor: Any) -> Any:
        """The tensor as the framework's own kind of parameter; itself where there is none."""
        return tensor

    # The memory of parts ---------------------------------------------------------------------------------

    @abc.abstractmethod
    def view(self, x: Any) -> Any:
        """Another tensor on the same memory as x, of its shape and dtype."""

    def flattened(self, x: Any) -> Any:
        """The values of x along one axis."""
        return x.reshape((-1,))

    def laid_out(self, value: Any, layout: str) -> Any:
        """The value in new memory in this layout, "transposed" or "strided"; the value itself without such layouts."""
        return value

    @abc.abstractmethod
    def buffer(self, value: Any) -> Any:
        """New memory for tensors of the value's shape and dtype."""

    @abc.abstractmethod
    def write(self, value: Any, buffer: Any) -> Any:
        """Write the value into memory of :meth:`buffer`; returns a tensor there, differentiable as the value is."""

    def part_with_derivatives(
        self,
        part: Part,
        tensors: Mapping[str, Any],
        *,
        memory: dict[Any, Any],
        notes: dict[Any, Any] | None,
        tangents: Mapping[str, Any] | None,
        operation: Operation | None,
    ) -> Callable[..., Any]:
        """The part with hand-written derivatives, if the framework has none; see build_parts.build_part."""
        raise NotImplementedError
