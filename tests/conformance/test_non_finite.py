"""Results that depend on a non-finite value show it, operator by operator, and no others do (CM-N1 to CM-N5)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from normspec.conformance.explaining.explaining import NothingToExplain, meant
from normspec.spec import pages
from normspec.spec.operators import OPERATORS

from .runs import run, variant_function, verdicts

pytestmark = pytest.mark.exhaustive  # it does not depend on the Python version

RULES = ("CM-N1", "CM-N3", "CM-N4")
#: The operators whose y in one place depends only on x there, and a sound variant of each.
OWN_PLACE = {"residual": "rs-plain", "highway": "hw-plain", "mhc": "mh-plain"}


def spoiling(whole: Callable[[np.ndarray], np.ndarray]) -> Callable[..., Any]:
    """A change to a call: y is NaN wherever ``whole``, applied to the places where x is NaN, is true."""

    def change(call: Callable[..., Any], x: np.ndarray, *arguments: Any, **settings: Any) -> Any:
        y = call(x, *arguments, **settings)
        first, rest = (y[0], y[1:]) if isinstance(y, tuple) else (y, None)
        spoilt = np.where(whole(np.isnan(x)), first.dtype.type(np.nan), first)
        return spoilt if rest is None else (spoilt, *rest)

    return change


def of_its_row(nan: np.ndarray) -> np.ndarray:
    """Every place of the last axis where one of them is NaN."""
    return np.broadcast_to(nan.any(axis=-1, keepdims=True), nan.shape)


def of_its_column(nan: np.ndarray) -> np.ndarray:
    """Every place of the first axis where one of them is NaN."""
    return np.broadcast_to(nan.any(axis=0, keepdims=True), nan.shape)


@pytest.mark.parametrize("operator", OWN_PLACE)
def test_a_nan_stays_in_its_place_where_nothing_else_depends_on_it(operator: str) -> None:
    """residual, highway and mhc leave a row's other values alone: a function that makes them NaN violates CM-N1."""
    sound = variant_function(OWN_PLACE[operator], spoiling(lambda nan: nan))
    assert verdicts(run(sound, requirements=RULES)) == dict.fromkeys(RULES, "pass")
    found = verdicts(run(variant_function(OWN_PLACE[operator], spoiling(of_its_row)), requirements=RULES))
    assert found == {"CM-N1": "fail", "CM-N3": "pass", "CM-N4": "pass"}


def test_a_nan_takes_its_group_with_it() -> None:
    """In layer_norm every y of the group depends on it: a function that shows it only in one place violates CM-N3."""

    def in_place(call: Callable[..., Any], x: np.ndarray, *arguments: Any, **settings: Any) -> Any:
        nan = np.isnan(x)
        return np.where(nan, x, call(np.where(nan, x.dtype.type(0), x), *arguments, **settings))

    found = verdicts(run(variant_function("ln-two-pass", in_place), requirements=RULES))
    assert found == {"CM-N1": "pass", "CM-N3": "fail", "CM-N4": "pass"}


def test_in_inference_a_nan_takes_its_channel_nowhere() -> None:
    """In inference y of batch_norm depends only on its own x: a function that makes the channel NaN violates CM-N1."""
    spoilt = variant_function("bn-two-pass", spoiling(of_its_column))
    assert verdicts(run(spoilt, requirements=RULES, mode="inference"))["CM-N1"] == "fail"


def test_the_table_has_a_row_for_every_operator() -> None:
    """The page says for each operator, and for both modes of batch_norm, what y and dx depend on."""
    section = pages()["common"].partition("## NaN and infinity")[2].partition("###")[0]
    rows = re.findall(r"^\| `(\w+)`(?: in (\w+))? \|", section, re.M)
    modes = [("batch_norm", "training"), ("batch_norm", "inference")]
    assert sorted(rows) == sorted([*modes, *((name, "") for name in OPERATORS if name != "batch_norm")])


def test_a_withdrawn_id_leads_to_what_took_its_place() -> None:
    """For CM-N2, which three requirements replace, explain names these."""
    with pytest.raises(NothingToExplain, match="CM-N2 was withdrawn; CM-N3, CM-N4, CM-N5 replace it"):
        meant("cm-n2")
