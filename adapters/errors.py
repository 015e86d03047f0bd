"""What can go wrong with a target: what its author or the caller must mend, and how a call of it can end."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = [
    "BadOutput",
    "DeviceUnavailable",
    "FrameworkMissing",
    "LayoutNotApplicable",
    "MissingGradient",
    "NoSuchName",
    "NormspecError",
    "NotImportable",
    "PartRaised",
    "TakesNoPart",
    "TargetRaised",
    "UnknownConvention",
    "UnknownDtype",
    "UnknownFramework",
    "UnknownOperator",
    "UnknownProfile",
    "UnknownTarget",
    "Unsupported",
    "WrongSignature",
    "choices",
    "one_line",
    "part_error",
]


class NormspecError(Exception):
    """The request cannot be carried out as it stands; the message is one line and says what to do."""


class UnknownTarget(NormspecError):
    """The target is neither a known name nor of the form FILE.py:NAME or package.module:NAME."""


class UnknownOperator(NormspecError):
    """The operator is not one that can be checked, or cannot be told from the target's name."""


class UnknownDtype(NormspecError):
    """The dtype is not one that the suite checks, or not one that the target has."""


class UnknownFramework(NormspecError):
    """The framework is not one that has a bridge, or cannot be told from what the target imports."""


class UnknownConvention(NormspecError):
    """A convention's name, or the value given to it, does not exist."""


class UnknownProfile(NormspecError):
    """The profile is not one of those that exist."""


class NotImportable(NormspecError):
    """The file or module that holds the target does not exist, does not parse, or raises when imported."""


class NoSuchName(NormspecError):
    """The module was imported and holds nothing of that name."""


class WrongSignature(NormspecError):
    """The target cannot be called as the operator's canonical signature says."""


class FrameworkMissing(NormspecError):
    """The target needs a framework that is not installed."""


class DeviceUnavailable(NormspecError):
    """The framework has no such device on this machine."""


class LayoutNotApplicable(NormspecError):
    """The array cannot be laid out in memory in that way, or the framework has no such layout."""


class TargetRaised(Exception):
    """The target raised while it was called or differentiated."""

    def __init__(self, original: BaseException, stage: str) -> None:
        super().__init__(original, stage)
        #: What the target raised.
        self.original = original
        #: What was being done: "call", "vjp", "jvp", "vjp_vjp" or "read".
        self.stage = stage

    def __str__(self) -> str:
        return one_line(self.original)


class BadOutput(Exception):
    """The target returned something that is not what its signature promises."""

    def __init__(self, message: str, kind: str = "type") -> None:
        super().__init__(message)
        #: What was received, in one line.
        self.message = message
        #: "type" (no tensor of the framework, wrong arity), "dtype" (no float dtype of the four), "shape"
        #: or "gradient" (a gradient that is missing).
        self.kind = kind

    def __str__(self) -> str:
        return self.message


class MissingGradient(BadOutput):
    """A derivative was asked for and nothing came, although the framework can differentiate."""

    def __init__(self, message: str, missing: tuple[str, ...]) -> None:
        super().__init__(message, "gradient")
        #: The inputs ("x", "gamma", "beta") that no gradient reaches.
        self.missing = missing


class PartRaised(Exception):
    """What a part raises that is there to raise: the target has to let it pass."""


def part_error(number: float) -> PartRaised:
    """A PartRaised that is an error of one of five built-in kinds too, since code may catch some of them."""
    kind = (RuntimeError, ValueError, TypeError, LookupError, ArithmeticError)[int(number)]
    raised = type("PartRaised", (PartRaised, kind), {})
    return raised(f"this part is there to raise (a {kind.__name__}): what calls it has to let that pass")


class Unsupported(Exception):
    """The target lacks what was asked of it, which is no violation."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        #: What is lacking, in one line.
        self.reason = reason

    def __str__(self) -> str:
        return self.reason


class TakesNoPart(Unsupported):
    """The target takes no part in one of its optional roles; what does without that is there all the same."""


def one_line(error: BaseException) -> str:
    """
    ``Type: message`` of an exception, cut to its first line.

    An exception is an object of the target: its ``__str__`` may itself raise, and then the type alone is told.
    """
    name = type(error).__name__
    try:
        lines = str(error).strip().splitlines()
    except KeyboardInterrupt:
        raise
    except BaseException:
        return name
    return f"{name}: {lines[0].strip()}" if lines else name


def choices(given: object, known: Iterable[str]) -> str:
    """``; did you mean 'numpy'? (one of: numpy, torch)``: the end of a message about a name that does not exist."""
    names = list(known)
    near = difflib.get_close_matches(str(given), names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ";"
    return f"{hint} choose from {', '.join(names)}"
