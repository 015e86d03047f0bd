"""
The formulas of the requirements, read off the pages and evaluated in mpmath on small calls.

In exact arithmetic every envelope is zero, so that [~] and [=] are equality. A statement that is not about numbers
stands in WORDS with the reason, or says "raises"; every other must hold in each scene that it is about.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
import pytest
from mpmath import mpf

from normspec.spec import pages, requirements

from .page_blocks import Statement, statements
from .page_examples import FORMATS, LABELS, Example, called, constant, holds
from .page_notation import Bound
from .page_scenes import KINDS, Scene, scenes
from .page_values import array, precise
from .page_worlds import Part, World

CALLS = "relates calls, memory, arguments or what is no number"
EMPTY = "is about arrays without values"
SENTENCE = "says in words which numbers are used"
SUBSETS = "relates calls that ask for different gradients"
RELATION = (
    "relates groups, or calls of other sizes, by a number that the page names; test_aspects.py judges calls by it"
)
WITHOUT_END = "has a number of factors, terms or branches that is left open"
NO_MODE = "has no training mode to tell from another in exact arithmetic"
ONE_CHANNEL = "is about the values of one channel, while y is all of them"
OF_PAIRS = (
    "q(e) = ((x_i - x_i') / (y_i - y_i'))^2 of y without parameters, eps = e: q(4e) - q(e) [~] the same in every group"
)
OF_POSITIONS = "y(x with its positions in another order) [~] y(x) with its positions in that order"
#: What is not an identity of numbers, and why: a whole requirement, or one statement of it.
WORDS = {
    **dict.fromkeys((id for id in requirements() if id.startswith("CM-")), CALLS),
    **dict.fromkeys(("BN-E2", "BN-E3", "BN-E4"), EMPTY),
    "LN-F2: layer_norm((x, x), None, 0) [~] (y, y)": RELATION,
    "LN-F3: q(e) = ((x_i - x_j) / (y_i - y_j))^2 of y = layer_norm(x, None, 0, eps=e): "
    "q(4e) - q(e) [~] the same in every group": RELATION,
    "LN-F4": SENTENCE,
    "LN-F7": "is about shapes",
    "LN-L15": NO_MODE,
    "LN-G11": SUBSETS,
    "RM-F2: rms_norm((x, x), None) [~] (y, y)": RELATION,
    (
        "RM-F3: w(e) = ((x_i - x_j) / (y_i - y_j))^2 of y = rms_norm(x, None, eps=e):"
        " w(4e) - w(e) [~] the same in every group"
    ): RELATION,
    **dict.fromkeys(("RM-F4", "GN-F4", "IN-F4"), SENTENCE),
    **dict.fromkeys(("RM-F7", "GN-F7", "IN-F7"), "is about shapes"),
    **dict.fromkeys(("RM-L15", "GN-L15", "IN-L15"), NO_MODE),
    **dict.fromkeys(("RM-G11", "GN-G11", "IN-G11"), SUBSETS),
    **dict.fromkeys((f"{page}-F2: y of (x, x) [~] (y, y)" for page in ("GN", "IN")), RELATION),
    **dict.fromkeys((f"{page}-F3: {OF_PAIRS}" for page in ("GN", "IN")), RELATION),
    **dict.fromkeys((f"{page}-F5: y = gamma_c xhat + beta_c" for page in ("GN", "IN")), ONE_CHANNEL),
    **dict.fromkeys(("GN-L7", "GN-L8", "IN-L7", "IN-L8"), "is about one group in words"),
    **dict.fromkeys((f"{page}-L9: {OF_POSITIONS}" for page in ("GN", "IN")), "is about positions in words"),
    "BN-F1: mu = mean(x over all axes but channel_axis)": SENTENCE,
    "BN-F1: var = mean((x - mu)^2 over the same)": SENTENCE,
    "BN-F2: y of (x, x) [~] (y, y)": RELATION,
    f"BN-F3: {OF_PAIRS}".replace("group", "channel"): RELATION,
    "BN-F4": SENTENCE,
    "BN-F5: y = gamma_j xhat + beta_j": ONE_CHANNEL,
    "BN-F7": "is about shapes",
    "BN-S3": WITHOUT_END,
    "BN-L6": "is about one channel in words",
    "BN-I5": "is about one channel in words",
    "BN-G12": SUBSETS,
    "PR-F6": SENTENCE,
    "PO-F6": SENTENCE,
    "RS-F4": "is about a mask that is drawn",
    "RS-L3": WITHOUT_END,
    "MH-F4": WITHOUT_END,
    "MH-F6": WITHOUT_END,
    "MH-L5": "is about what two calls make of each other",
    "MH-L6": WITHOUT_END,
    "MH-L7": "is about positions",
    "MH-G7": WITHOUT_END,
}

pytestmark = pytest.mark.exhaustive


@pytest.fixture(autouse=True)
def _precise():
    with precise():
        yield


@cache
def by_page() -> Mapping[str, tuple[Scene, ...]]:
    """The scenes of each page."""
    with precise():
        found: dict[str, list[Scene]] = {}
        for scene in scenes().values():
            found.setdefault(scene.page, []).append(scene)
    return {page: tuple(those) for page, those in found.items()}


def rows(count: int = 2, n: int = 3, seed: int = 9) -> np.ndarray:
    """More groups."""
    return array(np.random.default_rng(seed).standard_normal((count, n)))


def linear(name: str) -> Callable[[World], dict[str, Any]]:
    """A part that is homogeneous of first degree."""
    return lambda world: {name: Part(KINDS["linear"], world.values[name].at, "w")}


def shifted(world: World) -> dict[str, Any]:
    """A constant for each group."""
    return {"const": mpf(3)}


#: y as a function of the parameters alone.
PARAMETERS = {"orders": {"y": ("gamma", "beta")}}


def like(z: np.ndarray, seed: int = 9) -> np.ndarray:
    """Other values of the same shape."""
    return array(np.random.default_rng(seed).standard_normal(z.shape))


def terms(world: World) -> dict[str, Any]:
    """Two gains and two biases, of which y is a function alone."""
    shape = world["gamma"]
    drawn = {f"{name}_{k}": like(shape, seed=k + 2 * (name == "beta")) for name in ("gamma", "beta") for k in (1, 2)}
    return {**drawn, **PARAMETERS}


def each(*numbers: str, more: Callable[[World], dict[str, Any]]) -> dict[str, Callable[[World], dict[str, Any]]]:
    """The same for the requirements of these numbers on every page that carries layer_norm's."""
    return {f"{page}-{number}": more for page in ("LN", "RM", "GN", "IN") for number in numbers}


#: Values that a requirement has beside those of its scenes.
MORE: dict[str, Callable[[World], dict[str, Any]]] = {
    **each("F8", "L10", "L13", more=shifted),
    **each("L5", "L6", more=lambda world: {"order": [1, 0], "whole": [2, 3, 0, 1]}),
    **each("L9", more=lambda world: {"order": [2, 0, 1], "inside": [1, 0, 2, 3]}),
    **each("L14", more=terms),
    **each("L16", more=lambda world: {"z": like(world["x"])}),
    **each("L17", more=lambda world: {"z": np.zeros_like(world["x"]) + mpf(2)}),
    **each("G8", more=lambda world: {"g_1": like(world["g"]), "g_2": like(world["g"], seed=1)}),
    **dict.fromkeys(("GN-F6", "IN-F6"), lambda world: PARAMETERS),
    "IN-E1": lambda world: {"x": world["x"][:, :1], "n": 1},
    "BN-F5": lambda world: PARAMETERS,
    "BN-F6": lambda world: PARAMETERS,
    "BN-F8": shifted,
    "BN-S5": lambda world: {"mean'": rows(1, 2)[0], "var'": rows(1, 2)[0] ** 2,
                            "orders": {"y": ("running_mean", "running_var")}},
    "BN-I4": lambda world: {"x_1": rows(3, 2), "x_2": rows(3, 2, seed=1)},
    "BN-E1": lambda world: {"x": world["x"][:1], "n": 1},
    "BN-E5": lambda world: {"x": world["x"][:1], "n": 1},
    "BN-L5": lambda world: {"order": [2, 0, 1]},
    "BN-L7": shifted,
    "BN-L13": shifted,
    "BN-L10": shifted,
    "BN-L11": terms,
    "BN-L12": lambda world: {"layer_norm": called(World("layer_norm", by_page()["layer_norm"][0].world.values),
                                                  ("x", "gamma", "beta"), "y")},
    "BN-G9": lambda world: {"g_1": like(world["g"]), "g_2": like(world["g"], seed=1)},
    "RS-F2": lambda world: {"A": Part(KINDS["identity"], "s")},
    "RS-F3": lambda world: {"S": Part(KINDS["identity"])},
    "RS-L5": linear("F"),
    "PR-L3": shifted,
    "PO-L1": lambda world: {"gamma": mpf(1), "beta": mpf(0)},
    "PO-L2": linear("F"),
    "HW-L4": lambda world: {"H": constant(rows()), "z": constant(rows(seed=1))},
    "HW-G3": lambda world: {"H": Part(KINDS["tanh"]), "z": Part(KINDS["linear"], "x", "w")},
    "MH-L1": shifted,
    "MH-L4": lambda world: {"order": [2, 0, 1]},
    "MH-G5": lambda world: {"w": rows(3), "f": Part(lambda ys, w: ys[0] @ w + ys[1] * ys[2], "ys", "w")},
}  # fmt: skip


def indices(id: str) -> dict[str, int]:
    """The element, the channel or the branch that a statement with an index is tried on."""
    if id.startswith("MH"):
        return {"k": 2}
    return {"j": 0} if id in ("BN-F5", "BN-G2", "BN-G3") else {"i": 1}


def about(id: str, statement: Statement, scene: Scene) -> bool:
    """Whether a scene is one that a statement speaks of."""
    words = {given for given in statement.given if given in LABELS}
    if words:
        return words <= scene.world.labels
    speaks = next((name for pattern, name in SCENES.items() if re.fullmatch(pattern, id)), scene.name)
    return scene.name == speaks


#: The form of the operator that a requirement speaks of where its formula does not say so, by a pattern of its id.
SCENES = {
    r"BN-(F[1258]|S\d+|E[15]|R\d|L([1-37-9]|1[023])|G[15-8])": "batch_norm, training",
    r"BN-(I\d|E[34]|G4)": "batch_norm, inference",
    r"RS-(F1|L\d|G[126])": "residual",
    r"RS-.*": "residual, with shortcut and activation",
    r"HW-.*": "highway, without carry",
    r"MH-.*": "mhc, without fuse",
}


def prepared(id: str, scene: Scene) -> World:
    """The scene's world with the values that the requirement has beside them, and what its page calls."""
    world = scene.world if "k" in scene.world.values else scene.world.moved(k=3)
    return world.moved(**MORE.get(id, lambda _: {})(world))


FOUND = [
    (id, statement)
    for id, requirement in requirements().items()
    if requirement.formula and id not in WORDS
    for statement in statements(requirement.formula.splitlines())
    if f"{id}: {statement}" not in WORDS and statement.sides != ("raises",)
]


@pytest.mark.parametrize(("id", "statement"), FOUND, ids=lambda one: str(one))
def test_a_statement_holds_in_each_scene_that_it_is_about(id: str, statement: Statement):
    """All its sides are related as its signs say."""
    assert statement.signs, (
        f"{id}: {statement} relates nothing: say it as a remark, or list it in WORDS with the reason"
    )
    those = [scene for scene in by_page()[requirements()[id].page] if about(id, statement, scene)]
    assert those, f"no scene is about {id}: {statement}"
    for scene in those:
        world = Example(prepared(id, scene), pages()[scene.page]).given(statement.given)
        assert holds(statement, Bound(world, indices(id))), f"{id}: {statement} does not hold for {scene.name}"


def test_words_are_on_the_pages():
    """What is listed as not being about numbers is there to be read."""
    said = {f"{id}: {one}" for id, r in requirements().items() for one in statements(r.formula.splitlines())}
    assert set(WORDS) <= said | set(requirements())
    assert FORMATS.isdisjoint(LABELS)
