"""Studies: a claim, who makes it, what is measured, and the rule by which the numbers decide."""

from __future__ import annotations

import enum
import zlib
from collections.abc import Callable, Mapping, Sequence

import attrs
import numpy as np

from ..spec.errors import BadOutput, TargetRaised, Unsupported, one_line
from .operators import NotStudied, Operators

Array = np.ndarray

#: So many seeds at least, so that a spread says something.
SEEDS = 20


class Verdict(enum.Enum):
    """What the numbers say of a claim."""

    HOLDS = "holds"
    UNDER_CONDITIONS = "holds under conditions"
    DOES_NOT_HOLD = "does not hold"


@attrs.frozen
class Source:
    """Who makes the claim, and where."""

    #: Authors, title and year.
    paper: str
    #: "section 4.1", "figure 2".
    place: str
    link: str


@attrs.frozen
class Scale:
    """How much is drawn, and from which seed on."""

    seed: int = 0
    #: How many seeds: an axis of that length stands first in whatever is drawn.
    seeds: int = SEEDS
    #: Smaller models and fewer points, for tests.
    quick: bool = False

    def normal(self, name: str, *shape: int) -> Array:
        """
        Standard normal numbers, float64 of shape (seeds, *shape).

        They depend on the seed and the name alone: what is drawn under one name for two models is equal. NumPy
        promises the numbers of RandomState for good, and those of Generator until its next version.
        """
        return np.stack([self._state(name, k).standard_normal(shape) for k in range(self.seeds)])

    def integers(self, name: str, high: int, *shape: int) -> Array:
        """Whole numbers from 0 up to and without ``high``, of shape (seeds, *shape)."""
        return np.stack([self._state(name, k).randint(0, high, shape) for k in range(self.seeds)])

    def _state(self, name: str, place: int) -> np.random.RandomState:
        key = (self.seed + place, zlib.crc32(name.encode()))
        return np.random.RandomState(np.random.Philox(key=np.array(key, np.uint64)))


@attrs.frozen(eq=False)
class Fact:
    """A number that the verdict may rest on, measured for each seed."""

    name: str
    #: One value a seed; a single one where nothing was drawn.
    values: Array = attrs.field(converter=lambda given: np.atleast_1d(np.asarray(given, np.float64)))
    #: What theory says, where it says a number.
    expected: float | None = None

    @property
    def median(self) -> float:
        """The median over seeds."""
        return float(np.median(self.values))

    @property
    def low(self) -> float:
        """The seed's value nearest to the 5th percentile; not between two, of which one may be infinite."""
        return float(np.quantile(self.values, 0.05, method="nearest"))

    @property
    def high(self) -> float:
        """The seed's value nearest to the 95th percentile."""
        return float(np.quantile(self.values, 0.95, method="nearest"))


#: What a verdict is computed from: the facts by their names.
Facts = Mapping[str, Fact]


@attrs.frozen(eq=False)
class Series:
    """One line of a plot: a quantity along an axis, for each seed."""

    label: str
    #: (points,)
    x: Array = attrs.field(converter=lambda given: np.asarray(given, np.float64))
    #: (seeds, points); NaN where there is nothing.
    values: Array = attrs.field(converter=lambda given: np.atleast_2d(np.asarray(given, np.float64)))
    #: Drawn as a thin line without marks: what theory says, or something to compare with.
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
    #: The contours to draw; chosen from the values where there are none.
    levels: Sequence[float] = ()


@attrs.frozen(eq=False)
class Cells:
    """A panel that is a table: a shade and a text in each cell."""

    title: str
    columns: Sequence[str]
    rows: Sequence[str]
    #: (rows, columns): what the shade shows, from 0 to 1; NaN is left white.
    shades: Array
    #: A text for each cell, row by row.
    texts: Sequence[Sequence[str]]


Panel = Curves | Contour | Cells


@attrs.frozen(eq=False)
class Findings:
    """What a study measured."""

    facts: Sequence[Fact]
    panels: Sequence[Panel]
    #: Panels side by side.
    columns: int = 2


@attrs.frozen
class Judgement:
    """What the rule makes of the facts."""

    verdict: Verdict
    #: One sentence, with the numbers.
    because: str
    #: Under which conditions it holds, where it holds under some.
    conditions: str = ""


@attrs.frozen(eq=False)
class Study:
    """One claim, and how it is put to test."""

    name: str
    #: The claim as it is printed, in one sentence.
    claim: str
    sources: Sequence[Source]
    #: What is measured, on what.
    measured: str
    #: The rule, in words; ``judge`` computes it.
    rule: str
    #: The operators that it calls.
    operators: Sequence[str]
    measure: Callable[[Operators, Scale], Findings]
    judge: Callable[[Facts], Judgement]


@attrs.frozen(eq=False)
class Outcome:
    """A study that was run."""

    study: Study
    scale: Scale
    #: What was called for each operator.
    called: Mapping[str, str]
    target: str
    findings: Findings
    judgement: Judgement


def run(study: Study, operators: Operators, scale: Scale) -> Outcome:
    """Run a study. Raises NotStudied where the target has none of its operators, or a call of it does not succeed."""
    called = operators.names(study.operators)
    try:
        with np.errstate(all="ignore"):  # what overflows is measured too
            findings = study.measure(operators, scale)
    except (TargetRaised, BadOutput, Unsupported) as error:
        raise NotStudied(
            f"{study.name} stops at a call of {operators.target.name}: {one_line(error)}; `normspec check` says more"
        ) from error
    judgement = study.judge({fact.name: fact for fact in findings.facts})
    return Outcome(study, scale, called, operators.target.name, findings, judgement)
