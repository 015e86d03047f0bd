"""Where the pages stand for a reader who has a browser and not the package."""

from __future__ import annotations

#: The folder of the pages. pyproject.toml and CITATION.cff name the same repository.
PAGES = "https://github.com/normspec/normspec/blob/main/spec/"


def address(page: str, anchor: str = "") -> str:
    """Return the address of a page, by its name without ending, or of the place on it that has this anchor."""
    return f"{PAGES}{page}.md{f'#{anchor}' if anchor else ''}"
