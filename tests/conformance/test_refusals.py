"""Calls that raise: the words that are told hold for each of the cases that are told."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import normspec
from normspec.conformance.cases.case import build
from normspec.conformance.cases.deck import deck
from normspec.conformance.diagnosis.patterns.refusals import refusal
from normspec.spec.errors import MissingGradient

from .runs import VARIANT, function, run
from .test_two_mistakes import diagnosed, layer_norm_of


def two_errors(x, gamma, beta, *, eps, axes):
    """Another exception for each parameter that is None."""
    if gamma is None:
        raise TypeError("gamma is lacking")
    if beta is None:
        raise KeyError("beta")
    return layer_norm_of(x, gamma, beta, eps, axes)


def names_its_size(x, gamma, beta, *, eps, axes):
    """Raises for a multiple of three of values, and tells it."""
    number = int(np.prod([x.shape[axis] for axis in axes]))
    if number % 3 == 0:
        raise ValueError(f"{number} values in a group of {x.shape} are a multiple of 3")
    return layer_norm_of(x, gamma, beta, eps, axes)


def six_errors(x, gamma, beta, *, eps, axes):
    """With three axes, another exception for each number of values."""
    if x.ndim == 3:
        raise ValueError("abcdef"[x.size % 6])
    return layer_norm_of(x, gamma, beta, eps, axes)


@pytest.mark.parametrize(
    ("mistaken", "sentence"),
    [
        (
            two_errors,
            "The call raises TypeError: gamma is lacking where gamma is None; the call raises KeyError: 'beta' where"
            " gamma is given and beta is None.",
        ),
        (
            names_its_size,
            "The call raises ValueError: 3 values in a group of (1, 3) are a multiple of 3, and the like, where the"
            " number of values in a group is a multiple of 3.",
        ),
        (six_errors, "The call fails in several ways where x has 3 axes."),
    ],
)
def test_no_words_of_one_case_are_told_of_others(mistaken, sentence):
    """Ways to fail are told one by one, and where messages of one differ, a whole one is an example."""
    (cause,) = diagnosed(mistaken).causes
    assert cause.sentence == sentence


def test_gradients_that_are_all_lost_are_told_in_one_sentence():
    """Such as those of a y that was detached: which inputs a case has makes no difference."""
    target = function("layer_norm", VARIANT["ln-two-pass"].build().call, vjp=lambda *_, **__: (None, None, None))
    (cause,) = run(target, explain=True).causes
    assert cause.sentence == "No gradient reaches any input, whatever is given."
    assert cause.requirement == "CM-T3"


class _LosesEveryThirdLeaf:
    """An observer of a function whose calls lack the gradient of every third leaf; the first such case lacks one."""

    limited = True

    def answer(self, case, *, derivative):
        return SimpleNamespace(words="it fails" if derivative and self._lost(case) else "")

    def failure(self, case, *, derivative):
        lost = self._lost(case)
        return MissingGradient(f"no gradient reaches {', '.join(lost)}", lost)

    def _lost(self, case):
        return tuple(name for name in case.inputs if name.endswith(".h"))[2::3]


def test_the_leaves_that_each_case_lacks_are_not_spelt_out():
    """Cases have different leaves: the sentence names neither those of one case, nor has dots in their place."""
    cases = [build(one, "float32") for one in deck("mhc", "quick", 0)[:60]]
    told = refusal(_LosesEveryThirdLeaf(), "mhc", cases[::2], cases[1::2])
    assert told.startswith("no gradient reaches some of the leaves ")
    assert "..." not in told and ".h" not in told


def test_one_leaf_that_is_always_lacking_is_named():
    """Where all cases lack the same, its name says more."""
    alone = [
        one
        for one in (build(one, "float32") for one in deck("mhc", "quick", 0)[:60])
        if len(one.parts["branches"]) in (3, 4)
    ]
    told = refusal(_LosesEveryThirdLeaf(), "mhc", alone, alone)
    assert told.startswith("no gradient reaches branches.2.h")


def needs_both(x, gamma, beta, *, eps, axes):
    """As most functions are written: they always have their parameters."""
    return layer_norm_of(x, gamma + 0, beta + 0, eps, axes)


def test_a_function_that_always_has_its_parameters_learns_how_to_say_so():
    """Under that declaration it conforms."""
    asked = {"op": "layer_norm", "dtypes": ["float32"], "profile": "quick"}
    (cause,) = normspec.check(needs_both, **asked).causes
    assert cause.remedy.endswith(" Or declare --fixed gamma=given,beta=given, if gamma and beta always are.")
    assert normspec.check(needs_both, **asked, fixed={"gamma": "given", "beta": "given"}).conforms
