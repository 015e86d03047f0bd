"""eps-matters: the effect of eps, by the variance of a group and the dtype, and the effect of its place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np

from ..reference.formats import FORMATS
from ..reference.layer_norm import layer_norm, layer_norm_vjp
from .envelopes import envelope
from .operators import Operators
from .result import Array
from .study import Curves, Fact, Facts, Findings, Judgement, Scale, Series, Source, Study, Verdict

#: The default of PyTorch's, Flax's and Equinox's LayerNorm.
EPS = 1e-5
#: The values in a group, and the settings of every call.
SIZE, SETTINGS = 16, {"eps": EPS, "axes": (-1,)}
#: Exponents of two of the variances: from far below eps to where eps is below the last bit of float64.
SMALLEST, LARGEST = -24, 72

LEFT_OUT, BESIDE, ROOT = "eps left out", "eps beside the deviation", "eps in the root"


@attrs.frozen(eq=False)
class Form:
    """The exact results of a formula: y and dx, float64 of shape (seeds, variances, SIZE)."""

    y: Array
    dx: Array


def _forms(x: Array, g: Array) -> dict[str, Form]:
    """The three formulas on the same groups, computed in double-double and rounded to float64."""
    plain = Form(
        layer_norm(x, None, None, eps=0.0, axes=(-1,)), layer_norm_vjp(x, None, None, g, eps=0.0, axes=(-1,))[0]
    )
    rooted = Form(layer_norm(x, None, None, **SETTINGS), layer_norm_vjp(x, None, None, g, **SETTINGS)[0])
    wide, h = x.astype(np.float64), g.astype(np.float64)
    deviation = wide.std(axis=-1, keepdims=True)
    divisor = deviation + EPS
    # y = d / (sigma + eps); dsigma/dx = d / (n sigma).
    along = plain.y * (h * plain.y).mean(axis=-1, keepdims=True)
    beside = Form(
        plain.y * (deviation / divisor),
        (h - h.mean(axis=-1, keepdims=True) - along * (deviation / divisor)) / divisor,
    )
    return {LEFT_OUT: plain, BESIDE: beside, ROOT: rooted}


def _largest(values: Array) -> Array:
    """The largest value in each group: (seeds, variances)."""
    return np.abs(values).max(axis=-1)


@attrs.frozen(eq=False)
class Measured:
    """The target's results in one dtype, and each formula's distance from them."""

    variances: Array
    #: By formula: the largest difference from the target's y and dx in a group, in envelopes, (seeds, variances).
    y: Mapping[str, Array]
    dx: Mapping[str, Array]
    #: The number of values in constant groups' y and dx that are not finite, for each seed.
    lost: Array


def _measured(operators: Operators, scale: Scale, dtype: str, exponents: Array) -> Measured:
    """Measure the target's LayerNorm on groups with these variances."""
    kind = FORMATS[dtype].dtype
    pattern = scale.normal("pattern", SIZE)
    pattern = pattern - pattern.mean(axis=-1, keepdims=True)
    pattern /= pattern.std(axis=-1, keepdims=True)
    # Only variances with four deviations within the format's range.
    exponents = exponents[2.0 ** (exponents / 2) * 4 < FORMATS[dtype].largest]
    x = (pattern[:, None, :] * 2.0 ** (exponents[:, None] / 2)).astype(kind)
    g = np.broadcast_to(scale.normal("g", SIZE)[:, None, :], x.shape).astype(kind)
    result = operators.layer_norm(x, **SETTINGS)
    got = Form(result.y.astype(np.float64), result.pull(g)["x"].astype(np.float64))
    bound = envelope(operators, "layer_norm", x, **SETTINGS)
    y_bound, dx_bound = bound.y(), bound.gradients(g)["dx"]
    forms = _forms(x, g)
    constant = operators.layer_norm(
        np.broadcast_to(scale.normal("level", 1), (scale.seeds, SIZE)).astype(kind), **SETTINGS
    )
    both = np.concatenate([constant.y, constant.pull(g[:, 0])["x"]], axis=-1)
    return Measured(
        2.0**exponents,
        {name: _largest((got.y - form.y) / y_bound) for name, form in forms.items()},
        {name: _largest((got.dx - form.dx) / dx_bound) for name, form in forms.items()},
        (~np.isfinite(both.astype(np.float64))).sum(axis=-1),
    )


def _from(measured: Measured, form: str) -> Array:
    """For each seed the smallest variance from which on a formula is within an envelope; infinity if there is none."""
    outside = ~((measured.y[form] <= 1) & (measured.dx[form] <= 1))  # a NaN is outside
    found = np.full(len(outside), np.inf)
    for seed, row in enumerate(outside):
        last = np.flatnonzero(row)
        after = 0 if len(last) == 0 else last[-1] + 1
        if after < len(measured.variances):
            found[seed] = measured.variances[after]
    return found


def measure(operators: Operators, scale: Scale) -> Findings:
    """The distance of each formula from the target's result, by variance and dtype."""
    exponents = np.arange(SMALLEST, LARGEST + 1, 6 if scale.quick else 2)
    found = {dtype: _measured(operators, scale, dtype, exponents) for dtype in FORMATS}
    facts: list[Fact] = []
    for dtype, one in found.items():
        facts += [
            Fact(f"{dtype}: from {ROOT}, in envelopes", np.maximum(one.y[ROOT], one.dx[ROOT]).max(axis=1)),
            Fact(f"{dtype}: values of constant groups that are not finite", one.lost, 0.0),
            *(
                Fact(f"{dtype}: variance from which {form} is the same", _from(one, form))
                for form in (LEFT_OUT, BESIDE)
            ),
        ]
    panels = _plain()
    for form in (LEFT_OUT, BESIDE):
        lines = [_thinned(d, one.variances, np.maximum(one.y[form], one.dx[form])) for d, one in found.items()]
        lines.append(Series("one envelope", 2.0 ** exponents[[0, -1]], [1.0, 1.0], guide=True))
        panels.append(_panel(f"{form}: how far y or the gradient moves", "largest difference / envelope", lines))
    return Findings(facts, panels)


def _plain() -> list[Curves]:
    """What the formulas return, independent of the dtype."""
    variances = 2.0 ** np.arange(-44.0, 9.0, 2.0)
    deviations = np.sqrt(variances)
    gains = {ROOT: 1 / np.sqrt(variances + EPS), BESIDE: 1 / (deviations + EPS), LEFT_OUT: 1 / deviations}
    return [
        _panel(
            "deviation of y by the formula",
            "deviation of y",
            [Series(n, variances, gain * deviations) for n, gain in gains.items()],
            log=False,
        ),
        _panel(
            "gain of the gradient by the formula",
            "factor from gradient of y to gradient of x",
            [Series(n, variances, gain) for n, gain in gains.items()],
        ),
    ]


def _thinned(label: str, variances: Array, values: Array) -> Series:
    """Every other point; that is enough for a drawing."""
    return Series(label, variances[::2], values[:, ::2])


def _panel(title: str, label: str, lines: Any, *, log: bool = True) -> Curves:
    return Curves(title, f"variance of the group (eps = {EPS:g})", label, lines, x_log=True, y_log=log)


def judge(facts: Facts) -> Judgement:
    """Apply the rule."""
    wrong = {dtype: told for dtype in FORMATS if (told := _wrong(facts, dtype))}
    wide = [dtype for dtype in wrong if not FORMATS[dtype].narrow]
    if wide:
        return Judgement(Verdict.DOES_NOT_HOLD, wrong[wide[0]])
    needed = {d: facts[f"{d}: variance from which {LEFT_OUT} is the same"].values.max() for d in FORMATS}
    if not wrong and all(one <= 2.0**SMALLEST for one in needed.values()):
        return Judgement(Verdict.HOLDS, "eps moves no result at any variance")
    if not any(np.isfinite(one) for one in needed.values()):
        return Judgement(Verdict.DOES_NOT_HOLD, "eps moves results at every variance")
    from_on = ", ".join(f"{dtype} {one:.2g}" for dtype, one in needed.items() if dtype not in wrong)
    without = f"; not in {', '.join(wrong)}" if wrong else ""
    because = "below these variances eps moves y or the gradient by more than an envelope"
    return Judgement(
        Verdict.UNDER_CONDITIONS,
        "; ".join((because, *wrong.values())),
        f"the variance of each group is at least: {from_on}{without}",
    )


def _wrong(facts: Facts, dtype: str) -> str:
    """What contradicts the claim in a dtype, given that eps is there; empty where nothing does."""
    lost = facts[f"{dtype}: values of constant groups that are not finite"].values
    if lost.any():
        return f"it is not stable: constant groups of {dtype} give results that are not finite"
    distance = facts[f"{dtype}: from {ROOT}, in envelopes"].values.max()
    if not distance <= 1:  # or NaN
        return f"eps does not stand in the root: in {dtype} results are {distance:.2g} envelopes from that formula"
    return ""


STUDY = Study(
    name="eps-matters",
    claim="eps is added to the variance for numerical stability, and changes nothing else.",
    sources=(
        Source(
            "Ioffe, Szegedy: Batch Normalization (2015)",
            "algorithm 1 and section 3",
            "https://arxiv.org/abs/1502.03167",
        ),
    ),
    measured=(
        f"LayerNorm of groups of {SIZE} values with variances from 2^{SMALLEST} to 2^{LARGEST} and eps = {EPS:g}, in"
        " four dtypes: how far y and the gradient of x are from the exact results of the formula without eps, and of"
        " that with eps beside the deviation, in error envelopes"
    ),
    rule=(
        "It holds if the formula without eps is within one envelope of y and of the gradient at all variances in each"
        " dtype, and under conditions if it is from some variance on. Where constant groups give results that are not"
        " finite, or any result is more than an envelope from the formula with eps in the root, it does not hold: in"
        " float32 or float64 not at all, and in 16 bits not in that dtype."
    ),
    operators=("layer_norm",),
    measure=measure,
    judge=judge,
)
