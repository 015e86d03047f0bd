"""Errors that a user must correct, the ways in which a target's call can end, and what an error suggests instead."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = [
    "CALL_FAILED",
    "PART_ERRORS",
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
    "near",
    "one_line",
    "part_error",
]


class NormspecError(Exception):
    """The request cannot be carried out as it is; the message is one line and says what to do."""


class UnknownTarget(NormspecError):
    """The target is neither a known name nor of the form FILE.py:NAME or package.module:NAME."""


class UnknownOperator(NormspecError):
    """The operator is not one that can be checked, or does not follow from the target's name."""


class UnknownDtype(NormspecError):
    """The dtype is not one that the suite checks, or not one that the target has."""


class UnknownFramework(NormspecError):
    """The framework is not one that has a bridge, or does not follow from the target's imports."""


class UnknownMode(NormspecError):
    """The mode is neither training nor inference."""


class UnknownConvention(NormspecError):
    """A convention's name, or the value given to it, does not exist."""


class UnknownProfile(NormspecError):
    """The profile is not one of those that exist."""


class NotImportable(NormspecError):
    """The file or module that holds the target does not exist, does not parse, or raises when imported."""


class NoSuchName(NormspecError):
    """The module was imported, but has nothing with that name."""


class WrongSignature(NormspecError):
    """The target cannot be called as the operator's canonical signature says."""


class WrongEntry(NormspecError):
    """A known violation names a dtype, a mode or a kind of failure that does not exist."""


class WrongDeclaration(NormspecError):
    """--parameters, --layout or --fixed says something about a layer or function that is impossible or unreadable."""


class BadSibling(NormspecError):
    """An object next to a function that describes it, NAME_accepts or NAME_expected, has the wrong form."""


class FrameworkMissing(NormspecError):
    """The target needs a framework that is not installed."""


class DeviceUnavailable(NormspecError):
    """The framework has no such device on this machine."""


class LayoutNotApplicable(NormspecError):
    """The array cannot be laid out in memory in that way, or the framework has no such layout."""


@dataclass(frozen=True)
class SourceLine:
    """A line of a user's own file."""

    file: str
    line: int
    #: The text of the line; empty where the file cannot be read.
    source: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    @property
    def with_source(self) -> str:
        """The line with its text, if that is known: ``mine.py:3: raise ValueError("no kernel")``."""
        return f"{self}: {self.source}" if self.source else str(self)


class TargetRaised(Exception):
    """The target raised while it was called or differentiated."""

    def __init__(
        self,
        original: BaseException | None,
        stage: str,
        *,
        words: str = "",
        by_a_part: bool | None = None,
        where: SourceLine | None = None,
    ) -> None:
        super().__init__(original, stage)
        #: The exception that the target raised; None if it did so in another process.
        self.original = original
        #: The stage in which it raised: "call", "vjp", "jvp", "vjp_vjp" or "read".
        self.stage = stage
        #: The exception in one line.
        self.words = words or (one_line(original) if original is not None else "an exception")
        #: Whether it is, or was raised from, the exception of a part whose task is to raise.
        self.by_a_part = carries_a_part_error(original) if by_a_part is None else by_a_part
        #: The innermost line in the user's own file; None if there is none.
        self.where = where

    @property
    def out_of_memory(self) -> bool:
        """Whether it says that memory ran out, and no part said so on purpose."""
        if self.by_a_part:
            return False
        if isinstance(self.original, MemoryError):
            return True
        return any(words in self.words for words in _NO_MEMORY)

    @property
    def device_unusable(self) -> bool:
        """Whether the device's platform says that every later call of this process fails, and no part said so."""
        told_by_platform = any(name in self.words.lower() for name in ("cuda", "hip"))
        return told_by_platform and not self.by_a_part and any(words in self.words for words in _UNUSABLE_DEVICE)

    def __str__(self) -> str:
        return self.words


#: The errors of CUDA and HIP after which "the process must be terminated and relaunched", in their own words. Source:
#: the CUDA Runtime API, cudaError_t.
_UNUSABLE_DEVICE = (
    "illegal memory access", "misaligned address", "illegal instruction", "invalid program counter",
    "unspecified launch failure", "hardware stack error", "device-side assert", "launch timed out and was terminated",
    "operation not supported on global/shared address space",
)  # fmt: skip

#: How frameworks report a failed allocation if they do not raise MemoryError.
_NO_MEMORY = ("allocate memory", "out of memory", "OutOfMemory", "RESOURCE_EXHAUSTED", "ResourceExhausted", "bad_alloc")


class TargetLost(Exception):
    """
    The target ended its process or its device's work, was stopped at a limit, or ran out of memory.

    The call has no known outcome.
    """

    def __init__(self, reason: str, *, called: bool = True) -> None:
        super().__init__(reason)
        #: What happened to it, in one line that follows "the target".
        self.reason = reason
        #: Whether the call was made. It is not after several losses.
        self.called = called

    def __str__(self) -> str:
        return f"the target {self.reason}"


class BadOutput(Exception):
    """The target's result is not what its signature promises."""

    def __init__(self, message: str, kind: str = "type") -> None:
        super().__init__(message)
        #: The result, described in one line.
        self.message = message
        #: "type" (no tensor of the framework), "count" (too many or too few values), "dtype" (no float dtype of the
        #: four), "shape", "gradient" (a gradient that is missing) or "changed" (an argument that was written to).
        self.kind = kind

    def __str__(self) -> str:
        return self.message


class MissingGradient(BadOutput):
    """A requested derivative is missing, although the framework can differentiate."""

    def __init__(self, message: str, missing: tuple[str, ...]) -> None:
        super().__init__(message, "gradient")
        #: The inputs ("x", "gamma", "beta") that no gradient reaches.
        self.missing = missing


class PartRaised(Exception):
    """Raised by a part whose task is to raise; the target has to let it pass."""


#: Kinds of error that a part can raise: code may catch one and not another. StopIteration ends `list(map(...))`.
PART_ERRORS = (
    RuntimeError, ValueError, TypeError, LookupError, ArithmeticError, NotImplementedError, MemoryError, StopIteration,
)  # fmt: skip


def part_error(number: float, no_memory: Iterable[type[Exception]] = ()) -> PartRaised:
    """
    A PartRaised that is also an error of one built-in kind.

    ``no_memory``: what a framework raises when memory runs out; the part's MemoryError is that too.
    """
    kind = PART_ERRORS[int(number)]
    raised = type("PartRaised", (PartRaised, *(no_memory if kind is MemoryError else ()), kind), {})
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
    The target lacks what a call asks for, which is not a violation.

    A user's function raises it, as ``normspec.Unsupported("eps has to be above 0")``, to decline a call.
    """

    #: What it lacks, in one line.
    reason = "declined without a reason"

    def __init__(self, reason: object = "") -> None:
        super().__init__(reason)
        self.reason = " ".join(str(reason).split()) or self.reason

    def __str__(self) -> str:
        return self.reason


class TakesNoPart(Unsupported):
    """The target takes no part in one of its optional roles; calls without that part are still judged."""


class CannotVary(Unsupported):
    """A layer fixes this setting, size or parameter: a call cannot choose another, so nothing is refused."""


#: Exceptions that a call of a target can end in.
CALL_FAILED = (TargetRaised, TargetLost, BadOutput, Unsupported)


def one_line(error: BaseException) -> str:
    """
    ``Type: message`` of an exception, cut to its first line, or to its second where a colon announces that.

    An exception is an object of the target: its ``__str__`` may itself raise; then only the type is named.
    """
    name = type(error).__name__
    try:
        lines = str(error).strip().splitlines()
    except KeyboardInterrupt:
        raise
    except BaseException:
        return name
    # A compiler of kernels writes "at 10:5:" and the reason below.
    most = 2 if lines and lines[0].endswith(":") else 1
    return ": ".join([name, " ".join(line.strip() for line in lines[:most])]) if lines else name


#: How similar a word has to be to a name to be a misspelling of it: tolerance is to storage by 0.63, strage by 0.92.
_NEAR = 0.7

#: How many letters a word has to have if it is a part of a name, as dtype is of eps_dtype, or a name of it: epsilon.
_PART, _WHOLE = 4, 3

#: How many names a message lists.
_LISTED = 20


def near(given: str, names: Iterable[str], count: int = 1) -> list[str]:
    """The names that somebody may have meant by a word that is none, the nearest first; a few, or none."""
    there = list(names)
    for word in dict.fromkeys((given, given.lower())):
        found = difflib.get_close_matches(word, there, n=count, cutoff=_NEAR)
        found = found or [name for name in there if len(word) >= _PART and word in name]
        found = found or [name for name in there if len(name) >= _WHOLE and name in word]
        if found:
            return found[:count]
    return []


def choices(given: object, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: ``; did you mean 'numpy'? choose from numpy, torch``."""
    names = list(known)
    meant = near(str(given), names)
    hint = f"; did you mean {meant[0]!r}?" if meant else ";"
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return f"{hint} choose from {', '.join(names[:_LISTED])}{more}"
