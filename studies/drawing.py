"""The figure of a study, drawn by matplotlib. Marks and dashes differ, so it needs no colours."""

from __future__ import annotations

import io
import math
import re
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..spec.errors import NormspecError
from ..spec.extras import how_to_add
from .study import Cells, Contour, Curves, Findings, Panel, Series


class NoFigure(NormspecError):
    """Nothing can be drawn here."""


#: Okabe and Ito's colours (https://jfly.uni-koeln.de/color/), which the colour-blind can tell apart, without the
#: yellow, which is too pale for lines. Marks and dashes differ too, so that grey is enough.
_LOOKS = (
    ("#0072B2", "o", "-"),
    ("#D55E00", "s", "--"),
    ("#009E73", "^", "-."),
    ("#000000", "D", ":"),
    ("#CC79A7", "v", (0, (5, 1, 1, 1, 1, 1))),
    ("#56B4E9", "P", (0, (8, 2))),
    ("#8C6D00", "X", (0, (3, 1, 1, 1))),
    ("#666666", "*", (0, (1, 1))),
)

#: Inches: one panel, and a legend line.
_PANEL_WIDTH, _PANEL_HEIGHT, _LEGEND_LINE = 4.3, 3.3, 0.22
#: Inches: width and height of a table cell.
_CELL = 0.72, 0.3

#: Up to this ratio of its ends an axis, of depths or widths, is marked in powers of two; beyond, in powers of ten.
_POWERS_OF_TWO = 2.0**12

#: Coordinates in the SVG have six decimals of a point; only two are visible.
_COORDINATES = re.compile(rb'\b(?:d|x|y)="[^"]*"')
_LONG = re.compile(rb"(\.\d\d)\d+")

#: A logarithmic axis with less than this between its ends has labels between the powers of ten.
_DECADES = 1000.0

#: Up to this many points, each has its own tick.
_TICKS = 4

#: The most marks on a line.
_MARKS = 8


def drawn(findings: Findings) -> dict[str, bytes]:
    """The figure as "svg" and "png". Raises NoFigure if matplotlib is not installed."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError:
        raise NoFigure(f"no figure: matplotlib is not installed: {how_to_add('plot')}") from None
    columns = min(findings.columns, len(findings.panels))
    rows = math.ceil(len(findings.panels) / columns)
    found = {}
    with matplotlib.rc_context(
        {"svg.hashsalt": "normspec", "svg.fonttype": "none", "font.size": 9, "font.sans-serif": ["DejaVu Sans"]}
    ):
        widths, heights = zip(*(_size(panel) for panel in findings.panels), strict=True)
        figure = Figure(figsize=(max(widths) * columns, max(heights) * rows), layout="constrained")
        looks: dict[str, int] = {}
        shared = len({one.label for panel in findings.panels for one in _series(panel)}) <= len(_LOOKS)
        places = figure.subplots(rows, columns, squeeze=False).flat
        for place in places:
            place.set_visible(False)
        for axes, panel in zip(figure.axes, findings.panels, strict=False):
            axes.set_visible(True)
            _draw(figure, axes, panel, looks if shared else {})
        if shared:
            _legend(figure, columns)
        else:
            for axes in figure.axes[: len(findings.panels)]:
                _legend_below(axes)
        for kind, metadata in (("svg", {"Date": None, "Creator": None}), ("png", {"Software": None})):
            file = io.BytesIO()
            figure.savefig(file, format=kind, dpi=150, metadata=metadata)
            found[kind] = file.getvalue()
    found["svg"] = re.sub(rb"\n +", b"\n", _COORDINATES.sub(lambda part: _LONG.sub(rb"\1", part[0]), found["svg"]))
    return found


def _size(panel: Panel) -> tuple[float, float]:
    """Width and height of a panel in inches."""
    if not isinstance(panel, Cells):
        return _PANEL_WIDTH, _PANEL_HEIGHT
    names = 0.075 * max(map(len, panel.rows))
    return max(_PANEL_WIDTH, names + _CELL[0] * len(panel.columns)), 1 + _CELL[1] * len(panel.rows)


def _draw(figure: Any, axes: Any, panel: Panel, looks: dict[str, int]) -> None:
    axes.set_title(textwrap.fill(panel.title, int(12 * _size(panel)[0])), fontsize=9)
    if isinstance(panel, Curves):
        _curves(axes, panel, looks)
    elif isinstance(panel, Contour):
        _contour(figure, axes, panel)
    else:
        _cells(axes, panel)


def _curves(axes: Any, panel: Curves, looks: dict[str, int]) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.set_xlabel(panel.x_label)
    axes.set_ylabel(panel.y_label)
    at = np.unique(np.concatenate([series.x for series in panel.series]))
    if not panel.x_log and len(at) <= _TICKS:
        axes.set_xticks(at)
    elif not panel.x_log and np.all(at == np.round(at)):  # there is no layer 1.5
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    if panel.x_log:
        if at.max() <= _POWERS_OF_TWO * at.min():
            axes.set_xscale("log", base=2)
            axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        else:
            axes.set_xscale("log")
    if panel.y_log:
        axes.set_yscale("log")
    for series in panel.series:
        _line(axes, series, looks.setdefault(series.label, len(looks)))
    if panel.y_log:
        _plain_numbers(axes)
    axes.grid(True, color="#dddddd", linewidth=0.5)
    axes.set_axisbelow(True)


def _plain_numbers(axes: Any) -> None:
    """On a logarithmic axis of few decades, write 20, not 2 × 10^1; on one of many, omit small ticks."""
    from matplotlib.ticker import NullLocator

    low, high = axes.get_ylim()
    if high / low > _DECADES:
        axes.yaxis.set_minor_locator(NullLocator())
        return

    def plain(value: float, _: object) -> str:
        digit = value / 10 ** math.floor(math.log10(value) + 1e-9)
        return f"{value:g}" if round(digit) in (1, 2, 5) else ""

    axes.yaxis.set_major_formatter(plain)
    axes.yaxis.set_minor_formatter(plain)


def _line(axes: Any, series: Series, look: int) -> None:
    """Draw a line; a label has the same look in every panel."""
    colour, mark, dashes = _LOOKS[look % len(_LOOKS)]
    middle = np.median(series.values, axis=0)
    if series.guide:
        axes.plot(series.x, middle, color=colour, linestyle=dashes, linewidth=0.9, label=series.label)
        return
    if len(series.values) > 1:
        low, high = np.quantile(series.values, [0.05, 0.95], axis=0)
        axes.fill_between(series.x, low, high, color=colour, alpha=0.15, linewidth=0)
    every = max(1, len(series.x) // _MARKS)
    axes.plot(
        series.x, middle, color=colour, linestyle=dashes, marker=mark, markevery=every, markersize=4, linewidth=1.3,
        label=series.label,
    )  # fmt: skip


def _contour(figure: Any, axes: Any, panel: Contour) -> None:
    axes.set_xlabel(panel.x_label)
    axes.set_ylabel(panel.y_label)
    levels = {"levels": list(panel.levels)} if len(panel.levels) else {"levels": 12}
    filled = axes.contourf(panel.x, panel.y, panel.values, cmap="cividis", extend="both", **levels)
    lines = axes.contour(panel.x, panel.y, panel.values, colors="white", linewidths=0.5, **levels)
    axes.clabel(lines, fontsize=6)
    figure.colorbar(filled, ax=axes, label=panel.label)


def _cells(axes: Any, panel: Cells) -> None:
    shades = np.asarray(panel.shades, float)
    axes.imshow(shades, cmap="Blues", vmin=0, vmax=1.6, aspect="auto")  # up to 1.6, so that dark text stays readable
    for row, texts in enumerate(panel.texts):
        for column, text in enumerate(texts):
            axes.text(column, row, text, ha="center", va="center", fontsize=7)
    axes.set_xticks(range(len(panel.columns)), [textwrap.fill(name, 12) for name in panel.columns], fontsize=7)
    axes.set_yticks(range(len(panel.rows)), panel.rows, fontsize=8)
    axes.tick_params(length=0)
    axes.xaxis.set_ticks_position("top")


def _series(panel: Panel) -> Sequence[Series]:
    """The lines of a panel."""
    return panel.series if isinstance(panel, Curves) else ()


def _legend_below(axes: Any) -> None:
    """The panel's own legend, if there are more labels than looks."""
    handles, labels = axes.get_legend_handles_labels()
    if not labels:
        return
    across = 2 if max(map(len, labels)) <= 24 else 1
    figure = axes.figure
    lines = math.ceil(len(labels) / across)
    figure.set_figheight(max(figure.get_figheight(), _PANEL_HEIGHT + _LEGEND_LINE * lines))
    axes.legend(
        handles, labels, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=across, frameon=False, handlelength=3.5
    )


def _legend(figure: Any, columns: int) -> None:
    """One legend below all panels, each label once."""
    found: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    if not found:
        return
    across = 2 * columns if max(map(len, found)) <= 24 else columns
    lines = math.ceil(len(found) / across)
    figure.set_figheight(figure.get_figheight() + _LEGEND_LINE * lines)
    figure.legend(
        list(found.values()), list(found), loc="outside lower center", ncols=across, frameon=False, handlelength=3.5
    )
