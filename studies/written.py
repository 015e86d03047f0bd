"""The files of a study: its numbers as JSON, and its figure."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np

from ..spec.whole_file import replace_file
from .drawing import drawn
from .study import Cells, Contour, Outcome, Panel

#: The version of the JSON's fields.
SCHEMA = 1

#: Significant digits of a number in the JSON: more than the spread over seeds and targets' differences leave.
DIGITS = 6

#: A list of numbers, one on each line.
_NUMBERS = re.compile(r"\[\s+((?:(?:-?[\d.e+-]+|null),?\s+)+)\]")


def written(outcome: Outcome, folder: Path) -> list[Path]:
    """
    Write NAME.json, NAME.svg and NAME.png into the folder, creating it, and return their paths.

    Raises NoFigure, after writing the JSON, if matplotlib is not installed; OSError if nothing can be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    numbers = folder / f"{outcome.study.name}.json"
    replace_file(numbers, json_of(outcome).encode())
    files = [numbers]
    for kind, data in drawn(outcome.findings).items():
        files.append(folder / f"{outcome.study.name}.{kind}")
        replace_file(files[-1], data)
    return files


def json_of(outcome: Outcome) -> str:
    """The outcome as JSON text; each list of numbers is on one line."""
    text = json.dumps(document(outcome), indent=1, ensure_ascii=False) + "\n"
    return _NUMBERS.sub(lambda found: f"[{' '.join(found[1].split())}]", text)


def document(outcome: Outcome) -> dict[str, Any]:
    """The outcome as a JSON object: the facts with one value per seed, and each line of the figure with its spread."""
    study, scale = outcome.study, outcome.scale
    return {
        "schema": SCHEMA,
        "study": study.name,
        "claim": study.claim,
        "sources": [{"paper": one.paper, "place": one.place, "link": one.link} for one in study.sources],
        "measured": study.measured,
        "rule": study.rule,
        "target": outcome.target,
        "called": dict(outcome.called),
        "seeds": list(range(scale.seed, scale.seed + scale.seeds)),
        "quick": scale.quick,
        "verdict": outcome.judgement.verdict.value,
        "conditions": outcome.judgement.conditions,
        "because": outcome.judgement.because,
        "facts": [
            {
                "name": fact.name,
                "median": _number(fact.median),
                "from": _number(fact.low),
                "to": _number(fact.high),
                "expected": fact.expected,
                "values": _list(fact.values),
            }
            for fact in outcome.findings.facts
        ],
        "panels": [_panel(panel) for panel in outcome.findings.panels],
    }


def _panel(panel: Panel) -> dict[str, Any]:
    if isinstance(panel, Cells):
        return {
            "title": panel.title,
            "columns": list(panel.columns),
            "rows": list(panel.rows),
            "texts": [list(row) for row in panel.texts],
        }
    common = {"title": panel.title, "x": panel.x_label, "y": panel.y_label}
    if isinstance(panel, Contour):
        return {
            **common, "quantity": panel.label, "at x": _list(panel.x), "at y": _list(panel.y),
            "values": [_list(row) for row in panel.values],
        }  # fmt: skip
    return {**common, "lines": [_line(one) for one in panel.series]}


def _line(series: Any) -> dict[str, Any]:
    low, median, high = np.quantile(series.values, [0.05, 0.5, 0.95], axis=0)
    found = {"label": series.label, "at": _list(series.x), "median": _list(median)}
    return found if series.guide or len(series.values) == 1 else {**found, "from": _list(low), "to": _list(high)}


def _number(value: float) -> float | None:
    """A number for JSON, which has no NaN and no infinity: None for those."""
    return float(f"{value:.{DIGITS}g}") if np.isfinite(value) else None


def _list(values: Any) -> list[float | None]:
    return [_number(value) for value in np.asarray(values, float)]
