"""Limits as they are written, and that a run keeps to them."""

from __future__ import annotations

import pytest

from normspec.conformance.command_line.root import main
from normspec.conformance.requests.limits import WrongLimit, bytes_of, seconds_of, size_in_words

HOSTILE = """
import numpy as np

def layer_norm(x, gamma, beta, *, eps, axes):
    while True:
        pass

def batch_norm(x, gamma, beta, running_mean, running_var, *, eps, momentum, training, channel_axis):
    return np.ones(1 << 28), running_mean, running_var
"""


@pytest.mark.parametrize(
    ("written", "size"),
    [
        ("8GiB", 8 << 30),
        ("512 mib", 512 << 20),
        ("1.5GiB", 3 << 29),
        ("2GB", 2 * 10**9),
        ("1TiB", 1 << 40),
        ("100000000", 10**8),
        (10**8, 10**8),
        ("None", None),
    ],
)
def test_a_size_is_read_as_it_is_written(written, size):
    """GiB is a power of two and GB a power of ten; printed sizes can be read back."""
    assert bytes_of(written) == size
    assert bytes_of(size_in_words(size)) == size


@pytest.mark.parametrize(
    "written",
    ["", "GiB", "-1GiB", "8G", "8 G iB", "1e9", "0", "8", 8, 1e9, True, None, [8], "9" * 400 + ".5", "9" * 5000 + "GB"],
)
def test_what_is_no_size_is_told(written):
    """A slip in the unit is an error, and never a limit that nothing could keep."""
    with pytest.raises(WrongLimit):
        bytes_of(written)


@pytest.mark.parametrize(("written", "seconds"), [("60", 60.0), (0.5, 0.5), (3, 3.0), ("none", None)])
def test_seconds_are_read_as_they_are_written(written, seconds):
    """A number, or the word for no limit."""
    assert seconds_of(written) == seconds


@pytest.mark.parametrize("written", ["", "0", "-1", "60s", "nan", "inf", 0, True, None, [60], 10**400])
def test_what_are_no_seconds_is_told(written):
    """A limit is above zero and finite."""
    with pytest.raises(WrongLimit):
        seconds_of(written)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("hostile.py:layer_norm --time-limit 0.5", "took longer than 0.5 seconds and was stopped"),
        ("hostile.py:batch_norm --memory-limit 512MiB", "ran out of memory"),
    ],
)
def test_a_run_keeps_to_its_limits(tmp_path, monkeypatch, capsys, arguments, words):
    """Nothing is faked here: an endless loop and two gigabytes are stopped, reported, and do not pass."""
    (tmp_path / "hostile.py").write_text(HOSTILE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(["check", *arguments.split(), "--profile", "quick", "--dtype", "float32", "--forward-only"]) == 3
    assert words in " ".join(capsys.readouterr().out.split())
