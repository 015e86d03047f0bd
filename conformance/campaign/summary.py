"""The summary of a campaign: its records are added up one by one, in memory that does not grow with them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

import attrs

from ..reporting.json_values import plain
from ..reporting.wording import page_order
from ..results.ratios import BINS, EDGES, add_counts
from .campaign import SCHEMA, asked_as
from .store import Store, key_in

#: Number of seeds named for one violation, smallest first.
_SEEDS = 10


@attrs.define
class Nearness:
    """How near the errors of one requirement came to the envelope, in one dtype of one target."""

    #: Number of judgements, of results that violated a SHOULD, and of results that showed a known violation, whose
    #: ratios do not count.
    cases: int = 0
    advice: int = 0
    known: int = 0
    #: The largest error / envelope, with its binding and seed; None if the requirement is not about a magnitude.
    ratio: float | None = None
    binding: str = ""
    seed: int = 0
    #: Number of ratios in each bin (ratios.py).
    histogram: list[int] = attrs.field(factory=lambda: [0] * BINS)

    def add(self, found: Mapping[str, Any], seed: int) -> None:
        """Add the entry of one record."""
        self.cases += found["cases"]
        self.advice += found["advice"]
        self.known += found["known"]
        add_counts(self.histogram, {int(place): count for place, count in found["ratios"].items()})
        if found["ratio"] is None:
            return
        ratio = float(found["ratio"])
        # Break ties by seed and binding, so that the order of records does not matter.
        if self.ratio is None or (-ratio, seed, found["at"]) < (-self.ratio, self.seed, self.binding):
            self.ratio, self.seed, self.binding = ratio, seed, found["at"]


@attrs.define
class Kept:
    """A violation of a MUST, or an error, kept once for all seeds that show it."""

    target: str
    binding: str
    op: str
    requirement: str
    dtype: str
    verdict: str
    #: From the smallest seed: the reason, the ratio, and the command that judges it again.
    reason: str = ""
    ratio: Any = None
    again: str = ""
    #: Number of units that show it, and the smallest of their seeds.
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
    """The sums over the records of a campaign."""

    #: The request that its folder stores: identity, kinds of units, seeds.
    asked: Mapping[str, Any]
    units: int = 0
    #: The seeds of these units, those of earlier commands included.
    seeds: set[int] = attrs.field(factory=set)
    seconds: float = 0.0
    cases: int = 0
    #: Number of lines of the folder that were cut off or damaged.
    damaged: int = 0
    counts: Counter[str] = attrs.field(factory=Counter)
    #: By target (as the user named it), requirement and dtype.
    nearness: dict[tuple[str, str, str], Nearness] = attrs.field(factory=dict)
    kept: dict[tuple[str, ...], Kept] = attrs.field(factory=dict)
    #: Tracebacks of defects of normspec that belong to no requirement, each once.
    defects: dict[str, None] = attrs.field(factory=dict)
    #: By kind of unit, the number that is done, and the seconds that they took.
    paces: dict[tuple[str, str, str], tuple[int, float]] = attrs.field(factory=dict)
    #: Number of requested units that are done.
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
        self.seeds.add(key.seed)
        self._met += first <= key.seed < last
        self.seconds += record["seconds"]
        units, seconds = self.paces.get(key.kind, (0, 0.0))
        self.paces[key.kind] = units + 1, seconds + record["seconds"]
        self.cases += record["cases"]
        self.counts.update(record["counts"])
        self.defects.update(dict.fromkeys(record["defects"]))
        for requirement, found in record["requirements"].items():
            place = (asked_as(key.target, self.asked["identity"]["targets"]), requirement, key.dtype)
            self.nearness.setdefault(place, Nearness()).add(found, key.seed)
        for one in record["kept"]:
            target, binding, op = one["target"], one["binding"], one["op"]
            what = (target, binding, op, one["requirement"], one["dtype"], one["verdict"])
            self.kept.setdefault(what, Kept(*what)).add(one, key.seed)

    @property
    def missing(self) -> int:
        """Number of requested units that are not done."""
        first, last = self.asked["seeds"]
        return len(self.asked["kinds"]) * (last - first) - self._met

    def stretches(self) -> list[tuple[int, int]]:
        """The seeds that were asked for or are done, as stretches from a first seed up to and without a last."""
        first, last = self.asked["seeds"]
        found: list[tuple[int, int]] = []
        for begin, end in sorted([(first, last), *((seed, seed + 1) for seed in self.seeds)]):
            before = found.pop() if found and begin <= found[-1][1] else (begin, end)
            found.append((before[0], max(before[1], end)))
        return found

    def seconds_for(self, units: Mapping[tuple[str, str, str], int]) -> float:
        """Seconds for this many units of each kind one after the other, estimated from the units that are done."""
        mean = self.seconds / max(self.units, 1)
        means = {kind: seconds / count for kind, (count, seconds) in self.paces.items()}
        return sum(count * means.get(kind, mean) for kind, count in units.items())

    @property
    def violations(self) -> int:
        """Number of violated MUSTs, each counted once for each unit and binding."""
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
        """The requirements that were judged, in the order of the pages."""
        return page_order(requirement for (_, requirement, _), one in self.nearness.items() if one.cases)

    def largest(self, target: str, requirement: str, dtype: str) -> float | None:
        """The largest ratio at this place; None if there is none."""
        found = self.nearness.get((target, requirement, dtype))
        return None if found is None else found.ratio

    def to_json(self) -> str:
        """The summary as strict JSON."""
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
