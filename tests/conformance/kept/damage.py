"""Damage to kept truths: a bit in the middle of an entry, or its end cut off."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from normspec.conformance.kept.store import FILE


def damage(folder: Path, entries: int) -> None:
    """Damage that many entries of the store of a folder, chosen at random: every second one is cut off."""
    with sqlite3.connect(folder / FILE) as connection:
        chosen = connection.execute("SELECT rowid, words FROM truths ORDER BY random() LIMIT ?", (entries,)).fetchall()
        for rowid, words in chosen:
            changed = bytearray(words)
            changed[len(words) // 2] ^= 1
            changed = changed if rowid % 2 else changed[:-1]
            connection.execute("UPDATE truths SET words = ? WHERE rowid = ?", (bytes(changed), rowid))
    connection.close()
