"""The store: entries on disk that several processes share, and damage that is noticed."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from normspec.conformance.kept.store import FILE, Store

KEYS = [bytes([place]) * 16 for place in range(8)]

DAMAGE = (
    "UPDATE truths SET words = x'00' || substr(words, 2)",
    "UPDATE truths SET words = substr(words, 1, 20)",
    "UPDATE truths SET words = words || x'00'",
    "UPDATE truths SET words = x''",
    "UPDATE truths SET words = 'text'",
    "UPDATE truths SET words = 7",
    "UPDATE truths SET words = (SELECT words FROM truths AS other WHERE other.rowid = truths.rowid % 8 + 1)",
    "DELETE FROM truths",
)


def filled(folder: Path, count: int = 8) -> None:
    """Write entries, each its key's bytes twice."""
    store = Store(folder)
    for key in KEYS[:count]:
        store.put(key, key * 2)
    store.close()


def test_entries_are_found_again(tmp_path):
    """An entry is found before it is written, after, and by another store; another key is not."""
    store = Store(tmp_path)
    store.put(KEYS[0], b"words")
    assert store.find(KEYS[0]) == b"words"
    store.flush()
    assert store.find(KEYS[0]) == b"words" and store.find(KEYS[1]) is None
    assert Store(tmp_path).find(KEYS[0]) == b"words"


@pytest.mark.parametrize("change", DAMAGE)
def test_a_damaged_entry_is_not_found(tmp_path, change):
    """Changed, cut, lengthened, emptied, foreign and missing entries are as if they were not there."""
    filled(tmp_path)
    with sqlite3.connect(tmp_path / FILE) as connection:
        connection.execute(change)
    connection.close()
    store = Store(tmp_path)
    assert [store.find(key) for key in KEYS] == [None] * 8
    store.put(KEYS[0], b"again")
    store.flush()
    assert Store(tmp_path).find(KEYS[0]) == b"again"


@pytest.mark.parametrize("left", [0, 1, 50, 4096, 5000, 8192])
def test_a_file_that_is_cut_off_is_begun_anew(tmp_path, left):
    """Whatever is left of the file, entries are found or not, never wrong, and new ones are kept."""
    filled(tmp_path)
    file = tmp_path / FILE
    file.write_bytes(file.read_bytes()[:left])
    store = Store(tmp_path)
    assert all(store.find(key) in (None, key * 2) for key in KEYS)
    for _ in range(2):  # the first may find the damage, and starts a new file
        store.put(KEYS[0], b"again")
        store.flush()
    assert Store(tmp_path).find(KEYS[0]) == b"again"


def test_a_file_that_is_no_database_is_begun_anew(tmp_path):
    """A file of noise is discarded."""
    (tmp_path / FILE).write_bytes(bytes(range(256)) * 64)
    store = Store(tmp_path)
    store.put(KEYS[0], b"words")
    store.flush()
    assert Store(tmp_path).find(KEYS[0]) == b"words"


def test_a_file_that_this_process_has_closed_is_left_alone(tmp_path):
    """At the end of a process the connection is closed, also while a thread goes on: the entries stay."""
    first = Store(tmp_path)
    first.put(KEYS[0], b"words")
    first.flush()
    first._connection.close()
    first.put(KEYS[1], b"words")
    first.flush()
    assert first.find(KEYS[0]) is None
    assert Store(tmp_path).find(KEYS[0]) == b"words"


def test_a_folder_that_may_not_be_written_is_done_without(tmp_path):
    """A file in the folder's place: nothing is kept, and nothing raises."""
    place = tmp_path / "file"
    place.write_text("not a folder")
    store = Store(place)
    store.put(KEYS[0], b"words")
    store.flush()
    assert Store(place).find(KEYS[0]) is None


def test_the_file_stays_within_its_limit(tmp_path):
    """Half of the entries make room for new ones, and the newest is there."""
    limit = 1 << 20
    store = Store(tmp_path, limit)
    for number in range(64):
        store.put(number.to_bytes(16, "big"), bytes(1 << 16))
        store.flush()
    assert (tmp_path / FILE).stat().st_size <= limit
    assert store.find((63).to_bytes(16, "big")) is not None
    assert 2 <= sum(store.find(number.to_bytes(16, "big")) is not None for number in range(64)) <= 16


def test_an_entry_that_is_too_large_is_not_kept(tmp_path):
    """One truth of many megabytes does not push thousands out."""
    store = Store(tmp_path)
    store.put(KEYS[0], bytes(9 << 20))
    assert store.find(KEYS[0]) is None


_WRITES = """
import sys
from pathlib import Path
from normspec.conformance.kept.store import Store
store = Store(Path(sys.argv[1]))
for number in range(200):
    key = (number * int(sys.argv[2])).to_bytes(16, "big")
    store.put(key, key)
    store.flush()
    assert store.find(key) == key
"""


def test_several_processes_write_at_once(tmp_path):
    """Three processes write a thousand entries in all; none is lost, and none is wrong."""
    writers = [subprocess.Popen([sys.executable, "-c", _WRITES, str(tmp_path), str(step)]) for step in (1, 2, 3)]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    store = Store(tmp_path)
    keys = [(number * step).to_bytes(16, "big") for number in range(200) for step in (1, 2, 3)]
    assert all(store.find(key) == key for key in keys)
