"""
The store: computed values by key in one SQLite file, which several processes read and write at once.

It is only a cache. An entry that cannot be read, is damaged or belongs to something else counts as missing. Each entry
has a checksum of its key and its bytes. The size of the file is limited; when it is full, half of the entries go.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
import weakref
from pathlib import Path

#: The file of truths in its folder.
FILE = "truths.sqlite"

#: Default limit of the file in bytes. `standard` of all operators takes half of it.
LIMIT = 1 << 30

#: Entries wait in memory until they have this many bytes, and are then written together.
_BATCH_BYTES = 4 << 20

#: Larger entries are not kept. At `standard` one in 200 is larger; these would take two thirds of the room, and save
#: a sixth of the time.
_LARGEST_ENTRY = 1 << 20

_CHECKSUM_BYTES = 16
_PAGE_BYTES = 4096

#: Exceptions that say nothing against the file: it is locked or cannot be reached, or this process is ending and has
#: closed it while a thread still works.
_UNREACHABLE = (sqlite3.OperationalError, sqlite3.ProgrammingError)

#: Exceptions from a damaged file, if they are none of the above. If names in it are not text, Python's module raises
#: the decoding error.
_DAMAGED = (sqlite3.DatabaseError, UnicodeDecodeError)

#: Seconds that a write waits for another process's write.
_LOCK_SECONDS = 5.0


class Store:
    """Entries by key in one file."""

    def __init__(
        self, folder: Path, limit: int = LIMIT, *, what: str = "truths", largest: int = _LARGEST_ENTRY
    ) -> None:
        self._file = folder / f"{what}.sqlite"
        self._limit, self._table, self._largest = limit, what, largest
        self._waiting: dict[bytes, bytes] = {}
        self._size = 0
        self._connection = self._opened()
        #: Number of entries found and not found, for benchmarks and tests.
        self.hits = self.misses = 0

    def find(self, key: bytes) -> bytes | None:
        """The bytes under a key; None if there are none, or if they are damaged."""
        data = self._waiting.get(key) or self._read(key)
        if data is None or _checksum(key, data[_CHECKSUM_BYTES:]) != data[:_CHECKSUM_BYTES]:
            self.misses += 1
            return None
        self.hits += 1
        return data[_CHECKSUM_BYTES:]

    def put(self, key: bytes, data: bytes) -> None:
        """Keep bytes under a key, replacing any others."""
        if self._connection is None or len(data) > self._largest:
            return
        self._waiting[key] = _checksum(key, data) + data
        self._size += len(data)
        if self._size >= _BATCH_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write the waiting entries. An entry that cannot be written is computed again another time."""
        waiting, self._waiting, self._size = list(self._waiting.items()), {}, 0
        if not waiting or self._connection is None:
            return
        try:
            self._write(waiting)
        except _UNREACHABLE as error:
            if "full" not in str(error):
                return
            with contextlib.suppress(sqlite3.Error, UnicodeDecodeError):
                self._make_room()
                self._write(waiting)
        except _DAMAGED:
            self._replace_file()

    def close(self) -> None:
        """Write the waiting entries and close the file."""
        self.flush()
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(sqlite3.Error):
                connection.close()

    # -- the file --------------------------------------------------------------------------------

    def _opened(self) -> sqlite3.Connection | None:
        for _ in range(2):
            try:
                return self._connected()
            except sqlite3.OperationalError:  # we may not write it, or it was locked too long
                return None
            except _DAMAGED:  # it is not a database: replace it
                self._remove()
        return None

    def _connected(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._file, timeout=_LOCK_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            for setting in (
                f"page_size={_PAGE_BYTES}",
                "journal_mode=WAL",
                "synchronous=OFF",  # a power cut may damage the file, which we notice
                "mmap_size=0",  # a mapped file that another process truncates would end this process
                f"max_page_count={max(16, self._limit // _PAGE_BYTES)}",
                f"journal_size_limit={_BATCH_BYTES}",
            ):
                connection.execute(f"PRAGMA {setting}")
            connection.execute(
                f"CREATE TABLE IF NOT EXISTS {self._table} (key BLOB UNIQUE NOT NULL, words BLOB NOT NULL)"
            )
        except BaseException:
            connection.close()
            raise
        weakref.finalize(self, connection.close)  # Python 3.13 warns of an open connection that is dropped
        return connection

    def _read(self, key: bytes) -> bytes | None:
        if self._connection is None:
            return None
        try:
            row = self._connection.execute(f"SELECT words FROM {self._table} WHERE key = ?", (key,)).fetchone()
        except _UNREACHABLE:
            return None
        except _DAMAGED:
            self._replace_file()
            return None
        return row[0] if row is not None and isinstance(row[0], bytes) else None

    def _write(self, entries: list[tuple[bytes, bytes]]) -> None:
        assert self._connection is not None
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            self._connection.executemany(f"INSERT OR REPLACE INTO {self._table} VALUES (?, ?)", entries)
            self._connection.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            raise

    def _make_room(self) -> None:
        """
        Delete a random half of the entries.

        Then a run whose entries do not all fit finds some of them next time. If the oldest half went, it would find
        none.
        """
        assert self._connection is not None
        self._connection.execute(f"DELETE FROM {self._table} WHERE random() % 2")

    def _replace_file(self) -> None:
        """Delete a damaged file and start a new one. Another process that has it open continues without it."""
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()
        self._remove()
        self._connection = self._opened()

    def _remove(self) -> None:
        for ending in ("", "-wal", "-shm"):
            with contextlib.suppress(OSError):
                os.unlink(f"{self._file}{ending}")


def _checksum(key: bytes, data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=_CHECKSUM_BYTES, key=key).digest()
