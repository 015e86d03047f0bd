"""Probes: each asks a binding one question. They are in the order of the rows."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable

import attrs

from ...spec.operators import OPERATORS
from .bench import Bench
from .table import Cell

Body = Callable[[Bench], Cell]

#: The operators with statistics of their own. BLOCKS, below, are the composed operators that contain one of these.
NORMALISATIONS = tuple(name for name, one in OPERATORS.items() if one.normalises and not one.composed)
#: The ones that subtract the mean: nothing is left of a group of equal values.
CENTRED = tuple(name for name in NORMALISATIONS if OPERATORS[name].centred)
BLOCKS = tuple(name for name, one in OPERATORS.items() if one.normalises and one.composed)


#: The headings for the files of probes.
_SUBJECTS = {
    "epsilon": "eps",
    "variance": "variance",
    "gain": "gamma and beta",
    "running": "running statistics",
    "axes": "axes",
    "accuracy": "accuracy",
    "degenerate": "special groups",
    "special": "special values",
    "repetition": "the same bits",
    "derivatives": "derivatives",
}


@attrs.frozen
class Probe:
    """One row of the table."""

    #: Stable, because the JSON has it.
    key: str
    title: str
    operators: tuple[str, ...]
    #: The dtype of the row; None for the dtype of the table.
    dtype: str | None
    body: Body

    @property
    def how(self) -> str:
        """The measurement that answers it, in a sentence or two."""
        return " ".join((inspect.getdoc(self.body) or "").split())

    @property
    def subject(self) -> str:
        """The subject, as a heading."""
        return _SUBJECTS[self.body.__module__.rpartition(".")[2]]


#: By key, in the order of the rows.
PROBES: dict[str, Probe] = {}


def probe(
    key: str, title: str, operators: Iterable[str] = NORMALISATIONS, *, dtype: str | None = None
) -> Callable[[Body], Body]:
    """Register a function as the probe of a row."""

    about = tuple(operators)

    def register(body: Body) -> Body:
        if key in PROBES or not set(about) <= set(OPERATORS):
            raise ValueError(f"{key} is there already, or names no operators: {about}")
        PROBES[key] = Probe(key, title, about, dtype, body)
        return body

    return register
