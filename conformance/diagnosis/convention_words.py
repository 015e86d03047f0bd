"""What a function does that needs a convention, and what to change, in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...spec.identifiers import is_common, kind_of

#: By convention: what a function that needs it does, and what to change.
_WORDS = {
    "float64": ("computes float64 in float32", "Compute float64 data in float64"),
    "mixed_dtypes": (
        "returns results in the dtype of float32 parameters",
        "Return results of 16-bit data in the dtype of the data",
    ),
    "storage": (
        "takes its steps in 16 bits, whose rounding and range explain what is wrong",
        "Compute in float32 and round each result once",
    ),
    "cast": ("rounds to 16 bits before the gain", "Round once, after the gain"),
}
#: In the place of what is done in float64, where the formula of y holds.
_IN_PART = "computes a part of what it returns for float64 in float32"
#: The same for other conventions.
_OTHERS = ("does what {declared} allows, and does not declare it", "Follow the formula")


def sentence_of(declarations: Sequence[str], violated: Iterable[str] = ()) -> str:
    """What a function that needs these declarations (KEY=VALUE) does; ``violated``: what it violates without them."""
    clauses = [_words(one)[0] for one in declarations]
    if [one.partition("=")[0] for one in declarations] == ["float64"]:
        own = [kind_of(one) for one in violated if not is_common(one)]
        if own and not any(kind in "FIL" for kind in own):  # gradients or running statistics alone
            clauses = [_IN_PART]
    told = "; ".join(clauses)
    if len(declarations) > 1:
        told += f"; {_listed(declarations)} together allow it"
    elif declarations[0] not in told:
        told += f"; {declarations[0]} allows it"
    return f"{told[:1].upper()}{told[1:]}."


def remedy_of(declarations: Sequence[str]) -> str:
    """What to change in a function that needs these declarations."""
    alone = _words(declarations[0])[1] if len(declarations) == 1 else _OTHERS[1]
    return f"{alone}, or declare {_listed(declarations)}"


def _words(declaration: str) -> tuple[str, str]:
    does, change = _WORDS.get(declaration.partition("=")[0], _OTHERS)
    return does.format(declared=declaration), change


def _listed(declarations: Sequence[str]) -> str:
    *others, last = declarations
    return f"{', '.join(others)} and {last}" if others else last
