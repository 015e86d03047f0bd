"""
The formulas of the accuracy page, evaluated as they are printed, against the bounds that the code computes.

Both evaluate the same formula, the code in float64 and the page in 120 digits, so they differ by no more than the 2^-20
in A9 allows. A term that is changed only on the page, or only in the code, fails here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
import pytest
from mpmath import mpf

from normspec.reference.accuracy import Arithmetic
from normspec.reference.envelope_derivatives import DerivativeEnvelope
from normspec.reference.envelope_results import RowEnvelope
from normspec.reference.envelope_rows import RowBounds
from normspec.spec import pages
from normspec.spec.layout import Layout

from .page_bounds import Bounds, blocks
from .page_classes import MEAN_SQUARE, STATISTICS, Class, agree
from .page_notation import evaluate
from .page_values import array, precise
from .page_worlds import World

pytestmark = pytest.mark.exhaustive


@pytest.fixture(autouse=True)
def _precise():
    with precise():
        yield


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
    Class("float16", storage="native"),
    Class("bfloat16", "float32", cast="before-gain"),
    Class("float32", subnormals="flushed"),
    Class("float64", affine="centred", subnormals="flushed"),
    Class("float16", storage="native", subnormals="flushed"),
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
        self.rows = RowBounds(self.x, self.eps, self.kind.with_large_eta(), centred=self.centred, **given)
        self.code = RowEnvelope(self.rows, self.gamma, self.beta, self.layout)

    def laid_out(self) -> Layout:
        """Three groups of n values; in group_norm two samples of two groups of two channels, so that n is even."""
        if self.operator == "group_norm":
            return Layout.of_samples((2, 4, self.n // 2), 1, 2)
        if self.operator == "batch_norm":
            return Layout.channels((3, self.n), 0)
        return Layout.trailing((3, self.n), 1)

    def of_stretch(self, z: Any) -> Any:
        """The sum over each stretch, at the position of each of its values."""
        apart = self.layout.stretches(z)
        return np.broadcast_to(apart.sum(axis=2, keepdims=True), apart.shape).reshape(z.shape)

    def over_stretches(self, z: Any) -> Any:
        """The sum over each parameter's stretches of a quantity that is the same for all values of a stretch."""
        return self.layout.stretches(np.broadcast_to(z, self.x.shape))[:, :, 0].sum(axis=0)

    def page(self, *numbers: str, arithmetic: Arithmetic | None = None, **more: Any) -> Bounds:
        """The page's bounds by these formulas, together with those of the statistics."""
        a = arithmetic or self.kind.with_large_eta()
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
        "E_mu": rows.mean_error, "E_v": rows.variance_error, "rho": rows.rho, "r+": rows.r_high, "r-": rows.r_low,
        "R": rows.magnitude,
        "X": rows.xh_error, **({"W": rows.partial_mean_factor} if drawn.centred else {}),
    }  # fmt: skip
    for name, found in pairs.items():
        agree(found, page[name])


@BY_CLASS
@BY_N
@pytest.mark.parametrize("training", [True, False])
def test_results(kind: Class, n: int, training: bool):
    """A9 to A15: y, dx and the parameter gradients of the normalisations."""
    a = kind.with_large_eta()
    for operator in ("layer_norm", "batch_norm", "rms_norm", "group_norm") if training else ("batch_norm",):
        drawn = Drawn(kind, 2 * n if operator == "group_norm" else n, operator, training)
        page = drawn.page("A10", "A11", "A12", "A15")
        page.values["y"] = evaluate("gamma xhat + beta", page)
        page.values["dx"] = page["r"] * page["p"] if training else evaluate("gamma g r", page)
        agree(drawn.code.y(), drawn.rounded(page, page["E_y"], page["y"], *a.of_y))
        agree(drawn.code.dx(drawn.g), drawn.rounded(page, page["E_dx"], page["dx"], a.u_data, a.eta_data))
        sums_there = drawn.code.parameter_sums(drawn.g, drawn.layout.sharing)
        sums, over = drawn.page("A13", sum=drawn.of_stretch), drawn.page("A14", sum=drawn.layout.total)
        parameter, total = (a.u_parameter, a.eta_parameter), drawn.layout.total
        dgamma, dbeta = total(sums["g"] * sums["xhat"]), total(sums["g"])
        agree(sums_there.dgamma_bound(), drawn.rounded(sums, sums["E_dgamma"], dgamma, *parameter))
        agree(sums_there.dbeta_bound(), drawn.rounded(over, over["E_dbeta"], dbeta, *parameter))


@BY_CLASS
@BY_N
@pytest.mark.parametrize("statistic", ["mean", "variance"])
@pytest.mark.parametrize("bessel", [False, True])
def test_running_statistics(kind: Class, n: int, statistic: str, bessel: bool):
    """A16, with Bessel's correction of the variance and without."""
    drawn, a, momentum = Drawn(kind, n, "batch_norm"), kind.with_large_eta(), 0.3
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
    "tangent of ty": (
        "tgamma r P sx + sgamma r P tx - gamma r^2 [xhat mean(tx P sx) + m_tx P sx + m_sx P tx]",
        lambda v: [v["gamma"] * v["tx"], v["sx"], v["tgamma"], v["sgamma"]],
        lambda code, z: code.jvp_jvp(z.tx, z.tgamma, z.sx, z.sgamma),
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
    composed = kind.with_large_eta().composed
    inputs = {"tx": drawn.tx, "tgamma": drawn.tgamma, "tbeta": drawn.beta, "sx": drawn.sx, "sgamma": drawn.sgamma}
    sizes = {one: abs(array(getattr(drawn, one))) for one in ("g", "a", "b", "c", "gamma")}
    sizes |= {one: abs(array(z)) for one, z in inputs.items()}
    sizes |= {"every term positive": True, "x": array(drawn.x), "n": drawn.n}

    def majorant(xhat: Any, r: Any) -> Any:
        world = World(operator, {**sizes, "xhat": xhat, "r": r})
        return world[formula] if formula == name else evaluate(formula, world)

    exact = drawn.page(arithmetic=composed)
    exact.values |= {"h": exact["gamma"] * exact["g"], **{one: array(z) for one, z in inputs.items()}}
    page = drawn.page("A17", arithmetic=composed, Q=majorant, c=0, factors=factors(exact))
    found = bound(DerivativeEnvelope(drawn.code), drawn)
    z = majorant(abs(page["xhat"]), page["r"])
    # Q(xh+, r+) - Q(|xh|, r) cancels in float64: each is rounded some twenty times, and their sizes remain.
    slack = 40 * mpf(2) ** -53 * np.max(z)
    agree(found, drawn.rounded(page, page["E"], z, composed.u_data, composed.eta_data), slack)


@pytest.mark.parametrize("kind", [*CLASSES, Class("bfloat16"), Class("float16")], ids=str)
def test_the_second_derivative_of_gamma(kind: Class):
    """A17: the bounds of a sum over the groups, and in a narrower format the rounding of two shares."""
    drawn, composed = Drawn(kind, 7, "layer_norm"), kind.with_large_eta().composed
    sizes = {one: abs(array(getattr(drawn, one))) for one in ("x", "g", "a")}
    sizes |= {"every term positive": True, "n": drawn.n}

    def majorant(xhat: Any, r: Any) -> Any:
        return evaluate("g r P a", World("layer_norm", {**sizes, "xhat": xhat, "r": r}))

    exact = drawn.page(arithmetic=composed)
    factors = [exact["gamma"] * exact["g"] + exact["b"] * exact["g"], exact["a"]]
    page = drawn.page("A17", arithmetic=composed, Q=majorant, c=drawn.layout.sharing, factors=factors)
    error, z = page["E"].sum(axis=0), majorant(abs(page["xhat"]), page["r"]).sum(axis=0)
    (shares,) = (step for step in blocks()["A17"] if step.conditions == ("gamma", "narrower"))
    if composed.u < composed.u_parameter:
        error = evaluate(shares.text, {**page.values, "xhat": 0, "r": 0, "Q": lambda *_: z, "E": error})
    found = bars(DerivativeEnvelope(drawn.code), drawn)[1]
    slack = 40 * mpf(2) ** -53 * np.max(z)
    agree(found, drawn.rounded(page, error, z, composed.u_parameter, composed.eta_parameter), slack)


#: Where each formula and each rule of the page is evaluated.
EVALUATED = {
    "test_formulas_of_accuracy": {*STATISTICS, *MEAN_SQUARE, *(f"A{k}" for k in range(9, 18))},
    "test_running_analysis": {"A1", "A3", *(f"A{k}" for k in range(18, 29))},
    "test_closed_bounds": {"A29", "A30", "A31"},
    "test_relation_bounds": {"A32", "A33", "A34"},
    "test_range_rules": {f"R{k}" for k in range(1, 7)},
}


def test_every_formula_is_evaluated():
    """Each number of the page is evaluated in one file, which names it."""
    numbers = re.findall(r'<a id="([AR]\d+)"></a>', pages()["accuracy"])
    assert sorted(numbers) == sorted(number for those in EVALUATED.values() for number in those)
    assert set(numbers) == set(blocks())
