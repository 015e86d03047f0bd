"""Real bugs of real libraries, as functions: each is reported as the table has it, or the table says why it is none."""

from __future__ import annotations

import pytest

from .catalogue import CATALOGUE
from .catalogue.table import BUGS, FILE, kept, printed, text

#: Of several operators, and quickly run; the tests marked `campaign` have all of them.
SAMPLE = (
    "eps-added-twice",
    "rms-no-gradient",
    "activation-before-the-sum",
    "rms-right",
    "rms-root-of-the-root",
    "groups-interleaved",
    "batch-unbiased-variance",
)


def _told_as_kept(name: str) -> None:
    found = printed(CATALOGUE[name])
    assert found.conforms == bool(CATALOGUE[name].conforms)
    assert found.words == kept()[name]


@pytest.mark.parametrize("name", SAMPLE)
def test_a_bug_is_told_as_the_table_has_it(name: str) -> None:
    """What is printed of a function is what the table says."""
    _told_as_kept(name)


@pytest.mark.campaign  # half an hour
@pytest.mark.parametrize("name", CATALOGUE)
def test_every_bug_is_told_as_the_table_has_it(name: str) -> None:
    """The same of every function."""
    _told_as_kept(name)


def test_every_bug_is_a_function_or_the_reason_why_it_is_none() -> None:
    """No bug is left out, none is both, and no function names a bug that there is not."""
    written = {bug for one in CATALOGUE.values() for bug in one.bugs}
    assert len({bug["bug"] for bug in BUGS}) == len(BUGS)
    assert written == {bug["bug"] for bug in BUGS if "no_function" not in bug}


def test_the_table_is_made_of_the_functions() -> None:
    """Whatever the table says beside what is printed is what functions and bugs say of themselves."""
    assert FILE.read_text(encoding="utf-8") == text(kept())


def test_what_is_expected_is_what_is_printed() -> None:
    """A function conforms in the table where it says why, and nowhere else; no other line is empty."""
    words = kept()
    assert list(CATALOGUE) == [name for name in CATALOGUE if words.get(name)]
    assert {name for name, one in CATALOGUE.items() if one.conforms} == {
        name for name, told in words.items() if told.startswith("CONFORMS")
    }
