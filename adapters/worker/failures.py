"""Send the exception in which a call ended from worker to judge: as plain values, and back."""

from __future__ import annotations

from typing import Any, Mapping

from ...spec import errors
from ...spec.errors import (
    BadOutput,
    CannotVary,
    LayoutNotApplicable,
    MissingGradient,
    NormspecError,
    SourceLine,
    TakesNoPart,
    TargetLost,
    TargetRaised,
    Unsupported,
    one_line,
)

#: The subclasses of Unsupported by name, the most specific first.
_LACKING: Mapping[str, type[Unsupported]] = {
    "TakesNoPart": TakesNoPart,
    "CannotVary": CannotVary,
    "Unsupported": Unsupported,
}


def error_to_plain(error: BaseException) -> dict[str, Any]:
    """The exception as plain values."""
    if isinstance(error, TargetRaised) and error.device_unusable:  # only a new process can call it
        at = "" if error.where is None else f", at {error.where}"
        return {"kind": "TargetLost", "message": f"left its device unusable: {error.words}{at}"}
    if isinstance(error, TargetRaised):
        return {
            "kind": "TargetRaised",
            "message": error.words,
            "stage": error.stage,
            "by_a_part": error.by_a_part,
            "out_of_memory": error.out_of_memory,
            "where": None if error.where is None else [error.where.file, error.where.line, error.where.source],
        }
    if isinstance(error, MissingGradient):
        return {"kind": "MissingGradient", "message": error.message, "missing": list(error.missing)}
    if isinstance(error, BadOutput):
        return {"kind": "BadOutput", "message": error.message, "about": error.kind}
    if isinstance(error, Unsupported):
        kind = next(name for name, one in _LACKING.items() if isinstance(error, one))
        return {"kind": kind, "message": error.reason}
    if isinstance(error, NormspecError):
        return {"kind": type(error).__name__, "message": str(error)}
    if isinstance(error, KeyboardInterrupt):  # no user presses Ctrl-C here: the target raised it
        return error_to_plain(TargetRaised(error, "call"))
    if isinstance(error, MemoryError):
        return {"kind": "TargetLost", "message": f"ran out of memory: {one_line(error)}"}
    return {"kind": "TargetLost", "message": f"made its worker fail: {one_line(error)}"}


#: How many characters of a message are accepted.
_MOST = 2000


def error_from_plain(found: Mapping[str, Any]) -> Exception:
    """The exception that a reply describes; TargetLost if normspec did not write the reply."""
    try:
        kind, message = str(found["kind"]), " ".join(str(found["message"]).split())[:_MOST]
        if kind == "TargetRaised":
            if found["out_of_memory"]:
                return TargetLost(f"ran out of memory: {message}")
            where, by_a_part = where_of(found.get("where")), bool(found["by_a_part"])
            return TargetRaised(None, str(found["stage"]), words=message, by_a_part=by_a_part, where=where)
        if kind == "MissingGradient":
            return MissingGradient(message, tuple(map(str, found["missing"])))
        if kind == "BadOutput":
            return BadOutput(message, str(found["about"]))
    except (KeyError, TypeError, ValueError):  # the last: an array is neither true nor false
        return TargetLost("the worker's reply makes no sense")
    if kind in _LACKING:
        return _LACKING[kind](message)
    if kind == "LayoutNotApplicable":
        return LayoutNotApplicable(message)
    known = getattr(errors, kind, None) if kind in errors.__all__ else None
    if isinstance(known, type) and issubclass(known, NormspecError):
        return known(message)
    return TargetLost(message)


def ends_worker(raised: Mapping[str, Any]) -> bool:
    """Whether the judge starts a new worker after this exception, told as plain values."""
    return isinstance(error_from_plain(raised), TargetLost)


def where_of(found: Any) -> SourceLine | None:
    """The source line that a reply names; None if it names none, or not a valid one."""
    if not isinstance(found, list) or len(found) != 3 or not isinstance(found[1], int):
        return None
    file, source = (" ".join(str(words).split())[:_MOST] for words in (found[0], found[2]))
    return SourceLine(file, found[1], source)
