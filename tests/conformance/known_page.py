"""The table of known deviations on the page of conventions, held to the bindings of a target."""

from __future__ import annotations

from normspec import spec
from normspec.adapters.target import Target
from normspec.conformance.reporting.known_table import HEAD, lines


def told() -> list[str]:
    """The lines of the table, its head included."""
    page = spec.pages()["conventions"]
    return [line for line in page.partition("## Known deviations")[2].splitlines() if line.startswith("|")]


def the_page_tells(target: Target) -> bool:
    """Whether the table has the target's rows, and no others of it."""
    page = told()
    assert tuple(page[: len(HEAD)]) == HEAD
    return [line for line in page if line.startswith(f"| `{target.name}` |")] == lines(target)
