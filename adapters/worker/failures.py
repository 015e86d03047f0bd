"""How the ways in which a call can end cross the line between worker and judge."""

from __future__ import annotations

from typing import Any, Mapping

from ...spec import errors
from ...spec.errors import (
    BadOutput,
    LayoutNotApplicable,
    MissingGradient,
    NormspecError,
    TakesNoPart,
    TargetLost,
    TargetRaised,
    Unsupported,
    one_line,
)


def described(error: BaseException) -> dict[str, Any]:
    """The exception as plain values."""
    if isinstance(error, TargetRaised):
        return {
            "kind": "TargetRaised",
            "message": error.words,
            "stage": error.stage,
            "by_a_part": error.by_a_part,
            "out_of_memory": error.out_of_memory,
        }
    if isinstance(error, MissingGradient):
        return {"kind": "MissingGradient", "message": error.message, "missing": list(error.missing)}
    if isinstance(error, BadOutput):
        return {"kind": "BadOutput", "message": error.message, "about": error.kind}
    if isinstance(error, TakesNoPart):
        return {"kind": "TakesNoPart", "message": error.reason}
    if isinstance(error, Unsupported):
        return {"kind": "Unsupported", "message": error.reason}
    if isinstance(error, NormspecError):
        return {"kind": type(error).__name__, "message": str(error)}
    if isinstance(error, KeyboardInterrupt):  # here nobody presses Ctrl-C: the target raised it
        return described(TargetRaised(error, "call"))
    if isinstance(error, MemoryError):
        return {"kind": "TargetLost", "message": f"ran out of memory: {one_line(error)}"}
    return {"kind": "TargetLost", "message": f"made its worker fail: {one_line(error)}"}


#: How much of a message is believed.
_MOST = 2000


def revived(found: Mapping[str, Any]) -> Exception:
    """The exception that a reply describes; TargetLost where the reply is none of ours."""
    try:
        kind, message = str(found["kind"]), " ".join(str(found["message"]).split())[:_MOST]
        if kind == "TargetRaised":
            if found["out_of_memory"]:
                return TargetLost(f"ran out of memory: {message}")
            return TargetRaised(None, str(found["stage"]), words=message, by_a_part=bool(found["by_a_part"]))
        if kind == "MissingGradient":
            return MissingGradient(message, tuple(map(str, found["missing"])))
        if kind == "BadOutput":
            return BadOutput(message, str(found["about"]))
    except (KeyError, TypeError):
        return TargetLost("the worker's reply makes no sense")
    if kind in ("Unsupported", "TakesNoPart"):
        return {"Unsupported": Unsupported, "TakesNoPart": TakesNoPart}[kind](message)
    if kind == "LayoutNotApplicable":
        return LayoutNotApplicable(message)
    known = getattr(errors, kind, None) if kind in errors.__all__ else None
    if isinstance(known, type) and issubclass(known, NormspecError):
        return known(message)
    return TargetLost(message)
