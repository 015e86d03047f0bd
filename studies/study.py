"""Studies: a claim, its source, the measurement, and the rule by which the numbers decide."""

from __future__ import annotations

import enum
import zlib
from collections.abc import Callable, Mapping, Sequence

import attrs
import numpy as np

from ..spec.errors import BadOutput, TargetRaised, Unsupported, one_line
from .operators import NotStudied, Operators

Array = np.ndarray

#: The least number of seeds; with fewer the spread would mean little.
SEEDS = 20


#: At least this many of 20 seeds have to agree: fewer are more likely than 5 % by chance, by a two-sided sign test.
AGREE = 15


class Verdict(enum.Enum):
    """What the numbers say about a claim."""

    HOLDS = "holds"
    UNDER_CONDITIONS = "holds under conditions"
    DOES_NOT_HOLD = "does not hold"


@attrs.frozen
class Source:
    """The source of a claim."""

    #: Authors, title and year.
    paper: str
    #: "section 4.1", "figure 2".
    place: str
    link: str


@attrs.frozen
class Scale:
    """How much to draw, and the first seed."""

    seed: int = 0
    #: The number of seeds; it is the first axis of every drawn array.
    seeds: int = SEEDS
    #: Smaller models and fewer points, for tests.
    quick: bool = False

    def normal(self, name: str, *shape: int) -> Array:
        """
        Standard normal numbers, float64 of shape (seeds, *shape).

        They depend only on the seed and the name: two models that draw under one name get equal numbers. NumPy
        guarantees the numbers of RandomState for good, but those of Generator only until its next version.
        """
        return np.stack([self._state(name, k).standard_normal(shape) for k in range(self.seeds)])

    def integers(self, name: str, high: int, *shape: int) -> Array:
        """Whole numbers from 0 up to, but not including, ``high``, of shape (seeds, *shape)."""
        return np.stack([self._state(name, k).randint(0, high, shape) for k in range(self.seeds)])

    def _state(self, name: str, place: int) -> np.random.RandomState:
        # The key is two words of 64 bits; a seed may be any whole number.
        key = ((self.seed + place) % 2**64, zlib.crc32(name.encode()))
        return np.random.RandomState(np.random.Philox(key=np.array(key, np.uint64)))


@attrs.frozen(eq=False)
class Fact:
    """A number on which the verdict may rest, measured for each seed."""

    name: str
    #: One value per seed; a single one if nothing was drawn.
    values: Array = attrs.field(converter=lambda given: np.atleast_1d(np.asarray(given, np.float64)))
    #: The value in theory, if theory gives one.
    expected: float | None = None

    @property
    def median(self) -> float:
        """The median over seeds."""
        return float(np.median(self.values))

    @property
    def low(self) -> float:
        """The seed's value nearest to the 5th percentile; not interpolated, because a neighbour may be infinite."""
        return float(np.quantile(self.values, 0.05, method="nearest"))

    @property
    def high(self) -> float:
        """The seed's value nearest to the 95th percentile."""
        return float(np.quantile(self.values, 0.95, method="nearest"))


def agree(seeds: Array) -> bool:
    """Whether something is true of enough seeds; one flag per seed."""
    return bool(seeds.mean() >= AGREE / SEEDS)


#: The facts by name; a verdict is computed from them.
Facts = Mapping[str, Fact]


@attrs.frozen(eq=False)
class Series:
    """One line of a plot: a quantity along an axis, for each seed."""

    label: str
    #: (points,)
    x: Array = attrs.field(converter=lambda given: np.asarray(given, np.float64))
    #: (seeds, points); NaN where there is no value.
    values: Array = attrs.field(converter=lambda given: np.atleast_2d(np.asarray(given, np.float64)))
    #: Drawn as a thin line without marks: theory, or a line for comparison.
    guide: bool = False


@attrs.frozen(eq=False)
class Curves:
    """A panel of lines: the median over seeds, and from the 5th to the 95th percentile."""

    title: str
    x_label: str
    y_label: str
    series: Sequence[Series]
    x_log: bool = False
    y_log: bool = False


@attrs.frozen(eq=False)
class Contour:
    """A panel of one quantity over a plane."""

    title: str
    x_label: str
    y_label: str
    label: str
    #: (columns,) and (rows,)
    x: Array
    y: Array
    #: (rows, columns)
    values: Array
    #: The contours to draw; empty: chosen from the values.
    levels: Sequence[float] = ()


@attrs.frozen(eq=False)
class Cells:
    """A panel with a table: each cell has a shade and a text."""

    title: str
    columns: Sequence[str]
    rows: Sequence[str]
    #: (rows, columns): the shades, from 0 to 1; NaN is left white.
    shades: Array
    #: A text for each cell, row by row.
    texts: Sequence[Sequence[str]]


Panel = Curves | Contour | Cells


@attrs.frozen(eq=False)
class Findings:
    """The measurements of a study."""

    facts: Sequence[Fact]
    panels: Sequence[Panel]
    #: The number of panels side by side.
    columns: int = 2


@attrs.frozen
class Judgement:
    """The outcome of the rule."""

    verdict: Verdict
    #: One sentence, with the numbers.
    because: str
    #: The conditions under which the claim holds; empty if there are none.
    conditions: str = ""


@attrs.frozen(eq=False)
class Study:
    """One claim, and its test."""

    name: str
    #: The printed claim, in one sentence.
    claim: str
    sources: Sequence[Source]
    #: The quantity that is measured, and on what.
    measured: str
    #: The rule, in words; ``judge`` computes it.
    rule: str
    #: The operators that the study calls.
    operators: Sequence[str]
    measure: Callable[[Operators, Scale], Findings]
    judge: Callable[[Facts], Judgement]


@attrs.frozen(eq=False)
class Outcome:
    """A finished study."""

    study: Study
    scale: Scale
    #: The name of what was called for each operator.
    called: Mapping[str, str]
    target: str
    findings: Findings
    judgement: Judgement


def run(study: Study, operators: Operators, scale: Scale) -> Outcome:
    """Run a study. Raises NotStudied if the target has none of its operators, or if one of its calls fails."""
    called = operators.names(study.operators)
    try:
        with np.errstate(all="ignore"):  # overflow is measured too
            findings = study.measure(operators, scale)
    except (TargetRaised, BadOutput, Unsupported) as error:
        raise NotStudied(
            f"{study.name} stops at a call of {operators.target.name}: {one_line(error)}; `normspec check` says more"
        ) from error
    judgement = study.judge({fact.name: fact for fact in findings.facts})
    return Outcome(study, scale, called, operators.target.name, findings, judgement)
