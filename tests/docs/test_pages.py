"""The blocks of README and docs/: every shown command runs, and prints what the page shows."""

from __future__ import annotations

import html
import re

import pytest

from .blocks import CHECKOUT, HOMES, PAGES, Block, blocks, differs, home, needs, pages_of, run_page

ALL = [block for page in PAGES for block in blocks(page)]


@pytest.mark.exhaustive  # a page's output does not depend on the Python version
@pytest.mark.parametrize("page", pages_of(""))
def test_what_a_page_shows_runs(page, tmp_path):
    """The blocks that need only NumPy, in order; the other folders run those that need a framework."""
    run_page(page, "", tmp_path)


def test_every_block_runs_somewhere_or_says_why_not():
    """A block that is not run has its reason; any other has an environment with all it needs, and tests there."""
    for block in ALL:
        place = f"{block.page}, line {block.line}"
        if "not run" in block.notes:
            assert len(block.notes["not run"].split()) > 2, f"{place}: why is it not run?"
        elif block.runs:
            assert home(block) is not None, f"{place}: no environment has {', '.join(sorted(needs(block)))}"
            assert (CHECKOUT / "tests" / "docs" / (home(block) or "") / "test_pages.py").exists(), place


def test_the_files_of_a_page_on_python_are_on_it():
    """Whoever comes to it from elsewhere has not seen the README's."""
    page = blocks("docs/python.md")
    shown = {block.notes.get("file") for block in page}
    named = {name for block in page if block.language == "python" for name in re.findall(r"[\w/]+\.py\b", block.text)}
    assert named <= {*shown, *(name for name in named if (CHECKOUT / name).is_file())}


def test_every_command_is_marked_as_one():
    """In a block each command line begins with `$ `; otherwise the test would take it for output."""
    for block in ALL:
        if block.language not in ("c", "python", "toml", "json", "yaml"):
            bare = [line for line in block.text.splitlines() if re.match(r"(normspec|python|pip|tox) ", line)]
            assert not bare or block.language == "text", f"{block.page}, line {block.line}: {bare}"
        assert block.language in ("", "c", "console", "python", "toml", "json", "yaml", "text"), block


def test_every_comment_for_the_tests_is_understood():
    """A comment of another form would be passed over in silence."""
    for page in PAGES:
        comments = re.findall(r"^<!-- (?!normspec wrote).*$", (CHECKOUT / page).read_text(encoding="utf-8"), re.M)
        read = [f"{key}: {value}" for block in blocks(page) for key, value in block.notes.items()]
        assert sorted(read) == sorted(comment[5:-4].strip() for comment in comments), page


def test_every_link_of_a_page_leads_somewhere():
    """Each relative link names a file, and the text after # is a heading of it or an anchor in it."""
    for page in PAGES:
        text = (CHECKOUT / page).read_text(encoding="utf-8")
        for file, anchor in re.findall(
            r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)", re.sub(r"`[^`\n]*`|^    .*$", "", text, flags=re.M)
        ):
            target = (CHECKOUT / page).parent / file if file else CHECKOUT / page
            assert target.exists(), (page, file)
            if anchor:
                found = target.read_text(encoding="utf-8")
                headings = {
                    re.sub(r"[^\w -]", "", one.lower()).replace(" ", "-")
                    for one in re.findall(r"^#+ (.*)$", found, re.M)
                }
                assert anchor in headings | set(re.findall(r'<a id="([^"]+)"></a>', found)), (page, file, anchor)


def test_the_readme_is_short_and_leads_to_every_page():
    """At most 250 lines, and each page in docs/ is linked from it; those of a folder there are from its own README."""
    text = (CHECKOUT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 250
    assert {page for page in PAGES if page.count("/") == 1} <= set(re.findall(r"\]\((docs/[\w-]+\.md)\)", text))
    for page in PAGES:
        folder, _, name = page.rpartition("/")
        if folder.count("/") and name != "README.md":
            assert f"]({name})" in (CHECKOUT / folder / "README.md").read_text(encoding="utf-8"), page


def test_the_picture_is_of_the_command_that_draws_it():
    """The picture in the README exists, begins with the command of docs/picture.py, and ends with a verdict."""
    text = (CHECKOUT / "README.md").read_text(encoding="utf-8")
    picture = re.findall(r'<img src="([^"]+)"', text)[0]
    words = re.sub(r"<style.*?</style>|<[^>]*>", " ", (CHECKOUT / picture).read_text(encoding="utf-8"), flags=re.S)
    shown = " ".join(html.unescape(words).split())
    (command,) = re.findall(
        r'^COMMAND = """(.*?)"""', (CHECKOUT / "docs" / "picture.py").read_text("utf-8"), re.M | re.S
    )
    assert f"$ {' '.join(command.replace(chr(92) * 2, chr(92)).split())}" in shown
    assert shown.endswith("DOES NOT CONFORM: 2 violated: LN-F1, LN-F3.")


def test_homes_are_folders():
    """Each home of blocks is a folder with tests, except this one."""
    assert all((CHECKOUT / "tests" / "docs" / name / "test_pages.py").exists() for name in HOMES)


@pytest.mark.parametrize(
    ("page", "printed", "same"),
    [
        ("a\nb", "a\nb", True),
        ("a\nb", "a\nc", False),
        ("a", "a\nb", False),
        ("b", "a\nb", False),
        ("...\nb", "a\nb", True),
        ("...\nb", "a\nb\nc", False),
        ("...\nb\n...", "a\nb\nc", True),
        ("a\n...\nc", "a\nb\nb\nc", True),
        ("a\n...\nc\n...\nb\n...", "a\nb\nc", False),
        ("...\nb\nd\n...", "b\nc\nd", False),
        ("profile quick, seed 0, 2,498 cases, 35.1 s", "profile quick, seed 0, 1 case, 2.0 s", True),
        ("profile quick, seed 0, 2,498 cases, 35.1 s", "profile quick, seed 1, 1 case, 2.0 s", False),
        ("python 3.11.7, numpy 2.4.6", "python 3.10.1, numpy 1.26.0", True),
        ("LN-F1  ✗ 1.96", "LN-F1  ✗ 1.95", False),
    ],
)
def test_lines_left_out_and_what_differs_from_run_to_run_are_no_difference(page, printed, same):
    """`...` stands for any lines; times, versions and numbers of cases may differ."""
    assert (differs(page.splitlines(), printed.splitlines()) == "") is same


def test_a_block_is_read_with_its_comments():
    """A fenced and an indented block, a command over several lines, and the needs of a block."""
    block = Block(
        "README.md", 1, "console", "$ normspec check torch \\\n>   --op layer_norm\n...\nCONFORMS\n$ ls\n", {}
    )
    assert block.commands == [("normspec check torch \\\n  --op layer_norm", ["...", "CONFORMS"]), ("ls", [])]
    assert needs(block) == {"torch"}
    assert home(block) == "torch"
