"""The site of the pages: mkdocs.yml names each of them."""

from __future__ import annotations

import re

from .blocks import CHECKOUT

NAMED = re.findall(
    r"^ +- (?:\w+: )?((?:docs|spec)/\S+\.md)$", (CHECKOUT / "mkdocs.yml").read_text(encoding="utf-8"), re.M
)


def test_every_page_stands_in_the_navigation_once():
    """`tox -e docs` builds the pages that the navigation names, and nothing else."""
    pages = [
        file.relative_to(CHECKOUT).as_posix() for room in ("docs", "spec") for file in CHECKOUT.glob(f"{room}/**/*.md")
    ]
    assert sorted(NAMED) == sorted(pages)
