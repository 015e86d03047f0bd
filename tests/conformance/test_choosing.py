"""Requests for some requirements, for some bindings, or for more strictness; the report says so."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import normspec
from normspec import Verdict
from normspec.conformance.api import requested
from normspec.conformance.command_line.root import main
from normspec.conformance.reporting.conclusion import conclusion
from normspec.conformance.requests.bundles import BUNDLES, EVERYTHING, bundles
from normspec.conformance.requests.choosing import (
    UnknownBinding,
    UnknownSelection,
    binding_names_of,
    check_bindings,
    checked_words,
    matches,
    operators_of,
    selected,
    subject_of,
    subjects,
)
from normspec.conformance.requests.configuration import configuration
from normspec.conformance.requests.request import NothingAsked
from normspec.conformance.requests.words import words_of
from normspec.spec import Level, requirement, requirements
from normspec.spec.errors import UnknownOperator

from .runs import VARIANT, run, specimen

pytestmark = pytest.mark.exhaustive  # it does not depend on the Python version

#: Layer_norms: one whose bits differ from call to call, and one whose bits differ between a batch and its samples
#: alone.
RESTLESS = """
import numpy as np

calls = 0


def _plain(x, gamma, beta, eps, axes):
    wide = x.astype(np.float64)
    mean, var = wide.mean(axis=axes, keepdims=True), wide.var(axis=axes, keepdims=True)
    y = (wide - mean) / np.sqrt(var + eps)
    y = y if gamma is None else y * gamma
    return (y if beta is None else y + beta).astype(x.dtype)


def restless(x, gamma, beta, *, eps, axes):
    global calls
    calls += 1
    y = _plain(x, gamma, beta, eps, axes)
    return y if calls % 2 else np.nextafter(y, y.dtype.type(np.inf))


def sociable(x, gamma, beta, *, eps, axes):
    y = _plain(x, gamma, beta, eps, axes)
    alone = x.size == np.prod([x.shape[axis] for axis in axes])
    return y if alone else np.nextafter(y, y.dtype.type(np.inf))


def batch_norm(x, gamma, beta, running_mean, running_var, *, eps, momentum, training, channel_axis):
    return x, running_mean, running_var


sociable_expected = {"LN-L8": "beside others another kernel runs"}
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """The path of that file."""
    path = tmp_path_factory.mktemp("asking") / "mine.py"
    path.write_text(RESTLESS, encoding="utf-8")
    return path


def check(target, **options):
    """A short run in one dtype of a function without gradients."""
    plain = {"op": "layer_norm", "profile": "quick", "dtypes": ("float32",), "forward_only": True, "cache": False}
    return normspec.check(str(target), **{**plain, **options})


# Words ----------------------------------------------------------------------------------------------------


def test_a_word_is_an_id_a_pattern_a_subject_or_a_bundle():
    """Each kind of word selects requirements, in the order of the pages; upper and lower case do not matter."""
    assert selected(["ln-f3"], "") == ("LN-F3",)
    assert selected(["LN-R*"], "") == ("LN-R1", "LN-R2")
    assert selected(["LN-R[2]", "CM-P3", "ln-r1"], "") == ("CM-P3", "LN-R1", "LN-R2")
    assert selected(["deterministic"], "") == ("CM-P3",)
    assert set(selected(["Gradients"], "")) == {r.id for r in requirements().values() if r.subject == "Gradients"}
    assert selected(["running statistics"], "") == selected(["running-statistics"], "")
    assert {"BN-S1", "BN-S5"} <= set(selected(["running-statistics"], ""))


def test_a_subject_is_a_section_of_the_pages():
    """Each requirement has one subject, the formula in training that of the formula; no bundle has a subject's name."""
    assert all(requirement.subject for requirement in requirements().values())
    assert {"LN-F1", "BN-F1", "MH-F1"} <= set(selected(["formula"], ""))
    assert subject_of("NaN and infinity") == "nan-and-infinity"
    assert {"gradients", "laws", "range", "running-statistics", "views"} <= set(subjects())
    assert not set(subjects()) & bundles().keys()


def test_texts_are_divided_at_commas_and_each_word_counts_once():
    """`--only A,B --only B` asks for A and B."""
    assert words_of(["LN-F3, LN-F4", "LN-F4", " "]) == ("LN-F3", "LN-F4")
    with pytest.raises(UnknownSelection, match="only: no requirement"):
        checked_words([" ,"], "only")


def test_operators_and_dtypes_are_divided_at_commas_too(tmp_path):
    """On the command line, in Python and in the configuration; a text without a name is one that does not exist."""
    asked = requested("numpy", op="layer_norm, rms_norm", dtypes=["float32,float64", "float32"])
    assert (asked.op, asked.dtypes) == (("layer_norm", "rms_norm"), ("float32", "float64"))
    file = tmp_path / "normspec.toml"
    file.write_text('ops = ["layer_norm,rms_norm"]\ndtypes = ["float32, float64"]\n')
    assert configuration(str(file)).values == {"ops": asked.op, "dtypes": asked.dtypes}
    with pytest.raises(UnknownOperator, match="unknown operator ','"):
        requested("numpy", op=",")


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("LN-F33", "LN-F3"),
        ("LN-Z*", "'LN-Z*'"),
        ("gradient", "did you mean gradients?"),
        ("running", "did you mean running-statistics?"),
        ("determinstic", "did you mean deterministic?"),
        ("eps", "LN-F3"),
        ("layer_norm", "--op"),
        ("", "Subjects are types"),
    ],
)
def test_an_unknown_word_is_an_error_that_suggests(word, hint):
    """A word that selects nothing is an error with suggestions."""
    with pytest.raises(UnknownSelection) as caught:
        selected([word], "only")
    assert str(caught.value).startswith("only: ")
    assert hint in str(caught.value)


def test_several_unknown_words_are_one_error():
    """Every one of them is named, and the known one is not."""
    with pytest.raises(UnknownSelection) as caught:
        selected(["LN-F33", "CM-P3", "gradient"], "only")
    assert "'LN-F33'" in str(caught.value)
    assert "'gradient'" in str(caught.value)
    assert "'CM-P3'" not in str(caught.value)


# Bundles --------------------------------------------------------------------------------------------------

#: A text in the title of each requirement of a bundle, and in no other SHOULD's.
ABOUT = {
    "deterministic": ("repeated calls agree bitwise",),
    "batch-invariant": (
        "permuting the groups, bitwise",
        "alone, bitwise",
        "samples are independent",
    ),
    "scale-exact": ("the scale law",),
    "strict": ("raises", "bad arguments raise", "a result of another dtype"),
}


@pytest.mark.parametrize("name", [*BUNDLES])
def test_a_bundle_has_every_advice_of_its_kind(name):
    """Its ids exist, are SHOULDs, and have titles that match the bundle's purpose."""
    advice = [one for one in requirements().values() if one.level is Level.SHOULD]
    about = {one.id for one in advice if any(words in one.title for words in ABOUT[name])}
    assert set(BUNDLES[name].requirements) == about
    assert BUNDLES[name].meaning.endswith(".")


def test_everything_is_every_advice():
    """Nothing is left that is not a MUST."""
    assert all(requirement(one).level is Level.SHOULD for one in bundles()[EVERYTHING].requirements)
    left = set(requirements()) - set(bundles()[EVERYTHING].requirements)
    assert all(requirement(one).level is Level.MUST for one in left)


def test_the_page_has_every_subject_and_every_bundle():
    """docs/selecting.md lists all words, each bundle with its meaning and its ids."""
    page = (Path(__file__).parents[2] / "docs" / "selecting.md").read_text(encoding="utf-8")
    (row,) = (line for line in page.splitlines() if line.startswith("| a subject |"))
    assert re.findall(r"`([a-z-]+)`", row.rpartition("|")[0].rpartition("|")[2]) == [*subjects()]
    rows = {name: (f"`{name}`", one.meaning, ", ".join(one.requirements)) for name, one in bundles().items()}
    rows[EVERYTHING] = (*rows[EVERYTHING][:2], "every SHOULD")
    assert [tuple(cells) for cells in re.findall(r"^\| (`[a-z-]+`) \| (.*?) \| (.*?) \|$", page, re.M)] == [
        *rows.values()
    ]


# Runs -----------------------------------------------------------------------------------------------------


def test_only_what_is_asked_is_judged():
    """The report has results on that only, says what was requested, and does not read like a full report."""
    report = normspec.check("numpy", only="LN-F3,LN-R*", profile="quick", dtypes=("float32",), cache=False)
    assert {(r.op, r.requirement) for r in report.results} == {
        ("layer_norm", f"LN-{one}") for one in ("F3", "R1", "R2")
    }
    assert report.only == ("LN-F3", "LN-R*")
    assert report.conforms
    assert conclusion(report)[0] == "CONFORMS in what was asked: LN-F3, LN-R*"
    assert json.loads(report.to_json())["only"] == ["LN-F3", "LN-R*"]


def test_what_is_asked_is_the_same_in_several_processes():
    """Other processes get the request too."""
    asked = {"only": "LN-F3,BN-F3", "require": "LN-L8", "profile": "quick", "dtypes": ("float32",), "cache": False}
    one, two = (normspec.check("numpy", jobs=jobs, **asked, op=("layer_norm", "batch_norm")) for jobs in (1, 2))
    assert [(r.requirement, r.verdict) for r in one.results] == [(r.requirement, r.verdict) for r in two.results]


def test_bindings_are_chosen_by_name_and_functions_stay(file):
    """A pattern is about the layers of frameworks; a function in the same run is judged as always."""
    report = normspec.check(
        ["numpy", f"{file}:sociable"], op="layer_norm", only="LN-F1", binding="normspec.*", profile="quick",
        dtypes=("float32",), cache=False,
    )  # fmt: skip
    assert {r.binding for r in report.results} == {"normspec.layer_norm", f"{file}:sociable"}
    assert conclusion(report)[0] == "CONFORMS in what was asked: LN-F1; normspec.*"
    assert json.loads(report.to_json())["binding"] == ["normspec.*"]


@pytest.mark.parametrize(
    "name", ["x + sum(w[k] * H[k])", "x + einsum(w(l), stack(H))", 'f(x, m="1, 2")', "f(a?c, [x]*)"]
)
def test_a_binding_is_chosen_by_its_whole_name(name):
    """The names of some bindings are expressions, with brackets and commas."""
    found = binding_names_of([f"{name}, other.*", name])
    assert found == (name, "other.*")
    assert matches(name, found) and not matches("x", found)
    check_bindings(found, [name, "other.one"])


def test_an_unknown_binding_names_those_near():
    """A pattern that matches no binding is an error with suggestions."""
    with pytest.raises(UnknownBinding, match=r"did you mean normspec\.layer_norm"):
        normspec.check("numpy", binding="normspec.layernorm", op="layer_norm")
    with pytest.raises(UnknownBinding, match="there are none, as only frameworks have them"):
        check_bindings(["x"], [])


def test_what_is_about_other_operators_is_an_error(file):
    """If no requested requirement is about the targets, nothing runs."""
    with pytest.raises(NothingAsked, match=r"BN-F3 is about batch_norm, and .*:sociable has layer_norm"):
        check(f"{file}:sociable", only="BN-F3")
    with pytest.raises(NothingAsked, match="require: batch-invariant is about layer_norm"):
        check("numpy", op="residual", require="batch-invariant")


def test_a_target_without_what_is_asked_is_noted(file):
    """In a run with a target that has it, the report names the target that was not judged."""
    report = normspec.check(
        [f"{file}:batch_norm", "numpy"], only="LN-F1", profile="quick", dtypes=("float32",), cache=False
    )
    assert {r.target for r in report.results} == {"numpy"}
    assert report.notes == (f"{file}:batch_norm: nothing in the request applies to it",)


def test_what_was_asked_and_not_judged_is_no_pass():
    """A requirement that is about none of the run's dtypes is not listed as met."""
    options = {"profile": "quick", "op": "layer_norm", "dtypes": ("float32",), "cache": False}
    report = normspec.check("numpy", only="LN-F1,CM-D1", **options)
    assert conclusion(report)[0] == "CONFORMS in what was asked: LN-F1; nothing of CM-D1 was judged"
    report = normspec.check("numpy", only="LN-F1", require="deterministic", **options)
    assert conclusion(report)[0] == "CONFORMS in what was asked: LN-F1; required and not judged: deterministic"
    report = normspec.check("numpy", only="CM-D1", **options)
    assert (report.exit_status, conclusion(report)[0]) == (2, "NOTHING WAS CHECKED")


def test_what_is_required_is_a_must(file):
    """Advice becomes a violation, with that level, in the verdict and in the exit status."""
    target = f"{file}:restless"
    advised = check(target, only="CM-P3")
    assert (advised.exit_status, advised.results[0].verdict) == (0, Verdict.ADVICE)
    assert "Advice, which --require makes a MUST: CM-P3" in conclusion(advised)[0]
    required = check(target, only="CM-P3", require="deterministic")
    assert required.exit_status == 1
    assert [(r.requirement, r.level) for r in required.failures()] == [("CM-P3", "MUST")]
    assert json.loads(required.to_json())["require"] == ["deterministic"]


def test_a_sound_function_meets_every_bundle():
    """The report says that it was held to more than the specification."""
    everything = frozenset(bundles()[EVERYTHING].requirements)
    report = run(specimen(VARIANT["ln-two-pass"]), requirements=everything)
    assert {r.verdict for r in report.results} == {Verdict.PASS}
    report = normspec.check(
        "sound:ln-two-pass", profile="quick", dtypes=("float32",), require="deterministic", cache=False
    )
    assert conclusion(report)[0] == "CONFORMS, with deterministic required"


def test_what_is_required_is_excused_by_no_known_violation(file):
    """A known violation by a function is mentioned where it is advice, and no excuse where it is required."""
    target = f"{file}:sociable"
    assert [r.verdict for r in check(target, only="LN-L8").results] == [Verdict.DEVIATES]
    assert [r.requirement for r in check(target, only="LN-L8", require="batch-invariant").failures()] == ["LN-L8"]


def test_the_operators_that_a_requirement_is_about_are_found():
    """An id of one page is about its operator, and one of the common page about several."""
    assert operators_of(["LN-F3"]) == ("layer_norm",)
    assert operators_of(["CM-C1"]) == ("residual", "pre_norm", "post_norm", "highway", "mhc")


# Files ----------------------------------------------------------------------------------------------------


def test_every_function_of_a_file_that_is_named_after_an_operator_is_checked(file, capsys, monkeypatch):
    """The command reports which operators it found, and the API takes a path."""
    report = normspec.check(file, only="BN-F1", profile="quick", dtypes=("float32",), forward_only=True, cache=False)
    assert {r.target for r in report.results} == {f"{file}:batch_norm"}
    assert main(["check", str(file), "--only", "BN-F1", "--profile", "quick", "--dtype", "float32", "--no-cache"]) == 1
    assert f"{file}: batch_norm\n" in capsys.readouterr().err
    assert main(["check", str(file), "--op", "layer_norm"]) == 2
    assert "restless, sociable, batch_norm" in capsys.readouterr().err
