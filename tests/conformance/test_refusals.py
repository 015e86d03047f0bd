"""Calls that raise: the words that are told hold for each of the cases that are told."""

from __future__ import annotations

import numpy as np
import pytest

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
            "The call raises ValueError: ... are a multiple of 3 where the number of values in a group is a multiple"
            " of 3.",
        ),
        (six_errors, "The call fails in several ways where x has 3 axes."),
    ],
)
def test_no_words_of_one_case_are_told_of_others(mistaken, sentence):
    """Ways to fail are told one by one, and what differs in the message of one is left out."""
    (cause,) = diagnosed(mistaken).causes
    assert cause.sentence == sentence


def test_gradients_that_are_all_lost_are_told_in_one_sentence():
    """Such as those of a y that was detached: which inputs a case has makes no difference."""
    target = function("layer_norm", VARIANT["ln-two-pass"].build().call, vjp=lambda *_, **__: (None, None, None))
    (cause,) = run(target, explain=True).causes
    assert cause.sentence == "No gradient reaches any input, whatever is given."
    assert cause.requirement == "CM-T3"
