"""norm-axes: which values each normalisation normalises together, and what else its result depends on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
import numpy as np

from .operators import Operators
from .over_seeds import BATCH_NORM, GROUP_NORM, GROUPS, INSTANCE_NORM, LAYER_NORM, RMS_NORM, Norm
from .result import Array
from .study import Cells, Curves, Fact, Facts, Findings, Judgement, Panel, Scale, Series, Source, Study, Verdict

#: Samples, channels and positions of the batch.
SAMPLES, CHANNELS, POSITIONS = 8, 6, 10
EPS = 1e-5
#: Samples in the largest batch, with which all others are compared.
LARGEST = 256

#: Kinds of groups, by the indices that two values of a group have in common. "half" is the half of the channels.
KINDS: Mapping[str, tuple[str, ...]] = {
    "channel": ("channel",),
    "sample": ("sample",),
    "sample, channel": ("sample", "channel"),
    "sample, half of the channels": ("sample", "half"),
    "sample, position": ("sample", "position"),
    "whole batch": (),
}


@attrs.frozen(eq=False)
class Kind:
    """A normalisation, and the kind of groups that its paper defines."""

    norm: Norm
    own: str
    #: Whether it subtracts the mean.
    centred: bool = True

    def unions(self) -> list[str]:
        """The kinds whose groups are unions of its own groups: a union of normalised groups is normalised too."""
        known = {*KINDS[self.own], *(["half"] if "channel" in KINDS[self.own] else [])}
        return [name for name, indices in KINDS.items() if set(indices) <= known and name != self.own]

    def others(self) -> list[str]:
        """All other kinds."""
        return [name for name in KINDS if name != self.own and name not in self.unions()]


NORMS: Mapping[str, Kind] = {
    "BatchNorm": Kind(BATCH_NORM, "channel"),
    "LayerNorm": Kind(Norm("layer_norm", {"axes": (-2, -1)}), "sample"),
    "LayerNorm of a position": Kind(LAYER_NORM, "sample, position"),
    "InstanceNorm": Kind(INSTANCE_NORM, "sample, channel"),
    "GroupNorm": Kind(GROUP_NORM, "sample, half of the channels"),
    "RMSNorm of a position": Kind(RMS_NORM, "sample, position", centred=False),
}


def _spread(values: Array, kind: str) -> Array:
    """For each value the mean over its group, in the shape of values: (seeds, samples, channels, positions)."""
    seeds, samples, channels, positions = values.shape
    split = values.reshape(seeds, samples, GROUPS, channels // GROUPS, positions)
    kept = {axis for index in KINDS[kind] for axis in _AXES[index]}
    means = split.mean(axis=tuple(axis for axis in range(1, 5) if axis not in kept), keepdims=True)
    return np.broadcast_to(means, split.shape).reshape(values.shape)


#: The axes of KINDS' indices, once channels are split in two axes: the half, and the channel within the half.
_AXES = {"sample": (1,), "half": (2,), "channel": (2, 3), "position": (4,)}


def _means(values: Array, kind: str) -> Array:
    """The same as (seeds, values of a batch): each group's mean occurs at least once."""
    return _spread(values, kind).reshape(len(values), -1)


def batch(scale: Scale, samples: int) -> Array:
    """Values whose level and scale differ by sample, channel and position: (seeds, samples, channels, positions)."""
    shapes = {"sample": (LARGEST, 1, 1), "channel": (1, CHANNELS, 1), "position": (1, 1, POSITIONS)}
    level = sum(2 * scale.normal(f"level of a {name}", *shape) for name, shape in shapes.items())
    size = np.exp(sum(scale.normal(f"scale of a {name}", *shape) / 2 for name, shape in shapes.items()))
    values = level + size * scale.normal("values", LARGEST, CHANNELS, POSITIONS)
    return values[:, :samples].astype(np.float32)


def _residuals(kind: Kind, x: Array, y: Array, bound: Array) -> dict[str, Array]:
    """How far y is from normalised in each kind of groups, relative to the envelopes of y, by seed."""
    wide = x.astype(np.float64)
    centre = _spread(wide, kind.own) if kind.centred else 0.0
    variance = _spread((wide - centre) ** 2, kind.own)
    # The exact y has the mean square var / (var + eps) in its own group.
    square = y**2 - variance / (variance + EPS)
    found = {}
    for name in KINDS:
        off = np.abs(_means(square, name)) / _means(2 * np.abs(y) * bound + bound**2, name)
        if kind.centred:
            off = np.maximum(off, np.abs(_means(y, name)) / _means(bound, name))
        found[name] = off.max(axis=1)
    return found


def _root(difference: Array) -> Array:
    """The root mean square, by seed."""
    return np.sqrt((difference.astype(np.float64) ** 2).mean(axis=(1, 2, 3)))


def _correlations(x: Array) -> Array:
    """The correlation of each pair of channels over samples and positions: (seeds, channels, channels)."""
    rows = np.moveaxis(x.astype(np.float64), 2, 1).reshape(len(x), x.shape[2], -1)
    return np.stack([np.corrcoef(one) for one in rows])


def _dependence(operators: Operators, kind: Kind, x: Array, others: Array) -> dict[str, Array]:
    """The effects on the first sample's y of all else it may depend on: the root mean square of its change, by seed."""

    def y(values: Array, norm: Norm = kind.norm) -> Array:
        return norm(operators, values, EPS).y

    whole, first = y(x), slice(0, 1)
    replaced = np.concatenate([x[:, first], others], axis=1)
    padded = np.concatenate([x, np.zeros_like(x)], axis=3)
    inference = whole
    if "training" in kind.norm.settings:
        inference = y(x, kind.norm.in_inference())
    return {
        "other samples": _root((y(replaced) - whole)[:, first]),
        "padding": _root((y(padded)[..., : x.shape[3]] - whole)[:, first]),
        "inference in place of training": _root((inference - whole)[:, first]),
        "correlation of channels": np.abs(_correlations(whole) - _correlations(x)).max(axis=(1, 2)),
    }


def measure(operators: Operators, scale: Scale) -> Findings:
    """Moments by kind of group before and after normalisation, and what else y depends on."""
    x = batch(scale, SAMPLES)
    others = batch(scale, 2 * SAMPLES)[:, SAMPLES + 1 :]
    facts, rows, dependence = [], {"(input)": _moments(x)}, {}
    dark: dict[str, dict[str, Array]] = {}
    for name, kind in NORMS.items():
        y, bound = kind.norm.bounded(operators, x, EPS)
        off = dark[name] = _residuals(kind, x, y, bound)
        rows[name] = _moments(y)
        facts.append(Fact(f"{name}: {_OWN}", off[kind.own]))
        if kind.unions():
            facts.append(Fact(f"{name}: {_UNIONS}", np.max([off[one] for one in kind.unions()], axis=0)))
        facts.append(Fact(f"{name}: {_OTHERS}", np.min([off[one] for one in kind.others()], axis=0)))
        dependence[name] = _dependence(operators, kind, x, others)
    facts += [Fact(f"{name}: change by other samples", one["other samples"]) for name, one in dependence.items()]
    correlations = ((name, one["correlation of channels"]) for name, one in dependence.items())
    facts += [Fact(f"{name}: change of correlations", values) for name, values in correlations]
    panels: list[Panel] = [_moment_cells(moment, rows, dark) for moment in ("mean", "mean square")]
    return Findings(facts, [*panels, _dependence_cells(dependence), _by_size(operators, scale)])


#: The quantities of the facts, in envelopes.
_OWN, _UNIONS, _OTHERS = "own groups", "unions of these", "other groups, the least"


def _moments(values: Array) -> dict[str, dict[str, Array]]:
    """For each moment and kind of groups, the largest distance from the normalised moment, by seed."""
    wide = values.astype(np.float64)
    return {
        "mean": {name: np.abs(_means(wide, name)).max(axis=1) for name in KINDS},
        "mean square": {name: np.abs(_means(wide**2, name) - 1).max(axis=1) for name in KINDS},
    }


def _moment_cells(moment: str, rows: Mapping[str, Mapping[str, Mapping[str, Array]]], dark) -> Cells:
    title = {"mean": "largest |mean| of a group", "mean square": "largest |mean square - 1| of a group"}[moment]
    texts = [[_short(float(np.median(one[moment][kind]))) for kind in KINDS] for one in rows.values()]
    shades = [[_shade(name, dark, kind, moment) for kind in KINDS] for name in rows]
    return Cells(f"{title}, median over seeds (dark: normalised)", list(KINDS), list(rows), np.array(shades), texts)


def _shade(name: str, dark: Mapping[str, Mapping[str, Array]], kind: str, moment: str) -> float:
    if name not in dark or (moment == "mean" and not NORMS[name].centred):
        return 0.0
    return 0.8 if dark[name][kind].max() <= 1 else 0.0


def _short(value: float) -> str:
    return "0" if value == 0 else f"{value:.0e}".replace("e-0", "e-") if value < 0.01 else f"{value:.2g}"


#: Half of the digits of float32: anything smaller counts as rounding, and is left white.
_ROUNDING = 2.0**-12


def _dependence_cells(dependence: Mapping[str, Mapping[str, Array]]) -> Cells:
    columns = list(next(iter(dependence.values())))
    values = [[float(np.median(one[column])) for column in columns] for one in dependence.values()]
    shades = np.where(np.array(values) > _ROUNDING, 0.8, 0.0)
    texts = [[_short(value) for value in row] for row in values]
    return Cells("change of y, or of correlations (dark: it changes)", columns, list(dependence), shades, texts)


def _by_size(operators: Operators, scale: Scale) -> Curves:
    """The distance of the first sample's y from its y in the largest batch, by batch size."""
    sizes = [2, 8, 32] if scale.quick else [2, 4, 8, 16, 32, 64, 128]
    lines = []
    for name, kind in NORMS.items():
        last = kind.norm(operators, batch(scale, LARGEST), EPS).y[:, :1]
        moved = [_root(kind.norm(operators, batch(scale, n), EPS).y[:, :1] - last) for n in sizes]
        lines.append(Series(name, sizes, np.stack(moved, axis=1)))
    label = f"distance from y in a batch of {LARGEST}, rms"
    return Curves("y of one sample by the size of its batch", "samples in the batch", label, lines, x_log=True)


def judge(facts: Facts) -> Judgement:
    """Apply the rule."""
    # A NaN shows neither.
    wrong = [name for name, fact in facts.items() if name.endswith(_OWN) and not (fact.values <= 1).all()]
    wrong += [name for name, fact in facts.items() if name.endswith(_OTHERS) and not (fact.values > 1).all()]
    if wrong:
        return Judgement(Verdict.DOES_NOT_HOLD, f"otherwise than printed: {_told(facts, wrong)}")
    also = [name for name, fact in facts.items() if name.endswith(_UNIONS) and (fact.values <= 1).all()]
    if also:
        names = ", ".join(name.partition(":")[0] for name in also)
        return Judgement(
            Verdict.UNDER_CONDITIONS,
            f"unions of its own groups are normalised too by {names}",
            "the other groups are not unions of its own",
        )
    return Judgement(Verdict.HOLDS, "its own groups are normalised, and no others")


def _told(facts: Facts, names: Sequence[str]) -> str:
    return "; ".join(f"{name}: {facts[name].median:.2g}" for name in names)


STUDY = Study(
    name="norm-axes",
    claim="Each normalisation gives the values of its own groups mean 0 and variance 1, and those of no others.",
    sources=(
        Source("Wu, He: Group Normalization (2018)", "section 3.1, figure 2", "https://arxiv.org/abs/1803.08494"),
        Source(
            "Zhang, Sennrich: Root Mean Square Layer Normalization (2019)",
            "section 3, only for the mean square",
            "https://arxiv.org/abs/1910.07467",
        ),
    ),
    measured=(
        f"the mean and the mean square of y in groups of six kinds, in a batch of {SAMPLES} samples, {CHANNELS}"
        f" channels and {POSITIONS} positions whose level and scale differ by each of these: how far they are from 0"
        " and from var / (var + eps), over what the envelopes of y allow; and the root mean square of what changes y"
    ),
    rule=(
        "A kind of groups is normalised where no seed is off by more than the envelopes allow. The claim holds where"
        " that is so of each normalisation's own groups alone, under conditions where it is so of unions of these too,"
        " and does not hold where its own are not, or others are."
    ),
    operators=("batch_norm", "layer_norm", "instance_norm", "group_norm", "rms_norm"),
    measure=measure,
    judge=judge,
)
