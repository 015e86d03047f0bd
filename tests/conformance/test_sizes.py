"""The sweep of sizes: a fault that begins where any extent passes any threshold is caught."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

import attrs
import pytest

from normspec.conformance.cases.case import Case, build
from normspec.conformance.cases.sizes import PROFILES, THRESHOLDS, extents, size_deck
from normspec.spec.operators import OPERATORS

from .planted_sizes import Planted, caught, damages
from .runs import DTYPES

pytestmark = pytest.mark.exhaustive  # it does not depend on the Python version

of_every_operator = pytest.mark.parametrize("operator", OPERATORS)


def cases(operator: str, profile: str, dtype: str, seed: int = 0) -> list[Case]:
    """The sweep of a profile."""
    return [build(attrs.evolve(one, seed=seed), dtype) for one in size_deck(operator, profile)]


def planted(operator: str, *, bands: bool = False, most: int = 8192, step: int = 1) -> Iterator[tuple[Planted, str]]:
    """Every fault of an operator that begins past a threshold, and its direction; bands end at the next one."""
    for extent in extents(operator):
        for low, high in pairwise((*THRESHOLDS, 2**31)):
            if low > most or low >= extent.largest:
                continue
            for direction in ("forward", "backward"):
                for damage in damages(operator, extent.name, direction):
                    yield Planted(operator, extent.name, low, damage, high if bands else None, step), direction


def missed(operator: str, profile: str, dtype: str, seed: int = 0, **which: object) -> list[Planted]:
    """Which of them the sweep of a profile does not catch."""
    sweep = cases(operator, profile, dtype, seed)
    return [one for one, _ in planted(operator, **which) if not caught(one, dtype, sweep)]  # type: ignore[arg-type]


@of_every_operator
def test_standard_catches_what_begins_past_any_threshold(operator: str) -> None:
    """Up to 8192: in every extent, mode and direction, whether the fault goes on or ends at the next threshold."""
    assert not missed(operator, "standard", "float32")
    assert not missed(operator, "standard", "float32", bands=True)


@of_every_operator
def test_quick_catches_what_begins_past_4096_or_less(operator: str) -> None:
    """In every extent, mode and direction, where the fault goes on."""
    assert not [one for one in missed(operator, "quick", "float32", most=4096) if one.extent != "branches"]


@of_every_operator
def test_a_path_for_whole_vectors_is_taken(operator: str) -> None:
    """A fault that shows only at multiples of 64 is caught if it begins below the largest whole block."""
    assert not [one for one in missed(operator, "quick", "float32", most=2048, step=64) if one.extent != "branches"]


@pytest.mark.campaign
@of_every_operator
def test_a_path_for_whole_vectors_of_some_sizes_is_taken(operator: str) -> None:
    """So is one that ends at the next threshold; of branches there are 257 at most."""
    found = missed(operator, "standard", "float32", most=4096, bands=True, step=4)
    assert not [one for one in found if one.extent != "branches" or one.low < 256]


@pytest.mark.campaign
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("seed", [1, 2])
@of_every_operator
def test_standard_catches_them_in_every_dtype(operator: str, seed: int, dtype: str) -> None:
    """In every dtype, and for any seed."""
    assert not missed(operator, "standard", dtype, seed)
    assert not missed(operator, "standard", dtype, seed, bands=True)


@pytest.mark.campaign
@pytest.mark.parametrize("bands", [False, True], ids=["open", "bands"])
@of_every_operator
def test_thorough_catches_all(operator: str, bands: bool) -> None:
    """With 16,384 and 65,536 among the thresholds."""
    assert not missed(operator, "thorough", "float32", bands=bands, most=65536)


def table(operator: str, *, bands: bool) -> Iterator[str]:
    """How many of the faults past each threshold each profile catches; run this file with `pytest -s -k table`."""
    sweeps = {profile: cases(operator, profile, "float32") for profile in PROFILES}
    counted: dict[tuple[str, str], dict[int, list[str]]] = {}
    for one, direction in planted(operator, bands=bands, most=65536):
        counted.setdefault((one.extent, direction), {}).setdefault(one.low, []).append(
            "".join(profile[0] for profile, sweep in sweeps.items() if caught(one, "float32", sweep))
        )
    for (extent, direction), found in counted.items():
        # Of several faults of a place, the profiles that catch all of them.
        cells = {low: "".join(p for p in "qst" if all(p in one for one in ones)) for low, ones in found.items()}
        yield f"{operator:10} {extent:19} {direction:8} " + " ".join(f"{low}:{cell:3}" for low, cell in cells.items())


@pytest.mark.campaign
@pytest.mark.parametrize("bands", [False, True], ids=["open", "bands"])
def test_table(bands: bool) -> None:
    """In the table of what quick (q), standard (s) and thorough (t) catch, every row has thorough."""
    lines = [line for operator in OPERATORS for line in table(operator, bands=bands)]
    print("", *lines, sep="\n")
    assert not [line for line in lines if not all("t" in cell for cell in line.split(":")[1:])]


def test_standard_has_the_sizes_of_models() -> None:
    """Features of language models, positions of images, and channels in 32 groups: code is written for some alone."""
    rows, images, grouped = (cases(one, "standard", "float32") for one in ("layer_norm", "batch_norm", "group_norm"))
    assert {80, 112, 320, 768, 1600, 4096, 7168} <= {case.x.shape[-1] for case in rows}
    assert {49, 196, 784, 3136} <= {math.prod(case.x.shape[2:]) for case in images}
    of_32 = {case.x.shape[1] for case in grouped if case.settings["groups"] == 32}
    assert {64, 128, 256, 320, 512, 640, 1280} <= of_32
