"""The specification's own README, its anchors and its links: each id can be found and reached."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from normspec.spec import errata as module
from normspec.spec import malformed, pages, reader, requirements, withdrawn
from normspec.spec.address import PAGES, address
from normspec.spec.contents import ABOUT, contents, subjects
from normspec.spec.errata import errata

TEXTS = {**pages(), "README": (files("normspec.spec") / "README.md").read_text(encoding="utf-8")}


def anchors(page: str) -> set[str]:
    """The names that a link to this page may have after #: its anchors, and its headings as GitHub spells them."""
    headings = re.findall(r"^#{1,6} (.*)$", TEXTS[page], re.M)
    spelt = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
    return spelt | set(re.findall(r'<a id="([^"]+)"></a>', TEXTS[page]))


def test_the_contents_are_up_to_date():
    """spec/README.md is the output of `python -m normspec.spec.contents > spec/README.md`."""
    assert TEXTS["README"] == contents()


def test_the_contents_name_every_page():
    """Each page has its line, in reading order."""
    assert list(ABOUT) == list(reader.prefixes())


def test_every_requirement_stands_under_one_subject():
    """The index by subject has each id once, and its link leads to the anchor of that id."""
    indexed = [one.id for titles in subjects().values() for ones in titles.values() for one in ones]
    assert sorted(indexed) == sorted(requirements())
    for id, found in requirements().items():
        assert f"[{id}]({found.page}.md#{id})" in TEXTS["README"]
        assert id in anchors(found.page)


#: Laws that several normalisations share; batch_norm's numbers differ. Elsewhere titles differ because laws do.
SHARED = {
    "F7": ("LN-F7", "BN-F7", "RM-F7", "GN-F7", "IN-F7"),
    "L5": ("LN-L5", "RM-L5", "GN-L5", "IN-L5"),
    "L6": ("LN-L6", "RM-L6", "GN-L6", "IN-L6"),
    "L7": ("LN-L7", "BN-L6", "RM-L7", "GN-L7", "IN-L7"),
    "L9": ("LN-L9", "BN-L5", "RM-L9", "GN-L9", "IN-L9"),
    "L13": ("LN-L13", "BN-L10", "GN-L13", "IN-L13"),
    "L16": ("LN-L16", "RM-L16", "GN-L16", "IN-L16"),
    "L17": ("LN-L17", "RM-L17", "GN-L17", "IN-L17"),
}


def test_the_index_has_each_requirement_under_its_own_title():
    """The title that the page has, and that reports print: one name for one thing."""
    for titles in subjects().values():
        for title, ones in titles.items():
            assert {one.title for one in ones} == {title}


@pytest.mark.parametrize("law", SHARED)
def test_the_same_law_has_the_same_title(law: str):
    """Whoever looks for a law finds it for every operator in one line of the index."""
    (title,) = {requirements()[id].title for id in SHARED[law]}
    (ones,) = [titles[title] for titles in subjects().values() if title in titles]
    assert [one.id for one in ones] == list(SHARED[law])


@pytest.mark.parametrize("page", TEXTS)
def test_every_link_of_a_page_leads_somewhere(page: str):
    """The page and the anchor of each link exist, those at the foot of a page too."""
    text = TEXTS[page]
    links = re.findall(r"\]\((\w+\.md)?(#[\w-]+)?\)", text) + re.findall(r"^\[.*\]: (\w+\.md)?(#[\w-]+)?$", text, re.M)
    for file, anchor in links:
        target = file.removesuffix(".md") or page
        assert target in TEXTS
        assert not anchor or anchor[1:] in anchors(target), (page, file, anchor)
    assert set(re.findall(r"\[([A-Z]+-[A-Z]?\d+)\](?![(:])", text)) == set(re.findall(r"^\[(.*)\]: ", text, re.M))


def test_errata_and_requirements_lead_to_each_other():
    """An erratum cites a requirement exactly where the requirement names the erratum."""
    there = {(id, cited) for id, one in errata().items() for cited in one.requirements}
    back = {(erratum, id) for id, one in requirements().items() for erratum in one.errata}
    assert there == back
    assert all(one.requirements for one in errata().values() if one.id != "ERR-9")


def test_an_erratum_is_read_in_full():
    """The printed statement, the right one, the counter-example and the requirements, without the marks of links."""
    found = errata()["ERR-2"]
    assert found.title == "eps added to the deviation"
    assert "(x - mean) / (std + eps)" in found.printed
    assert found.correct.startswith("`y = (x - mu) / sqrt(var + eps)` (LN-F2, LN-F3).")
    assert found.example.startswith("x = (-4, 4), eps = 9.")
    assert found.requirements == ("LN-F2", "LN-F3")
    assert all(one.printed and one.correct and one.example for one in errata().values())


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ('<a id="ERR-2"></a>\n\n', "", malformed.MissingAnchor),
        ("### ERR-2: eps", "### ERR-2 eps", malformed.MalformedErrata),
        ("*Correct:* `y = (x - mu) / sqrt(var + eps)` ([LN-F2]", "*Right:* ([LN-F2]", malformed.MalformedErrata),
    ],
)
def test_a_malformed_erratum_is_an_error(monkeypatch, old, new, error):
    """It names the page and the line."""
    text = pages()["errata"]
    assert old in text
    monkeypatch.setattr(module, "pages", lambda: {"errata": text.replace(old, new)})
    with pytest.raises(error, match=r"errata\.md, line \d+"):
        module.errata.__wrapped__()


@pytest.mark.parametrize(
    "page", [page for page in pages() if page not in ("notation", "accuracy", "conventions", "errata")]
)
def test_the_signs_of_a_section_are_linked_to_what_they_mean(page: str):
    """Each section whose formulas use [~] or [=] begins with links to both."""
    for section in re.split(r"^(?=## )", pages()[page], flags=re.M):
        if re.search(r"^### ", section, re.M) and re.search(r"\[[~=]\]", section):
            assert section.splitlines()[2].startswith("*Signs:* [`[~]`](notation.md#within)"), section[:40]


def test_why_sources_and_errata_are_paragraphs_of_their_own():
    """GitHub joins lines that no blank line parts; each mark begins a paragraph."""
    for page, text in pages().items():
        for before, line in zip(text.splitlines(), text.splitlines()[1:], strict=False):
            assert not (re.match(r"\*[A-Z][\w-]+:\*", line) and before.strip()), (page, line)


def test_no_line_of_a_paragraph_is_rendered_as_a_list():
    """A minus, a plus or a number that a line happens to begin with would begin one; lists of ours have `* `."""
    for page, text in pages().items():
        prose = re.sub(r"^```\w*\n.*?^```$", "", text, flags=re.M | re.S)
        assert not re.findall(r"^(?:[-+>]|\d+[.)]) .*$", prose, re.M), page


def test_addresses_lead_to_the_pages(checkout):
    """`explain`, the metadata and the citation name the same repository."""
    assert address("layer_norm", "LN-F3") == f"{PAGES}layer_norm.md#LN-F3"
    repository = PAGES.partition("/blob/")[0]
    metadata = (checkout / "pyproject.toml").read_text(encoding="utf-8").partition("[project.urls]")[2]
    urls = re.findall(r'^\w+ = "(https://.*)"$', metadata.partition("\n[")[0], re.M)
    assert f"{PAGES}README.md" in urls
    assert repository in urls
    assert all(url.startswith(repository) for url in urls)
    assert f"repository-code: {repository}\n" in (checkout / "CITATION.cff").read_text(encoding="utf-8")


def test_the_withdrawn_are_in_the_contents():
    """A reader who looks for a withdrawn id finds its replacements."""
    assert all(f"| {id} | " in TEXTS["README"] for id in withdrawn())
