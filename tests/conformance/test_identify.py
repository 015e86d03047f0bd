"""A card says which normalisation an implementation is, and how each line of it was established."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import normspec
from normspec.conformance.command_line.root import main
from normspec.conformance.compare.catalogue import probes_of
from normspec.conformance.compare.table import Cell
from normspec.conformance.identify.card import Card, Cards
from normspec.conformance.identify.identifying import _cell_in_words
from normspec.conformance.reporting.card import as_text

from ..compare.planted import PLANTED, Plain, target
from .runs import FAULT, function, specimen


def card(made, operator: str = "layer_norm") -> Card:
    """The card of a target."""
    return normspec.identify(made, op=operator).card(operator)


@cache
def plain(operator: str) -> dict[str, str]:
    """The card of the plain function."""
    return {line.key: line.text for line in card(target(operator), operator).lines}


@pytest.mark.exhaustive  # it does not depend on the Python version
@pytest.mark.parametrize(
    ("operator", "row", "change"),
    [(operator, row, change) for row, operators, change in PLANTED for operator in operators],
    ids=lambda one: one.__name__ if isinstance(one, type) else one,
)
def test_a_planted_change_shows_in_the_line_that_is_about_it(operator: str, row: str, change: type) -> None:
    """Of all lines with an answer, only the one about the change has another answer."""
    found = card(target(operator, change, "changed"), operator)
    before = plain(operator)
    margins = {"accuracy", "accuracy_gradients"}  # the margin may change, and so may what cannot be measured
    moved = {
        line.key
        for line in found.lines
        if line.kind.value in ("measured", "raises")
        and line.text.partition(", at")[0] != before[line.key].partition(", at")[0]
    }
    assert moved - (margins - {row}) == {row}


def test_the_card_has_a_line_for_each_row_that_is_compared() -> None:
    """There is one list of traits: the card's lines are the rows of `normspec compare`, and each says how."""
    found = card(target("layer_norm", Plain))
    assert [line.key for line in found.lines] == [one.key for one in probes_of("layer_norm")]
    assert all(len(line.how.split()) > 3 and line.subject for line in found.lines)


FORMULAS = {
    "ln-eps-on-std": "y = gamma (x - mean) / (sqrt(var) + eps) + beta",
    "ln-eps-missing": "y = gamma (x - mean) / sqrt(var) + beta",
    "ln-unbiased-variance": "y = gamma (x - mean) / sqrt(var_unbiased + eps) + beta",
    "ln-rms-norm": "y = gamma x / sqrt(mean(x^2) + eps) + beta",
    "ln-affine-order": "y = gamma ((x - mean) / sqrt(var + eps) + beta)",
    "ln-eps-squared": "y = gamma (x - mean) / sqrt(var + eps^2) + beta",
}


@pytest.mark.parametrize("name", [name for name in FORMULAS if name in FAULT])
def test_the_formula_of_a_wrong_function_is_the_wrong_one(name: str) -> None:
    """The formula that the fault computes, not the right one."""
    assert card(specimen(FAULT[name])).formula == FORMULAS[name]


def with_eps(used: Callable[[float], float]) -> Card:
    """The card of a function that uses something else for eps."""

    def layer_norm(x, gamma, beta, *, eps, axes):
        d = x.astype(np.float64) - x.mean(axes, keepdims=True, dtype=np.float64)
        y = d / np.sqrt(np.square(d).mean(axes, keepdims=True) + used(eps))
        y = y if gamma is None else y * gamma
        return (y if beta is None else y + beta).astype(x.dtype)

    return card(function("layer_norm", layer_norm))


@pytest.mark.parametrize(
    ("used", "told"),
    [
        (lambda eps: eps, "as given"),
        (lambda eps: 2 * eps, "2 times what is given"),
        (lambda eps: 1e-5, "1e-05 whatever is given"),
        (lambda eps: 1e-7, "1e-07 whatever is given"),  # too small to show where the place of eps is looked for
        (lambda eps: max(eps, 3e-7), "3e-07 for 1e-08"),
    ],
)
def test_eps_in_effect_is_told_to_three_digits(used: Callable[[float], float], told: str) -> None:
    """As given, a multiple, a constant, or a floor."""
    assert with_eps(used).line("eps_effective").text == told


def test_an_eps_of_its_own_stands_in_the_formula() -> None:
    """Its place is not told by witnesses of larger variances; a function without any eps has none in its formula."""
    assert with_eps(lambda eps: 1e-7).formula == "y = gamma (x - mean) / sqrt(var + 1e-07) + beta"
    without = with_eps(lambda eps: 0.0)
    assert without.formula == "y = gamma (x - mean) / sqrt(var) + beta"
    assert without.line("eps_effective").evidence["reason"] == "eps is not used"


def test_a_solution_that_does_not_exist_is_no_eps() -> None:
    """At eps = 0 a rounding may make the square of eps negative: eps is used as given."""

    def layer_norm(x, gamma, beta, *, eps, axes):
        d = x - x.mean(axes, keepdims=True)
        y = d / np.sqrt(np.square(d).sum(axes, keepdims=True) / (x.shape[-1] - 1) + eps**2)
        y = y if gamma is None else y * gamma
        return (y if beta is None else y + beta).astype(x.dtype)

    found = card(function("layer_norm", layer_norm))
    assert found.line("eps_placement").text == "var + eps^2"
    assert found.line("eps_zero").text.startswith("as given")


def test_a_function_that_is_none_of_them_has_no_formula() -> None:
    """A function that fits no formula gets none."""
    found = card(function("layer_norm", lambda x, gamma, beta, *, eps, axes: np.sin(x)))
    assert found.formula == ""
    assert found.line("eps_placement").kind.value == "unclear"


@pytest.mark.parametrize(
    ("body", "why"),
    [('raise RuntimeError("no kernel")', "RuntimeError: no kernel"), ("os._exit(3)", "exit status 3")],
    ids=["raises", "ends its process"],
)
def test_nothing_is_established_of_what_never_returns(tmp_path, capsys, body: str, why: str) -> None:
    """One sentence says so, with the reason, instead of a card whose every line says it; the status is 2."""
    file = tmp_path / "mine.py"
    file.write_text(f"import os\ndef rms_norm(x, gamma, *, eps, axes):\n    {body}\n")
    assert main(["identify", f"{file}:rms_norm", "--framework", "numpy"]) == 2
    told = " ".join(capsys.readouterr().out.split())
    assert "Nothing is established: no call returned a result." in told
    assert told.count(why) == 1 and "0 of " in told


def test_accuracy_is_told_with_its_margin() -> None:
    """The class, and how much of its envelope the worst result takes."""
    words, at, rest = card(target("layer_norm")).line("accuracy").text.partition(", at ")
    assert (words, at) == ("centred / centred", ", at ")
    assert 0 < float(rest.split()[0]) <= 1


@pytest.mark.parametrize(
    ("ratio", "told"),
    [(0.9996, "class, at 0.99 of its envelope"), (1.0, "class, at 1.00 of its envelope")],
)
def test_the_margin_never_rounds_across_the_envelope(ratio: float, told: str) -> None:
    """As in the tables of `normspec check`."""
    assert _cell_in_words("accuracy", Cell("class", evidence={"ratios": {"class": ratio}})) == told
    outside = Cell("no class", evidence={"ratios": {"class": 1.0004}})
    assert _cell_in_words("accuracy", outside) == "no class: 1.01 envelopes of the widest"


def test_the_command_prints_the_card_and_writes_it(tmp_path, capsys) -> None:
    """The formula comes first; the JSON is strict, and has each line with its evidence."""
    file = tmp_path / "mine.py"
    file.write_text(
        "import numpy as np\n\n"
        "def rms_norm(x, gamma, *, eps, axes):\n"
        "    wide = x.astype(np.float64)\n"
        "    y = wide / np.sqrt(np.square(wide).mean(axes, keepdims=True) + eps)\n"
        "    return (y if gamma is None else y * gamma).astype(x.dtype)\n"
    )
    out = tmp_path / "card.json"
    assert main(["identify", f"{file}:rms_norm", "--json", str(out)]) == 0
    told = capsys.readouterr().out
    assert "y = gamma x / sqrt(mean(x^2) + eps)" in told
    assert "place of eps             inside the root" in told and "Finds the formula that fits" in told
    (found,) = json.loads(out.read_text())["cards"]
    assert (found["op"], found["formula"]) == ("rms_norm", "y = gamma x / sqrt(mean(x^2) + eps)")
    assert {line["key"] for line in found["lines"]} == {one.key for one in probes_of("rms_norm")}
    assert main(["identify", f"{file}:rms_norm", "--brief"]) == 0
    assert "Finds the formula that fits" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("xhat", "formula"),
    [
        (lambda x, mean, eps: np.tanh(0.5 * x), ""),
        (lambda x, mean, eps: x / np.sqrt(mean(x * x) + eps), "y = gamma x / sqrt(mean(x^2) + eps) + beta"),
        (lambda x, mean, eps: x / np.sqrt(mean((x - mean(x)) ** 2) + eps), "y = gamma x / sqrt(var + eps) + beta"),
        (lambda x, mean, eps: x / np.sqrt(3 * mean((x - mean(x)) ** 2) - 2 * mean(x * x) + eps), ""),
    ],
    ids=["tanh", "mean square", "variance", "another spread"],
)
def test_what_x_is_divided_by_without_a_mean_is_told_apart(xhat: Any, formula: str) -> None:
    """A function of each value alone is no norm, though it has the same values as one where these are even."""

    def layer_norm(x: Any, gamma: Any, beta: Any, *, eps: float, axes: tuple[int, ...]) -> Any:
        y = xhat(x.astype(np.float64), lambda values: values.mean(axes, keepdims=True), eps)
        y = y if gamma is None else y * gamma
        return (y if beta is None else y + beta).astype(x.dtype)

    found = card(function("layer_norm", layer_norm))
    assert found.line("variance").text == "mean not subtracted"
    assert found.formula == formula


@pytest.mark.parametrize(
    ("operator", "centre", "spread"),
    [
        ("layer_norm", lambda w, axes: np.median(w, axis=axes, keepdims=True), np.mean),
        ("layer_norm", lambda w, axes: 0.0, np.sum),
        ("rms_norm", lambda w, axes: 0.0, np.max),
    ],
)
def test_a_formula_that_y_does_not_follow_is_not_named(operator: str, centre: Any, spread: Any) -> None:
    """A median, a norm or a maximum fits the few values behind a line, and not y."""

    def call(x: Any, gamma: Any, beta: Any = None, *, eps: float, axes: tuple[int, ...]) -> Any:
        w = x.astype(np.float64)
        d = w - centre(w, axes)
        y = d / np.sqrt(spread(d * d, axis=axes, keepdims=True) + eps)
        y = y if gamma is None else y * gamma
        return (y if beta is None else y + beta).astype(x.dtype)

    assert card(function(operator, call), operator).formula == ""


def test_what_was_stopped_at_once_is_not_said_to_lack_the_operator() -> None:
    """No card may mean that nothing fits, or that there was no time."""
    assert as_text(Cards(())).strip() == "It has none of the operators that were asked for."
    assert as_text(Cards((), partial=True)).strip() == "PARTIAL: stopped before anything was measured."
