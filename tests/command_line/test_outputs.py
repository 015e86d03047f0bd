"""The output files of `normspec check`: checked before the run, written whole, one place for each."""

from __future__ import annotations

import os
import subprocess
import sys
from xml.etree import ElementTree

import pytest

from normspec.conformance.command_line.root import run

SHORT = ("--op", "layer_norm", "--only", "CM-P1", "--profile", "quick", "--dtype", "float64")


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A sound enough function in the working directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(
        "import numpy as np\n\n\ndef mine(x, gamma, beta, *, eps, axes):\n    return np.zeros_like(x)\n",
        encoding="utf-8",
    )
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--json", "a", "--junit", "a"), "--json and --junit write to the same place, a: give each its own"),
        (("--json", "a", "--junit", "./a"), "--json and --junit write to the same place, a: give each its own"),
        (
            ("--json", "a", "--against", "old.json"),
            "--against is about --markdown and the job summary of --format github",
        ),
        (("--json", "-", "--junit", "-"), "--json and --junit write to the same place, -: give each its own"),
        (("--junit", "nowhere/a.xml"), "the folder of --junit nowhere/a.xml does not exist; create nowhere first"),
        (
            ("--html", "mine.py"),
            "--html mine.py would be overwritten, and normspec did not write it; name another file",
        ),
        (("--json", "a" * 300), f"--json {'a' * 300} cannot be written: File name too long; name another file"),
        (("--json", ""), "--json names no file; name one, such as report.json"),
        (("--junit", "."), "--junit . is a folder; name a file in it, such as report.xml"),
    ],
)
def test_a_file_that_cannot_be_written_is_told_before_the_run(mine, capsys, arguments, message):
    """One line names the option, nothing is checked, and nothing is written."""
    assert run(["check", "mine.py:mine", *SHORT, *arguments]) == 2
    assert capsys.readouterr().err.startswith(f"normspec: {message}")
    assert [file.name for file in mine.iterdir()] == ["mine.py"]


@pytest.mark.parametrize(("option", "file"), [("--json", "package.json"), ("--markdown", "notes.md")])
def test_what_normspec_did_not_write_is_kept(mine, capsys, option, file):
    """A file of the user is not replaced; an empty one is, and then what was written into it."""
    text = "# Our notes on normspec\n" if file.endswith(".md") else "mine"
    (mine / file).write_text(text, encoding="utf-8")
    assert run(["check", "mine.py:mine", *SHORT, option, file]) == 2
    assert f"{option} {file} would be overwritten" in capsys.readouterr().err
    assert (mine / file).read_text(encoding="utf-8") == text
    (mine / file).write_text("", encoding="utf-8")
    for _ in range(2):
        assert run(["check", "mine.py:mine", *SHORT, option, file]) == 0
        assert "normspec" in (mine / file).read_text(encoding="utf-8")


@pytest.mark.skipif(os.name != "posix", reason="limits of POSIX")
def test_what_does_not_fit_is_not_added(tmp_path):
    """As on a full disk: a configuration keeps what it had, and not half of an entry more."""
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
        "from normspec.conformance.command_line.destination import write\n"
        "write(sys.argv[1], '#' * 1000, '--write-expected', append=True)"
    )
    file = tmp_path / "normspec.toml"
    file.write_text("seed = 1\n", encoding="utf-8")
    done = subprocess.run([sys.executable, "-c", code, str(file)], capture_output=True, text=True, check=False)
    assert f"--write-expected {file} could not be written: File too large" in done.stderr
    assert file.read_text(encoding="utf-8") == "seed = 1\n"


def test_a_file_on_standard_output_stands_there_alone(mine, capsys):
    """With `--junit -` the report goes to standard error, and standard output can be parsed."""
    assert run(["check", "mine.py:mine", *SHORT, "--junit", "-"]) == 0
    printed = capsys.readouterr()
    assert ElementTree.fromstring(printed.out).tag == "testsuites"
    assert "CONFORMS" in printed.err


def test_github_has_its_commands_behind_the_report_and_the_summary_of_the_job(mine, capsys, monkeypatch):
    """The report is between commands that switch commands off; annotations follow, and the summary grows."""
    summary = mine / "summary.md"
    summary.write_text("before\n", encoding="utf-8")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    monkeypatch.setenv("GITHUB_WORKSPACE", str(mine))
    asked = ("--op", "layer_norm", "--only", "LN-F1", "--profile", "quick", "--dtype", "float64", "--forward-only")
    assert run(["check", "mine.py:mine", *asked, "--format", "github", "--markdown", "comment.md"]) == 1
    lines = capsys.readouterr().out.splitlines()
    token = lines[0].removeprefix("::stop-commands::")
    at = lines.index(f"::{token}::")
    assert "DOES NOT CONFORM: 1 violated: LN-F1." in lines[:at]
    assert all(line.startswith("::error file=mine.py,line=4,title=mine.py%3Amine") for line in lines[at + 1 :])
    assert lines[at + 1 :]
    # The file says that it is ours; in the summary, others write too.
    _, comment = (mine / "comment.md").read_text(encoding="utf-8").split(" -->\n\n")
    assert summary.read_text(encoding="utf-8") == "before\n" + comment


def test_an_earlier_report_that_cannot_be_read_is_told_before_the_run(mine, capsys):
    """One line names the file, and nothing is checked."""
    assert run(["check", "mine.py:mine", *SHORT, "--markdown", "c.md", "--against", "old.json"]) == 2
    assert capsys.readouterr().err.startswith("normspec: old.json cannot be read")
    assert not (mine / "c.md").exists()


@pytest.mark.skipif(os.name != "posix", reason="names of files are text elsewhere")
def test_a_file_whose_name_is_not_text_is_written_about(mine):
    """Its bytes are shown as Python shows them; the draft of an entry has a question mark in their place."""
    pytest.importorskip("jinja2")
    (mine / "m\udcff.py").write_bytes((mine / "mine.py").read_bytes())
    forms = ("--markdown", "a.md", "--html", "a.html", "--junit", "a.xml", "--write-expected", "a.toml")
    assert run(["check", "m\udcff.py:mine", *SHORT, "--only", "LN-F1", *forms]) == 1
    assert "m\\udcff.py:mine" in (mine / "a.md").read_text(encoding="utf-8")
    assert "m\\udcff.py:mine" in (mine / "a.html").read_text(encoding="utf-8")
    assert 'target = "m?.py:mine"' in (mine / "a.toml").read_text(encoding="utf-8")


def test_reports_with_the_same_name_in_two_folders_are_both_on_the_page(mine):
    """Each then has its whole path; other reports have the names of their files."""
    pytest.importorskip("jinja2")
    files = ["a/report.json", "b/report.json", "other.json"]
    for place, file in enumerate(files):
        (mine / file).parent.mkdir(exist_ok=True)
        assert run(["check", "mine.py:mine", *SHORT, "--seed", str(place), "--json", file]) == 0
    assert run(["page", *files, "--out", "page.html"]) == 0
    text = (mine / "page.html").read_text(encoding="utf-8")
    assert all(f"seed {place}" in text and file in text for place, file in enumerate(files))
