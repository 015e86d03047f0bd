"""Progress is a bar on a terminal, and elsewhere a line now and then."""

from __future__ import annotations

import io
import time

from rich.text import Text

from normspec.conformance.command_line.progress import line, progress_on
from normspec.conformance.engine.progress import Progress
from normspec.conformance.reporting.layout import console_on, print_prose
from normspec.conformance.reporting.render import print_report


class Closed(io.StringIO):
    """A stream whose reader has gone."""

    def write(self, text: str) -> int:
        """Nothing can be written."""
        raise BrokenPipeError


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """It is one."""
        return True


def test_a_pipe_gets_a_line_now_and_then():
    """If no terminal shows a bar, a line says what is checked, what is done, what is left and what is violated."""
    stream = io.StringIO()
    with progress_on(stream, every=0.01) as listener:
        assert listener is not None
        listener(Progress(3, 8, "mine.py:f layer_norm float32", violations=2, seconds_left=40.2))
        deadline = time.monotonic() + 5
        while "mine" not in stream.getvalue() and time.monotonic() < deadline:
            time.sleep(0.01)
    assert "[ 38 %] mine.py:f layer_norm float32; about 40 s left; 2 violations\n" in stream.getvalue()


def test_a_run_that_takes_seconds_writes_no_line():
    """The first line comes after a quarter of a minute, and none after the end."""
    stream = io.StringIO()
    with progress_on(stream) as listener:
        assert listener is not None
        listener(Progress(1, 2, "a case"))
    assert stream.getvalue() == ""


def test_a_line_says_only_what_is_known():
    """Violations are mentioned only if there are any, and the remaining time only once it is known."""
    assert line(Progress(0, 0, "starting")) == "[  0 %] starting"
    assert line(Progress(1, 1, "done", 1)) == "[100 %] done; 1 violation"
    assert line(Progress(8, 8, "shrinking LN-F3", 1, seconds_left=0)) == "[100 %] shrinking LN-F3; 1 violation"


def test_a_closed_stream_ends_nothing():
    """That nobody reads the lines any more is no error."""
    with progress_on(Closed(), every=0.001) as listener:
        assert listener is not None
        time.sleep(0.02)


def test_a_terminal_shows_what_is_being_checked(monkeypatch):
    """The bar carries the step's words, read as text and not as markup, the time left, and the violations."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "160")
    stream = Terminal()
    with progress_on(stream) as listener:
        assert listener is not None
        listener(Progress(3, 10, "LN-F3 [float16]", violations=2, seconds_left=30))
    assert "LN-F3 [float16]" in stream.getvalue()
    assert " 30 %" in stream.getvalue()
    assert "about 30 s left" in stream.getvalue()
    assert "2 violations" in stream.getvalue()


def test_a_pipe_is_80_columns_wide_unless_told_otherwise(monkeypatch):
    """COLUMNS widens a pipe; nonsense in it does not break the report."""
    for columns, width in (("", 80), ("132", 132), ("nonsense", 80), ("3", 80)):
        monkeypatch.setenv("COLUMNS", columns)
        assert console_on(io.StringIO()).width == width


def test_no_color_is_respected(monkeypatch):
    """With NO_COLOR a terminal gets no colours; bold stays, which is none (https://no-color.org, and Rich's pages)."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("NO_COLOR", "1")
    stream = Terminal()
    console_on(stream).print("words", style="bold red")
    assert stream.getvalue() == "\x1b[1mwords\x1b[0m\n"


def test_the_style_of_a_label_is_for_the_label_alone(monkeypatch):
    """What stands beside a dim label is not dim, in its first line as in the others."""
    monkeypatch.setenv("TERM", "xterm-256color")
    stream = Terminal()
    print_prose(Text("0.5 " * 30), console_on(stream), indent=12, first=Text("  expected", style="dim"))
    first, *others = stream.getvalue().splitlines()
    assert first.startswith("\x1b[2m  expected  \x1b[0m0.5 0.5")
    assert others
    assert not any("\x1b" in line for line in (first.partition("\x1b[0m")[2], *others))


def test_only_the_id_of_a_row_is_bold(monkeypatch, a_result, a_report):
    """A title is neither bold nor part of the id."""
    monkeypatch.setenv("TERM", "xterm-256color")
    stream = Terminal()
    print_report(a_report(a_result()), console_on(stream))
    (row,) = (line for line in stream.getvalue().splitlines() if "LN-F1" in line)
    assert row.startswith("\x1b[1mLN-F1   \x1b[0mthe formula")
