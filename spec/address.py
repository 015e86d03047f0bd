"""Web addresses of the pages, for readers without the package."""

from __future__ import annotations

#: The folder of the pages. pyproject.toml and CITATION.cff name the same repository.
PAGES = "https://github.com/normspec/normspec/blob/main/spec/"


def address(page: str, anchor: str = "") -> str:
    """Return the address of a page, named without its ending, or of an anchor on it."""
    return f"{PAGES}{page}.md{f'#{anchor}' if anchor else ''}"
