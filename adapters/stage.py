"""Stages: where the target's code runs, and what it raises becomes TargetRaised."""

from __future__ import annotations

from typing import Any

from ..spec.errors import (
    BadOutput,
    LayoutNotApplicable,
    TakesNoPart,
    TargetRaised,
    Unsupported,
    carries_a_part_error,
    one_line,
)
from .traceback_lines import innermost

#: What passes a stage unchanged.
_OURS = (KeyboardInterrupt, TargetRaised, BadOutput, LayoutNotApplicable)

#: What it means that a stage raises NotImplementedError; in every other stage the call is declined.
_LACKING = {
    "vjp": "no gradients",
    "jvp": "no forward-mode derivative",
    "vjp_vjp": "no second-order derivative",
    "jvp_vjp": "no forward mode over reverse mode",
    "vjp_jvp": "no reverse mode over forward mode",
    "jvp_jvp": "no forward mode over forward mode",
}


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
        # What a part raises that is there to raise is no answer of the target's, whatever carries it.
        declines = isinstance(error, (Unsupported, NotImplementedError)) and not carries_a_part_error(error)
        if not declines:
            raise TargetRaised(error, self.name, where=innermost(error)) from error
        ours = isinstance(error, Unsupported)
        if isinstance(error, TakesNoPart) or (ours and not self.optional):
            return
        words = str(error) if ours else one_line(error)
        if self.optional:
            raise TakesNoPart(f"it does not take {self.optional}: {words}") from error
        raise Unsupported(f"{_LACKING[self.name]}: {words}" if self.name in _LACKING else words) from error
