"""
The rows of the table of known deviations in spec/conventions.md, made from the bindings.

``python -m normspec.conformance.reporting.known_table torch jax`` prints the rows of these targets. A test in each
framework's environment compares the page with them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from ...adapters.target import Target
from ...adapters.targets import resolve
from ..grouping import grouped

#: The head of the table.
HEAD = ("| target | what | requirement | where | what it does |", "|---|---|---|---|---|")


def lines(target: Target) -> list[str]:
    """The target's rows. Bindings with the same known deviation share a row, and so do its requirements."""
    bindings = grouped(
        ((one.requirement, _plain(one.scope()), "; ".join(map(_plain, (one.reason, *one.links)))), binding.name)
        for binding in target.bindings
        for one in binding.known_violations
    )
    requirements = grouped(
        ((", ".join(f"`{_plain(name)}`" for name in dict.fromkeys(names)), scope, words), requirement)
        for (requirement, scope, words), names in bindings.items()
    )
    return [
        f"| `{target.name}` | {names} | {', '.join(dict.fromkeys(ids))} | {scope} | {words} |"
        for (names, scope, words), ids in requirements.items()
    ]


def _plain(words: str) -> str:
    """The words with escaped bars, which would end a cell."""
    return words.replace("|", "\\|")


def main(names: Iterable[str]) -> None:
    """Print the rows of these targets."""
    for name in names:
        print("\n".join(lines(resolve(name))))


if __name__ == "__main__":
    main(sys.argv[1:])
