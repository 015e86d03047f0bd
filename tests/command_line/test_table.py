"""The table: one row per requirement, one column per dtype, and nothing hidden in a cell."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console
from rich.text import Text

from normspec import Verdict
from normspec.conformance.diagnosis.cause import Cause
from normspec.conformance.reporting.layout import print_prose
from normspec.conformance.reproduce.reproducer import Reproducer


def row(text: str, identifier: str) -> str:
    """The line of the table that begins with the id."""
    return next(line for line in text.splitlines() if line.startswith(identifier + " "))


def test_a_pass_shows_its_margin(a_result, a_report, printed):
    """A pass is a tick and the worst error in units of the envelope."""
    assert row(printed(a_report(a_result(ratio=0.42))), "LN-F1").endswith("✓ 0.42")


def test_each_dtype_has_a_column(a_result, a_report, printed):
    """A requirement's dtypes are in columns, narrow ones first."""
    text = printed(a_report(a_result(dtype="float64", ratio=0.2), a_result(dtype="float16", ratio=0.1)))
    assert "float16  float64" in text
    assert row(text, "LN-F1").endswith("✓ 0.10   ✓ 0.20")


def test_rows_are_in_the_order_of_the_page(a_result, a_report, printed):
    """A requirement that the first dtype lacks is not the last row: LN-R1 stands before LN-L1."""
    judged = [("float16", "LN-F8"), ("float16", "LN-L1"), ("float32", "LN-F8"), ("float32", "LN-R1")]
    text = printed(a_report(*(a_result(dtype=dtype, requirement=one) for dtype, one in judged)))
    ids = [line.split()[0] for line in text.splitlines() if line.startswith("LN-")]
    assert ids == ["LN-F8", "LN-R1", "LN-L1"]


def test_bindings_that_agree_share_a_row(a_result, a_report, printed):
    """Two bindings with the same verdict are one row, with the larger ratio."""
    text = printed(a_report(a_result(ratio=0.2), a_result(binding="F.layer_norm", ratio=0.3)))
    assert row(text, "LN-F1").endswith("✓ 0.30")
    assert text.count("✓ 0.") == 1


def test_bindings_that_differ_have_rows_of_their_own(a_result, a_report, printed):
    """A failure of one binding is not blurred with the pass of another: each is named."""
    text = printed(a_report(a_result(), a_result(binding="F.layer_norm", verdict=Verdict.FAIL, ratio=58.0)))
    assert "torch.nn.LayerNorm" in row(text, "LN-F1")
    assert any("F.layer_norm" in line and line.endswith("✗ 58") for line in text.splitlines())


def test_a_cell_shows_the_most_severe_of_its_modes(a_result, a_report, printed):
    """Where one mode passes and another was not exercised, the cell does not say pass."""
    report = a_report(a_result(mode="training"), a_result(mode="inference", verdict=Verdict.NOT_EXERCISED, ratio=None))
    assert row(printed(report), "LN-F1").endswith("·")


@pytest.mark.parametrize("verdict", list(Verdict))
@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1"])
def test_every_verdict_prints_in_every_encoding(a_result, a_report, printed, counts, verdict, encoding):
    """A stream without the symbols gets ASCII ones, and the same words."""
    text = printed(a_report(a_result(verdict=verdict, reason="because")), encoding=encoding)
    assert counts(text)[verdict.value] == 1


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_table_fits_its_width(a_result, a_report, printed, counterexample, width):
    """No line is wider than the console, for any ratios and names."""
    results = [
        a_result(dtype=d, binding=b, verdict=v, ratio=r, counterexample=counterexample, reason="a long reason " * 12)
        for d in ("float16", "bfloat16", "float32", "float64")
        for b in ("torch.nn.LayerNorm", "torch.nn.functional.layer_norm")
        for v, r in ((Verdict.FAIL, 123456.0), (Verdict.PASS, 1e-9))
    ]
    assert max(map(len, printed(a_report(*results), width=width).splitlines())) <= width


def test_each_cause_has_its_own_script(a_result, a_report, printed):
    """Two causes without a name, one for each dtype, and a violation without a cause: each script is told once."""
    place = ("torch", "layer_norm", "torch.nn.LayerNorm")
    causes = tuple(
        Cause(*place[:2], place[2:], (dtype,), (), "Wrong.", "", "LN-F1", (), ("LN-F1",))
        for dtype in ("float32", "float16")
    )
    wrong = (("float16", "LN-F1"), ("float32", "LN-F1"), ("float32", "LN-G1"))
    scripts = tuple(Reproducer(*place, dtype, name, "", f"{dtype}-{name}.py", "") for dtype, name in wrong)
    results = (a_result(dtype=dtype, requirement=name, verdict=Verdict.FAIL) for dtype, name in wrong)
    text = printed(a_report(*results, causes=causes, reproducers=scripts))
    assert re.findall(r"script +(\S+)", text) == ["float32-LN-F1.py", "float16-LN-F1.py", "float32-LN-G1.py"]


def test_text_of_the_target_is_not_markup(a_result, a_report, printed):
    """Square brackets in a reason are printed as they are."""
    assert "[bold]no[/bold]" in printed(a_report(a_result(verdict=Verdict.UNSUPPORTED, reason="[bold]no[/bold]")))


@pytest.mark.parametrize("width", [24, 30, 40, 56])
def test_no_dtype_vanishes_where_there_is_little_room(a_result, a_report, printed, width):
    """In a narrow terminal each dtype is named next to its verdict, and no line is wider than the terminal."""
    ratios = {"float16": 0.11, "bfloat16": 0.22, "float32": 0.33, "float64": 0.44}
    text = printed(a_report(*(a_result(dtype=dtype, ratio=ratio) for dtype, ratio in ratios.items())), width=width)
    for dtype, ratio in ratios.items():
        assert f"{dtype.ljust(8)} ✓ {ratio}" in text
    assert max(map(len, text.splitlines())) <= width


def test_the_number_is_explained_in_plain_words(a_result, a_report, printed):
    """A reader who knows no envelope learns from which number on it is wrong."""
    text = " ".join(printed(a_report(a_result(ratio=0.42))).split())
    assert "The number compares the largest error found with the largest that a sound algorithm can make there:" in text
    assert "up to 1 passes, and 58 is 58 times as large." in text


def test_nothing_in_prose_commands_the_terminal():
    """A message of a target may hold colours, bells, and marks that turn the direction of reading."""
    stream, words = io.StringIO(), "raised \x1b[31mRed\x00\x9b2J \u202e of it\nanew"
    print_prose(Text(words), Console(file=stream, width=40), indent=8, first=Text("f\x1b.py"))
    assert stream.getvalue() == "f?.py   raised ?[31mRed??2J ? of it\n        anew\n"


@pytest.mark.parametrize(
    ("indent", "printed"), [(8, "a_layer as it"), (7, "a_layer\n       as it"), (2, "a_layer\n  as it")]
)
def test_a_name_does_not_touch_what_follows(indent, printed):
    """A name that leaves no space in its columns gets a line of its own."""
    stream = io.StringIO()
    print_prose(Text("as it"), Console(file=stream, width=40), indent=indent, first=Text("a_layer"))
    assert stream.getvalue() == f"{printed}\n"


@pytest.mark.parametrize("address", [f"https://example.org/{'a' * 80}", f"scripts/{'a' * 80}.py", f"C:\\{'a' * 80}.py"])
def test_an_address_is_not_broken(address):
    """A broken one can neither be followed nor copied; any other long word still is."""
    stream = io.StringIO()
    print_prose(Text(f"as it says: {address} (f) and {'b' * 50}\nanew"), Console(file=stream, width=40), indent=2)
    assert stream.getvalue().splitlines() == [
        "  as it says:",
        f"  {address}",
        "  (f) and",
        f"  {'b' * 38}",
        f"  {'b' * 12}",
        "  anew",
    ]


def test_an_empty_cell_is_explained_where_there_is_one(a_result, a_report, printed):
    """A requirement may be about some dtypes; in a run that was cut short there may be nothing of the others yet."""
    both = [a_result(), a_result(dtype="float64")]
    assert "An empty cell" not in printed(a_report(*both))
    lacking = [*both, a_result(requirement="LN-F8", dtype="float64")]
    told = " ".join(printed(a_report(*lacking)).split())
    assert "as large. An empty cell: the requirement does not apply to that dtype." in told
    told = " ".join(printed(a_report(*lacking, partial=True)).split())
    assert "An empty cell: nothing was judged there." in told
