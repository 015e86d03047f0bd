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
from .page_values import array, precise
from .page_worlds import World

pytestmark = pytest.mark.exhaustive

#: The formulas of one normalisation, in the order of the page.
STATISTICS = ("A2", "A4", "A5", "A6", "A7", "A8")
#: The same where no mean is taken out.
MEAN_SQUARE = ("A35", "A7", "A8")
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
    cast: str = "last"

    def arithmetic(self) -> Arithmetic:
        """As the code has it."""
        accuracy = AccuracyClass(variance=self.variance, affine=self.affine, storage=self.storage, cast=self.cast)
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
    Class("bfloat16", "float32", cast="before-gain"),
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
        self.layout = self.laid_out()
        shape, parameter = (self.layout.count, self.n), self.layout.parameter_shape
        self.x, self.g, self.a, self.tx, self.sx = (rng.standard_normal(shape) for _ in range(5))
        self.gamma, self.beta, self.b, self.c, self.tgamma, self.sgamma = (
            self.layout.parameter_rows(rng.standard_normal(parameter)) for _ in range(6)
        )
        self.eps, self.centred = 0.125, self.operator != "rms_norm"
        if not self.centred:
            self.beta, self.c = np.zeros_like(self.beta), np.zeros_like(self.c)
        given = {} if self.training else {
            "given_mean": rng.standard_normal((len(self.x), 1)), "given_variance": rng.random((len(self.x), 1)) + 0.1
        }  # fmt: skip
        self.rows = Rows(self.x, self.eps, self.kind.arithmetic(), centred=self.centred, **given)
        self.code = RowEnvelope(self.rows, self.gamma, self.beta, self.layout)

    def laid_out(self) -> Layout:
        """Three groups of n values; in group_norm two samples of two groups of two channels, so that n is even."""
        if self.operator == "group_norm":
            return Layout.of_samples((2, 4, self.n // 2), 1, 2)
        if self.operator == "batch_norm":
            return Layout.channels((3, self.n), 0)
        return Layout.trailing((3, self.n), 1)

    def of_stretch(self, z: Any) -> Any:
        """The sum over each stretch, in the place of each of its values."""
        apart = self.layout.stretches(z)
        return np.broadcast_to(apart.sum(axis=2, keepdims=True), apart.shape).reshape(z.shape)

    def over_stretches(self, z: Any) -> Any:
        """The sum over the stretches of each parameter, of what is the same in each of a stretch's values."""
        return self.layout.stretches(np.broadcast_to(z, self.x.shape))[:, :, 0].sum(axis=0)

    def page(self, *numbers: str, arithmetic: Arithmetic | None = None, **more: Any) -> Bounds:
        """What the page says, by these formulas beside those of the statistics."""
        a = arithmetic or self.kind.arithmetic()
        names = ("x", "g", "gamma", "beta", "a", "b", "c")
        values: dict[str, Any] = {name: array(getattr(self, name)) for name in names}
        units = {"u": a.u, "eta": a.eta, "u_d": a.u_data, "eta_d": a.eta_data, "u_p": a.u_parameter}
        values |= {name: mpf(unit) for name, unit in {**units, "eta_p": a.eta_parameter}.items()}
        values |= {"n": self.n, "eps": mpf(self.eps), "N": self.layout.sharing, "m": self.layout.positions}
        values |= {"sum over stretches": self.over_stretches}
        if not self.training:
            mean, variance = (array(z) for z in (self.rows.given_mean, self.rows.given_variance))
            values |= {"mu": mean, "v": variance, "E_mu": mpf(0), "E_v": mpf(0)}
        marks = {"training" if self.training else "inference", "features" if self.layout.along_rows else "channels"}
        marks |= self.kind.marks()
        if not self.centred:
            before_gain = {"H1"} if self.kind.cast == "before-gain" else set()
            marks = (marks - {"F", "shifted"}) | {"rms_norm"} | before_gain
        return Bounds({**values, **more}, frozenset(marks), (*(STATISTICS if self.centred else MEAN_SQUARE), *numbers))

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
@pytest.mark.parametrize("operator", ["layer_norm", "rms_norm"])
def test_statistics_and_normalised_values(kind: Class, n: int, operator: str):
    """A2 to A8 and A35: the errors of mean, variance or mean square, reciprocal root and normalised value."""
    drawn = Drawn(kind, n, operator)
    page, rows = drawn.page(), drawn.rows
    pairs = {
        "E_mu": rows.mean_error, "E_v": rows.variance_error, "rho": rows.rho, "r+": rows.r_high, "R": rows.magnitude,
        "X": rows.xh_error, **({"W": rows.partial_mean_factor} if drawn.centred else {}),
    }  # fmt: skip
    for name, found in pairs.items():
        agree(found, page[name])


@BY_CLASS
@BY_N
@pytest.mark.parametrize("training", [True, False])
def test_results(kind: Class, n: int, training: bool):
    """A9 to A15: y, dx and the parameter gradients of the normalisations."""
    a = kind.arithmetic()
    for operator in ("layer_norm", "batch_norm", "rms_norm", "group_norm") if training else ("batch_norm",):
        drawn = Drawn(kind, 2 * n if operator == "group_norm" else n, operator, training)
        page = drawn.page("A10", "A11", "A12", "A15")
        page.values["y"] = evaluate("gamma xhat + beta", page)
        page.values["dx"] = page["r"] * page["p"] if training else evaluate("gamma g r", page)
        agree(drawn.code.y(), drawn.rounded(page, page["E_y"], page["y"], *a.of_y))
        agree(drawn.code.dx(drawn.g), drawn.rounded(page, page["E_dx"], page["dx"], a.u_data, a.eta_data))
        sums, over = drawn.page("A13", sum=drawn.of_stretch), drawn.page("A14", sum=drawn.layout.total)
        parameter, total = (a.u_parameter, a.eta_parameter), drawn.layout.total
        dgamma, dbeta = total(sums["g"] * sums["xhat"]), total(sums["g"])
        agree(drawn.code.dgamma(drawn.g), drawn.rounded(sums, sums["E_dgamma"], dgamma, *parameter))
        agree(drawn.code.dbeta(drawn.g), drawn.rounded(over, over["E_dbeta"], dbeta, *parameter))


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
@pytest.mark.parametrize("operator", ["layer_norm", "rms_norm"])
def test_derivatives_of_second_order(kind: Class, name: str, operator: str):
    """A17: Q is the formula of the derivative on the operator's page with every term positive."""
    drawn = Drawn(kind, 7, operator)
    formula, factors, bound = DERIVATIVES[name]
    composed = kind.arithmetic().composed
    inputs = {"tx": drawn.tx, "tgamma": drawn.tgamma, "tbeta": drawn.beta}
    sizes = {one: abs(array(getattr(drawn, one))) for one in ("g", "a", "b", "c", "gamma")}
    sizes |= {one: abs(array(z)) for one, z in inputs.items()}
    sizes |= {"every term positive": True, "x": array(drawn.x), "n": drawn.n}

    def majorant(xhat: Any, r: Any) -> Any:
        world = World(operator, {**sizes, "xhat": xhat, "r": r})
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
EVALUATED = {*STATISTICS, *MEAN_SQUARE, *(f"A{k}" for k in range(9, 18)), "R1", "R2"}


def test_every_formula_is_evaluated_or_listed():
    """Each number of the page is evaluated here, or stands in the list with its reason."""
    numbers = set(re.findall(r'<a id="([AR]\d+)"></a>', pages()["accuracy"]))
    relations = {"A32", "A33", "A34"}
    assert numbers - relations == EVALUATED | set(ELSEWHERE)
    assert EVALUATED.isdisjoint(ELSEWHERE)
