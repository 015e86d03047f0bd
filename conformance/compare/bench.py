"""
The bench: one binding under measurement, called with plain groups of numbers.

A group is normalised together: a row in LayerNorm, a channel in BatchNorm, some channels of one sample in GroupNorm.
Probes work with groups, and the bench lays them out for the operator, so that one probe measures all operators. The
bench finds out whether a target takes gamma or gamma - 1, and passes that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import attrs
import numpy as np

from ...adapters.binding import Binding, differentiable
from ...adapters.target import Target
from ...reference.formats import FORMATS, Format
from ...spec.errors import CALL_FAILED, BadOutput, Unsupported
from ...spec.layout import Layout
from ...spec.operators import Groups, Operator
from ..cases.case import Case
from ..cases.description import NEGLIGIBLE_EPS, Description
from ..cases.recipes import Drawn, made
from ..cases.shapes import settings_of, shape_of
from ..judging.translated import TranslatedSession, Translation, one_plus

#: Weight of the new statistic. It is not 1/2, so that it differs from the weight of the old one.
MOMENTUM = 0.25

#: Ranks to try, in this order, if a binding does not take all. Below, for channels of a sample: with positions first.
_RANKS = (2, 4, 3, 5)
_RANKS_OF_SAMPLES = (4, 3, 5, 2)

#: The group of every witness, times a number: its mean is zero and its deviation is that number.
PATTERN = np.array([-1.0, -1.0, 1.0, 1.0])

#: Values of gamma, besides 1, to see what the target makes of them.
GAINS = (3.0, -0.5)

#: The sublayer with which the output of a block is the normalisation itself, or x plus that.
_SUBLAYERS = {"post_norm": "zero", "pre_norm": "identity"}


@attrs.frozen(eq=False)
class Answer:
    """The result of one call."""

    #: y, a row for each group, in its own dtype; for pre_norm, y - x in float64.
    y: np.ndarray
    #: The new running statistics of batch_norm.
    mean: np.ndarray | None = None
    var: np.ndarray | None = None

    @property
    def group(self) -> np.ndarray:
        """The first group of y in float64."""
        return self.y[0].astype(np.float64)


@attrs.define(eq=False)
class Bench:
    """One binding of a target on one device, in one dtype."""

    target: Target
    binding: Binding
    dtype: str
    device: str = "cpu"
    _shared: dict[Any, Any] = attrs.field(factory=dict)

    @property
    def operator(self) -> str:
        return self.binding.operator

    @property
    def record(self) -> Operator:
        """The record of its operator."""
        return self.binding.record

    @property
    def format(self) -> Format:
        return FORMATS[self.dtype]

    @property
    def momentum(self) -> float:
        """The weight of the new statistic in a call: the binding's own, or one that can be told from its opposite."""
        fixed = self.binding.fixed.momentum
        return MOMENTUM if fixed is None else fixed

    def takes(self, name: str) -> bool:
        """Whether a call can give this argument: a layer or function may have no gamma or no beta."""
        given = self.binding.fixed.given
        lacking = name in ("gamma", "beta") and given and not any(name in one for one in given)
        return name in self.record.arguments and not lacking

    def ensure_free_eps(self) -> None:
        """Raise Unsupported if no call can vary eps, so that a row about other values of it says so."""
        fixed = self.binding.fixed.eps
        if fixed is not None:
            raise Unsupported(f"its eps is {fixed:g}")

    def ensure_takes_gamma(self) -> None:
        """Raise Unsupported if no call can give gamma."""
        if not self.takes("gamma"):
            raise Unsupported("it has no gamma")

    def at(self, dtype: str) -> Bench:
        """The same binding in another dtype. Raises Unsupported if the target does not have it."""
        if dtype not in self.target.dtypes:
            raise Unsupported(f"{self.target.name} has no {dtype}")
        return attrs.evolve(self, dtype=dtype)

    @property
    def widest(self) -> Bench:
        """The same binding in the widest dtype of the target."""
        return self.at(max(self.target.dtypes, key=list(FORMATS).index))

    @property
    def opened(self) -> Any:
        """The target's own session; raises if there is no such device."""
        if "session" not in self._shared:
            self._shared["session"] = self.target.session(self.binding, self.device)
        return self._shared["session"]

    @property
    def session(self) -> Any:
        """The session, which passes gamma - 1 to a target that takes that."""
        return TranslatedSession(self.opened, Translation(gain=True)) if self.one_plus else self.opened

    @cached_property
    def gained(self) -> tuple[float, ...]:
        """For each of GAINS, y of a group divided by y with a gamma of 1; gamma is passed as it is."""
        self.ensure_takes_gamma()
        case = self._case([PATTERN], eps=1.0)
        gamma = case.inputs["gamma"]
        assert gamma is not None
        first, *others = (
            self._answered(self.opened, case.replace(gamma=np.full_like(gamma, value))).group[0]
            for value in (1.0, *GAINS)
        )
        with np.errstate(all="ignore"):
            return tuple(float(other / first) for other in others)

    @cached_property
    def one_plus(self) -> bool:
        """Whether it adds 1 to its argument gamma. If it does not answer, this is not known."""
        if self.record.composed or not self.record.has_gain:
            return False
        try:
            return np.allclose(self.gained, [(1 + value) / 2 for value in GAINS], rtol=2.0**-6, atol=0)
        except CALL_FAILED:
            return False

    def once(self, key: str, measure: Any) -> Any:
        """The measurement with this name in this dtype, made at the first request."""
        place = (key, self.dtype)
        if place not in self._shared:
            self._shared[place] = measure(self)
        return self._shared[place]

    # -- groups as cases -------------------------------------------------------------------------

    @cached_property
    def _rank(self) -> int:
        ranks = _RANKS_OF_SAMPLES if self.record.groups is Groups.SAMPLE_CHANNELS else _RANKS
        for rank in ranks:
            described = self._described(3, 4, rank)
            if self.declines(shape_of(described), settings_of(described)) is None:
                return rank
        return ranks[0]

    def _described(self, groups: int, n: int, rank: int) -> Description:
        """
        The description of this many groups in this many dimensions.

        A group of a sample is one channel, with positions if the rank allows. Another row asks which channels are
        normalised together.
        """
        one = Description(self.operator, n, (("normal", 0),), eps=0.5, repeat=groups, momentum=self.momentum, rank=rank)
        return attrs.evolve(one, width=1)

    def parameters(self, groups: int, n: int) -> int:
        """How many values gamma has for this many groups."""
        described = self._described(groups, n, self._rank)
        return Layout.of(self.operator, shape_of(described), settings_of(described)).parameters

    def case(self, rows: Any, **values: Any) -> Case:
        """The call on these groups. If the target gets gamma - 1, gamma is rounded so that this is exact."""
        made = self._case(rows, **values)
        gamma = made.inputs.get("gamma")
        return made.replace(gamma=one_plus(gamma)) if self.one_plus and gamma is not None else made

    def _case(
        self,
        rows: Any,
        *,
        eps: float = NEGLIGIBLE_EPS,
        gamma: Any = 1.0,
        beta: Any = 0.0,
        g: Any = None,
        running: tuple[Any, Any] = (0.0, 1.0),
        training: bool = True,
    ) -> Case:
        """
        The call on these groups; numbers and arrays are rounded to the bench's dtype.

        A fixed eps replaces the one that is asked for, and a gamma or beta that the binding does not take is left out.
        """
        kind = self.format.dtype
        rows = np.asarray(rows, dtype=np.float64)
        groups, n = rows.shape
        described = self._described(groups, n, self._rank)
        shape = Layout.of(self.operator, shape_of(described), settings_of(described)).parameter_shape

        fixed = self.binding.fixed.eps

        def vector(values: Any) -> np.ndarray:
            return np.broadcast_to(np.asarray(values, dtype=np.float64), shape).astype(kind)

        settings = settings_of(attrs.evolve(described, eps=eps if fixed is None else fixed, training=training))
        given = {"gamma": gamma, "beta": beta, "running_mean": running[0], "running_var": running[1]}
        inputs: dict[str, np.ndarray | None] = {"x": np.empty(shape_of(described), kind)}
        inputs |= {
            name: vector(value) if self.takes(name) else None
            for name, value in given.items()
            if name in self.record.arguments
        }
        drawn = Drawn(rows.shape, self.format, self.format, 0, "mixed", 1, rows)
        if self.operator in _SUBLAYERS:
            made(self.operator, _SUBLAYERS[self.operator], drawn)
        blank = Case(self.operator, inputs, settings, np.zeros((0,), kind), parts=drawn.parts)
        cotangent = np.ones((groups, n)) if g is None else np.asarray(g, dtype=np.float64)
        return blank.replace(x=blank.layout.back(rows.astype(kind)), g=blank.layout.back(cotangent.astype(kind)))

    def with_defaults(self, case: Case) -> Answer:
        """The results of a case by group, in a call that leaves eps and momentum to the target."""
        settings = {name: value for name, value in case.settings.items() if name not in ("eps", "momentum")}
        return self.answer(attrs.evolve(case, settings=settings), asked=True, defaults=True)

    def declines(self, shape: tuple[int, ...], settings: Mapping[str, Any], *, asked: bool = False) -> str | None:
        """
        Why a call with x of this shape and these settings cannot be made; None if it can.

        With ``asked``, only what the binding has fixed counts: a call that it cannot be given says nothing about it.
        """
        # A fixed eps declines nothing: most rows hold for any eps, and the others ask `ensure_free_eps`.
        others = {name: value for name, value in settings.items() if name != "eps"}
        reason = self.binding.fixed.declines(self.operator, shape, others)
        return reason if reason or asked else self.binding.accepts(shape, settings)

    # -- calls -----------------------------------------------------------------------------------

    def start(self, case: Case, *, asked: bool = False, mode: str = "training", **options: Any) -> Any:
        """
        The evaluation of a case.

        Raises Unsupported if the binding does not take such a call. With ``asked``, a call that it only declines is
        made anyway, and the target answers for itself.
        """
        reason = self.declines(case.x.shape, case.settings, asked=asked)
        if reason:
            raise Unsupported(reason)
        return self.session.start(case.inputs, case.settings, parts=case.parts, mode=mode, **options)

    def outputs(self, case: Case, **options: Any) -> dict[str, np.ndarray]:
        """The results of a case; their shapes and dtype are checked."""
        return checked(self.start(case, **options).outputs(), case)

    def answer(self, case: Case, **options: Any) -> Answer:
        """The results of a case by group."""
        return self._by_group(case, self.outputs(case, **options))

    def _answered(self, session: Any, case: Case) -> Answer:
        found = session.start(case.inputs, case.settings, parts=case.parts, mode="training").outputs()
        return self._by_group(case, checked(found, case))

    def _by_group(self, case: Case, found: Mapping[str, np.ndarray]) -> Answer:
        y = case.layout.rows(found["y"])
        if self.record.normalises_handed:
            y = y.astype(np.float64) - case.layout.rows(case.x).astype(np.float64)
        return Answer(y, found.get("new_running_mean"), found.get("new_running_var"))

    def call(self, rows: Any, *, asked: bool = False, **values: Any) -> Answer:
        """Call the target on these groups."""
        return self.answer(self.case(rows, **values), asked=asked)

    def pull(self, case: Case) -> dict[str, np.ndarray]:
        """The gradients of a case by the name of the input; their shapes are checked."""
        evaluation = self.start(case)
        checked(evaluation.outputs(), case)
        found = evaluation.pull(case.g).gradients()
        return checked_gradients(found, case, differentiable(self.operator, case.inputs))


def checked(outputs: Mapping[str, np.ndarray], case: Case) -> dict[str, np.ndarray]:
    """The results; BadOutput unless each has the right shape and dtype."""
    for name, value in outputs.items():
        like = case.inputs["x" if name == "y" else name.removeprefix("new_")]
        assert like is not None
        _alike(value, like, name)
    return dict(outputs)


def checked_gradients(
    gradients: Mapping[str, np.ndarray | None], case: Case, names: Sequence[str]
) -> dict[str, np.ndarray]:
    """The gradients of these names; BadOutput unless each exists and has the shape and dtype of its input."""
    found = {}
    for name in names:
        value, like = gradients.get(name), case.inputs[name]
        if value is None or like is None:
            raise BadOutput(f"no gradient reaches {name}", "gradient")
        _alike(value, like, f"the gradient of {name}")
        found[name] = value
    return found


def _alike(value: np.ndarray, like: np.ndarray, name: str) -> None:
    if value.shape != like.shape:
        raise BadOutput(f"{name} has shape {value.shape} in place of {like.shape}", "shape")
    if value.dtype != like.dtype:
        raise BadOutput(f"{name} has dtype {value.dtype.name} in place of {like.dtype.name}", "dtype")
