"""
A hook of mkdocs: the site has the pages where the repository has them, so that one link is right in both.

Its pages are those that mkdocs.yml names, and the pictures beside them; links to other files lead to the repository.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent

#: Code, in which nothing is a link; or a link of Markdown or HTML to a place in the repository: where, and where there.
_CODE_OR_LINK = re.compile(
    r"""^```.*?^``` | `[^`\n]*` | ^[ ]{4}.*?$
    | (?<=\]\() (?!\w+:|\#) (?P<link>[^)\#\s]+) (?:\#[^)\s]*)? (?=\))
    | (?<=src=") (?!\w+:) (?P<picture>[^"]+) (?=")""",
    re.MULTILINE | re.DOTALL | re.VERBOSE,
)


def on_files(files: Files, config: Any) -> Files:
    """The theme's own files, and under their paths in the repository the pages of the navigation and the pictures."""
    own = [file for file in files if file.src_uri.startswith("assets/")]
    pictures = [file.relative_to(ROOT).as_posix() for file in (ROOT / "docs").rglob("*.svg")]
    of = [*_pages(config["nav"]), *pictures]
    return Files([*own, *(File(name, str(ROOT), config["site_dir"], config["use_directory_urls"]) for name in of)])


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Lead links to what is no page of the site to the repository."""
    here = posixpath.dirname(page.file.src_uri)

    def led(link: re.Match[str]) -> str:
        named = link["link"] or link["picture"]
        path = posixpath.normpath(posixpath.join(here, named or ""))
        if not named or path in files.src_uris:
            return link[0]
        if not (ROOT / path).exists():
            raise SystemExit(f"{page.file.src_uri}: {path} is no file of the repository")
        kind = "tree" if (ROOT / path).is_dir() else "blob"
        return f"{config['repo_url'].rstrip('/')}/{kind}/main/{path}"

    return _CODE_OR_LINK.sub(led, markdown)


def _pages(entries: Any) -> Iterator[str]:
    """The pages of a part of the navigation, in their order."""
    for entry in entries if isinstance(entries, list) else entries.values():
        if isinstance(entry, str):
            yield entry
        else:
            yield from _pages(entry)
