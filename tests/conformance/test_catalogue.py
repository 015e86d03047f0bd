"""Real bugs of real libraries, as functions: the output is the table's, or the table says why there is no function."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .catalogue import CATALOGUE
from .catalogue.table import BUGS, FILE, kept, printed, text

#: Functions of several operators that run quickly; the tests marked `campaign` use all of them.
SAMPLE = (
    "eps-added-twice",
    "rms-no-gradient",
    "rms-right",
    "all-axes-refused",  # the library has what refuses a vector
    "branch-twice",  # and what calls a part once in two roles
    "batch-mode-ignored",  # and what keeps the mode of the first call
)


def _told_as_kept(name: str) -> None:
    found = printed(CATALOGUE[name])
    assert found.conforms == bool(CATALOGUE[name].conforms)
    assert found.words == kept()[name]


@pytest.mark.parametrize("name", SAMPLE)
def test_a_bug_is_told_as_the_table_has_it(name: str) -> None:
    """The output for a function is the table's."""
    _told_as_kept(name)


@pytest.mark.campaign  # half an hour
@pytest.mark.parametrize("name", CATALOGUE)
def test_every_bug_is_told_as_the_table_has_it(name: str) -> None:
    """The same for every function."""
    _told_as_kept(name)


def test_every_bug_is_a_function_or_the_reason_why_it_is_none() -> None:
    """No bug is left out or has both, and no function names an unknown bug."""
    written = {bug for one in CATALOGUE.values() for bug in one.bugs}
    assert len({bug["bug"] for bug in BUGS}) == len(BUGS)
    assert written == {bug["bug"] for bug in BUGS if "no_function" not in bug}


def test_the_table_is_made_of_the_functions() -> None:
    """Everything in the table except the output comes from the functions and bugs."""
    assert FILE.read_text(encoding="utf-8") == text(kept())


@pytest.mark.parametrize("page", ["README.md", "CHANGELOG.md", "docs/diagnosis.md"])
def test_pages_say_how_many_bugs_there_are_and_how_many_are_functions(page: str) -> None:
    """What is printed is known of the functions alone."""
    checkout = Path(__file__).parent.parent.parent
    words = " ".join(re.sub(r"\]\([^)]*\)", "]", (checkout / page).read_text(encoding="utf-8")).split())
    functions = sum("no_function" not in bug for bug in BUGS)
    assert re.search(rf"{len(BUGS)} bugs.{{,80}} {functions} of them (as|written as small) functions", words)


def test_what_is_expected_is_what_is_printed() -> None:
    """A function conforms in the table where it says why, and nowhere else; no other line is empty."""
    words = kept()
    assert list(CATALOGUE) == [name for name in CATALOGUE if words.get(name)]
    assert {name for name, one in CATALOGUE.items() if one.conforms} == {
        name for name, told in words.items() if told.startswith("CONFORMS")
    }
