"""What can go wrong with a target: what its author or the caller must mend, and how a call of it can end."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = [
    "CALL_FAILED",
    "BadOutput",
    "BadSibling",
    "CannotVary",
    "DeviceUnavailable",
    "FrameworkMissing",
    "LayoutNotApplicable",
    "MissingGradient",
    "NoSuchName",
    "NormspecError",
    "NotImportable",
    "PartRaised",
    "TakesNoPart",
    "TargetLost",
    "TargetRaised",
    "UnknownConvention",
    "UnknownDtype",
    "UnknownFramework",
    "UnknownMode",
    "UnknownOperator",
    "UnknownProfile",
    "UnknownTarget",
    "Unsupported",
    "WrongDeclaration",
    "WrongEntry",
    "WrongSignature",
    "carries_a_part_error",
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


class UnknownMode(NormspecError):
    """The mode is neither training nor inference."""


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


class WrongEntry(NormspecError):
    """A known violation names a dtype, a mode or a kind of failure that does not exist."""


class WrongDeclaration(NormspecError):
    """--parameters, --layout or --fixed says of a layer or function what cannot be, or cannot be read."""


class BadSibling(NormspecError):
    """What stands beside a function to describe it, NAME_accepts or NAME_expected, is not what it has to be."""


class FrameworkMissing(NormspecError):
    """The target needs a framework that is not installed."""


class DeviceUnavailable(NormspecError):
    """The framework has no such device on this machine."""


class LayoutNotApplicable(NormspecError):
    """The array cannot be laid out in memory in that way, or the framework has no such layout."""


@dataclass(frozen=True)
class Where:
    """A line of a user's own file."""

    file: str
    line: int
    #: What stands there; empty where the file cannot be read.
    source: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class TargetRaised(Exception):
    """The target raised while it was called or differentiated."""

    def __init__(
        self,
        original: BaseException | None,
        stage: str,
        *,
        words: str = "",
        by_a_part: bool | None = None,
        where: Where | None = None,
    ) -> None:
        super().__init__(original, stage)
        #: What the target raised; None where it did so in another process.
        self.original = original
        #: What was being done: "call", "vjp", "jvp", "vjp_vjp" or "read".
        self.stage = stage
        #: What it raised, in one line.
        self.words = words or (one_line(original) if original is not None else "an exception")
        #: Whether it is what a part raised that is there to raise, or carries that.
        self.by_a_part = carries_a_part_error(original) if by_a_part is None else by_a_part
        #: The innermost line in the user's own file; None where it was raised outside of any.
        self.where = where

    @property
    def out_of_memory(self) -> bool:
        """Whether it says that no memory was left."""
        if isinstance(self.original, MemoryError):
            return True
        return any(words in self.words for words in _NO_MEMORY)

    def __str__(self) -> str:
        return self.words


#: How frameworks say that an allocation failed, where they do not raise MemoryError.
_NO_MEMORY = ("allocate memory", "out of memory", "OutOfMemory", "RESOURCE_EXHAUSTED", "ResourceExhausted", "bad_alloc")


class TargetLost(Exception):
    """The target ended its process, was stopped at a limit, or ran out of memory: nothing is known of the call."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        #: What became of it, in one line that follows "the target".
        self.reason = reason

    def __str__(self) -> str:
        return f"the target {self.reason}"


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


def carries_a_part_error(error: BaseException | None) -> bool:
    """Whether an exception is a part's own, or was raised from it or while it was handled."""
    seen: list[BaseException] = []
    while error is not None and error not in seen:
        if isinstance(error, PartRaised):
            return True
        seen.append(error)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return False


class Unsupported(Exception):
    """
    The target lacks what was asked of it, which is no violation.

    A function of a user's raises it, as ``normspec.Unsupported("eps has to be above 0")``, to decline a call.
    """

    #: What is lacking, in one line.
    reason = "declined without a reason"

    def __init__(self, reason: object = "") -> None:
        super().__init__(reason)
        self.reason = " ".join(str(reason).split()) or self.reason

    def __str__(self) -> str:
        return self.reason


class TakesNoPart(Unsupported):
    """The target takes no part in one of its optional roles; what does without that is there all the same."""


class CannotVary(Unsupported):
    """A layer has this setting, size or parameter of its own: no call can choose another, and nothing is refused."""


#: Exceptions that a call of a target can end in.
CALL_FAILED = (TargetRaised, TargetLost, BadOutput, Unsupported)


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
    words = str(given)
    near = difflib.get_close_matches(words, names, n=1) or difflib.get_close_matches(words.lower(), names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ";"
    return f"{hint} choose from {', '.join(names)}"
