"""Output that nobody can read: no traceback, and no verdict that was not reached."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

COMMAND = [sys.executable, "-m", "normspec"]

pytestmark = pytest.mark.skipif(os.name != "posix", reason="pipes and signals of POSIX")


def test_a_reader_that_leaves_early():
    """`normspec list | head -0` ends in silence, with 3: it is no violation."""
    read, write = os.pipe()
    os.close(read)
    ended = subprocess.run([*COMMAND, "list", "--no-import"], stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert (ended.returncode, ended.stderr) == (3, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device")
def test_a_full_disk():
    """One line says that nothing could be written."""
    with open("/dev/full", "w") as full:
        ended = subprocess.run([*COMMAND, "list", "--no-import"], stdout=full, stderr=subprocess.PIPE, check=False)
    assert ended.returncode == 3
    assert ended.stderr.startswith(b"normspec: the output cannot be written: No space left") and b"\n" in ended.stderr
    assert ended.stderr.count(b"\n") == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device")
def test_a_report_that_could_not_be_kept_says_so_last(tmp_path):
    """If the JSON does not fit on the disk, the last line says so, and gives the exit status."""
    function = "def layer_norm(x, gamma, beta, *, eps, axes):\n    return x\n"
    (tmp_path / "mine.py").write_text(f"import numpy as np\n{function}", encoding="utf-8")
    asked = ["check", "mine.py:layer_norm", "--only", "CM-P1", "--profile", "quick", "--dtype", "float32"]
    ended = subprocess.run(
        [*COMMAND, *asked, "--json", "/dev/full"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        text=True,
    )
    assert ended.returncode == 2
    assert "CONFORMS" in ended.stdout
    last = ended.stdout.splitlines()[-1]
    assert last.startswith("normspec: --json /dev/full could not be written: No space left on device")
    assert last.endswith("the verdict above stands, and the exit status is 2")


def test_no_output_at_all():
    """A command without a standard output does its work."""
    ended = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", *COMMAND, "explain", "LN-F1"], stderr=subprocess.PIPE, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_sigterm_ends_it_as_ctrl_c_does(tmp_path):
    """Results so far are reported, the exit status is 3, and no worker is left behind."""
    note = tmp_path / "worker"
    (tmp_path / "mine.py").write_text(
        f"import os, time\nimport numpy as np\nopen({str(note)!r}, 'w').write(str(os.getpid()))\n"
        "def layer_norm(x, gamma, beta, *, eps, axes):\n    time.sleep(0.01)\n    return x\n",
        encoding="utf-8",
    )
    process = subprocess.Popen(
        [*COMMAND, "check", "mine.py:layer_norm", "--forward-only"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    while not (note.exists() and note.read_text()):
        assert process.poll() is None
        time.sleep(0.05)
    time.sleep(1.0)
    process.send_signal(signal.SIGTERM)
    out, errors = process.communicate(timeout=60)
    assert process.returncode == 3
    assert b"Traceback" not in out + errors
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and _runs(int(note.read_text())):
        time.sleep(0.05)
    assert not _runs(int(note.read_text()))


def test_ctrl_c_in_an_import_has_the_status_of_any_other(tmp_path):
    """CPython would end the process by SIGINT if the interruption came while attrs executed a string."""
    (tmp_path / "interrupted.py").write_text(
        "import sys\nfrom normspec.conformance.command_line import root\n"
        "root.normspec.main = lambda **_: exec('raise KeyboardInterrupt')\nsys.exit(root.main([]))\n",
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "interrupted"]  # a file that is run by its name never ends by the signal
    ended = subprocess.run(command, cwd=tmp_path, stderr=subprocess.PIPE, check=False)
    assert (ended.returncode, ended.stderr) == (3, b"normspec: interrupted before anything was established\n")


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
