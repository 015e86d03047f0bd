"""Work done while a worker imports its target: it is used afterwards, and changes no verdict."""

from __future__ import annotations

import numpy as np
import pytest

from normspec.conformance.api import requested
from normspec.conformance.judging.library import Library
from normspec.conformance.judging.truths import truth_of
from normspec.conformance.requests.profiles import profile_of
from normspec.conformance.running.preparation import Preparation
from normspec.conformance.running.unit import Unit


def _ahead(**options):
    return Preparation(requested("mine.py:layer_norm", profile="quick", cache=False, **options))


def test_libraries_hold_the_cases_of_the_deck_and_their_truths():
    """Each small case of each dtype is there as it would be made later, with its exact values."""
    preparation = _ahead(dtypes=("float32", "bfloat16"))
    for _ in preparation.steps():
        pass
    small = [one for one in profile_of("quick").cases("layer_norm", 0) if not one.large]
    for dtype in ("bfloat16", "float32"):
        ((_, library),) = preparation.taken(Unit("layer_norm", dtype, 0, ("mine.py:layer_norm",))).items()
        assert list(library._built) == small
        for description in small[:20]:
            case, fresh = library.case(description), Library(dtype).case(description)
            assert case.content == fresh.content
            for name, value in truth_of(fresh, None).outputs().items():
                assert np.array_equal(truth_of(case, None).outputs()[name].hi, value.hi, equal_nan=True)


def test_what_was_taken_is_let_go_of():
    """A library serves the unit for which it was made, once, and none with another seed."""
    preparation = _ahead(dtypes=("float32",))
    next(preparation.steps())
    assert preparation.taken(Unit("layer_norm", "float64", 0, ())) == {}
    assert len(preparation.taken(Unit("layer_norm", "float32", 0, ()))) == 1
    assert preparation.taken(Unit("layer_norm", "float32", 0, ())) == {}
    next(preparation.steps())
    assert preparation.taken(Unit("layer_norm", "float32", 1, ())) == {}


@pytest.mark.parametrize(
    ("target", "op", "there"),
    [
        ("mine.py:layer_norm", None, "layer_norm"),
        ("mine.py:norm", "batch_norm", "batch_norm"),
        ("mine.py:f", None, None),
        ("torch", "mhc", "mhc"),
    ],
)
def test_operators_are_told_by_names(target, op, there):
    """An operator that the name does not reveal is not guessed."""
    preparation = Preparation(requested(target, op=op, profile="quick", cache=False))
    assert next(preparation._units(), (None, ""))[0] == there
