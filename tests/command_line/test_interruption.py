"""Ctrl-C on the command line: pressed once, twice at once, and again."""

from __future__ import annotations

import pytest

from normspec.conformance import command_line
from normspec.conformance.command_line import interruption, root
from normspec.conformance.command_line.interruption import Interruptions


def test_a_second_press_within_a_second_is_the_first(monkeypatch):
    """A press soon after another is ignored; a later one interrupts again, and so does one long after."""
    times = iter((10.0, 10.05, 10.9, 11.1, 40.0))
    monkeypatch.setattr(interruption.time, "monotonic", lambda: next(times))
    interruptions = Interruptions()
    counts = []
    for _ in range(5):
        try:
            interruptions._taken(2, None)
        except KeyboardInterrupt:
            counts.append(interruptions.count)
        else:
            counts.append(0)
    assert counts == [1, 0, 0, 2, 3]


@pytest.mark.parametrize(("count", "told"), [(1, "before anything was established"), (2, "was reported")])
def test_what_an_interruption_has_lost_is_told(monkeypatch, capsys, count, told):
    """The first may come before anything is known; a second leaves out the report on what is."""

    def interrupted(**_):
        raise KeyboardInterrupt

    monkeypatch.setattr(root.normspec, "main", interrupted)
    interruptions = Interruptions()
    interruptions.count = count
    assert root.run(["list"], interruptions) == 3
    assert told in capsys.readouterr().err


def test_an_interruption_while_the_command_is_imported(monkeypatch, capsys):
    """Nothing of ours has taken the signal yet; one line says so all the same."""

    def interrupted(name, *_):
        raise KeyboardInterrupt

    monkeypatch.setattr("builtins.__import__", interrupted)
    status = command_line.main(["list"])
    monkeypatch.undo()
    assert status == 3
    assert capsys.readouterr().err == "normspec: interrupted before anything was established\n"
