"""Figures of several runs, also of two versions that ran in turns: medians, and ratios of neighbouring runs."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Side:
    """A version: its name, and the folder that has it as `normspec`."""

    name: str
    path: str


@dataclass(frozen=True)
class Taken:
    """The measurements of one run by name, or the reason why there are none."""

    measured: Mapping[str, float] = field(default_factory=dict)
    missing: str = ""


@dataclass(frozen=True)
class Line:
    """One figure: the values of each version, run by run."""

    what: str
    values: Mapping[str, Sequence[float]]
    missing: Mapping[str, str]

    @property
    def ratio(self) -> float | None:
        """Now relative to then: the median of the ratios of neighbouring runs."""
        pairs = list(zip(self.values.get("now", ()), self.values.get("then", ()), strict=False))
        return (
            statistics.median(now / then for now, then in pairs) if pairs and all(then for _, then in pairs) else None
        )

    def text(self) -> str:
        """The figure as text for printing."""
        shown = [f"{name} {statistics.median(values):.4g}" for name, values in self.values.items() if values]
        shown += [f"{name} — ({why})" for name, why in self.missing.items()]
        shown += [] if self.ratio is None else [f"now/then {self.ratio:.3g}"]
        return f"{self.what}: {', '.join(shown)}"

    def plain(self) -> dict[str, Any]:
        """The figure as data for a file."""
        return {**asdict(self), "ratio": self.ratio}


def lines(title: str, runs: Sequence[Mapping[str, Taken]]) -> list[Line]:
    """The figures of one row; a single line with the reason if there are none."""
    sides = list(runs[0])
    missing = {side: run[side].missing for run in runs for side in sides if run[side].missing}
    names = dict.fromkeys(name for run in runs for taken in run.values() for name in taken.measured)
    return [
        Line(
            f"{title}: {name}" if name else title,
            {side: [run[side].measured[name] for run in runs if name in run[side].measured] for side in sides},
            missing,
        )
        for name in names or [""]
    ]
