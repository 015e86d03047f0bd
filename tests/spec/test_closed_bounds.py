"""Formulas A29 to A31, read from the accuracy page, agree with the running analysis for parts that are leaves."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest
from mpmath import mpf

from normspec.reference.accuracy import AccuracyClass, Arithmetic
from normspec.reference.composed import Composed
from normspec.spec.parts import Part

from .page_bounds import Bounds, blocks, carried_out
from .page_notation import evaluate
from .page_values import FUNCTIONS, array, precise


@pytest.fixture(autouse=True)
def _precise():
    with precise():
        yield


#: One evaluation of the envelope in float64, which A28 allows for.
EVALUATION_FACTOR = 1 + 2.0**-20
SHAPE = (3, 4)


@attrs.frozen
class Drawn:
    """Tensors of one dtype, and the arithmetic in which operators work on them."""

    dtype: str
    storage: str
    random: np.random.Generator

    @property
    def arithmetic(self) -> Arithmetic:
        """Native in 16 bits, so that the result is not rounded once more; with an eta that shows beside u."""
        made = Arithmetic.of(self.dtype, None, AccuracyClass(storage=self.storage))
        return attrs.evolve(made, eta=made.u / 3, eta_data=made.u / 3)

    def tensor(self, *shape: int) -> np.ndarray:
        """Normal deviates."""
        return self.random.standard_normal(shape or SHAPE).astype(self.dtype)


@pytest.fixture(params=[("float64", "H0"), ("float32", "H0"), ("float16", "native")], ids=lambda param: param[0])
def drawn(request) -> Drawn:
    """Draw from one seed in each dtype."""
    return Drawn(*request.param, np.random.default_rng(7))


def leaf(name: str) -> Part:
    """A part that returns its leaf for any argument."""
    return Part("leaf", (name,))


def agrees(bound: np.ndarray, formula: Any) -> None:
    """Equal except for the rounding of the code's evaluation, which is in float64."""
    page = np.asarray(formula, dtype=object).astype(np.float64).reshape(bound.shape)
    np.testing.assert_allclose(bound, page * EVALUATION_FACTOR, rtol=1e-9)


def page(drawn: Drawn, *numbers: str, **values: Any) -> Bounds:
    """The page's bounds for these tensors."""
    units = {"u": mpf(drawn.arithmetic.u), "eta": mpf(drawn.arithmetic.eta)}
    return Bounds({**units, **values}, frozenset(), numbers)


def exactly(tensor: np.ndarray) -> np.ndarray:
    """A tensor in mpmath."""
    return array(tensor.astype(np.float64))


def test_residual(drawn: Drawn):
    """A29: y has one rounding of the sum, and dx is exact where the branch ignores x."""
    x, h, g = drawn.tensor(), drawn.tensor(), drawn.tensor()
    parts = {"branch": leaf("branch.h"), "shortcut": None, "activation": None}
    call = Composed("residual", {"x": x, "branch.h": h}, {}, parts, drawn.arithmetic)
    agrees(call.y().error, page(drawn, "A29", x=exactly(x), F=exactly(h))["E_y"])
    assert not call.gradients(g)["x"].error.any()


def test_highway(drawn: Drawn):
    """A30: y, dx, dH and dz."""
    x, h, z, g = (drawn.tensor() for _ in range(4))
    inputs = {"x": x, "transform.h": h, "gate.z": z}
    parts = {"transform": leaf("transform.h"), "gate": leaf("gate.z"), "carry": None}
    call = Composed("highway", inputs, {}, parts, drawn.arithmetic)
    said = page(drawn, "A30", x=exactly(x), H=exactly(h), g=exactly(g), t=FUNCTIONS["sigmoid"](exactly(z)))
    agrees(call.y().error, said["E_y"])
    found = {name: value.error for name, value in call.gradients(g).items()}
    for name, symbol in {"x": "E_dx", "transform.h": "E_dH", "gate.z": "E_dz"}.items():
        agrees(found[name], said[symbol])


def test_mhc(drawn: Drawn):
    """A31, with the weights' errors by A25: y, dH_k and dlogits."""
    count = 3
    x, g, logits = drawn.tensor(), drawn.tensor(), drawn.tensor(count)
    names = [f"branches.{k}.h" for k in range(count)]
    outputs = {name: drawn.tensor() for name in names}
    parts = {"branches": tuple(leaf(name) for name in names), "fuse": None}
    call = Composed("mhc", {"x": x, "logits": logits, **outputs}, {}, parts, drawn.arithmetic)
    l = exactly(logits)
    w = FUNCTIONS["softmax"](l)
    units = {"u": mpf(drawn.arithmetic.u), "eta": mpf(drawn.arithmetic.eta)}
    told = {**units, "l": l, "w": w, "K": count, "D": len(set(logits.tolist()))}
    weights = list(carried_out("A25", set(), told, until="p")["E_w"])
    signed = [np.sum(exactly(g) * exactly(output)) for output in outputs.values()]
    inner = sum(one * product for one, product in zip(w, signed, strict=True))
    said = page(
        drawn, "A31", x=exactly(x), g=exactly(g), K=count, m=x.size, E=weights, H=list(map(exactly, outputs.values())),
        **{"w+": [one + error for one, error in zip(w, weights, strict=True)]},
        dl=[one * (product - inner) for one, product in zip(w, signed, strict=True)],
    )  # fmt: skip
    agrees(call.y().error, said["E_y"])
    found = {name: value.error for name, value in call.gradients(g).items()}
    for name, bound in zip(names, said["E_dH_"], strict=True):
        agrees(found[name], bound)
    expected = said.values["E_dl_"] = said["E_dl_"]
    (step,) = (one for one in blocks()["A31"] if one.conditions == ("largest logit",))
    largest = int(np.argmax(logits))
    returned = [evaluate(step.text, said) if k == largest else 0 for k in range(count)]
    expected = [one + more for one, more in zip(expected, returned, strict=True)]
    agrees(found["logits"], expected)
