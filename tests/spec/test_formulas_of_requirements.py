"""
The formulas of the requirements, read from the pages and evaluated in mpmath on small calls.

In exact arithmetic every envelope is zero, so [~] and [=] are equality. A statement that is not about numbers is listed
in WORDS with the reason, or says "raises"; every other must hold in each scene that it is about.
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
from .page_values import Matrix, array, precise
from .page_worlds import Part, World, gradient, zeros

CALLS = "relates calls, memory, arguments or what is no number"
EMPTY = "is about arrays without values"
SENTENCE = "says in words which numbers are used"
SUBSETS = "relates calls that ask for different gradients"
CHANGED = "is about which values a change of one value reaches"
NO_MODE = "has no training mode to tell from another in exact arithmetic"
#: Requirements, or single statements of them, that are not an identity of numbers, and why.
WORDS = {
    **dict.fromkeys((id for id in requirements() if id.startswith("CM-")), CALLS),
    **dict.fromkeys(("BN-E2", "BN-E3", "BN-E4"), EMPTY),
    "LN-F7": CHANGED,
    "LN-L15": NO_MODE,
    "LN-G11": SUBSETS,
    **dict.fromkeys(("RM-F7", "GN-F7", "IN-F7"), CHANGED),
    **dict.fromkeys(("RM-L15", "GN-L15", "IN-L15"), NO_MODE),
    **dict.fromkeys(("RM-G11", "GN-G11", "IN-G11"), SUBSETS),
    "BN-F7": CHANGED,
    "BN-I5": "is about one channel in words",
    **dict.fromkeys(("BN-G12", "RS-G10", "PR-G11", "PO-G11", "HW-G12", "MH-G14"), SUBSETS),
    "PR-F6": SENTENCE,
    "PO-F6": SENTENCE,
    "MH-F4": "names numbers of branches",
    "MH-L5": "is about what two calls make of each other",
    "MH-L7": "is about positions",
    "MH-G7": "is about as many branches as close over one leaf",
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
    """Two gains and two biases; y is a function of these only."""
    shape = world["gamma"]
    drawn = {f"{name}_{k}": like(shape, seed=k + 2 * (name == "beta")) for name in ("gamma", "beta") for k in (1, 2)}
    return {**drawn, **PARAMETERS}


def alone(world: World) -> dict[str, Any]:
    """The channels of one group, or one channel."""
    return {"groups": 2, "inside": [2, 3], "c": [1]}


def steps(world: World) -> dict[str, Any]:
    """Running statistics before and after training steps, and the statistics of each batch; None before the first."""
    found: dict[str, Any] = {"K": 3, "mean_0": world["running_mean"], "variance_0": world["running_var"]}
    batches = [world.moved(x=like(world["x"], seed=k)) for k in range(3)]
    for batch in batches:
        world = batch.moved(running_mean=world["running_mean"], running_var=world["running_var"])
        world = world.moved(running_mean=world["new_running_mean"], running_var=world["new_running_var"])
    found |= {"mean_K": world["running_mean"], "variance_K": world["running_var"]}
    return found | {f"{name}_": (None, *(batch[name] for batch in batches)) for name in ("mu", "var")}


def cascade(world: World) -> dict[str, Any]:
    """Three blocks with linear branches, one after the other: y and its gradient."""
    matrices = [array(np.random.default_rng(k).standard_normal((3, 3))) for k in range(3)]

    def y(x: Any) -> Any:
        for a in matrices:
            x = world.moved(x=x, F=Part(lambda z, _, a=a: z @ a))["y"]
        return x

    named = {f"A_{k + 1}": Matrix(a) for k, a in enumerate(matrices)} | {"I": Matrix(array(np.eye(3)))}
    dx = gradient(lambda x: np.sum(y(x) * world["g"]), world["x"])
    return {**named, "F_l": world.values["F"], "y": y(world["x"]), "dx": dx}


def each(*numbers: str, more: Callable[[World], dict[str, Any]]) -> dict[str, Callable[[World], dict[str, Any]]]:
    """The same for the requirements with these numbers on every page that has layer_norm's."""
    return {f"{page}-{number}": more for page in ("LN", "RM", "GN", "IN") for number in numbers}


def at_rest(world: World) -> dict[str, Any]:
    """Tangents of zero for the leaves of the parts."""
    parts = [*world.values.values(), *world.values.get("H_", ())]
    leaves = [part.leaf for part in parts if isinstance(part, Part) and part.leaf is not None]
    return {f"t{leaf}": zeros(world.values[leaf].shape) for leaf in leaves}


#: Values that a requirement needs in addition to those of its scenes.
MORE: dict[str, Callable[[World], dict[str, Any]]] = {
    **each("F8", "L10", "L13", more=shifted),
    **each("L7", "L8", more=alone),
    **each("L5", "L6", more=lambda world: {"order": [1, 0], "whole": [2, 3, 0, 1]}),
    **each("L9", more=lambda world: {"order": [2, 0, 1], "inside": [1, 0, 2, 3]}),
    "GN-L9": lambda world: {"order": [1, 0], "inside": [1, 0, 2, 3]},
    **each("L14", more=terms),
    **each("L16", more=lambda world: {"z": like(world["x"])}),
    **each("L17", more=lambda world: {"z": np.zeros_like(world["x"]) + mpf(2)}),
    **each("G8", more=lambda world: {"g_1": like(world["g"]), "g_2": like(world["g"], seed=1)}),
    **dict.fromkeys(("GN-F6", "IN-F6"), lambda world: PARAMETERS),
    "IN-E1": lambda world: {"x": world["x"][:, :1], "g": world["g"][:, :1], "n": 1},
    "BN-F5": lambda world: PARAMETERS,
    "BN-F6": lambda world: PARAMETERS,
    "BN-F8": shifted,
    "BN-S3": steps,
    "BN-L6": lambda world: {"j": [1], "orders": {"y": ("x", "gamma", "beta", "running_mean", "running_var")}},
    "BN-S5": lambda world: {"mean'": rows(1, 2)[0], "var'": rows(1, 2)[0] ** 2,
                            "orders": dict.fromkeys(("y", "dx", "dgamma", "dbeta"), ("running_mean", "running_var"))},
    "BN-I4": lambda world: {"x_1": rows(3, 2), "x_2": rows(3, 2, seed=1)},
    "BN-E1": lambda world: {"x": world["x"][:1], "g": world["g"][:1], "n": 1},
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
    "RS-L3": cascade,
    "RS-F4": lambda world: {"mask": array([2, 0, 2]), "G": Part(KINDS["tanh"])},
    "RS-L5": linear("F"),
    "PR-L3": shifted,
    "PO-L1": lambda world: {"gamma": mpf(1), "beta": mpf(0)},
    "PO-L2": linear("F"),
    "HW-L4": lambda world: {"H": constant(rows()), "z": constant(rows(seed=1))},
    "HW-G3": lambda world: {"H": Part(KINDS["tanh"]), "z": Part(KINDS["linear"], "x", "w")},
    "MH-L1": shifted,
    "MH-L4": lambda world: {"order": [2, 0, 1]},
    "MH-L6": lambda world: {"l_1": mpf(1) / 2, "l_2": mpf(-1)},
    **dict.fromkeys(("RS-G8", "RS-G9", "PR-G9", "PR-G10", "PO-G9", "PO-G10"), at_rest),
    **dict.fromkeys(("HW-G10", "HW-G11", "MH-G12", "MH-G13"), at_rest),
    "MH-G5": lambda world: {"w": rows(3), "f": Part(lambda ys, w: ys[0] @ w + ys[1] * ys[2], "ys", "w")},
}  # fmt: skip


def indices(id: str) -> dict[str, int]:
    """The element, the channel or the branch that a statement with an index is tried on."""
    if id.startswith("MH"):
        return {"k": 2}
    if id in ("GN-F5", "IN-F5"):
        return {"c": 0}
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
    r"BN-(F[1258]|S\d+|E[15]|R\d|L([1-37-9]|1[0234])|G[15-8])": "batch_norm, training",
    r"BN-(I\d|E[34]|G4)": "batch_norm, inference",
    r"RS-(F[14]|L\d|G[126])": "residual",
    r"RS-.*": "residual, with shortcut and activation",
    r"HW-.*": "highway, without carry",
    r"MH-.*": "mhc, without fuse",
}


def prepared(id: str, scene: Scene) -> World:
    """The scene's world, with the requirement's additional values and the functions that its page calls."""
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
    """Every statement listed as not being about numbers is on its page."""
    said = {f"{id}: {one}" for id, r in requirements().items() for one in statements(r.formula.splitlines())}
    assert set(WORDS) <= said | set(requirements())
    assert FORMATS.isdisjoint(LABELS)
