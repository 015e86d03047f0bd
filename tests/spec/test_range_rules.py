"""
The range rules R1 to R6, evaluated as the accuracy page prints them.

For each rule some data is scaled to its limit: just below it both the page and the code judge, just above it neither
does, and no other rule is the reason. A rule that is changed only on the page, or only in the code, fails here.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Mapping
from typing import Any

import attrs
import numpy as np
import pytest
from mpmath import mpf

from normspec.conformance.cases.case import Case
from normspec.conformance.judging.truth import Truth
from normspec.reference.accuracy import Arithmetic
from normspec.reference.bounded import Number, Rounding, Tape
from normspec.reference.bounded_functions import tensor_sum
from normspec.reference.bounded_gradients import accumulated
from normspec.reference.composed import Composed
from normspec.reference.envelope import OperatorEnvelope, envelope_of
from normspec.reference.envelope_derivatives import DerivativeEnvelope
from normspec.reference.envelope_results import RowEnvelope
from normspec.reference.envelope_rows import RowBounds
from normspec.reference.values import Float64Numbers
from normspec.spec.layout import Layout
from normspec.spec.parts import Part

from .page_bounds import Bounds, Step, rules
from .page_classes import STATISTICS, Class
from .page_notation import evaluate
from .page_values import FUNCTIONS, array, precise

pytestmark = pytest.mark.exhaustive

#: The distance from a limit, on each side, at which both are evaluated: more than evaluating in float64 loses.
ASIDE = 2.0**-24
SIDES = (1 - ASIDE, 1 + ASIDE)
#: The values of a group.
VALUES = np.array([0.5, -1.25, 2.0, 0.125, -0.75])


@pytest.fixture(autouse=True)
def _precise():
    with precise():
        yield


@attrs.frozen(kw_only=True, eq=False)
class Call:
    """A call on one group, with some of its data scaled."""

    kind: Class
    x: np.ndarray = attrs.field(factory=lambda: VALUES)
    eps: float = 0.0
    gamma: float = 1.0
    g: float = 1.0
    #: By what the first cotangent is larger than the others.
    first: float = 1.0
    #: The given mean and variance; None in training.
    given: tuple[float, float] | None = None

    @property
    def arithmetic(self) -> Arithmetic:
        return self.kind.arithmetic()

    def envelope(self) -> OperatorEnvelope:
        """The code's envelope: of batch_norm with one channel, whose values are the group."""
        mean, variance = self.given or (0.0, 1.0)
        x, settings = self.x[:, None], {"eps": self.eps, "channel_axis": 1, "training": self.given is None}
        statistics = np.array([mean]), np.array([variance])
        return envelope_of(
            "batch_norm", x, np.array([self.gamma]), None, *statistics, arithmetic=self.arithmetic, **settings
        )

    def gradients(self) -> dict[str, np.ndarray]:
        """The code's bounds of gradients."""
        return self.envelope().gradients(self.of_g)

    @property
    def of_g(self) -> np.ndarray:
        """The cotangent, all of whose values but the first are the same size."""
        return self.g * np.array([self.first, -1.0, 1.0, 1.0, -1.0])[:, None]

    def page(self) -> Bounds:
        """The page's bounds for this call."""
        a, x = self.arithmetic, array(self.x)[None, :]
        units = {"u": a.u, "eta": a.eta, "u_d": a.u_data, "eta_d": a.eta_data, "largest": a.largest}
        units |= {"smallest_normal": a.smallest_normal, "largest_d": a.largest_data, "eps": self.eps}
        values: dict[str, Any] = {name: mpf(unit) for name, unit in units.items()}
        values |= {"x": x, "n": len(self.x), "gamma": mpf(self.gamma), "g": array(self.of_g.T)}
        marks = {*self.kind.marks(), "training" if self.given is None else "inference"}
        if self.given is not None:
            values |= {"mu": mpf(self.given[0]), "v": mpf(self.given[1]), "E_mu": mpf(0), "E_v": mpf(0)}
        return Bounds(values, frozenset(marks), (*STATISTICS, "A11", "A17", "R6"))


def judged(step: Step, labels: frozenset[str], env: Mapping[str, Any]) -> bool:
    """Whether a rule lets everything pass."""
    if not step.where(labels, env):
        return True
    left, right = (np.asarray(evaluate(side, env), dtype=object) for side in (step.name, step.text))
    return bool(np.all(left <= right if step.sign == "<=" else left < right))


@attrs.frozen(kw_only=True, eq=False)
class Limit:
    """One rule, the data that is scaled to reach it, and whether the code judges."""

    rule: str
    #: Which of the rules of that number it is.
    place: int
    make: Callable[[float], Call]
    #: Whether the code judges the rule's result.
    code: Callable[[Call], bool]
    #: The numbers of the page's rules that decide the same together, and their subjects.
    numbers: tuple[str, ...]
    about: frozenset[str] = frozenset()
    #: Values that the page cannot derive from the call itself.
    more: Callable[[Call, Bounds], dict[str, Any]] = lambda call, page: {}
    #: From where to where, as powers of two, the limit is looked for.
    between: tuple[float, float] = (0.0, 130.0)

    def violated(self, scale: float) -> set[tuple[str, int]]:
        """The rules of the page that a scale violates."""
        call = self.make(scale)
        page = call.page()
        env = Bounds({**page.values, **self.more(call, page)}, page.classes, page.numbers)
        labels = page.classes | self.about
        return {
            (number, place)
            for number in self.numbers
            for place, step in enumerate(rules(number))
            if not judged(step, labels, env)
        }


def scaled(kind: Class, **more: Any) -> Callable[[float], Call]:
    """Calls with x scaled."""
    return lambda scale: Call(kind=kind, x=scale * VALUES, **more)


def with_(name: str, kind: Class, **more: Any) -> Callable[[float], Call]:
    """Calls with one number scaled."""
    return lambda scale: Call(kind=kind, **{**more, name: scale})


def from_given(kind: Class) -> Callable[[float], Call]:
    """Calls in inference with a given mean at this distance from x."""
    return lambda scale: Call(kind=kind, x=0 * VALUES, given=(-scale, 1.0))


FLOAT32, CENTRED = Class("float32"), Class("float32", affine="centred")
ONE_PASS = Class("float32", affine="centred", variance="one-pass")
H1, H2 = Class("float16", storage="H1"), Class("float16", storage="H2")
NATIVE = Class("float16", storage="native")
OF_GROUP, OF_Y, OF_DX = ("R1", "R3"), ("R1", "R3", "R6"), ("R1", "R2", "R3", "R6")


def of_group(call: Call) -> bool:
    """Whether the code judges the group."""
    return bool(call.envelope().in_range().all())


def of_y(call: Call) -> bool:
    """Whether it judges y."""
    return bool(call.envelope().in_range(y=True).all())


def of_dx(call: Call) -> bool:
    """Whether it judges dx."""
    return bool(call.envelope().in_range(gradient=True, g=call.of_g).all())


def of_dgamma(call: Call) -> bool:
    """Whether it judges dgamma."""
    return bool(np.isfinite(call.gradients()["dgamma"]).all())


def of_dbeta(call: Call) -> bool:
    """Whether it judges dbeta."""
    return bool(np.isfinite(call.gradients()["dbeta"]).all())


def of_running(call: Call) -> bool:
    """Whether it judges the running variance."""
    zero = np.zeros(1)
    return bool(np.isfinite(call.envelope().running(zero, zero, 0.5, bessel=True)["new_running_var"]).all())


def bessel(call: Call, page: Bounds) -> dict[str, Any]:
    """z of A16: the variance with Bessel's correction."""
    of_statistic = Bounds({**page.values, "old": mpf(0), "m": mpf(0.5)}, page.classes | {"variance", "bessel"},
                          (*STATISTICS, "A16"))  # fmt: skip
    return {"z": of_statistic["z"]}


GROUP, Y, DX = (
    {"code": code, "numbers": numbers, "about": frozenset(about)}
    for code, numbers, about in (
        (of_group, OF_GROUP, ()),
        (of_y, OF_Y, ("y", "y and dx")),
        (of_dx, OF_DX, ("dx", "y and dx")),
    )
)
OF_SUMS: dict[str, Any] = {"numbers": ("R3", "R6"), "about": frozenset({"dgamma"}), "between": (0.0, 20.0)}
LIMITS = {
    "R1, x": Limit(rule="R1", place=0, make=scaled(FLOAT32), **GROUP),
    "R1, eps": Limit(rule="R1", place=0, make=with_("eps", FLOAT32), **GROUP),
    "R1, native": Limit(rule="R1", place=0, make=scaled(NATIVE, eps=0.25), **GROUP),
    "R2, small": Limit(rule="R2", place=0, make=scaled(CENTRED), **DX),
    "R2, large": Limit(rule="R2", place=1, make=scaled(CENTRED, g=1e-30), between=(0.0, -130.0), **DX),
    "R3, xhat, H1": Limit(rule="R3", place=0, make=from_given(H1), between=(0.0, 20.0), **GROUP),
    "R3, xhat, native": Limit(rule="R3", place=1, make=from_given(NATIVE), between=(0.0, 20.0), **GROUP),
    "R3, r, H2": Limit(rule="R3", place=2, make=scaled(H2), between=(0.0, -30.0), **GROUP),
    "R3, r, native": Limit(rule="R3", place=3, make=scaled(NATIVE), between=(0.0, -30.0), **GROUP),
    "R3, y": Limit(rule="R3", place=4, make=with_("gamma", H1), between=(0.0, 20.0), **Y),
    "R3, h": Limit(rule="R3", place=5, make=with_("g", H1, x=VALUES * 16), between=(0.0, 20.0), **DX),
    "R3, dx": Limit(rule="R3", place=6, make=with_("g", H1, x=VALUES / 16), between=(0.0, 20.0), **DX),
    "R3, dx, mean, H2": Limit(rule="R3", place=7, make=with_("g", H2, x=VALUES / 16), between=(0.0, 20.0), **DX),
    "R3, dx, r, H2": Limit(rule="R3", place=8, make=with_("g", H2, x=VALUES * 16), between=(0.0, 20.0), **DX),
    "R3, dx in inference": Limit(rule="R3", place=9, make=with_("g", H1, given=(0.5, 1.0)), between=(0.0, 20.0), **DX),
    "R3, dgamma, H1": Limit(rule="R3", place=10, make=with_("g", H1), code=of_dgamma, **OF_SUMS),
    "R3, dgamma, H2": Limit(rule="R3", place=11, make=with_("g", H2), code=of_dgamma, **OF_SUMS),
    "R3, dbeta, H2": Limit(rule="R3", place=12, make=with_("g", H2), code=of_dbeta,
                           **{**OF_SUMS, "about": frozenset({"dbeta"})}),
    "R3, running": Limit(rule="R3", place=13, make=scaled(H2), code=of_running, numbers=OF_GROUP,
                         about=frozenset({"running"}), more=bessel, between=(0.0, 20.0)),
    "R6, y": Limit(rule="R6", place=0, make=with_("gamma", FLOAT32), **Y),
    "R6, y, gamma r": Limit(rule="R6", place=0, make=with_("gamma", FLOAT32, x=VALUES / 2**20), **Y),
    "R6, y, centred": Limit(rule="R6", place=0, make=with_("gamma", CENTRED, x=VALUES + 64), **Y),
    "R6, y, one-pass": Limit(rule="R6", place=0, make=with_("gamma", ONE_PASS, x=VALUES + 64), **Y),
    "R6, dx in inference": Limit(rule="R6", place=1, make=with_("g", FLOAT32, given=(0.5, 0.01)), **DX),
    "R6, dx, gamma r": Limit(rule="R6", place=2, make=with_("gamma", FLOAT32, g=2.0**-60, given=(0.5, 0.01)), **DX),
    "R6, dx, divided last": Limit(rule="R6", place=3, make=with_("g", FLOAT32, x=VALUES / 2**10, eps=1.0, first=2.0),
                                  **DX),
    "R6, dx, far": Limit(rule="R6", place=4, make=with_("g", FLOAT32, x=VALUES + 64, gamma=3.0), **DX),
    "R6, dx, n": Limit(rule="R6", place=5, make=with_("g", FLOAT32, x=VALUES / 2**20), **DX),
    "R6, dx, D": Limit(rule="R6", place=5, make=with_("g", FLOAT32, x=VALUES / 2**6 + 64), **DX),
    "R6, dgamma": Limit(rule="R6", place=6, make=with_("g", FLOAT32), code=of_dgamma, numbers=("R6",),
                        about=frozenset({"dgamma"})),
    "R6, dgamma, g r": Limit(rule="R6", place=6, make=with_("g", FLOAT32, x=VALUES / 2**20), code=of_dgamma,
                             numbers=("R6",), about=frozenset({"dgamma"})),
    "R6, dbeta": Limit(rule="R6", place=7, make=with_("g", FLOAT32), code=of_dbeta, numbers=("R6",),
                       about=frozenset({"dbeta"})),
}  # fmt: skip


@pytest.mark.parametrize("name", LIMITS)
def test_a_rule_of_a_normalisation(name: str):
    """R1, R2, R3 and R6: page and code stop judging at the same limit."""
    limit = LIMITS[name]
    inside, outside = limit.between
    assert not limit.violated(2.0**inside)
    assert limit.violated(2.0**outside)
    while abs(outside - inside) > ASIDE / 8:
        middle = (inside + outside) / 2
        inside, outside = (inside, middle) if limit.violated(2.0**middle) else (middle, outside)
    step = ASIDE if outside > inside else -ASIDE
    assert limit.violated(2.0 ** (outside + step)) == {(limit.rule, limit.place)}
    assert limit.code(limit.make(2.0 ** (inside - step)))
    assert not limit.code(limit.make(2.0 ** (outside + step)))


def test_what_may_itself_overflow():
    """R6, of each result: an envelope of a quarter of the largest number is not judged."""
    case = Case("layer_norm", {"x": np.ones((1, 3), np.float32), "gamma": None, "beta": None},
                {"eps": 1.0, "axes": (-1,)}, np.ones((1, 3), np.float32))  # fmt: skip
    arithmetic = Arithmetic.of("float32")
    (rule,) = (step for step in rules("R6") if step.conditions == ("each result",))
    for envelope in (arithmetic.largest / 4 * side for side in SIDES):
        inside = judged(rule, frozenset({"each result"}), {"ENV": mpf(envelope), "largest": mpf(arithmetic.largest)})
        found = Truth(case)._within("y", arithmetic, np.full((1, 3), envelope), None)
        assert np.isfinite(found).all() == inside


@pytest.mark.parametrize("name", ["jvp", "vjp_vjp"])
@pytest.mark.parametrize("scale", [1.0, 2.0**-20])
def test_derivatives_of_second_order(name: str, scale: float):
    """R4: Q of A17 at its largest in the group, n of it, and r^3 of the chain rule."""
    rule, _ = rules("R4")
    call = Call(kind=FLOAT32, x=scale * VALUES)
    page, envelope, direction = call.page(), call.envelope(), call.of_g
    mean, ones, none = FUNCTIONS["mean"], abs(array(direction.T)), np.zeros(1)

    def of_size(size: Any) -> Callable[[Any, Any], Any]:
        """Q where the direction of x is so large, and all else of size 1."""

        def q(xhat: Any, r: Any) -> Any:
            projected, m = ones + mean(ones) + xhat * mean(ones * xhat), mean(ones * xhat)
            if name == "jvp":
                return size * r * projected
            x_bar = r**2 * (xhat * mean(ones * projected) + 2 * m * projected)
            return size * (x_bar + r * projected)  # that of g_bar too

        return q

    def by_code(size: float) -> np.ndarray:
        if name == "jvp":
            return envelope.jvp(size * direction, none, none)
        return envelope.vjp_vjp(direction, size * direction, none, none)["x"]

    low, high = 0.0, 130.0
    while high - low > ASIDE / 8:
        middle = (low + high) / 2
        inside = judged(rule, frozenset(), Bounds({**page.values, "Q()": of_size(mpf(2) ** middle)}, page.classes,
                                                  page.numbers))  # fmt: skip
        low, high = (middle, high) if inside else (low, middle)
    assert np.isfinite(by_code(2.0 ** (low - ASIDE))).all()
    assert np.isinf(by_code(2.0 ** (high + ASIDE))).all()


@pytest.mark.parametrize("given", [None, (0.0, 1.0)], ids=["training", "inference"])
@pytest.mark.parametrize("scale", [2.0**40, 2.0**-41.2])
def test_derivatives_of_second_order_form_a_cube(scale: float, given: tuple[float, float] | None):
    """R4: where r is no constant, R2 holds of it as well."""
    call = Call(kind=FLOAT32, x=scale * VALUES, given=given)
    page = call.page()
    assert all(judged(step, page.classes, page) for step in rules("R2")) == (given is not None)
    found = call.envelope().jvp(2.0**-60 * call.of_g, np.zeros(1), np.zeros(1))
    assert np.isfinite(found).all() == (given is not None)


COMPUTED, DATA = Arithmetic.of("float32"), Arithmetic.of("float16", None)


@attrs.frozen
class Numbers:
    """Numbers in float32, with float16 data."""

    tape: Tape = attrs.field(
        factory=lambda: Tape(
            Float64Numbers,
            Rounding(COMPUTED.u, COMPUTED.eta, COMPUTED.largest),
            Rounding(DATA.u_data, DATA.eta_data, DATA.largest_data),
        )
    )

    def number(self, z: float = 1.0, M: float = 1.0, E: float = 0.0, K: float = 1.0) -> Number:
        """With these bounds."""
        return Number(self.tape, *(np.array([one]) for one in (z, M, E, K)))


def said(label: str, largest: float, largest_f: float = 0.0, **values: float) -> bool:
    """Whether R5 lets a number pass."""
    env = {name: mpf(one) for name, one in {**values, "largest": largest, "largest_f": largest_f}.items()}
    labels = frozenset({label, *(("formed or returned",) if label in ("formed", "returned") else ())})
    return all(judged(step, labels, ChainMap(env, FUNCTIONS)) for step in rules("R5"))


@pytest.mark.parametrize("side", SIDES)
def test_shares_of_a_second_derivative(side: float):
    """R4, R5: a share of gamma_bar, or of a second-order gradient of a composed operator, in a narrower format."""
    largest, u = DATA.largest_data, DATA.u_data
    _, rule = rules("R4")
    further = 1 + 2.0**14 * (side - 1)  # more than the error in float32, which is not written out here
    q = further * largest / (1 + u)
    for arithmetic, labels in ((DATA, {"gamma", "narrower"}), (COMPUTED, {"gamma"})):
        rows = RowBounds(np.array([[1.0, -1.0]]), 1.0, arithmetic)
        envelope = DerivativeEnvelope(RowEnvelope(rows, np.ones(2), np.zeros(2), Layout.trailing((1, 2), 1)))
        r = float(rows.r[0, 0])
        # With every term positive P a is a + mean(a) + xhat mean(a xhat), and |xhat| is r.
        a = np.full((1, 2), q / (r * (2 + r * r)))
        found = envelope.vjp_vjp(np.ones((1, 2)), a, np.zeros(1), np.zeros(1))[1]
        env = {"Q": lambda *_: mpf(q), "E": mpf(q * u), "xhat": mpf(0), "r": mpf(r), "largest_d": mpf(largest)}
        assert np.isfinite(found).all() == judged(rule, frozenset(labels), ChainMap(env, FUNCTIONS))
    parts = {"branch": Part("identity"), "shortcut": None, "activation": None}
    call = Composed("residual", {"x": np.ones((1, 1), np.float16)}, {}, parts, DATA)
    magnitude = side * largest / (1 + 2 * u)
    number = Numbers().number(z=0.0, M=magnitude)
    told = {"M": mpf(magnitude), "E": mpf(2 * u * magnitude + 3 * DATA.eta_data)}
    told |= {"largest_d": mpf(largest), "largest": mpf(COMPUTED.largest)}
    labels = frozenset({"returned", "narrower", "second order"})
    expected = all(judged(step, labels, ChainMap(told, FUNCTIONS)) for step in rules("R5"))
    assert np.isfinite(call._value(number, "x", uses=2).error) == expected
    assert np.isfinite(call._value(number, "x").error)


@pytest.mark.parametrize("side", SIDES)
def test_numbers_that_are_formed(side: float):
    """R5: what any order of the factors may reach, and the number itself in the format that it gets."""
    numbers, most = Numbers(), COMPUTED.largest
    product = numbers.number(K=side * most / 4)
    assert np.isfinite(product.materialised().error) == said("formed", most, most, z=1, E=0, K=side * most / 4)
    for error in (0.0, 0.5):
        z = side * (1 - error) * most
        found = numbers.number(z=z, E=error * side * most).materialised()
        assert np.isfinite(found.error) == said("formed", most, most, z=z, E=error * side * most, K=1)
    z = side * DATA.largest_data / (1 + 2.0**-11)  # its rounding to float16 is in error too (A19)
    cast = numbers.number(z=z).cast_to_data()
    error = z * 2.0**-11 + DATA.eta_data
    assert np.isfinite(cast.error) == said("formed", most, DATA.largest_data, z=z, E=error, K=1)
    a, b = (numbers.number(M=part * side * most / 4) for part in (0.75, 0.25))
    assert np.isfinite(tensor_sum(a, b).error) == said(
        "of two tensors", most, M_a=float(a.magnitude[0]), M_b=float(b.magnitude[0])
    )


@pytest.mark.parametrize("side", SIDES)
def test_numbers_that_are_returned(side: float):
    """R5: the product bound and the error of a result, and of a gradient that a wider arithmetic passes on."""
    x, most = np.ones((1, 1), np.float32), COMPUTED.largest
    parts = {"branch": Part("identity"), "shortcut": None, "activation": None}
    call = Composed("residual", {"x": x}, {}, parts, COMPUTED)
    for values in ({"K": side * most / 4}, {"E": side * most / 4}):
        error = call._value(Numbers().number(**values), "x").error
        assert np.isfinite(error) == said("returned", most, **{"E": 0.0, "K": 1.0, **values})
    numbers = Numbers()
    at, terms = numbers.number(), [numbers.number(K=side * most / 4), numbers.number()]
    at.rounding = numbers.tape.data
    found = accumulated(terms, at).product_bound
    assert np.isfinite(found) == said("returned", most, E=0.0, K=side * most / 4)
