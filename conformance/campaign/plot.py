"""The plot of a campaign: the distribution of error / envelope for each requirement."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from ...spec.errors import NormspecError
from ...spec.extras import how_to_add
from ..results.ratios import BINS, EDGES
from .summary import Summary


class NoPlot(NormspecError):
    """The plot cannot be drawn."""


#: Inches: the height of a row, the space above and below the rows together, and the total width.
_ROW, _AROUND, _WIDTH = 0.15, 1.3, 8.0


def drawn(summary: Summary) -> str:
    """
    The plot as SVG.

    Each requirement about a magnitude has a row, darker where more ratios lie, with a mark at the largest. Targets and
    dtypes are added up.

    Raises NoPlot if matplotlib is not installed, or if no requirement has a ratio.
    """
    try:
        import matplotlib
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure
    except ImportError:
        raise NoPlot(f"no plot: matplotlib is not installed: {how_to_add('plot')}") from None
    rows = _rows(summary)
    if not rows:
        raise NoPlot("no plot: nothing that was judged is about a magnitude")
    with matplotlib.rc_context({"svg.hashsalt": "normspec", "svg.fonttype": "none", "font.size": 7}):
        height = _ROW * len(rows) + _AROUND
        figure = Figure(figsize=(_WIDTH, height))
        FigureCanvasSVG(figure)
        axes = figure.add_axes((0.1, 0.7 / height, 0.86, 1 - _AROUND / height))
        _draw(axes, rows)
        axes.set_title(
            f"{' and '.join(summary.asked['identity']['targets'])}, {summary.asked['identity']['profile']}: "
            f"{summary.cases:,} cases judged"
        )
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return text.getvalue()


def _rows(summary: Summary) -> dict[str, tuple[np.ndarray, float]]:
    """The histogram and the largest ratio of each requirement."""
    found: dict[str, tuple[np.ndarray, float]] = {}
    for requirement in summary.requirements():
        near = [one for (_, name, _), one in summary.nearness.items() if name == requirement and one.ratio is not None]
        if near:
            histogram = np.sum([one.histogram for one in near], axis=0)
            found[requirement] = histogram, max(one.ratio for one in near if one.ratio is not None)
    return found


def _draw(axes: Any, rows: dict[str, tuple[np.ndarray, float]]) -> None:
    """Draw the share of each bin in its row on a logarithmic scale, from one in a million on; zero stays white."""
    counts = np.array([histogram for histogram, _ in rows.values()], dtype=float)
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    shade = np.where(share > 0, np.log10(np.maximum(share, 1e-6)) + 6.5, np.nan)
    axes.imshow(
        shade, cmap="Blues", vmin=0, vmax=6.5, aspect="auto", interpolation="nearest",
        extent=(-0.5, BINS - 0.5, len(rows) - 0.5, -0.5),
    )  # fmt: skip
    axes.plot([_place(ratio) for _, ratio in rows.values()], range(len(rows)), linestyle="", marker="|", color="C1")
    axes.axvline(len(EDGES) - 0.5, color="C3", linewidth=0.8)
    octaves = range(0, len(EDGES), 4)
    axes.set_xticks([place + 0.5 for place in octaves], [_power(EDGES[place]) for place in octaves])
    axes.set_yticks(range(len(rows)), list(rows))
    axes.tick_params(length=0, labelsize=6)
    axes.set_xlabel("error / envelope (what is above 1 violates; the first column holds exact results too)")


def _place(ratio: float) -> float:
    """The position of a ratio on the axis of bins, where bin k lies between k - 0.5 and k + 0.5."""
    if ratio <= EDGES[0]:
        return 0.0
    if ratio > EDGES[-1]:
        return BINS - 1.0
    return 4 * float(np.log2(ratio)) + len(EDGES) - 0.5


def _power(edge: float) -> str:
    exponent = round(float(np.log2(edge)))
    return "1" if exponent == 0 else f"1/{2**-exponent}"
