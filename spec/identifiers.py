"""The parts of a requirement's identifier: "LN-G4" is number 4 of kind G, gradients, on the page with prefix LN."""

from __future__ import annotations

#: The prefix of the page common to all operators.
COMMON = "CM"


def is_common(identifier: str) -> bool:
    """Whether a requirement is common to all operators, and not on the page of one."""
    return prefix_of(identifier) == COMMON


def prefix_of(identifier: str) -> str:
    """The prefix of the page: "LN" of "LN-G4"."""
    return identifier.partition("-")[0]


def kind_of(identifier: str) -> str:
    """
    The letter of the kind: "G" of "LN-G4".

    On the pages of operators F is the formula, S running statistics, I inference, E edges, G gradients, R ranges and
    L laws.
    """
    return identifier.partition("-")[2][:1]
