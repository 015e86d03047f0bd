"""What a function does that needs a convention, and what to change, in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...spec.identifiers import is_common, kind_of

#: By convention: what a function that needs it does, and what to change.
_WORDS = {
    "float64": (
        "Computes float64 in float32; {declared} allows it.",
        "Compute float64 data in float64, or declare {declared}",
    ),
    "mixed_dtypes": (
        "Its results have the dtype of float32 parameters, which {declared} allows.",
        "Return results of 16-bit data in the dtype of the data, or declare {declared}",
    ),
    "storage": (
        "Takes its steps in 16 bits, whose rounding and range explain what is wrong; {declared} allows it.",
        "Compute in float32 and round each result once, or declare {declared}",
    ),
}
#: In the place of what is done in float64, where the formula of y holds.
_IN_PART = "Computes a part of what it returns for float64 in float32; {declared} allows it."
#: The same for other conventions, and for several together.
_OTHERS = ("Does what {declared} allows, and does not declare it.", "Follow the formula, or declare {declared}")


def sentence_of(declarations: Sequence[str], violated: Iterable[str] = ()) -> str:
    """What a function that needs these declarations (KEY=VALUE) does; ``violated``: what it violates without them."""
    if [one.partition("=")[0] for one in declarations] == ["float64"]:
        own = [kind_of(one) for one in violated if not is_common(one)]
        if own and not any(kind in "FIL" for kind in own):  # gradients or running statistics alone
            return _IN_PART.format(declared=declarations[0])
    return _words(declarations, 0)


def remedy_of(declarations: Sequence[str]) -> str:
    """What to change in a function that needs these declarations."""
    return _words(declarations, 1)


def _words(declarations: Sequence[str], which: int) -> str:
    alone = declarations[0].partition("=")[0] if len(declarations) == 1 else ""
    return _WORDS.get(alone, _OTHERS)[which].format(declared=" and ".join(declarations))
