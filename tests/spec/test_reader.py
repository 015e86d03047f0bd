"""The reader accepts a well-formed page, and names page and line of any other."""

from __future__ import annotations

import dataclasses

import pytest

from normspec import spec
from normspec.spec import Level, malformed, reader

WELL_FORMED = """# common

Prose before the first requirement.

## Types

<a id="CM-T1"></a>

### CM-T1 (MUST): a title
The first half of a sentence
and the second.

```formula
a = b

c = d
```

*Why:* A reason, of
two lines. And of two sentences.

*Sources:* <https://example.org/1>, <https://example.org/2>

*Errata:* [ERR-1](errata.md#ERR-1), [ERR-2](errata.md#ERR-2)

## Next

<a id="CM-T2"></a>

### CM-T2 (SHOULD): another title
Another sentence.

*Why:* Another reason.
"""


def read(text: str, page: str = "common"):
    """Read one page."""
    return reader.read({page: text})


def test_every_field_is_read():
    """A requirement has the fields that its page gives, with lines joined and marks taken off."""
    assert read(WELL_FORMED)["CM-T1"] == spec.Requirement(
        id="CM-T1",
        level=Level.MUST,
        title="a title",
        sentence="The first half of a sentence and the second.",
        formula="a = b\n\nc = d",
        reason="A reason, of two lines. And of two sentences.",
        page="common",
        sources=("https://example.org/1", "https://example.org/2"),
        subject="Types",
        errata=("ERR-1", "ERR-2"),
    )


def test_formula_and_sources_may_be_absent():
    """A requirement without formula and sources has empty ones."""
    found = read(WELL_FORMED)["CM-T2"]
    assert (found.level, found.formula, found.sources) == (Level.SHOULD, "", ())


def test_links_in_the_text_are_read_as_their_words():
    """A link in a sentence or a reason is there for the page's reader; the field has its words."""
    text = WELL_FORMED.replace("Another reason.", "By [R1](accuracy.md#R1), and another reason.")
    assert read(text)["CM-T2"].reason == "By R1, and another reason."


def test_requirements_keep_the_order_of_the_page():
    """Requirements come in the order of the page."""
    assert list(read(WELL_FORMED)) == ["CM-T1", "CM-T2"]


def test_a_requirement_is_a_value():
    """A requirement cannot be changed."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        read(WELL_FORMED)["CM-T1"].title = "another"


MALFORMED = {
    "a level in lower case": ("(MUST)", "(must)", spec.MalformedHeading, 9),
    "a level that RFC 2119 has and this page has not": ("(MUST)", "(MAY)", spec.MalformedHeading, 9),
    "a heading without a title": ("(MUST): a title", "(MUST):", spec.MalformedHeading, 9),
    "an id without a number": ("CM-T1 ", "CM-T ", spec.MalformedHeading, 9),
    "an id with a leading zero": ("CM-T1 ", "CM-T01 ", spec.MalformedHeading, 9),
    "an id of another page": ("CM-T1 ", "LN-T1 ", spec.ForeignRequirement, 9),
    "an id that is given twice": ("CM-T2 ", "CM-T1 ", spec.DuplicateRequirement, 30),
    "no anchor": ('<a id="CM-T1"></a>\n\n', "", spec.MissingAnchor, 7),
    "an anchor of another id": ('<a id="CM-T2">', '<a id="CM-T3">', spec.MissingAnchor, 30),
    "an anchor in the heading's paragraph": ('"CM-T2"></a>\n', '"CM-T2"></a>', spec.MissingAnchor, 29),
    "no sentence": ("Another sentence.\n", "", spec.MissingSentence, 30),
    "two sentences": ("Another sentence.", "One. Two.", spec.NotOneSentence, 31),
    "a sentence without an end": ("Another sentence.", "Another", spec.NotOneSentence, 31),
    "a formula that does not close": ("c = d\n```", "c = d", spec.UnclosedFormula, 13),
    "a second paragraph": ("Another sentence.\n", "Another sentence.\n\nMore.\n", spec.MisplacedText, 33),
    "text after the reason": ("Another reason.\n", "Another reason.\n\nMore.\n", spec.MisplacedText, 35),
    "a mark that the format has not": ("*Sources:*", "*Excludes:*", spec.MisplacedText, 22),
    "sources in the paragraph of the reason": ("sentences.\n\n", "sentences.\n", spec.MisplacedText, 21),
    "no reason": ("*Why:* Another reason.\n", "", spec.MissingReason, 32),
    "an empty reason": ("*Why:* Another reason.", "*Why:*", spec.MissingReason, 33),
    "a source that is no link": ("<https://example.org/2>", "an article", spec.MalformedSources, 22),
    "an erratum that is no id": ("[ERR-2](errata.md#ERR-2)", "a misprint", spec.MalformedErrata, 24),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_page_is_an_error_of_its_own(name: str):
    """Each departure from the format raises its own class, with the page and the line."""
    old, new, error, line = MALFORMED[name]
    assert old in WELL_FORMED
    with pytest.raises(error) as caught:
        read(WELL_FORMED.replace(old, new))
    assert type(caught.value) is error
    assert caught.value.page == "common"
    assert caught.value.line == line, caught.value
    assert str(caught.value).startswith("common.md, line ")


def test_every_error_of_a_page_is_exercised():
    """The table of malformed pages has every class that a page can raise."""
    classes = {thing for thing in vars(malformed).values() if isinstance(thing, type)}
    expected = {thing for thing in classes if issubclass(thing, spec.MalformedPage)} - {spec.MalformedPage}
    assert {error for _, _, error, _ in MALFORMED.values()} == expected


def test_an_id_is_unique_across_pages():
    """An id cannot be taken on a second page, since it belongs to one page by its prefix."""
    with pytest.raises(spec.ForeignRequirement, match=r"layer_norm\.md, line 9"):
        reader.read({"common": WELL_FORMED, "layer_norm": WELL_FORMED})


def test_a_page_without_requirements_may_use_such_headings():
    """Headings of the third level on the page of errata are no requirements."""
    assert not read("# errata\n\n### ERR-1: a title\nText.\n", page="errata")


def test_an_unknown_id_is_named():
    """Asking for an id that no page has raises an error that names it."""
    with pytest.raises(spec.UnknownRequirement, match="LN-Z9") as caught:
        spec.requirement("LN-Z9")
    assert caught.value.id == "LN-Z9"
