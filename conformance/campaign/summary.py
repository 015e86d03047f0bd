"""What a campaign has established: its records, added up one by one in a room that does not grow with them."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import attrs

from ..reporting.json_values import plain
from ..reporting.wording import page_order
from ..results.ratios import BINS, EDGES, added
from .campaign import SCHEMA, asked_as
from .store import Store, key_in

#: How many seeds are named of those that show one violation, from the smallest on.
_SEEDS = 10


@attrs.define
class Nearness:
    """How near one requirement came to its envelope, in one dtype of one target."""

    #: How often it was judged, and how many results violated a SHOULD, or showed a known violation and count no more.
    cases: int = 0
    advice: int = 0
    known: int = 0
    #: The largest error / envelope, where that was, and from which seed; None where it is about no magnitude.
    ratio: float | None = None
    binding: str = ""
    seed: int = 0
    #: How many of the ratios lie in each bin (ratios.py).
    histogram: list[int] = attrs.field(factory=lambda: [0] * BINS)

    def add(self, found: Mapping[str, Any], seed: int) -> None:
        """Add what a record says of it."""
        self.cases += found["cases"]
        self.advice += found["advice"]
        self.known += found["known"]
        added(self.histogram, {int(place): count for place, count in found["ratios"].items()})
        if found["ratio"] is None:
            return
        ratio = float(found["ratio"])
        # Of equal ones the same is named, in whatever order they came.
        if self.ratio is None or (-ratio, seed, found["at"]) < (-self.ratio, self.seed, self.binding):
            self.ratio, self.seed, self.binding = ratio, seed, found["at"]


@attrs.define
class Kept:
    """A violation of a MUST, or what could not be judged, told once for all seeds that show it."""

    target: str
    binding: str
    op: str
    requirement: str
    dtype: str
    verdict: str
    #: What is told of the smallest seed: the reason, the ratio, and the command that judges it again.
    reason: str = ""
    ratio: Any = None
    again: str = ""
    #: How many units show it, and the smallest of their seeds.
    units: int = 0
    seeds: list[int] = attrs.field(factory=list)

    def add(self, found: Mapping[str, Any], seed: int) -> None:
        """Add one unit that shows it."""
        self.units += 1
        self.seeds = sorted({*self.seeds, seed})[:_SEEDS]
        if self.seeds[0] == seed:
            self.reason, self.ratio, self.again = found["reason"], found["ratio"], found["again"]


@attrs.define
class Summary:
    """What the records of a campaign amount to."""

    #: What its folder says was asked for: identity, kinds of units, seeds.
    asked: Mapping[str, Any]
    units: int = 0
    seconds: float = 0.0
    cases: int = 0
    #: How many lines of the folder were cut off or damaged.
    damaged: int = 0
    counts: Counter[str] = attrs.field(factory=Counter)
    #: By target as asked for, requirement and dtype.
    nearness: dict[tuple[str, str, str], Nearness] = attrs.field(factory=dict)
    kept: dict[tuple[str, ...], Kept] = attrs.field(factory=dict)
    #: Tracebacks of defects of normspec that belong to no requirement, each once.
    defects: dict[str, None] = attrs.field(factory=dict)
    #: By kind of unit, how many are done, and the seconds they took.
    paces: dict[tuple[str, str, str], tuple[int, float]] = attrs.field(factory=dict)
    #: The units asked for that are done.
    _met: int = 0

    @classmethod
    def of(cls, store: Store) -> Summary:
        """The summary of a folder."""
        found = cls(store.asked)
        for record in store.records():
            found.add(record)
        found.damaged = store.damaged
        return found

    def add(self, record: Mapping[str, Any]) -> None:
        """Add the record of a unit."""
        key = key_in(record)
        first, last = self.asked["seeds"]
        self.units += 1
        self._met += first <= key.seed < last
        self.seconds += record["seconds"]
        units, seconds = self.paces.get(key.kind, (0, 0.0))
        self.paces[key.kind] = units + 1, seconds + record["seconds"]
        self.cases += record["cases"]
        self.counts.update(record["counts"])
        self.defects.update(dict.fromkeys(record["defects"]))
        for requirement, found in record["requirements"].items():
            place = (asked_as(key.target), requirement, key.dtype)
            self.nearness.setdefault(place, Nearness()).add(found, key.seed)
        for one in record["kept"]:
            target, binding, op = one["target"], one["binding"], one["op"]
            what = (target, binding, op, one["requirement"], one["dtype"], one["verdict"])
            self.kept.setdefault(what, Kept(*what)).add(one, key.seed)

    @property
    def missing(self) -> int:
        """How many of the units asked for are not done."""
        first, last = self.asked["seeds"]
        return len(self.asked["kinds"]) * (last - first) - self._met

    def seconds_for(self, units: Mapping[tuple[str, str, str], int]) -> float:
        """How long so many units of each kind would take, one after the other, as those that are done did."""
        mean = self.seconds / max(self.units, 1)
        means = {kind: seconds / count for kind, (count, seconds) in self.paces.items()}
        return sum(count * means.get(kind, mean) for kind, count in units.items())

    @property
    def violations(self) -> int:
        """How many MUSTs were found violated, counted once a unit and binding."""
        return self.counts["fail"]

    @property
    def exit_status(self) -> int:
        """0 no violation, 1 a MUST is violated, 2 nothing was judged, 3 stopped before the end, or errors."""
        if self.violations:
            return 1
        if self.missing or self.counts["error"] or self.defects:
            return 3
        return 0 if self.counts["pass"] or self.counts["deviates"] else 2

    def requirements(self) -> tuple[str, ...]:
        """The requirements that were judged, as the pages order them."""
        return page_order(requirement for (_, requirement, _), one in self.nearness.items() if one.cases)

    def largest(self, target: str, requirement: str, dtype: str) -> float | None:
        """The largest ratio there; None where there is none."""
        found = self.nearness.get((target, requirement, dtype))
        return None if found is None else found.ratio

    def to_json(self) -> str:
        """All of it as strict JSON."""
        document = {
            "schema": SCHEMA,
            "asked": self.asked,
            "units": self.units,
            "missing": self.missing,
            "damaged": self.damaged,
            "seconds": round(self.seconds, 3),
            "cases": self.cases,
            "counts": dict(self.counts),
            "exit_status": self.exit_status,
            "violations and errors": [plain(attrs.asdict(self.kept[what])) for what in sorted(self.kept)],
            "defects": list(self.defects),
            "edges": [*EDGES],
            "nearness": [
                {
                    "target": target,
                    "requirement": requirement,
                    "dtype": dtype,
                    **plain(attrs.asdict(self.nearness[target, requirement, dtype])),
                }
                for target, requirement, dtype in sorted(self.nearness)
            ],
        }
        return json.dumps(document, indent=1, allow_nan=False) + "\n"


def finite(ratio: float | None) -> bool:
    """Whether it is a ratio that can be drawn."""
    return ratio is not None and math.isfinite(ratio)
