"""`normspec explain` finds ids, names and texts, and says where they are defined."""

from __future__ import annotations

import re

import numpy as np
import pytest

from normspec.conformance.command_line.root import main
from normspec.conformance.explaining.costs import DATA, EPS, GROUPS, VALUES, costs
from normspec.conformance.faults import registered
from normspec.conformance.reporting.symbols import ASCII, UNICODE
from normspec.conformance.requests import choosing
from normspec.conformance.requests.bundles import bundles
from normspec.conformance.requests.choosing import selected
from normspec.conformance.sound import registered as sound_functions
from normspec.spec import requirements
from normspec.spec.address import address
from normspec.spec.conventions import CONVENTIONS
from normspec.spec.errata import errata
from normspec.spec.operators import OPERATORS
from normspec.spec.words import words


def explained(capsys, *words: str) -> str:
    """The output."""
    assert main(["explain", *words]) == 0
    return capsys.readouterr().out


def test_a_requirement_leads_to_its_place_and_to_its_errata(capsys):
    """The address has the anchor, and the errata that contradict it are named."""
    shown = explained(capsys, "ln-f3")
    assert shown.rstrip().endswith(address("layer_norm", "LN-F3"))
    assert "  ERR-2  eps added to the deviation\n" in shown


def test_an_erratum_is_printed_with_the_requirements_against_it(capsys):
    """In upper or lower case: the printed statement, the right one, the counter-example and its address."""
    shown = explained(capsys, "err-2")
    assert shown.startswith("ERR-2  erratum  eps added to the deviation\n")
    assert all(words in shown for words in ("Printed: ", "Correct: ", "Counter-example: ", "  LN-F3  eps inside"))
    assert shown.rstrip().endswith(address("errata", "ERR-2"))


def test_a_fault_is_printed_with_what_excludes_it(capsys):
    """Its summary, the requirement, the dtypes in which it shows, its sources, and the address of the requirement."""
    shown = explained(capsys, "ln-eps-on-std")
    assert "Divides by sqrt(var) + eps." in shown
    assert "  LN-F3  eps inside the root. " in shown
    assert "See: https://github.com/tracel-ai/burn/issues/2185\n" in shown
    assert shown.rstrip().endswith(address("layer_norm", "LN-F3"))
    assert "bn-eps-on-std" in explained(capsys, "eps-on-std")


@pytest.mark.parametrize("operator", OPERATORS)
def test_an_operator_is_printed_with_its_definition_and_its_requirements(capsys, operator):
    """Each requirement of its page has its line, and the page its address."""
    shown = explained(capsys, operator)
    assert OPERATORS[operator].signature in " ".join(shown.split())
    own = {id for id, one in requirements().items() if one.page == operator}
    assert set(re.findall(r"^  (\S+)  ", shown, re.M)) >= own
    assert shown.rstrip().endswith(address(operator))
    assert "](" not in shown


def test_a_mistake_is_printed_with_what_it_costs_computed_now(capsys):
    """The figures are those of the formulas, worked out here in float64 on the same data."""
    (found,) = (one for one in registered() if one.name == "ln-eps-on-std")
    figures = {one.data: one.y for one in costs(found)}
    scaled = figures["groups scaled by 1e-3"]
    random = np.random.Generator(np.random.Philox(list(DATA).index("groups scaled by 1e-3")))
    x = (random.standard_normal((GROUPS, VALUES)) * 1e-3).astype(np.float32).astype(np.float64)
    gamma = random.uniform(0.5, 1.5, VALUES)
    d = x - x.mean(1, keepdims=True)
    variance = np.square(d).mean(1, keepdims=True)
    off = gamma * d * (1 / (np.sqrt(variance) + EPS) - 1 / np.sqrt(variance + EPS))
    assert scaled == pytest.approx(np.abs(off).max(), rel=1e-4)
    assert 1e-6 < figures["randn"] < 1e-4 < 1 < scaled
    shown = " ".join(explained(capsys, "LN-F3").split())
    assert f"y {figures['randn']:.2g}" in shown and f"y {scaled:.2g}" in shown


def test_a_mistake_is_mended_in_a_few_lines(capsys):
    """The wrong step is printed above the right one, as code."""
    for name in ("LN-F3", "ln-eps-on-std"):
        shown = explained(capsys, name)
        assert "  - return 1 / (np.sqrt(variance) + eps)\n" in shown
        assert "  + return 1 / np.sqrt(variance + eps)\n" in shown


def test_a_mistake_that_no_ordinary_call_meets_says_where_it_shows(capsys):
    """No figure is invented for it."""
    assert "it shows in views that are not contiguous" in " ".join(explained(capsys, "ln-strides-ignored").split())


def test_every_mistake_of_a_sample_has_its_costs():
    """Whatever a fault does, its costs are figures, or there are none."""
    for fault in registered()[::61]:
        assert all(one.words for one in costs(fault)), fault.name


def test_a_text_finds_what_speaks_of_it(capsys):
    """Spaces do not matter: the errata, the requirements and the faults."""
    for text in ("std + eps", "std+eps", "STD + EPS"):
        shown = explained(capsys, text)
        assert "\n  ERR-2  eps added to the deviation\n" in shown
        assert "\n  LN-F3  eps inside the root\n" in shown
    assert "ln-unbiased" in explained(capsys, "divides n - 1 variance")


@pytest.mark.parametrize(
    ("word", "operator"),
    [("RMSNorm", "rms_norm"), ("layernorm", "layer_norm"), ("BatchNorm1d", "batch_norm"), ("GroupNorm", "group_norm"),
     ("InstanceNorm3d", "instance_norm"), ("LayerNormalization", "layer_norm"), ("PreNorm", "pre_norm"),
     ("layer norm", "layer_norm"), ("Batch Normalisation", "batch_norm"), ("post-norm", "post_norm"),
     ("BN", "batch_norm")],
)  # fmt: skip
def test_an_operator_is_found_by_the_names_of_layers(capsys, word, operator):
    """Frameworks spell operators as classes, people in words, and ids with a prefix."""
    assert explained(capsys, word) == explained(capsys, operator)


@pytest.mark.parametrize("word", ["storage=H2", "H2", "h2", " storage = h2"])
def test_a_value_of_a_convention_is_explained(capsys, word):
    """As it is declared, and as cards print a class of storage: its meaning, its cost, and how it is declared."""
    shown = explained(capsys, word)
    assert shown.startswith("storage=H2  convention  rounded to 16 bits\n\nH2: also mean and r before they are used")
    assert "It costs the digits that x and mu share" in " ".join(shown.split())
    assert "--convention storage=H2" in shown and '{"storage": "H2"}' in shown
    assert shown.rstrip().endswith(address("conventions", "storage"))


@pytest.mark.parametrize("key", CONVENTIONS)
def test_a_convention_is_explained_with_all_its_values(capsys, key):
    """The normative one first, and then what else speaks of the word."""
    shown = explained(capsys, key)
    assert shown.startswith(f"{key}  convention  ")
    listed = shown.partition("Its values, the normative one first:\n")[2].partition("\nAbout: ")[0]
    assert re.findall(r"^  (\S+)  +\S", listed, re.M) == list(CONVENTIONS[key])
    assert address("conventions", key) in shown
    lines = [line for line in shown.splitlines() if "https://" not in line]  # links are printed whole
    assert "](" not in shown and max(map(len, lines)) <= 80
    assert "\n'momentum' is mentioned in:\n" in explained(capsys, "momentum")


@pytest.mark.parametrize("word", words())
def test_a_word_of_the_pages_has_its_meaning(capsys, word):
    """Reports and pages use it; a word that is an operator's name or a convention's key would hide it."""
    shown = explained(capsys, word.upper())
    assert shown.startswith(f"{word}  {words()[word].kind}\n\n")
    assert "](" not in shown and address("notation", words()[word].anchor) in shown


def test_a_word_lists_what_has_it_in_a_title(capsys):
    """Who asks for eps wants to know where it goes."""
    lines = {*explained(capsys, "eps").splitlines()}
    assert {"'eps' is mentioned in:", "  ERR-2   eps added to the deviation", "  LN-F3  eps inside the root"} < lines
    assert "is mentioned in" not in explained(capsys, "at")


@pytest.mark.parametrize("symbols", [UNICODE, ASCII])
def test_a_symbol_of_a_report_is_its_verdict(capsys, symbols):
    """Each verdict is a word, and its symbols stand for it."""
    for verdict, symbol in symbols.verdicts.items():
        assert explained(capsys, symbol).startswith(f"{verdict.value}  verdict\n\n")


def test_a_value_that_a_convention_lacks_is_an_error(capsys):
    """Its values are named."""
    assert main(["explain", "storage=H3"]) == 2
    assert "convention storage has no value 'H3'; choose from H0, H1" in capsys.readouterr().err


def test_a_word_is_found_in_another_form(capsys):
    """ "Overflowing" finds "overflow", and where no requirement has a word, the pages say where they do."""
    assert "\n  LN-R1  squares that overflow" in explained(capsys, "overflowing")
    assert "ln-one-pass-variance" in explained(capsys, "Cancellation")
    shown = explained(capsys, "Welford")
    assert "Mean and variance" in shown.partition("\n  accuracy\n")[2]
    assert address("accuracy") in shown


@pytest.mark.parametrize("word", ["gradients", "LN-G*", "deterministic"])
def test_what_only_selects_is_listed(capsys, word):
    """A subject, a pattern of ids or a bundle: the requirements that a run with `--only` judges."""
    shown = explained(capsys, word)
    assert shown.startswith(f"`--only {word}` judges:\n")
    assert re.findall(r"^  (\S+)  ", shown, re.M) == list(selected((word,), "test"))


def test_alone_it_lists_all_by_subject(capsys):
    """Every requirement and erratum is in the index, in eighty columns, and so is the address of the contents."""
    shown = explained(capsys)
    assert set(re.findall(r"\b[A-Z]{2}-[A-Z]\d+", shown)) >= set(requirements())
    assert set(re.findall(r"ERR-\d+", shown)) == set(errata())
    assert max(map(len, shown.splitlines())) <= 80
    assert shown.rstrip().endswith(address("README"))


def test_alone_it_marks_advice_and_names_what_else_it_explains(capsys):
    """A SHOULD is told as one; conventions, subjects and bundles are there, and how many faults there are."""
    shown = explained(capsys)
    rows = " ".join(shown.split())
    for one in requirements().values():
        assert (f"{one.title} (should) " in rows) == (one.level.value == "SHOULD")
    assert set(re.findall(r"[\w-]+", shown)) >= {*CONVENTIONS, *OPERATORS, *bundles(), *choosing.subjects()}
    assert f"{len(registered()):,} known mistakes: `normspec explain faults` lists them" in rows


def test_faults_lists_every_fault_with_the_requirement_that_excludes_it(capsys):
    """Each name once for all operators, under the requirement."""
    shown = explained(capsys, "faults")
    listed = set(re.findall(r"^  (\S+)", shown, re.M))
    assert {fault.name for fault in registered()} <= listed | {
        f"{prefix}-{name}" for name in listed for prefix in {one.name.partition("-")[0] for one in registered()}
    }
    assert set(re.findall(r"^([A-Z]{2}-[A-Z]\d+)  ", shown, re.M)) == {one.requirement for one in registered()}


def test_sound_lists_every_sound_function(capsys):
    """Under its operator, each with how it computes; the index says how many there are."""
    shown = explained(capsys, "sound")
    assert {variant.name for variant in sound_functions()} == set(re.findall(r"^  (\S+)", shown, re.M))
    assert f"{len(sound_functions())}: `normspec explain sound` lists them" in " ".join(explained(capsys).split())


def test_all_prints_everything(capsys):
    """Every requirement and every erratum in full, each with its address."""
    shown = explained(capsys, "all")
    assert all(address(one.page, id) in shown for id, one in requirements().items())
    assert all(address("errata", id) in shown for id in errata())


@pytest.mark.parametrize(
    ("word", "suggested"),
    [
        ("LN-F99", "LN-F"),
        ("ERR-99", "ERR-9"),
        ("ln-eps-on-sdt", "ln-eps-on-std"),
        ("layer_nrm", "layer_norm"),
    ],
)
def test_a_misspelt_name_suggests_the_one_meant(capsys, word, suggested):
    """Exit 2 and one line."""
    assert main(["explain", word]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert f"did you mean {suggested}" in err or suggested in err.partition("did you mean ")[2]


def test_every_fault_can_be_asked_for():
    """A fault's name is no id, no operator, no convention and no withdrawn id, so that its own page is found."""
    names = {fault.name.upper() for fault in registered()}
    others = map(str.upper, (*OPERATORS, *CONVENTIONS, *CONVENTIONS["storage"]))
    assert not names & {*requirements(), *errata(), *others, "ALL"}


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("MUST", "decides whether a target conforms"),
        ("<.01", "less than a hundredth of its envelope"),
        ("fault:ln-eps-on-std", "Divides by sqrt(var) + eps."),
        ("sound:ln-welford", "ln-welford"),
        ("ln-welford", "ln-welford"),
    ],
)
def test_what_a_report_or_the_index_shows_has_a_meaning(name, told, capsys):
    """Words and signs of a report, and the names that `check` takes, as they are written there."""
    assert told in " ".join(explained(capsys, name).split())
