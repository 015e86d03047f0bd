"""
The formulas of the accuracy page, evaluated as they are printed, against the bounds that the code computes.

Both evaluate the same formula, the code in float64 and the page in 120 digits, so that they differ by what 2^-20 in A9
is there for. A term that is changed on the page alone, or in the code alone, fails here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
import pytest
from mpmath import mpf

from normspec.reference.accuracy import AccuracyClass, Arithmetic
from normspec.reference.envelope_derivatives import DerivativeEnvelope
from normspec.reference.envelope_range import Range
from normspec.reference.envelope_results import RowEnvelope
from normspec.reference.envelope_rows import Rows
from normspec.spec import pages
from normspec.spec.layout import Layout

from .page_bounds import Bounds
from .page_notation import evaluate
from .page_values import array, over_groups, precise, total
from .page_worlds import World

pytestmark = pytest.mark.exhaustive

#: The formulas of one normalisation, in the order of the page.
STATISTICS = ("A2", "A4", "A5", "A6", "A7", "A8")
#: An evaluation in float64 against one in 120 digits: a thousandth of what A9 allows for.
WITHIN = mpf(2) ** -30


@pytest.fixture(autouse=True)
def _precise():
    with precise():
        yield


@attrs.frozen
class Class:
    """A dtype, the parameters' dtype, and the algorithms that are allowed for."""

    data: str
    parameter: str | None = None
    variance: str = "centred"
    affine: str = "folded"
    storage: str = "H0"

    def arithmetic(self) -> Arithmetic:
        """As the code has it."""
        accuracy = AccuracyClass(variance=self.variance, affine=self.affine, storage=self.storage)
        return Arithmetic.of(self.data, self.parameter, accuracy)

    def marks(self) -> frozenset[str]:
        """As the page marks its terms."""
        found = {self.variance, {"folded": "F"}.get(self.affine, "")}
        if self.data in ("float16", "bfloat16"):
            found |= {"H1": {"H1"}, "H2": {"H1", "H2"}}.get(self.storage, set())
        return frozenset(found)


CLASSES = (
    Class("float64"),
    Class("float32"),
    Class("float32", affine="centred"),
    Class("float32", variance="shifted"),
    Class("float32", variance="one-pass"),
    Class("bfloat16", "float32"),
    Class("bfloat16", storage="H1"),
    Class("bfloat16", storage="H2"),
    Class("float16", "float32", storage="H2", variance="shifted"),
    Class("bfloat16", storage="native"),
)


@attrs.define(eq=False, slots=False)
class Drawn:
    """One normalisation in one class: as the code computes its bounds, and as the page says them."""

    kind: Class
    n: int
    operator: str
    training: bool = True

    def __attrs_post_init__(self) -> None:
        rng = np.random.default_rng([self.n, len(self.operator), self.training])
        rows, channels = 3, self.operator == "batch_norm"
        shape = (rows, 1) if channels else (1, self.n)
        layout = Layout.channels((rows, self.n), 0) if channels else Layout.trailing((rows, self.n), 1)
        self.x, self.g, self.a, self.tx, self.sx = (rng.standard_normal((rows, self.n)) for _ in range(5))
        self.gamma, self.beta, self.b, self.c, self.tgamma, self.sgamma = (rng.standard_normal(shape) for _ in range(6))
        self.eps = 0.125
        given = {} if self.training else {
            "given_mean": rng.standard_normal((rows, 1)), "given_variance": rng.random((rows, 1)) + 0.1
        }  # fmt: skip
        self.rows = Rows(self.x, self.eps, self.kind.arithmetic(), **given)
        self.code = RowEnvelope(self.rows, self.gamma, self.beta, layout)

    def page(self, *numbers: str, arithmetic: Arithmetic | None = None, **more: Any) -> Bounds:
        """What the page says, by these formulas beside those of the statistics."""
        a = arithmetic or self.kind.arithmetic()
        names = ("x", "g", "gamma", "beta", "a", "b", "c")
        values: dict[str, Any] = {name: array(getattr(self, name)) for name in names}
        units = {"u": a.u, "eta": a.eta, "u_d": a.u_data, "eta_d": a.eta_data, "u_p": a.u_parameter}
        values |= {name: mpf(unit) for name, unit in {**units, "eta_p": a.eta_parameter}.items()}
        values |= {"n": self.n, "eps": mpf(self.eps), "N": self.n if self.operator == "batch_norm" else len(self.x)}
        if not self.training:
            mean, variance = (array(z) for z in (self.rows.given_mean, self.rows.given_variance))
            values |= {"mu": mean, "v": variance, "E_mu": mpf(0), "E_v": mpf(0)}
        mode = "training" if self.training else "inference"
        return Bounds({**values, **more}, self.kind.marks() | {mode, self.operator}, (*STATISTICS, *numbers))

    def rounded(self, page: Bounds, error: Any, z: Any, u: float, eta: float) -> Any:
        """ENV by A9."""
        last = {**page.values, "E": error, "z": z, "u_o": mpf(u), "eta_o": mpf(eta)}
        return Bounds(last, frozenset(), ("A9",))["ENV"]


def agree(found: Any, page: Any, slack: Any = 0) -> None:
    """Equal but for the evaluation of one of them in float64, and for what that loses where it cancels."""
    page = np.asarray(page, dtype=object)
    found = array(np.asarray(found))
    shape = np.broadcast_shapes(found.shape, page.shape) if found.size != page.size else None
    pairs = zip(
        (np.broadcast_to(found, shape) if shape else found).reshape(-1),
        (np.broadcast_to(page, shape) if shape else page).reshape(-1),
        strict=True,
    )
    for one, other in pairs:
        assert abs(one - other) <= WITHIN * abs(other) + slack, (float(one), float(other))


BY_CLASS = pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: "-".join(filter(None, attrs.astuple(kind))))
BY_N = pytest.mark.parametrize("n", [1, 7])


@BY_CLASS
@pytest.mark.parametrize("n", [1, 2, 7, 16])
def test_statistics_and_normalised_values(kind: Class, n: int):
    """A2 to A8: the errors of mean, variance, reciprocal root and normalised value."""
    drawn = Drawn(kind, n, "layer_norm")
    page, rows = drawn.page(), drawn.rows
    pairs = {
        "E_mu": rows.mean_error, "E_v": rows.variance_error, "rho": rows.rho, "r+": rows.r_high, "R": rows.magnitude,
        "X": rows.xh_error, "W": rows.partial_mean_factor,
    }  # fmt: skip
    for name, found in pairs.items():
        agree(found, page[name])


@BY_CLASS
@BY_N
@pytest.mark.parametrize("training", [True, False])
def test_results(kind: Class, n: int, training: bool):
    """A9 to A15: y, dx and the parameter gradients of both operators."""
    a = kind.arithmetic()
    for operator in ("layer_norm", "batch_norm") if training else ("batch_norm",):
        drawn = Drawn(kind, n, operator, training)
        page = drawn.page("A10", "A11", "A12", "A15")
        page.values["y"] = evaluate("gamma xhat + beta", page)
        page.values["dx"] = page["r"] * page["p"] if training else evaluate("gamma g r", page)
        agree(drawn.code.y(), drawn.rounded(page, page["E_y"], page["y"], *a.of_y))
        agree(drawn.code.dx(drawn.g), drawn.rounded(page, page["E_dx"], page["dx"], a.u_data, a.eta_data))
        over = over_groups if operator == "layer_norm" else total
        sums = drawn.page("A13", "A14", sum=over)
        parameter = (a.u_parameter, a.eta_parameter)
        for name, found in {"dgamma": drawn.code.dgamma(drawn.g), "dbeta": drawn.code.dbeta(drawn.g)}.items():
            z = over(sums["g"] * sums["xhat"]) if name == "dgamma" else over(sums["g"])
            agree(found, drawn.rounded(sums, sums[f"E_{name}"], z, *parameter))


@BY_CLASS
@BY_N
@pytest.mark.parametrize("statistic", ["mean", "variance"])
@pytest.mark.parametrize("bessel", [False, True])
def test_running_statistics(kind: Class, n: int, statistic: str, bessel: bool):
    """A16, with Bessel's correction of the variance and without."""
    drawn, a, momentum = Drawn(kind, n, "batch_norm"), kind.arithmetic(), 0.3
    old = np.array([0.5, 1.25, 2.0])
    page = drawn.page("A16", old=array(old)[:, None], m=mpf(momentum))
    page.classes |= {statistic, *(["bessel"] if bessel else [])}
    found = drawn.code.running(old, momentum, variance=statistic == "variance", bessel=bessel)
    agree(found, drawn.rounded(page, page["E"], page["new"], a.u_parameter, a.eta_parameter))


#: The derivatives that A17 bounds: their formula on the page of layer_norm, the factors f of U, and the code's bound.
DERIVATIVES: dict[str, tuple[str, Callable[[Any], list[Any]], Callable[[DerivativeEnvelope, Drawn], Any]]] = {
    "ty": (
        "gamma r P tx + tgamma xhat + tbeta",
        lambda v: [v["gamma"] * v["tx"]],
        lambda code, z: code.jvp(z.tx, z.tgamma, z.beta),
    ),
    "x_bar": ("x_bar", lambda v: [v["h"] + v["b"] * v["g"], v["a"]], lambda code, z: bars(code, z)[0]),
    "g_bar": ("g_bar", lambda v: [v["h"] + v["b"] * v["g"], v["a"]], lambda code, z: bars(code, z)[2]),
}


def bars(code: DerivativeEnvelope, z: Drawn) -> Any:
    """The bounds of second order."""
    return code.vjp_vjp(z.g, z.a, z.b, z.c)


@BY_CLASS
@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives_of_second_order(kind: Class, name: str):
    """A17: Q is the formula of the derivative on the page of layer_norm with every term positive."""
    drawn = Drawn(kind, 7, "layer_norm")
    formula, factors, bound = DERIVATIVES[name]
    composed = kind.arithmetic().composed
    inputs = {"tx": drawn.tx, "tgamma": drawn.tgamma, "tbeta": drawn.beta}
    sizes = {one: abs(array(getattr(drawn, one))) for one in ("g", "a", "b", "c", "gamma")}
    sizes |= {one: abs(array(z)) for one, z in inputs.items()}
    sizes |= {"every term positive": True, "x": array(drawn.x), "n": drawn.n}

    def majorant(xhat: Any, r: Any) -> Any:
        world = World("layer_norm", {**sizes, "xhat": xhat, "r": r})
        return world[formula] if formula == name else evaluate(formula, world)

    exact = drawn.page(arithmetic=composed)
    exact.values |= {"h": exact["gamma"] * exact["g"], "tx": array(drawn.tx)}
    page = drawn.page("A17", arithmetic=composed, Q=majorant, c=0, factors=factors(exact))
    found = bound(DerivativeEnvelope(drawn.code), drawn)
    z = majorant(abs(page["xhat"]), page["r"])
    # Q(xh+, r+) - Q(|xh|, r) cancels in float64: each is rounded some twenty times, and their sizes remain.
    slack = 40 * mpf(2) ** -53 * np.max(z)
    agree(found, drawn.rounded(page, page["E"], z, composed.u_data, composed.eta_data), slack)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("factor", [0.25, 0.99, 1.01, 4.0])
def test_range_rules(dtype: str, factor: float):
    """R1 and R2: a group is in range exactly where the page says so, on both sides of each limit."""
    kind = Class(dtype, storage="native" if dtype == "float16" else "H0")
    a = kind.arithmetic()
    rules = dict(re.findall(r"^    \((R[12])\) +(.*?)(?:  .*)?$", pages()["accuracy"], re.M))
    rules["R2"] = re.search(r"\(R2\) +(.*)", pages()["accuracy"])[1].partition("         ")[0]  # type: ignore[index]
    limits = {"largest": mpf(a.largest), "smallest_normal": mpf(a.smallest_normal)}
    x = np.random.default_rng(3).standard_normal((1, 5))
    for scale in (np.sqrt(a.largest / 20) / abs(x).max(), (2.0**-10 / a.smallest_normal) ** (1 / 3)):
        rows = Rows(factor * scale * x, 0.0, a)
        names = {"x": array(rows.x), "n": 5, "eps": 0, "r+": array(rows.r_high), "r-": array(rows.r_low), **limits}
        for rule, code in (("R1", Range(rows).squares), ("R2", Range(rows).cube)):
            page = Bounds(names, frozenset(), ())
            parts = (part.split(" <= ") for part in rules[rule].split("   and   "))
            said = all(np.all(evaluate(small, page) <= evaluate(large, page)) for small, large in parts)
            assert said == bool(code.all()), (rule, factor)


#: Formulas that are not evaluated here, and why.
ELSEWHERE = {
    "A1": "is about every order of adding, and is proven where it is cited",
    "A3": "says how parts are merged, of which A2 and A4 are the bounds",
    "A18": "says in which arithmetic exact values are held",
    **dict.fromkeys(("A19", "A20", "A21", "A22", "A23", "A24", "A27", "A28"), "is a step of the running analysis"),
    "A25": "is evaluated with A31, as A29 and A30 are",
    "A26": "is a step of the running analysis",
    **dict.fromkeys(("A29", "A30", "A31"), "is evaluated in the test of the closed bounds"),
    **dict.fromkeys(("R3", "R4", "R5", "R6"), "says in words in which classes it holds"),
}
EVALUATED = {*STATISTICS, *(f"A{k}" for k in range(9, 18)), "R1", "R2"}


def test_every_formula_is_evaluated_or_listed():
    """Each number of the page is evaluated here, or stands in the list with its reason."""
    numbers = set(re.findall(r'<a id="([AR]\d+)"></a>', pages()["accuracy"]))
    relations = {number for number in numbers if number[0] == "A" and int(number[1:]) > 31}
    assert numbers - relations == EVALUATED | set(ELSEWHERE)
    assert EVALUATED.isdisjoint(ELSEWHERE)
