"""Changes between two reports: conformance, violations, causes, and ratios."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import attrs

from ..diagnosis.cause import Cause
from ..grouping import grouped
from ..judging.verdicts import Result, Verdict
from .outcome import JUDGED, Outcome

#: A change of a ratio is reported if the larger is more than this many times the smaller.
NOTABLE_FACTOR = 2.0

#: Changes of ratios below this are accidents of rounding; a report shows such ratios as `<.01`.
LEAST_RATIO = 0.01

#: The place of a result in every report: target, operator, binding, requirement and dtype.
Key = tuple[str, str, str, str, str]

#: The results of the old and the new report at one place; None if a report has none there.
Pair = tuple[Result | None, Result | None]


@attrs.frozen
class Change:
    """A requirement of one target and operator whose verdict or ratio changed."""

    target: str
    op: str
    requirement: str
    #: The old and new results that differ, one pair for each binding and dtype.
    pairs: tuple[Pair, ...]

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The dtypes in which it changed."""
        return tuple(dict.fromkeys(one.dtype for one in self._results))

    @property
    def bindings(self) -> tuple[str, ...]:
        """The bindings in which it changed."""
        return tuple(dict.fromkeys(one.binding for one in self._results))

    @property
    def _results(self) -> list[Result]:
        return [one for pair in self.pairs for one in pair if one is not None]


@attrs.frozen
class Changes:
    """The differences between an old and a new report."""

    old: Outcome
    new: Outcome
    #: Targets that stopped conforming, and those that began to conform.
    ceased: tuple[str, ...]
    began: tuple[str, ...]
    #: MUSTs that are newly violated, and those that are no longer violated.
    violated: tuple[Change, ...]
    mended: tuple[Change, ...]
    #: Requirements that are no longer judged, and those that are newly judged.
    unjudged: tuple[Change, ...]
    judged: tuple[Change, ...]
    #: Requirements satisfied in both whose error moved by more than NOTABLE_FACTOR.
    moved: tuple[Change, ...]
    new_causes: tuple[Cause, ...]
    gone_causes: tuple[Cause, ...]
    #: How the requests of the two runs differ, in words. Such differences can change verdicts on their own.
    asked: tuple[str, ...]

    @property
    def regression(self) -> bool:
        """Whether something got worse: a new violation or cause, or something that is no longer judged."""
        return bool(self.ceased or self.violated or self.unjudged or self.new_causes)

    @property
    def nothing(self) -> bool:
        """Whether nothing changed."""
        lists = (self.ceased, self.began, self.violated, self.mended, self.unjudged, self.judged, self.moved)
        return not any((*lists, self.new_causes, self.gone_causes))


def changes(old: Outcome, new: Outcome) -> Changes:
    """The changes from the old report to the new one. Results are matched by their ``Key``."""
    before, after = _by_place(old), _by_place(new)
    pairs = {key: (before.get(key), after.get(key)) for key in {**before, **after}}
    conformed = {name: old.target(name).conforms for name in old.targets}
    conforms = {name: new.target(name).conforms for name in new.targets}
    both = [name for name in conforms if name in conformed]
    return Changes(
        old=old,
        new=new,
        ceased=tuple(name for name in both if conformed[name] and not conforms[name]),
        began=tuple(name for name in both if conforms[name] and not conformed[name]),
        violated=_grouped(pairs, lambda one, two: _fails(two) and not _fails(one)),
        mended=_grouped(pairs, lambda one, two: _fails(one) and _judged(two) and not _fails(two)),
        unjudged=_grouped(pairs, lambda one, two: _judged(one) and not _judged(two)),
        judged=_grouped(pairs, lambda one, two: _judged(two) and not _judged(one) and not _fails(two)),
        moved=_grouped(pairs, _moved),
        new_causes=_causes_beyond(new.causes, old.causes),
        gone_causes=_causes_beyond(old.causes, new.causes),
        asked=_asked(old, new),
    )


def _by_place(report: Outcome) -> dict[Key, Result]:
    return {(one.target, one.op, one.binding, one.requirement, one.dtype): one for one in report.results}


def _grouped(pairs: Mapping[Key, Pair], chosen: Callable[[Result | None, Result | None], bool]) -> tuple[Change, ...]:
    """The chosen pairs, grouped by requirement."""
    found = grouped(
        ((target, op, requirement), pair) for (target, op, _, requirement, _), pair in pairs.items() if chosen(*pair)
    )
    return tuple(Change(*key, tuple(several)) for key, several in found.items())


def _fails(result: Result | None) -> bool:
    return result is not None and result.verdict is Verdict.FAIL


def _judged(result: Result | None) -> bool:
    return result is not None and result.verdict in JUDGED


def _moved(one: Result | None, two: Result | None) -> bool:
    """Whether a requirement is satisfied in both, and one error is more than NOTABLE_FACTOR times the other."""
    satisfied = (Verdict.PASS, Verdict.DEVIATES)
    if one is None or two is None or one.verdict not in satisfied or two.verdict not in satisfied:
        return False
    if one.ratio is None or two.ratio is None or not (math.isfinite(one.ratio) and math.isfinite(two.ratio)):
        return False
    small, large = sorted((one.ratio, two.ratio))
    return large >= LEAST_RATIO and large > NOTABLE_FACTOR * small


def _causes_beyond(these: Sequence[Cause], those: Sequence[Cause]) -> tuple[Cause, ...]:
    """The causes in ``these`` that share no fault name (or sentence) with a cause of the same operator in ``those``."""
    known = {(one.target, one.op, name) for one in those for name in _names(one)}
    return tuple(one for one in these if not any((one.target, one.op, name) in known for name in _names(one)))


def _names(cause: Cause) -> tuple[str, ...]:
    return cause.faults or (cause.sentence,)


def _asked(old: Outcome, new: Outcome) -> tuple[str, ...]:
    """The differences between the requests of the two runs, in words."""
    words = [
        f"{name} was {was}, and is now {now}"
        for name in ("profile", "seed")
        if (was := getattr(old, name)) != (now := getattr(new, name))
    ]
    for name in ("only", "binding", "require"):
        was, now = getattr(old, name), getattr(new, name)
        if was != now:
            words.append(f"--{name} was {', '.join(was) or 'absent'}, and is now {', '.join(now) or 'absent'}")
    words += [f"only the old run checked {name}" for name in old.targets if name not in new.targets]
    words += [f"only the new run checked {name}" for name in new.targets if name not in old.targets]
    words += [f"the {when} run was not finished" for when, one in (("old", old), ("new", new)) if one.partial]
    return tuple(words)
