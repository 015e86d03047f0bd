"""Evaluations: one call of a target, its results and its gradients, read as they are now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from .binding import DIFFERENTIABLE, Binding
from .bridge import Bridge
from .errors import BadOutput, MissingGradient, Unsupported
from .stage import Stage

if TYPE_CHECKING:
    from .session import Session


@attrs.define
class Evaluation:
    """One call that returned, with what was handed in and what came out, both as they are now."""

    _session: Session
    _tensors: dict[str, Any]
    _settings: dict[str, Any]
    _results: dict[str, Any]
    _wrt: tuple[str, ...]
    _size: int

    def outputs(self) -> dict[str, np.ndarray]:
        """The results as they are now: read again each time, so that a buffer that is used again shows."""
        return {name: self._session.read(value, name) for name, value in self._results.items()}

    def inputs(self) -> dict[str, np.ndarray | None]:
        """The inputs as they are now: another value than was handed in means that the target changed it."""
        return {
            name: None if tensor is None else self._session.read(tensor, name) for name, tensor in self._tensors.items()
        }

    def pull(self, g: np.ndarray, layout: str = "contiguous", *, keep: bool = False) -> Pulled:
        """
        The gradients of sum(y * g) with respect to the inputs that the evaluation was started for.

        ``keep`` leaves the evaluation fit for another pull, which a framework may otherwise refuse.

        Raises MissingGradient where none reaches one of them, Unsupported where the target has no gradients or
        the evaluation was made in inference mode, BadOutput where y has not the cotangent's shape or dtype.
        """
        session = self._session
        bridge, binding, y = session.target.bridge, session.binding, self._results["y"]
        if not self._wrt:
            raise Unsupported("nothing was tracked: the evaluation was started in inference mode, or for no gradient")
        own = binding.derivatives.get("vjp")
        if own is None and not bridge.differentiates:
            raise Unsupported(f"{binding.name} has no gradients: no function named {sibling(binding, 'vjp')}")
        cotangent = session.target.bridge.tensor(g, layout, session.device)
        with Stage("vjp"), bridge.guarded(self._size, gradients=True):
            if own is not None and not bridge.tracks(y):
                if binding.prepare is not None:
                    binding.prepare(mode="training", wrt=self._wrt)
                found = own(*self._tensors.values(), cotangent, **session.keywords(self._settings))
                named = dict(zip(DIFFERENTIABLE, three(binding, "vjp", found), strict=True))
            else:
                _check_like(y, g, bridge)
                found = bridge.vjp(y, [self._tensors[name] for name in self._wrt], cotangent, keep=keep)
                named = dict(zip(self._wrt, found, strict=True))
            bridge.finish(session.device)
            gradients = {name: named[name] if name in self._wrt else None for name in DIFFERENTIABLE}
            missing = tuple(name for name in self._wrt if gradients[name] is None)
            if missing:
                raise MissingGradient(f"no gradient reaches {', '.join(missing)}", missing)
            for name in self._wrt:
                bridge.check_tensor(gradients[name], f"the gradient of {name}")
        return Pulled(session, gradients, cotangent)


@attrs.define
class Pulled:
    """The gradients of one evaluation for one cotangent, as they are now."""

    _session: Session
    _gradients: dict[str, Any]
    _cotangent: Any

    def gradients(self) -> dict[str, np.ndarray | None]:
        """By the name of the input, None where none was asked for; read again each time."""
        return {
            name: None if value is None else self._session.read(value, f"the gradient of {name}")
            for name, value in self._gradients.items()
        }

    def cotangent(self) -> np.ndarray:
        """The cotangent as it is now: another value than was handed in means that the target changed it."""
        return self._session.read(self._cotangent, "the cotangent")


def three(binding: Binding, derivative: str, returned: Any) -> tuple[Any, ...]:
    """What a binding's own vjp or vjp_vjp returned: three gradients. Raises BadOutput."""
    if not isinstance(returned, tuple | list) or len(returned) != 3:
        got = f"{len(returned)} values" if isinstance(returned, tuple | list) else type(returned).__name__
        raise BadOutput(f"{sibling(binding, derivative)} returned {got} in place of three gradients")
    return tuple(returned)


def sibling(binding: Binding, derivative: str) -> str:
    """The name under which a derivative is looked for beside the function."""
    return f"{binding.name.rpartition(':')[2]}_{derivative}"


def _check_like(y: Any, g: np.ndarray, bridge: Bridge) -> None:
    """BadOutput unless y has the cotangent's shape and dtype, without which no gradient is defined."""
    shape, dtype = bridge.describe(y)
    if shape != g.shape:
        raise BadOutput(f"y has shape {shape} in place of {g.shape}", "shape")
    if dtype != g.dtype.name:
        raise BadOutput(f"y has dtype {dtype} in place of {g.dtype.name}", "dtype")
