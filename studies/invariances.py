"""invariances: which changes of weights and data each normalisation cancels, in error envelopes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs
import numpy as np

from .operators import Operators
from .over_seeds import BATCH_NORM, GROUP_NORM, INSTANCE_NORM, LAYER_NORM, RMS_NORM, Norm
from .result import Array
from .study import Cells, Fact, Facts, Findings, Judgement, Scale, Source, Study, Verdict

#: Samples, input and output channels, positions in a sample.
SAMPLES, INPUTS, CHANNELS, POSITIONS = 5, 3, 6, 4
#: A practical eps, and one that has no visible effect with variances of order one. Some layers refuse 0.
EPS, NEGLIGIBLE_EPS = 1e-5, 2.0**-100
#: Weights and data are multiples of these. The values to normalise have a variance of about 1/3.
WEIGHT_STEP, DATA_STEP = 2.0**-3, 2.0**-7
#: The factor of every scaling. It is not a power of two, since no rounding would show that.
FACTOR = 3

YES, NO = "invariant", "not invariant"


@attrs.frozen(eq=False)
class Layer:
    """
    A 1 x 1 convolution before a normalisation.

    Weights are (seeds, CHANNELS, INPUTS), data is (seeds, SAMPLES, INPUTS, POSITIONS).
    """

    w: Array
    x: Array
    #: Added to the convolution's output.
    more: float = 0.0

    @property
    def a(self) -> Array:
        """The input of the normalisation, (seeds, SAMPLES, CHANNELS, POSITIONS)."""
        return self.w[:, None] @ self.x + np.float32(self.more)


@attrs.frozen(eq=False)
class Change:
    """A change of a layer, and its effect on y if the normalisation is invariant or equivariant to it."""

    layer: Layer
    #: Turns the y of the unchanged layer into that of the changed one.
    expected: Callable[[Array], Array] = attrs.field(default=lambda y: y)
    #: The samples that are compared.
    samples: slice = slice(None)


def _changes(layer: Layer, scale: Scale) -> dict[str, Change]:
    """All changes by name. Sums and products of these numbers are exact in float32, so that only y is rounded."""
    w, x = layer.w, layer.x
    rows = _steps(scale, "rows", DATA_STEP, INPUTS)
    first_row, first_case = w.copy(), x.copy()
    first_row[:, 0] *= FACTOR
    first_case[:, 0] *= FACTOR
    channels, samples = np.roll(np.arange(CHANNELS), 1), np.roll(np.arange(SAMPLES), 1)
    others = _steps(scale, "others", DATA_STEP, SAMPLES, INPUTS, POSITIONS)
    others[:, 0] = x[:, 0]
    return {
        "weights × 3": Change(Layer(FACTOR * w, x)),
        "a vector added to all weight rows": Change(Layer(w + rows[:, None], x)),
        "one weight row × 3": Change(Layer(first_row, x)),
        "data × 3": Change(Layer(w, FACTOR * x)),
        "a vector added to the data": Change(Layer(w, x + rows[:, None, :, None])),
        "one case × 3": Change(Layer(w, first_case)),
        "sign turned": Change(Layer(-w, x), lambda y: -y),
        "5 added": Change(Layer(w, x, 5.0)),
        "order of channels": Change(Layer(w[:, channels], x), lambda y: y[:, :, channels]),
        "order of samples": Change(Layer(w, x[:, samples]), lambda y: y[:, samples]),
        "other samples": Change(Layer(w, others), samples=slice(0, 1)),
    }


#: The printed tables: Ba et al., table 1, and for RMSNorm Zhang and Sennrich, table 1. "Re-scaling" and "re-centering"
#: of the weight matrix, of one weight vector, of the data set and of a single training case.
_PRINTED_CHANGES = (
    "weights × 3",
    "a vector added to all weight rows",
    "one weight row × 3",
    "data × 3",
    "a vector added to the data",
    "one case × 3",
)
PRINTED: Mapping[str, Mapping[str, bool]] = {
    name: dict(zip(_PRINTED_CHANGES, (one == "x" for one in marks), strict=True))
    for name, marks in (("BatchNorm", "x-xxx-"), ("LayerNorm", "xx-x-x"), ("RMSNorm", "x--x-x"))
}


def _steps(scale: Scale, name: str, step: float, *shape: int) -> Array:
    """Multiples of a step, from -32 to 31 times, in float32."""
    return ((scale.integers(name, 64, *shape) - 32) * step).astype(np.float32)


#: The statistics of inference: another mean and variance for each channel.
_STATISTICS = {
    "running_mean": np.arange(1, CHANNELS + 1, dtype=np.float32) / 8,
    "running_var": np.arange(1, CHANNELS + 1, dtype=np.float32) / 16,
}


NORMS: Mapping[str, Norm] = {
    "BatchNorm": BATCH_NORM,
    "BatchNorm, inference": BATCH_NORM.in_inference(**_STATISTICS),
    "LayerNorm": LAYER_NORM,
    "RMSNorm": RMS_NORM,
    "InstanceNorm": INSTANCE_NORM,
    "GroupNorm, 2 groups": GROUP_NORM,
}


def residuals(operators: Operators, scale: Scale, norm: Norm, eps: float) -> dict[str, Array]:
    """The largest distance of y from an invariant y, in the sum of both envelopes, for each change and each seed."""
    w = _steps(scale, "w", WEIGHT_STEP, CHANNELS, INPUTS)
    x = _steps(scale, "x", DATA_STEP, SAMPLES, INPUTS, POSITIONS)
    layer, found = Layer(w, x), {}
    y, bound = norm.bounded(operators, layer.a, eps)
    for name, change in _changes(layer, scale).items():
        changed, its_bound = norm.bounded(operators, change.layer.a, eps)
        difference = np.abs(changed - change.expected(y)) / (its_bound + np.abs(change.expected(bound)))
        found[name] = difference[:, change.samples].max(axis=(1, 2, 3))
    return found


def measure(operators: Operators, scale: Scale) -> Findings:
    """The table, with an eps that has no visible effect and with a practical one."""
    facts, panels = [], []
    for eps, title in ((NEGLIGIBLE_EPS, f"eps = 2^{np.log2(NEGLIGIBLE_EPS):.0f}"), (EPS, f"eps = {EPS:g}")):
        table = {name: residuals(operators, scale, norm, eps) for name, norm in NORMS.items()}
        for name, printed in PRINTED.items():
            kept = np.max([table[name][change] for change, yes in printed.items() if yes], axis=0)
            lost = np.min([table[name][change] for change, yes in printed.items() if not yes], axis=0)
            facts += [
                Fact(f"{name}, {title}: the largest residual where the table says {YES}", kept),
                Fact(f"{name}, {title}: the smallest where it says {NO}", lost),
            ]
        panels.append(
            _cells(f"largest residual over {scale.seeds} seeds, in envelopes (dark: invariant); {title}", table)
        )
    return Findings(facts, panels, columns=1)


def _cells(title: str, table: Mapping[str, Mapping[str, Array]]) -> Cells:
    """Dark where the residual is within an envelope for every seed."""
    rows, columns = list(table), list(next(iter(table.values())))
    worst = np.array([[table[row][column].max() for column in columns] for row in rows])
    texts = [[_short(value) for value in values] for values in worst]
    return Cells(title, columns, rows, np.where(worst <= 1, 0.8, 0.0), texts)


def _short(value: float) -> str:
    if 10 <= value < 1000:
        return f"{value:.0f}"
    return f"{value:.1g}".replace("e+0", "e")


def judge(facts: Facts) -> Judgement:
    """Apply the rule."""
    wrong = {name: _wrong(name, fact) for name, fact in facts.items()}
    none, practice = ([name for name in facts if f"eps = {word}" in name] for word in ("2^", f"{EPS:g}"))
    unlike = [name for name in none if wrong[name]]
    if unlike:
        return Judgement(Verdict.DOES_NOT_HOLD, f"otherwise than printed: {_told(facts, unlike)}")
    also = [name for name in practice if wrong[name]]
    if also:
        return Judgement(
            Verdict.UNDER_CONDITIONS,
            f"with eps fixed, what scales a group is not undone: {_told(facts, also)}",
            "eps is 0, or negligible compared with the variance, or is scaled as the variance is",
        )
    return Judgement(Verdict.HOLDS, "each entry of the tables is as printed")


def _wrong(name: str, fact: Fact) -> bool:
    """Whether some seed contradicts the table, as a NaN does."""
    return not bool((fact.values <= 1).all() if "largest" in name else (fact.values > 1).all())


def _told(facts: Facts, names: list[str]) -> str:
    return "; ".join(f"{name}: {facts[name].median:.2g} envelopes" for name in names)


STUDY = Study(
    name="invariances",
    claim="Batch, layer and RMS normalisation are invariant as their tables print it.",
    sources=(
        Source(
            "Ba, Kiros, Hinton: Layer Normalization (2016)", "section 5.1, table 1", "https://arxiv.org/abs/1607.06450"
        ),
        Source(
            "Zhang, Sennrich: Root Mean Square Layer Normalization (2019)",
            "section 3.1, table 1",
            "https://arxiv.org/abs/1910.07467",
        ),
    ),
    measured=(
        "y of a 1 x 1 convolution and a normalisation without gamma and beta, before and after a change of weights or"
        " data that float32 represents exactly: the largest difference from what an invariant y would be, in the error"
        " envelopes of both; a changed sign and order are to come out as such"
    ),
    rule=(
        "An entry is invariant if the difference is at most one envelope for every seed. The claim holds if each entry"
        f" is as printed with eps = {EPS:g}, under conditions if it is with an eps that shows nowhere, and else not."
    ),
    operators=("batch_norm", "layer_norm", "rms_norm", "instance_norm", "group_norm"),
    measure=measure,
    judge=judge,
)
