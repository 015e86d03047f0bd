"""Progress is drawn on a terminal, and nowhere else."""

from __future__ import annotations

import io

from normspec.conformance.command_line.console import progress_on
from normspec.conformance.progress import Progress
from normspec.conformance.reporting.layout import console_on


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """It is one."""
        return True


def test_a_pipe_gets_no_progress():
    """Where nobody watches, there is no listener and nothing is written."""
    stream = io.StringIO()
    with progress_on(stream) as listener:
        assert listener is None
    assert stream.getvalue() == ""


def test_a_terminal_shows_what_is_being_checked(monkeypatch):
    """The bar carries the step's words, read as text and not as markup, and the number of failures."""
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    with progress_on(stream) as listener:
        assert listener is not None
        listener(Progress(3, 10, "LN-F3 [float16]", failing=2))
    assert "LN-F3 [float16]" in stream.getvalue()
    assert "2 failing" in stream.getvalue()


def test_a_pipe_is_80_columns_wide_unless_told_otherwise(monkeypatch):
    """COLUMNS widens a pipe; nonsense in it does not break the report."""
    for columns, width in (("", 80), ("132", 132), ("nonsense", 80), ("3", 80)):
        monkeypatch.setenv("COLUMNS", columns)
        assert console_on(io.StringIO()).width == width


def test_no_color_is_respected(monkeypatch):
    """With NO_COLOR a terminal gets no colours."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("NO_COLOR", "1")
    stream = Terminal()
    console_on(stream).print("words", style="red")
    assert "\x1b[31m" not in stream.getvalue()
