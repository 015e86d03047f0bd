"""The pages that the package carries keep their own rules."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from normspec.spec import Level, pages, reader, requirement, requirements, withdrawn
from normspec.spec.operators import OPERATORS

REQUIREMENTS = tuple(requirements().values())
#: Requirements that are about a promise rather than a relation of numbers.
WITHOUT_FORMULA = {"CM-T1", "CM-T2", "CM-T3", "CM-P4", "CM-S1", "CM-D1", "CM-D2", "CM-D3", "CM-A1"}
SHOULD = {
    "BN-E2",
    "BN-I6",
    "BN-R1",
    "BN-R2",
    "CM-P3",
    "CM-A1",
    "CM-A2",
    "BN-A1",
    *(
        f"{page}-{number}"
        for page in ("LN", "RM", "GN", "IN")
        for number in ("R1", "R2", "L2", "L6", "L8", "L18", "G7")
    ),
    "BN-L2",
    "BN-L14",
    "BN-G8",
    "CM-C6",
    "CM-C11",
    "HW-L2",
}
#: The pages with requirements, in order.
NORMATIVE = ("common", *OPERATORS)
#: Families of ids that carry layer_norm's numbers, with those that say nothing of the operator.
CARRIED = {
    "RM-F": {8},
    "RM-L": {10, 13},
    "RM-G": {3, 4},
}
BY_ID = pytest.mark.parametrize("found", REQUIREMENTS, ids=lambda found: found.id)


def test_every_page_is_carried_by_the_package():
    """The pages are data of the installed package; the only other text is the index."""
    carried = {entry.name for entry in files("normspec.spec").iterdir() if entry.name.endswith(".md")}
    assert carried == {"README.md", *(f"{name}.md" for name in pages())}
    assert list(pages()) == list(reader.prefixes())


def test_pages_are_read_once():
    """Repeated reading returns the same mappings."""
    assert pages() is pages()
    assert requirements() is requirements()


def test_requirements_cannot_be_changed():
    """The mapping of requirements is read-only."""
    with pytest.raises(TypeError):
        requirements()["LN-F1"] = None  # type: ignore[index]


def test_requirements_come_in_page_order():
    """Common requirements come first, then those of each operator."""
    order = list(reader.prefixes())
    positions = [order.index(found.page) for found in REQUIREMENTS]
    assert positions == sorted(positions)
    assert tuple(dict.fromkeys(found.page for found in REQUIREMENTS)) == NORMATIVE


def test_ids_leave_no_gap():
    """Within a family the numbers run from 1; those that were withdrawn are named with what says it now."""
    families: dict[str, set[int]] = {}
    for id in (*requirements(), *withdrawn()):
        family, number = re.findall(r"(.*?)(\d+)", id)[0]
        families.setdefault(family, set()).add(int(number))
    for family, numbers in families.items():
        numbers |= CARRIED.get(family, set())
        assert numbers == set(range(1, len(numbers) + 1)), family
    assert not withdrawn().keys() & requirements().keys()
    assert {id for successors in withdrawn().values() for id in successors} <= set(requirements())


def test_the_levels():
    """Exactly the requirements that are advice are SHOULD."""
    assert {found.id for found in REQUIREMENTS if found.level is Level.SHOULD} == SHOULD


@pytest.mark.parametrize("prefix", ["RM", "GN", "IN"])
def test_a_number_of_layer_norm_says_the_same_on_the_pages_that_carry_it(prefix: str):
    """These pages have layer_norm's numbers at layer_norm's levels, and rms_norm's names those that it leaves out."""
    levels = {id[3:]: found.level for id, found in requirements().items() if id.startswith("LN-")}
    carried = {id[3:]: found.level for id, found in requirements().items() if id.startswith(f"{prefix}-")}
    absent = {f"{family[3:]}{k}" for family, numbers in CARRIED.items() if family[:2] == prefix for k in numbers}
    assert {**levels, **carried} == {**levels, **({"E1": Level.MUST} if prefix == "IN" else {})}
    assert set(levels) - set(carried) == absent
    if absent:
        (said,) = re.findall(r"; ([A-Z\d, \n]+?and\s[A-Z]\d+)\s+are not here", pages()["rms_norm"])
        assert set(re.findall(r"[A-Z]\d+", said)) == absent


@BY_ID
def test_a_requirement_is_complete(found):
    """A requirement has one sentence, a reason, and a formula where it relates numbers."""
    assert found.sentence.endswith(".")
    assert len(found.sentence.split()) <= 45
    assert found.reason.endswith(".")
    assert bool(found.formula) == (found.id not in WITHOUT_FORMULA)
    assert requirement(found.id) is found


@BY_ID
def test_bitwise_laws_use_the_sign_of_equality(found):
    """A law that asks for bits relates results by [=]; advice on bits does so too."""
    if "bitwise" in found.title:
        assert "[=]" in found.formula


@pytest.mark.parametrize("page", reader.prefixes())
def test_ids_that_a_page_cites_exist(page: str):
    """Every id and every relative link in the text leads somewhere."""
    text = pages()[page]
    prefixes = "|".join(filter(None, reader.prefixes().values()))
    assert set(re.findall(rf"\b(?:{prefixes})-[A-Z]\d+", text)) <= {*requirements(), *withdrawn()}
    errata = set(re.findall(r"^### (ERR-\d+): ", pages()["errata"], re.M))
    assert set(re.findall(r"\bERR-\d+", text)) <= errata
    assert set(re.findall(r"\]\((\w+)\.md\)", text)) <= {"README", *reader.prefixes()}


def formulas(text: str) -> list[str]:
    """The numbers of the formulas on the accuracy page, plain and typeset."""
    found = re.finditer(r"^    \(([AR]\d+)\)|^\\tag\{([AR]\d+)\}$", text, re.M)
    return [match[1] or match[2] for match in found]


def test_the_formulas_of_the_envelope_are_numbered_without_a_gap():
    """The accuracy page defines A1, A2, ... each once, and cites no other."""
    text = pages()["accuracy"]
    defined = [int(number[1:]) for number in formulas(text) if number[0] == "A"]
    assert defined == list(range(1, len(defined) + 1))
    everywhere = "".join(pages().values())
    assert {int(number) for number in re.findall(r"\bA(\d{1,2})\b", everywhere)} <= set(defined)


def prose(page: str) -> str:
    """The text of a page without formulas and code."""
    text = re.sub(r"^```\w*\n.*?^```$", "", pages()[page], flags=re.M | re.S)
    return re.sub(r"^    .*$", "", text, flags=re.M)


@pytest.mark.parametrize("page", sorted(set(reader.prefixes()) - {"accuracy"}))
def test_a_formula_of_the_accuracy_page_is_cited_by_a_link(page: str):
    """Every mention of A1, A2, ... or R1, R2, ... in the prose of another page is a link to its anchor."""
    linked = re.findall(r"\[([AR]\d+)\]\(accuracy\.md#([AR]\d+)\)", prose(page))
    assert all(said == anchor for said, anchor in linked)
    assert {anchor for _, anchor in linked} <= set(re.findall(r'<a id="([AR]\d+)"></a>', pages()["accuracy"]))
    bare = re.sub(r"\[[AR]\d+\]\([^)]*\)|A1 to A\d+|R1 to R\d", "", prose(page))
    assert not re.findall(r"(?<![-\w])[AR]\d{1,2}\b", bare)


def test_every_formula_of_the_accuracy_page_has_its_anchor():
    """The numbers that have an anchor are those that have a formula, each before the next one begins."""
    text = pages()["accuracy"]
    anchors = re.findall(r'<a id="([AR]\d+)"></a>', text)
    assert sorted(anchors) == sorted(formulas(text))
    assert len(anchors) == len(set(anchors))


STATUS = re.compile(r"\*Edition (\d+)\. Status: (normative|informative|terms)\b[^*]*\.\*")


def test_every_page_names_its_edition_and_its_status():
    """Below its title each page names its edition, the same on all, and says whether it binds."""
    heads = {page: STATUS.fullmatch(text.splitlines()[2]) for page, text in pages().items()}
    assert all(heads.values())
    assert len({head[1] for head in heads.values() if head}) == 1
    binding = {page for page, head in heads.items() if head and head[2] == "normative"}
    assert binding == {"accuracy", "conventions", *NORMATIVE}


def test_the_code_cites_formulas_that_the_page_defines():
    """Every number that the envelope's code refers to is defined on the page."""
    defined = set(formulas(pages()["accuracy"]))
    cited = set()
    for module in files("normspec.reference").iterdir():
        if module.name.endswith(".py"):
            cited |= set(re.findall(r"\b(?<!-)[AR]\d{1,2}\b", module.read_text(encoding="utf-8")))
    assert cited <= defined


def test_mhc_says_on_its_first_line_what_it_is_not():
    """The first line of mhc distinguishes it from manifold-constrained hyper-connections."""
    first = pages()["mhc"].splitlines()[0]
    assert "multi-scale highway connection" in first
    assert "manifold-constrained hyper-connections, arXiv 2512.24880) is another layer" in first


def test_every_convention_stands_on_its_page():
    """The page of conventions lists each key of the code with its values, the normative one first."""
    from normspec.spec.conventions import CONVENTIONS

    sections = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", pages()["conventions"], re.M | re.S))
    values = {key: tuple(re.findall(r"^\| `([\w-]+)` \|", text, re.M)) for key, text in sections.items()}
    assert {key: set(found) for key, found in values.items()} == {key: set(v) for key, v in CONVENTIONS.items()}
    assert {key: found[0] for key, found in values.items()} == {key: v[0] for key, v in CONVENTIONS.items()}
