"""
A hook of mkdocs: the site's pages have the same paths as in the repository, so that one link works in both.

The pages are those that mkdocs.yml names, and the pictures beside them; links to other files lead to the repository.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent

#: Code, which contains no links; or a Markdown or HTML link to a place in the repository: its path, and its anchor.
_CODE_OR_LINK = re.compile(
    r"""^```.*?^``` | `[^`\n]*` | ^[ ]{4}.*?$
    | (?<=\]\() (?!\w+:|\#) (?P<link>[^)\#\s]+) (?:\#[^)\s]*)? (?=\))
    | (?<=src=") (?!\w+:) (?P<picture>[^"]+) (?=")""",
    re.MULTILINE | re.DOTALL | re.VERBOSE,
)


def on_files(files: Files, config: Any) -> Files:
    """The theme's own files; and the navigation's pages and the pictures, under their paths in the repository."""
    own = [file for file in files if file.src_uri.startswith("assets/")]
    pictures = [file.relative_to(ROOT).as_posix() for file in (ROOT / "docs").rglob("*.svg")]
    of = [*_pages(config["nav"]), *pictures]
    return Files([*own, *(File(name, str(ROOT), config["site_dir"], config["use_directory_urls"]) for name in of)])


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Redirect links to anything but the site's pages to the repository."""
    here = posixpath.dirname(page.file.src_uri)

    def led(link: re.Match[str]) -> str:
        named = link["link"] or link["picture"]
        path = posixpath.normpath(posixpath.join(here, named or ""))
        if not named or path in files.src_uris:
            return link[0]
        if not (ROOT / path).exists():
            raise SystemExit(f"{page.file.src_uri}: {path} is not a file of the repository")
        kind = "tree" if (ROOT / path).is_dir() else "blob"
        return f"{config['repo_url'].rstrip('/')}/{kind}/main/{path}"

    return _CODE_OR_LINK.sub(led, markdown)


def _pages(entries: Any) -> Iterator[str]:
    """The pages of a part of the navigation, in order."""
    for entry in entries if isinstance(entries, list) else entries.values():
        if isinstance(entry, str):
            yield entry
        else:
            yield from _pages(entry)
