"""Stages: the target's code runs inside one, and its exceptions become TargetRaised."""

from __future__ import annotations

import os
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
from .other_framework import hint_from_error
from .traceback_lines import innermost

#: Exceptions that pass through a stage unchanged.
_PASSED_ON = (KeyboardInterrupt, TargetRaised, BadOutput, LayoutNotApplicable)

#: What a NotImplementedError means in these stages; in any other stage it declines the call.
_LACKING = {
    "vjp": "no gradients",
    "jvp": "no forward-mode derivative",
    "vjp_vjp": "no second-order derivative",
    "jvp_vjp": "no forward mode over reverse mode",
    "vjp_jvp": "no reverse mode over forward mode",
    "jvp_jvp": "no forward mode over forward mode",
}


class Stage:
    """Turns a target's exceptions into TargetRaised. A class, because a generator's context costs twice as much."""

    __slots__ = ("framework", "name", "optional", "process")

    def __init__(self, name: str, optional: str = "", *, framework: str = "numpy") -> None:
        self.name = name
        #: The optional arguments of the call, in words: the target may say that it has not implemented them.
        self.optional = optional
        #: The framework whose tensors the target is handed in this stage.
        self.framework = framework

    def __enter__(self) -> None:
        self.process = os.getpid()

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if os.getpid() != self.process:  # the target forked: its child would repeat the calls too, and fork in each
            os._exit(0)
        if error is None or isinstance(error, _PASSED_ON):
            return
        # A part that raises on purpose is not the target declining, even if another exception carries its error.
        declines = isinstance(error, (Unsupported, NotImplementedError)) and not carries_a_part_error(error)
        if not declines:
            words = one_line(error) + hint_from_error(error, self.framework)
            raise TargetRaised(error, self.name, words=words, where=innermost(error)) from error
        ours = isinstance(error, Unsupported)
        if isinstance(error, TakesNoPart) or (ours and not self.optional):
            return
        words = str(error) if ours else one_line(error)
        if self.optional:
            raise TakesNoPart(f"it does not take {self.optional}: {words}") from error
        raise Unsupported(f"{_LACKING[self.name]}: {words}" if self.name in _LACKING else words) from error
