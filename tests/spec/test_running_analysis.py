"""
The steps of the running analysis, A1, A3 and A18 to A28, evaluated as the accuracy page prints them.

Each step on the page is compared with the code's tape on the same numbers. A constant, a sign or a term that is
changed only on the page, or only in the code, fails here.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
import pytest
from mpmath import mpf

from normspec.conformance.judging.findings import compare
from normspec.conformance.sound.moments import merged_moments, streamed_moments
from normspec.reference import bounded_functions as functions
from normspec.reference.accuracy import AccuracyClass, Arithmetic
from normspec.reference.bounded import Number, Rounding, Tape
from normspec.reference.bounded_gradients import accumulated
from normspec.reference.bounded_norm import layer_norm, normalised
from normspec.reference.composed import Composed
from normspec.reference.double_double import DD
from normspec.reference.envelope_rows import RowBounds
from normspec.reference.formats import format_of
from normspec.reference.values import Float64Numbers
from normspec.spec.parts import Part

from .page_bounds import Bounds, blocks, carried_out, rules
from .page_classes import agree
from .page_notation import evaluate
from .page_running import CALLED, Running
from .page_values import FUNCTIONS, Matrix, array, precise

pytestmark = pytest.mark.exhaustive

FLOAT32, HALF = Arithmetic.of("float32"), Arithmetic.of("bfloat16", None, AccuracyClass(storage="native"))
#: Used for both eta: large enough to show beside u.
ETAS = (2.0**-27, 2.0**-12)


@pytest.fixture(autouse=True)
def _precise():
    with precise():
        yield


def alike(number: Number, page: Running) -> None:
    """The code's bounds of a number are those of the page."""
    agree(number.as_float64, page.z)
    agree(number.magnitude, page.M)
    agree(number.error, page.E)
    agree(number.product_bound, page.K)


@attrs.define(eq=False)
class Scene:
    """A tape in float32 for 16-bit data, with subnormals kept or flushed, and numbers on it."""

    flushed: bool
    tape: Tape = attrs.field(init=False)
    random: np.random.Generator = attrs.field(factory=lambda: np.random.default_rng(11))

    def __attrs_post_init__(self) -> None:
        steps = (
            Rounding(a.u, eta, a.largest, eta * self.flushed) for a, eta in zip((FLOAT32, HALF), ETAS, strict=True)
        )
        self.tape = Tape(Float64Numbers, *steps)

    @property
    def units(self) -> dict[str, Any]:
        """u and eta of the arithmetic, and of the data."""
        now, data = self.tape.operator, self.tape.data
        units = {"u": now.u, "eta": now.eta, "u_d": data.u, "eta_d": data.eta}
        return {name: mpf(unit) for name, unit in units.items()}

    @property
    def labels(self) -> frozenset[str]:
        """As the page marks its terms."""
        return frozenset({"flushed"} if self.flushed else ())

    def number(self, *shape: int) -> Number:
        """A number in error."""
        z = self.random.standard_normal(shape or (3, 4))
        error = np.abs(z) * 2.0**-20 * self.random.random(z.shape)
        size = np.abs(z) * (1 + self.random.random(z.shape)) + error
        return Number(self.tape, z, size, error, np.maximum(size, 1) * (1 + self.random.random(z.shape)))

    def page(self, number: Number) -> Running:
        """The same, for the page."""
        return Running.of(number, self.units, self.labels)


#: Steps of two numbers: in the code, and on the page.
OF_TWO: dict[str, tuple[Callable[[Number, Number], Number], Callable[[Running, Running], Running]]] = {
    "a + b": (lambda a, b: a + b, lambda a, b: a + b),
    "a - b": (lambda a, b: a - b, lambda a, b: a - b),
    "a b": (lambda a, b: a * b, lambda a, b: a * b),
    "of two tensors": (functions.tensor_sum, Running.tensors),
    "sum of n terms": (lambda a, b: a.total(1), lambda a, b: a.total()),
    "a / n": (lambda a, b: a.divided_by(7), lambda a, b: a / 7),
    "mean": (lambda a, b: a.mean(), lambda a, b: a.mean()),
    "t among m others": (
        lambda a, b: a.in_sum(5),
        lambda a, b: a.step("A22", "t among m others", a.z, **a.bounds("t"), m=5),
    ),
    **{
        f"2^{k} a": (
            lambda a, b, k=k: a.times_power_of_two(2.0**k),
            lambda a, b, k=k: a.step("A22", "a times 2 to the k", 2 ** mpf(k) * a.z, **a.bounds("a"), k=k),
        )
        for k in (-3, 0, 2)
    },
}
BY_FLUSHED = pytest.mark.parametrize("flushed", [False, True], ids=["kept", "flushed"])


@BY_FLUSHED
@pytest.mark.parametrize("name", OF_TWO)
def test_steps(name: str, flushed: bool):
    """A20 to A22: sums, differences, products, sums of n terms, quotients, and products with powers of two."""
    scene = Scene(flushed)
    a, b = scene.number(), scene.number()
    by_code, by_page = OF_TWO[name]
    alike(by_code(a, b), by_page(scene.page(a), scene.page(b)))


@BY_FLUSHED
def test_a_matrix_product(flushed: bool):
    """A22: x w over n terms."""
    scene = Scene(flushed)
    x, w = scene.number(3, 4), scene.number(4, 2)
    left, right = scene.page(x), scene.page(w)
    values = {f"{bound}_w": Matrix(getattr(right, bound)) for bound in "MEK"}
    alike(x @ w, left.step("A22", "x w, over n terms", left.z @ right.z, **left.bounds("x"), **values, n=4))


@BY_FLUSHED
def test_given_and_formed(flushed: bool):
    """A19: a tensor that is given, a value that is formed, and one that becomes a tensor of a narrower format."""
    scene = Scene(flushed)
    a = scene.number()
    page = scene.page(a)
    values = {"z": page.z, "M": page.M, "E": page.E, "K": page.K, **scene.units}
    for code, labels in (
        (scene.tape.given(a.as_float64), {"given"}),
        (a.materialised(), {"formed"}),
        (a.cast_to_data(), {"formed", "narrower"}),
    ):
        said = carried_out("A19", labels, values)
        alike(code, attrs.evolve(page, M=said["M"], E=said["E"], K=said["K"]))


@BY_FLUSHED
@pytest.mark.parametrize("error", [2.0**-24, 2.0**-4, 3.0])
def test_functions(error: float, flushed: bool):
    """A23 and A24: tanh, relu and its slope, sigmoid and 1 - t, and what their derivatives pass on."""
    scene = Scene(flushed)
    z = scene.number(20)
    z.error = np.full(20, error)
    page, g = scene.page(z), scene.number(20)
    told = {**scene.units, "z": page.z, "M": page.M, "E": page.E, "K": page.K}
    t = FUNCTIONS["tanh"](page.z)
    said = carried_out("A23", {"tanh", *scene.labels}, {**told, "t": t})
    tanh = functions.tanh(z)
    on_page = attrs.evolve(page, z=t, M=said["M_t"], E=said["E_t"], K=said["K_t"])
    alike(tanh, on_page)
    slope = carried_out("A23", {"slope of tanh"}, {"t": on_page})["slope"]
    alike(tanh.parents[0][1](g), scene.page(g) * slope)
    relu, positive = functions.relu(z), FUNCTIONS["relu"](page.z)
    said = carried_out("A23", {"relu", *scene.labels}, {**told, "t": positive})
    alike(relu, attrs.evolve(page, z=positive, M=said["M_t"], E=said["E_t"], K=said["K_t"]))
    slope = carried_out("A23", {"slope of relu"}, told)["E"]
    passed = relu.parents[0][1](g).error
    assert (np.isinf(passed) == np.array([said == mpf("inf") for said in slope])).all()


def test_tanh_far_from_0():
    """A23 where exp(2e) is beyond float64: z = 400 in error by 350 is 50 at least, and tanh(50) = 1 - 7.4e-44."""
    tape = Tape(Float64Numbers, Rounding(0.0, 0.0, 1e300, 0.0), Rounding(0.0, 0.0, 1e300, 0.0))
    z = Number(tape, np.array([400.0, 400.0]), np.full(2, 750.0), np.array([350.0, 380.0]), np.full(2, 750.0))
    np.testing.assert_allclose(functions.tanh(z).error, 2 * np.exp([-100.0, -40.0]), rtol=1e-12)


@BY_FLUSHED
def test_gates(flushed: bool):
    """A24: t = sigmoid(z), c = 1 - t, exact at the infinities, and t c, which both derivatives are made of."""
    scene = Scene(flushed)
    z = scene.number(8)
    z.value[:2], z.error[:2] = (-np.inf, np.inf), 0.0
    z.error[2:5] = 2.0**-4, 2.0, 80.0
    page, g = Running.of(z, scene.units, scene.labels), scene.number(8)
    t = np.array([mpf(0), mpf(1), *FUNCTIONS["sigmoid"](page.z[2:])])
    gate, carry = functions.logistic(z)
    told = {**scene.units, "z": page.z, "E": page.E, "t": t}
    step = carried_out("A24", scene.labels, told, until="slope")
    one = np.array([mpf(1)] * 8)
    on_page = {
        "t": attrs.evolve(page, z=t, M=step["M_t"], E=step["E_t"], K=step["K_t"] * one),
        "c": attrs.evolve(page, z=1 - t, M=step["M_c"], E=step["E_c"], K=step["K_c"] * one),
    }
    alike(gate, on_page["t"])
    alike(carry, on_page["c"])
    slope = carried_out("A24", scene.labels, on_page, since="slope")["slope"]
    alike(gate.parents[0][1](g), scene.page(g) * slope)
    alike(carry.parents[0][1](g), -(scene.page(g) * slope))


@pytest.mark.parametrize("logits", [(0.5, -1.25, 2.0), (1.0, 1.0, -3.0, 0.0), (-np.inf, 700.0, 698.0)], ids=str)
def test_weights(logits: tuple[float, ...]):
    """A25: the weights, the logits' gradients, the weighted sum, and the branches' gradients."""
    scene = Scene(flushed=False)
    l, finite = scene.tape.given(np.array(logits)), np.isfinite(logits)
    w = functions.softmax(l)
    among = array(np.array(logits)[finite])  # D and both maxima are of these
    exactly = np.array([mpf(0)] * len(logits), dtype=object)
    exactly[finite] = FUNCTIONS["softmax"](among)
    told = {**scene.units, "l": array(np.array(logits)), "K": len(logits), "D": len(set(among)), **CALLED}
    told |= {"max": lambda z: FUNCTIONS["max"](z[finite])}
    largest = array(np.array(logits)) == max(among)
    found = carried_out("A25", set(), {**told, "w": exactly}, until="p")
    said = Running(exactly, found["M_w"], found["E_w"], np.array([mpf(1)] * len(logits)), scene.units)
    assert found["K_w"] == 1
    alike(w, said)
    g, z = scene.number(len(logits)), scene.number(len(logits))
    on_page = {"w": said, "g": scene.page(g), "z": scene.page(z)}
    told |= {**on_page, **on_page["g"].bounds("g")}
    found, of_largest = (carried_out("A25", labels, told, since="p") for labels in (set(), {"largest logit"}))
    agree(w.parents[0][1](g).error, np.where(largest, of_largest["E_p"], found["E_p"]))
    total = functions.weighted_sum(z, w)
    agree(total.error, found["E_y"])
    product = total.parents[0][0]
    passed = product.parents[0][1](g)
    agree(product.parents[0][0].parents[0][1](passed).error, found["E_q"])


@BY_FLUSHED
@pytest.mark.parametrize("extra", [0, 1, 2])
@pytest.mark.parametrize("widths", ["n", "w", "nn", "nw", "ww", "nnw"])
def test_a_number_with_several_uses(widths: str, extra: int, flushed: bool):
    """A27: gradients that are added, some of them formed in a wider arithmetic."""
    scene = Scene(flushed)
    at = scene.number()
    at.rounding, at.extra_terms = scene.tape.data, extra
    terms = [scene.number() for _ in widths]
    for term, width in zip(terms, widths, strict=True):
        term.rounding = scene.tape.operator if width == "w" else scene.tape.data
    found = accumulated(terms, at)
    wider = widths.count("w")
    if len(terms) == 1 and not (wider and extra):
        assert found is terms[0]
        return
    each = [scene.page(term) for term in terms]
    told = {name: np.stack([getattr(one, name[0]) for one in each], axis=-1) for name in ("M_t", "E_t", "K_t")}
    told |= {"t": np.stack([one.z for one in each], axis=-1), "m": len(terms), "p": extra, "b": wider}
    told |= {"u": mpf(at.rounding.u), "eta": mpf(at.rounding.eta), "u_t": array([one.rounding.u for one in terms])}
    said = carried_out("A27", scene.labels, told)
    agree(found.error, said["E"][..., 0])
    agree(found.magnitude, said["M"][..., 0])
    agree(found.product_bound, said["K"][..., 0])


@pytest.mark.parametrize(("arithmetic", "labels"), [(FLOAT32, set()), (Arithmetic.of("bfloat16"), {"narrower"})])
def test_a_result(arithmetic: Arithmetic, labels: set[str]):
    """A28: results of first and of second order, in the format of the arithmetic or in a narrower one."""
    dtype = "float32" if not labels else "bfloat16"
    arithmetic = attrs.evolve(arithmetic, eta_data=ETAS[1])
    x, h = (np.random.default_rng(k).standard_normal((3, 4)).astype(format_of(dtype).dtype) for k in (1, 2))
    parts = {"branch": Part("leaf", ("branch.h",)), "shortcut": None, "activation": None}
    call = Composed("residual", {"x": x, "branch.h": h}, {}, parts, arithmetic)
    number = call._y
    told = {"z": array(number.as_float64), "E": array(number.error), "M": array(number.magnitude)}
    told |= {"u_o": mpf(arithmetic.u_data), "eta_o": mpf(arithmetic.eta_data)}
    agree(call.y().error, carried_out("A28", labels, told)["ENV"])
    second = call._value(number, "x", uses=2).error
    agree(second, carried_out("A28", labels | {"second order"}, told)["ENV"])


def test_exact_values():
    """A18: the values that float64 data is compared with, and the mean and variance of narrower data."""
    (compared,) = (step.text for step in blocks()["A18"] if step.conditions == ("float64",))
    received, hi, lo = 1.0 + 2.0**-50, 1.0, 2.0**-52
    apart = abs(evaluate(compared, {"z'": received, "hi": hi, "lo": lo}))
    assert compare(np.array([received]), DD(np.array([hi]), np.array([lo])), np.array([1.0])).ratio == apart
    # Far from zero, so that a mean that is not refined is another number.
    x = 1e6 + np.random.default_rng(3).standard_normal((50, 7))
    in_float64 = {"x": x, "mean": lambda z: z.mean(axis=1, keepdims=True)}
    found = carried_out("A18", {"narrower"}, in_float64)
    rows = RowBounds(x, 0.0, FLOAT32)
    assert (found["mu"] == rows.mu).all()
    assert (found["m_1"] != rows.mu).any()
    assert (found["v"] == rows.v).all()


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("n", [1, 2, 9, 64])
def test_sums_in_any_order(dtype: str, n: int):
    """A1: the code's tape has the bound, and sums in sequence, in pairs and in reverse are within it."""
    (rule,) = rules("A1")
    terms = np.random.default_rng(n).standard_normal(n).astype(dtype)
    steps = Rounding(Arithmetic.of(dtype, None, AccuracyClass(storage="native")).u, 0.0, np.inf)
    told = {"t": array(terms), "s": n - 1, "u": mpf(steps.u), **CALLED}
    bound = evaluate(rule.text, ChainMap(told, FUNCTIONS))
    tape = Tape(Float64Numbers, steps, steps)
    agree(tape.given(terms).total(0).error, bound)
    for order in (terms, terms[::-1], np.sort(terms), terms[np.argsort(abs(terms))]):
        for total in (np.add.accumulate(order, dtype=dtype)[-1], in_pairs(order)):
            env = ChainMap({**told, "fl()": lambda exact, total=total: mpf(float(total))}, FUNCTIONS)
            assert evaluate(rule.name, env) <= bound


def in_pairs(z: np.ndarray) -> Any:
    """The sum of neighbours, up a tree."""
    return z[0] if len(z) == 1 else in_pairs(z[: len(z) // 2]) + in_pairs(z[len(z) // 2 :])


@pytest.mark.parametrize(("n_a", "n_b"), [(1, 1), (5, 2), (64, 64), (1024, 9)])
def test_merged_means(n_a: int, n_b: int):
    """A3: the merged mean is the mean of both parts, and sound functions that merge form it."""
    x = np.random.default_rng(n_a).standard_normal((1, n_a + n_b))
    parts = {"m_a": mpf(0), "m_b": mpf(0), "n_a": n_a, "n_b": n_b}
    parts |= {name: sum(array(part)) / len(part) for name, part in (("m_a", x[0, :n_a]), ("m_b", x[0, n_a:]))}
    page = Bounds(parts, frozenset(), ("A3",))
    assert page["n"] == n_a + n_b
    agree(page["m"], sum(array(x[0])) / (n_a + n_b))
    for moments in (merged_moments, streamed_moments):
        agree(moments(x)[0], page["m"])


CLASSES = {
    "folded": AccuracyClass(),
    "centred": AccuracyClass(affine="centred"),
    "shifted": AccuracyClass(variance="shifted"),
    "one-pass": AccuracyClass(variance="one-pass"),
    "H2": AccuracyClass(storage="H2"),
}


@pytest.mark.parametrize("off", [0.0, 2.0**-20, 2.0**-4])
@pytest.mark.parametrize("n", [1, 5])
@pytest.mark.parametrize("name", CLASSES)
def test_the_normalisation(name: str, n: int, off: float):
    """A26: mean, variance, xhat and r of numbers in error, y of them, and what gradients pass on to x."""
    accuracy = CLASSES[name]
    a = Arithmetic.of("bfloat16" if name == "H2" else "float32", None, accuracy).composed
    a = attrs.evolve(a, eta=ETAS[0], eta_data=ETAS[1])
    steps = Rounding(a.u, a.eta, a.largest)
    tape, random = Tape(Float64Numbers, steps, steps), np.random.default_rng(5)
    x, g, back = (tape.given(random.standard_normal((3, k))) for k in (n, n, 1))
    gamma, beta = (tape.given(random.standard_normal(n)) for _ in range(2))
    x.error = off * np.abs(random.standard_normal((3, n)))
    units = {"u": a.u, "eta": a.eta, "u_d": a.u_data, "eta_d": a.eta_data}
    told = {name: mpf(unit) for name, unit in units.items()} | {"n": n, "eps": mpf(0.125)}
    marks = frozenset({accuracy.variance, "training", "H2" if name == "H2" else ""})
    marks |= {"F"} if accuracy.affine == "folded" else set()
    statistics = ("A2", "A4", "A5", "A6")

    def of(symbol: str) -> Callable[[Any], Any]:
        return lambda z: Bounds({**told, "x": z}, marks, statistics)[symbol]

    told |= {"x": array(x.as_float64), "e": array(x.error)}
    own = {symbol: of(symbol)(told["x"]) for symbol in ("E_mu", "E_v")} if not off else {}
    page = Bounds({**told, **own, "E_mu()": of("E_mu"), "E_v()": of("E_v")}, marks, ("A7", "A26"))
    xhat, r, _ = normalised(x, 0.125, a, gamma.as_float64.reshape(1, -1))
    named = {"xhat": page["xhat"], "r": page["r"]}
    running = {symbol: Running(z, *(page[f"{bound}_{symbol}"] for bound in "MEK"), told) for symbol, z in named.items()}
    alike(xhat, running["xhat"])
    alike(r, running["r"])
    given = {name: Running.of(one, told) for name, one in (("gamma", gamma), ("beta", beta), ("g", g))}
    values = {**told, **running, **given, **CALLED, "s": n - 1, "abs": abs}
    values |= {symbol: page[symbol] for symbol in ("mu", "r+", "E_mu", "d", "rho", "off")}
    for with_gamma in (False, True):
        for with_beta in (False, True):
            parameters = (gamma if with_gamma else None, beta if with_beta else None)
            labels = marks | ({"gamma"} if with_gamma else set()) | ({"beta"} if with_beta else set())
            alike(layer_norm(x, *parameters, 0.125, a), made_of(values, labels)["y"])
    passed = made_of(values, marks)["t_1"]
    alike(xhat.parents[0][1](g), passed)
    alike(r.parents[0][1](back), made_of({**values, "g": Running.of(back, told)}, marks)["t_2"])


def made_of(values: dict[str, Any], labels: frozenset[str]) -> dict[str, Any]:
    """The values that A26 derives from xhat and r, which are numbers with bounds."""
    return carried_out("A26", labels, values, since="y")
