"""
The bench: one binding under measurement, called with plain groups of numbers.

A group is what is normalised together: a row of LayerNorm, a channel of BatchNorm, some channels of one sample of
GroupNorm. Probes speak of groups, the bench lays them out as the operator wants them, so that one probe measures all.
It finds out whether a target takes gamma or gamma - 1, and hands that over.
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
from ...spec.errors import BadOutput, Unsupported
from ...spec.layout import Layout
from ...spec.operators import Groups, Operator
from ..cases.case import Case
from ..cases.description import Description
from ..cases.recipes import Drawn, made
from ..cases.shapes import settings_of, shape_of
from ..judging.calls import CALL_FAILED
from ..judging.translated import TranslatedSession, Translation, one_plus

#: An eps that shows nowhere beside variances of order one.
NO_EPS = 2.0**-100

#: Weight of the new statistic: no half, so that it differs from the weight of the old.
MOMENTUM = 0.25

#: Ranks to lay channels out in, where a binding does not take them all; with a sample's channels there are positions.
_RANKS = (2, 4, 3, 5)
_RANKS_OF_SAMPLES = (4, 3, 5, 2)

#: The group of every witness: its mean is zero and its deviation the number it is multiplied by.
PATTERN = np.array([-1.0, -1.0, 1.0, 1.0])

#: What is handed over for gamma, beside 1, to see what becomes of it.
GAINS = (3.0, -0.5)

#: With which sublayer the output of a block is the normalisation itself, or that added to x.
_SUBLAYERS = {"post_norm": "zero", "pre_norm": "identity"}


@attrs.frozen(eq=False)
class Answer:
    """What came back from one call."""

    #: y, a row for each group, in the dtype it has; of pre_norm, y - x in float64.
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
        """What its operator is."""
        return self.binding.record

    @property
    def format(self) -> Format:
        return FORMATS[self.dtype]

    def at(self, dtype: str) -> Bench:
        """The same binding in another dtype. Raises Unsupported where the target has none."""
        if dtype not in self.target.dtypes:
            raise Unsupported(f"{self.target.name} has no {dtype}")
        return attrs.evolve(self, dtype=dtype)

    @property
    def widest(self) -> Bench:
        """The same binding in the widest dtype that the target has."""
        return self.at(max(self.target.dtypes, key=list(FORMATS).index))

    @property
    def opened(self) -> Any:
        """The target's own session; raises where there is no such device."""
        if "session" not in self._shared:
            self._shared["session"] = self.target.session(self.binding, self.device)
        return self._shared["session"]

    @property
    def session(self) -> Any:
        """The session, which is handed what the target takes for gamma."""
        return TranslatedSession(self.opened, Translation(gain=True)) if self.one_plus else self.opened

    @cached_property
    def gained(self) -> tuple[float, ...]:
        """The y of a group for each of GAINS over that for a gamma of 1, handed over as it is."""
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
        """Whether it adds 1 to what it is handed for gamma; of one that does not answer nothing is known."""
        if self.record.composed or not self.record.has_gain:
            return False
        try:
            return np.allclose(self.gained, [(1 + value) / 2 for value in GAINS], rtol=2.0**-6, atol=0)
        except CALL_FAILED:
            return False

    def once(self, key: str, measure: Any) -> Any:
        """What was measured under this name in this dtype, measured when it is first asked for."""
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
            if self.binding.accepts(shape_of(described), settings_of(described)) is None:
                return rank
        return ranks[0]

    def _described(self, groups: int, n: int, rank: int) -> Description:
        """
        So many groups in so many dimensions.

        Groups of a sample are one channel each, where there are positions: which channels are normalised together is
        the affair of one row.
        """
        one = Description(self.operator, n, (("normal", 0),), eps=0.5, repeat=groups, momentum=MOMENTUM, rank=rank)
        return attrs.evolve(one, width=1)

    def parameters(self, groups: int, n: int) -> int:
        """How many values gamma has for so many groups."""
        described = self._described(groups, n, self._rank)
        return Layout.of(self.operator, shape_of(described), settings_of(described)).parameters

    def case(self, rows: Any, **values: Any) -> Case:
        """The call on these groups; a gamma for which the target is handed gamma - 1 is one where that is exact."""
        made = self._case(rows, **values)
        gamma = made.inputs.get("gamma")
        return made.replace(gamma=one_plus(gamma)) if self.one_plus and gamma is not None else made

    def _case(
        self,
        rows: Any,
        *,
        eps: float = NO_EPS,
        gamma: Any = 1.0,
        beta: Any = 0.0,
        g: Any = None,
        running: tuple[Any, Any] = (0.0, 1.0),
        momentum: float = MOMENTUM,
        training: bool = True,
    ) -> Case:
        """The call on these groups: numbers and arrays are rounded to the bench's dtype."""
        kind = self.format.dtype
        rows = np.asarray(rows, dtype=np.float64)
        groups, n = rows.shape
        described = self._described(groups, n, self._rank)
        shape = Layout.of(self.operator, shape_of(described), settings_of(described)).parameter_shape

        def vector(values: Any) -> np.ndarray:
            return np.broadcast_to(np.asarray(values, dtype=np.float64), shape).astype(kind)

        settings = settings_of(attrs.evolve(described, eps=eps, momentum=momentum, training=training))
        given = {"gamma": gamma, "beta": beta, "running_mean": running[0], "running_var": running[1]}
        inputs: dict[str, np.ndarray | None] = {"x": np.empty(shape_of(described), kind)}
        inputs |= {name: vector(value) for name, value in given.items() if name in self.record.arguments}
        drawn = Drawn(rows.shape, self.format, self.format, 0, "mixed", 1)
        if self.operator in _SUBLAYERS:
            made(self.operator, _SUBLAYERS[self.operator], drawn)
        blank = Case(self.operator, inputs, settings, np.zeros((0,), kind), parts=drawn.parts)
        cotangent = np.ones((groups, n)) if g is None else np.asarray(g, dtype=np.float64)
        return blank.replace(x=blank.layout.back(rows.astype(kind)), g=blank.layout.back(cotangent.astype(kind)))

    # -- calls -----------------------------------------------------------------------------------

    def start(self, case: Case, *, asked: bool = False, mode: str = "training", **options: Any) -> Any:
        """
        The evaluation of a case.

        Raises Unsupported where the binding does not take such a call, unless that is what is ``asked``: then the
        call is made, and the target answers for itself.
        """
        if not asked:
            reason = self.binding.accepts(case.x.shape, case.settings)
            if reason:
                raise Unsupported(reason)
        return self.session.start(case.inputs, case.settings, parts=case.parts, mode=mode, **options)

    def outputs(self, case: Case, **options: Any) -> dict[str, np.ndarray]:
        """The results of a case, of the shapes and the dtype that they must have."""
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
        """The gradients of a case by the name of the input, of the shapes that they must have."""
        evaluation = self.start(case)
        checked(evaluation.outputs(), case)
        found = evaluation.pull(case.g).gradients()
        return checked_gradients(found, case, differentiable(self.operator, case.inputs))


def checked(outputs: Mapping[str, np.ndarray], case: Case) -> dict[str, np.ndarray]:
    """The results; BadOutput unless each has the shape and dtype of what it stands for."""
    for name, value in outputs.items():
        like = case.inputs["x" if name == "y" else name.removeprefix("new_")]
        assert like is not None
        _alike(value, like, name)
    return dict(outputs)


def checked_gradients(
    gradients: Mapping[str, np.ndarray | None], case: Case, names: Sequence[str]
) -> dict[str, np.ndarray]:
    """The gradients of these names; BadOutput unless each is there and like its input."""
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
