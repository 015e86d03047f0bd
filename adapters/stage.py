"""Stages: where the target's code runs, and what it raises becomes TargetRaised."""

from __future__ import annotations

from typing import Any

from .errors import BadOutput, LayoutNotApplicable, TakesNoPart, TargetRaised, Unsupported, one_line

#: What passes a stage unchanged.
_OURS = (KeyboardInterrupt, TargetRaised, BadOutput, Unsupported, LayoutNotApplicable)


class Stage:
    """Turns what a target raises into TargetRaised; a class, since a generator's context costs twice as much."""

    __slots__ = ("name", "optional")

    def __init__(self, name: str, optional: str = "") -> None:
        self.name = name
        #: The optional arguments that the target is handed: it may say that it has not implemented them.
        self.optional = optional

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if error is None or isinstance(error, _OURS):
            return
        if self.name == "vjp" and isinstance(error, NotImplementedError):
            raise Unsupported(f"no gradients: {one_line(error)}") from error
        if self.optional and isinstance(error, NotImplementedError):
            raise TakesNoPart(f"it does not take {self.optional}: {one_line(error)}") from error
        raise TargetRaised(error, self.name) from error
