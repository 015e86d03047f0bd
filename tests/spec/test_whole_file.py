"""A file is written whole or not at all, wherever it lies."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading

import pytest

from normspec.spec.whole_file import replace_file

posix = pytest.mark.skipif(os.name != "posix", reason="links and permissions of POSIX")

#: Writes more than the limit of its process allows.
TOO_MUCH = """
import resource, sys
from normspec.spec.whole_file import replace_file
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    replace_file(sys.argv[1], b"x" * 100_000)
except OSError as error:
    print(error.strerror)
"""


def test_a_file_is_replaced_and_nothing_else_stays(tmp_path):
    """A new file has the usual permissions, and one that was there keeps its own."""
    file = tmp_path / "report.json"
    replace_file(file, b"one")
    (tmp_path / "usual").write_bytes(b"")
    assert file.read_bytes() == b"one" and file.stat().st_mode == (tmp_path / "usual").stat().st_mode
    file.chmod(0o600)
    mode = file.stat().st_mode
    replace_file(file, b"two")
    assert file.read_bytes() == b"two" and file.stat().st_mode == mode
    assert sorted(one.name for one in tmp_path.iterdir()) == ["report.json", "usual"]


@posix
def test_a_write_that_fails_leaves_the_old_file(tmp_path):
    """As on a full disk: the report of the last run is still there, whole, and no half of a file is next to it."""
    file = tmp_path / "report.json"
    file.write_bytes(b"the last one")
    told = subprocess.run(
        [sys.executable, "-c", TOO_MUCH, str(file)], capture_output=True, text=True, check=True
    ).stdout
    assert told.strip() == "File too large"
    assert file.read_bytes() == b"the last one"
    assert [one.name for one in tmp_path.iterdir()] == ["report.json"]


@posix
def test_a_file_that_nobody_may_write_is_not_replaced(tmp_path, monkeypatch):
    """Its folder would allow that."""
    file = tmp_path / "report.json"
    file.write_bytes(b"kept")
    file.chmod(0o444)
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write everything
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", lambda *_: pytest.fail("it was replaced"))
        with contextlib.suppress(PermissionError):
            replace_file(file, b"other")


@posix
def test_a_link_stays_a_link(tmp_path):
    """What it points to is replaced, there or not."""
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "report.json"
    link.symlink_to("elsewhere/kept.json")
    for data in (b"one", b"two"):
        replace_file(link, data)
        assert link.is_symlink() and (tmp_path / "elsewhere" / "kept.json").read_bytes() == data


@posix
def test_a_file_with_two_names_keeps_both(tmp_path):
    """Both names show the new content."""
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_bytes(b"before")
    other.hardlink_to(one)
    replace_file(one, b"after")
    assert other.read_bytes() == b"after"


@posix
def test_a_pipe_is_written_to(tmp_path):
    """What is no plain file stays, and gets the data."""
    pipe, found = tmp_path / "pipe", list[bytes]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()
    replace_file(pipe, b"report")
    reader.join(30)
    assert found == [b"report"] and pipe.is_fifo()


@posix
def test_a_file_that_cannot_be_taken_away_is_written_in_place(tmp_path, monkeypatch):
    """As where it is mounted by itself, or its folder is closed to us."""
    file = tmp_path / "report.json"
    file.write_bytes(b"before")

    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    for name in ("replace", "open"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, refuse)
            replace_file(file, name.encode())
        assert file.read_bytes() == name.encode()
    assert [one.name for one in tmp_path.iterdir()] == ["report.json"]
