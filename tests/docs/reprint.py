"""
Update the report output on pages: `python tests/docs/reprint.py README.md docs/examples.md`.

Each paragraph of a printed block is replaced by the paragraph of today's output with the same beginning. A paragraph
without a counterpart stays, and the tests name it.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

from blocks import CHECKOUT, Block, blocks, differs, prepare, shell, shown

#: The number of first characters by which two paragraphs count as the same.
BEGINNING = 12


def renewed(page: list[str], printed: list[str]) -> list[str]:
    """The lines of the page with the paragraphs of the current output."""
    now = re.split(r"\n\s*\n", "\n".join(line.rstrip() for line in printed).strip("\n"))
    lines = []
    for part in re.split(r"^(\.\.\.)$", "\n".join(page), flags=re.M):
        paragraphs = []
        for paragraph in re.split(r"\n\s*\n", part.strip("\n")):
            begun = [one for one in now if one[:BEGINNING] == paragraph[:BEGINNING]]
            paragraphs.append(begun[0] if paragraph and part != "..." and begun else paragraph)
            if begun:
                now = now[now.index(begun[0]) + 1 :]
        if part.strip("\n"):
            lines.append("\n\n".join(paragraphs))
    return "\n".join(lines).split("\n")


def reprint(block: Block, folder: Path) -> str:
    """The text of a block with the current output of its commands."""
    lines = []
    for command, printed in block.commands:
        lines.append(f"$ {command}")
        if printed:
            done = shown(shell(re.sub(r"\s+# .*", "", command), folder))
            while not printed[-1]:
                printed.pop()
            lines += printed if not differs(printed, done) else renewed(printed, done)
    return "\n".join(lines) + "\n"


def main(pages: list[str]) -> None:
    """Rewrite each page."""
    for page in pages:
        with tempfile.TemporaryDirectory() as folder:
            prepare(page, Path(folder))
            file = CHECKOUT / page
            for block in blocks(page):
                if any(printed for _, printed in block.commands) and "not run" not in block.notes:
                    text = file.read_text(encoding="utf-8")
                    assert text.count(block.text) == 1, f"{page}, line {block.line}: the block cannot be found again"
                    file.write_text(text.replace(block.text, reprint(block, Path(folder))), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
