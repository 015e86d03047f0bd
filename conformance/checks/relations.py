"""Relations between runs, or with given values: numerically equal [=], or within the envelopes of the runs [~]."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ...adapters.same_bits import same_bits
from ...reference.double_double import DD
from ...reference.formats import format_of
from ..cases.case import Case
from ..judging.findings import Finding, as_exact, compare, place_of_largest
from ..judging.subject import Bound, Subject


def sum_of(*bounds: Bound, first: float = 1.0) -> Bound:
    """The sum of the envelopes of several calls, the first one times a factor."""
    return lambda normative: np.asarray(
        sum(bound(normative) * (1.0 if place else first) for place, bound in enumerate(bounds))
    )


def close(
    subject: Subject, case: Case, name: str, got: np.ndarray, want: np.ndarray, bound: Bound, note: str
) -> Finding:
    """[~]: a received value equals the related one within the sum of the envelopes.

    ``want`` is float64 and was itself received; ``bound`` adds up the envelopes of all runs. A value that the other
    call alone lost to NaN or infinity is as wrong as one that this call lost (A32): the two then change places.
    """
    value = got.astype(np.float64)
    if value.shape == want.shape and (lost := np.isfinite(value) & ~np.isfinite(want)).any():
        got, want = np.where(lost, want, value).astype(got.dtype), np.where(lost, value, want)
    return subject.related(subject.judge(case, name, got, as_exact(want), bound, note), got.shape)


def close_to_sum(
    subject: Subject, case: Case, name: str, got: np.ndarray, want: DD, terms: Sequence[np.ndarray], bound: Bound,
    note: str,
) -> Finding:  # fmt: skip
    """
    [~]: a received value equals a sum of received values, its ``terms``, and perhaps given ones; ``want`` is the sum.

    Where a term alone is NaN, the relation is violated too. An infinite term says nothing: it may overflow although
    the sum does not.
    """
    value = got.astype(np.float64)
    lost = np.isfinite(value) & np.any([np.isnan(term.astype(np.float64)) for term in terms], axis=0)
    if lost.any():
        got = np.where(lost, np.nan, value).astype(got.dtype)
        want = DD(np.where(lost, value, want.hi), np.where(lost, 0.0, want.lo))
    return subject.judge(case, name, got, want, bound, note)


def same_y(subject: Subject, case: Case, moved: Case, note: str) -> Finding:
    """[~]: y of a changed case equals y of the case, within the envelopes of both."""
    y, got = subject.observe(case).outputs["y"], subject.outputs(moved)["y"]
    bound = sum_of(subject.bound(case, "y"), subject.bound(moved, "y"))
    return close(subject, moved, "y", got, y.astype(np.float64), bound, note)


def same_bits_of_y(subject: Subject, case: Case, moved: Case, note: str, factor: float = 1.0) -> Finding:
    """[=]: y of a changed case equals y of the case, times a factor that changes no digit."""
    y, got = subject.observe(case).outputs["y"], subject.outputs(moved)["y"]
    bound = sum_of(subject.bound(case, "y"), subject.bound(moved, "y"), first=abs(factor))
    want = y * y.dtype.type(factor)
    return equal(subject, moved, "y", got, want, note, calls=((moved, got), (case, y)), bound=bound)


def same(subject: Subject, case: Case, name: str, got: np.ndarray, want: np.ndarray, note: str) -> Finding:
    """[~]: an output or gradient equals that of another call with the same values."""
    if agree(got, want):  # no envelope is needed to see that
        judged = bool(np.isfinite(want).any())  # NaNs that agree say nothing
        return Finding(case, violated=False, judged=judged, ratio=0.0 if judged else None, output=name, note=note)
    both = sum_of(*[subject.bound(case, name)] * 2)
    found = close(subject, case, name, got, want.astype(np.float64), both, note)
    larger = _times_as_large(subject, case, name, want) if found.violated else 1.0
    if larger <= 1:
        return found
    return close(subject, case, name, got, want.astype(np.float64), lambda normative: larger * both(normative), note)


def _times_as_large(subject: Subject, case: Case, name: str, want: np.ndarray) -> float:
    """How many times as large as the right result a wrong one is, whose roundings are larger too; 1 for a right one."""
    exact = subject.exact(case, name)
    if (
        exact is None
        or exact.hi.shape != want.shape
        or compare(want, exact, subject.bound(case, name)(False)).ratio <= 1
    ):
        return 1.0
    sizes = [np.abs(values[np.isfinite(values)]) for values in (want.astype(np.float64), exact.hi)]
    largest, right = (float(one.max(initial=0.0)) for one in sizes)
    return largest / right if right else 1.0


def same_gradients(
    subject: Subject, case: Case, found: Mapping[str, np.ndarray], want: Mapping[str, np.ndarray], note: str
) -> Iterator[Finding]:
    """[~]: the gradients of two calls with the same values. Neither may lack one that the other has."""
    for name in dict.fromkeys((*want, *found)):
        if name in found and name in want:
            yield same(subject, case, name, found[name], want[name], note)
        else:
            words = f"{note}: {name} is missing" if name in want else f"{note}: {name} is there, and is missing without"
            yield Finding(case, violated=True, output=name, note=words, failure="missing")


def agree(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two arrays have the same dtype, shape and numbers: [=], to which -0 is 0 and one NaN is like another."""
    return same_bits(one, other) or (one.dtype == other.dtype and np.array_equal(one, other, equal_nan=True))


def changed(before: np.ndarray, after: np.ndarray, case: Case, name: str, note: str) -> Finding:
    """Return a finding that says whether, and where, an array changed."""
    if agree(before, after):
        return Finding(case, violated=False)
    if before.shape != after.shape:
        return Finding(case, violated=True, output=name, note=f"{note}: shape {after.shape}", failure="shape")
    if before.dtype != after.dtype:
        return Finding(case, violated=True, output=name, note=f"{note}: dtype {after.dtype.name}", failure="dtype")
    a, b = before.astype(np.float64), after.astype(np.float64)
    index = place_of_largest(~((a == b) | (np.isnan(a) & np.isnan(b))))
    return Finding(
        case, violated=True, output=name, index=index, expected=float(a[index]), got=float(b[index]), note=note
    )


#: A call of a case, and the received result that a relation is about.
Call = tuple[Case, np.ndarray]

#: How often each call is repeated once the two sides differ in bits. If a target sums in random order, the two sides
#: have results i and j, with p_i p_j <= 1/4. The chance that both repeat these 16 times, so that the target looks
#: deterministic, is at most 4^-16.
AGAIN = 16


def equal(
    subject: Subject, case: Case, name: str, got: np.ndarray, want: np.ndarray, note: str,
    *, calls: Sequence[Call], bound: Bound,
) -> Finding:  # fmt: skip
    """
    [=] of two calls: equal over the normal range; [~] within ``bound`` if a call does not repeat its bits.

    ``calls``: the calls that the two sides come from.
    """
    found = _bits(case, name, got, want, note)
    if found.violated:  # beyond the range rules nothing is promised, bits included
        found = _bits(case, name, got, want, note, np.isfinite(bound(False)))
    if not found.violated:
        return found
    if all(subject.repeats_itself(made, name, value, AGAIN) for made, value in calls):
        return subject.related(found, got.shape)
    return close(subject, case, name, got, want.astype(np.float64), bound, f"{note}; repeated calls differ in bits")


def equal_to(
    subject: Subject, case: Case, name: str, got: np.ndarray, want: np.ndarray, note: str,
    where: np.ndarray | None = None,
) -> Finding:  # fmt: skip
    """
    [=] of a result and values that were given, or zero; everywhere, or only in ``where``.

    No order of summation matters here, so repetition excuses no difference; and zero means exactly zero.
    """
    related = got if where is None else np.where(where, got, want)
    found = _bits(case, name, related, want, note, given=True)
    if not found.violated:
        return found
    return _bits(case, name, related, want, note, np.isfinite(subject.bound(case, name)(False)), given=True)


def _bits(
    case: Case, name: str, got: np.ndarray, want: np.ndarray, note: str, where: np.ndarray | None = None,
    *, given: bool = False,
) -> Finding:  # fmt: skip
    stored = format_of(got.dtype)
    a, b = got.astype(np.float64), want.astype(np.float64)
    size = np.maximum(np.abs(a), np.abs(b))
    with np.errstate(invalid="ignore"):
        judged = ((size >= stored.smallest_normal) & np.isfinite(size)) | (size == 0)
        # NaN is no infinity, and neither is the infinity of the other sign; NaNs and equal infinities say nothing.
        judged |= ~np.isfinite(size) & (a != b) & ~(np.isnan(a) & np.isnan(b))
        judged |= given & (b == 0)
    if where is not None:
        judged = judged & where
    differs = judged & (a != b)
    count = int(np.count_nonzero(differs))
    if not count:
        return Finding(case, violated=False, judged=bool(judged.any()), output=name, note=note)
    index = place_of_largest(differs)
    return Finding(
        case,
        violated=True,
        output=name,
        index=index,
        expected=float(b[index]),
        got=float(a[index]),
        envelope=0.0,
        note=f"{note}: {count} of {a.size} elements differ in their bits",
    )


def scaled_exactly(values: np.ndarray, factor: float) -> np.ndarray | None:
    """Values times a power of two in the same dtype; None if either leaves the normal range."""
    given = values.astype(np.float64)
    with np.errstate(all="ignore"):
        moved = (given * factor).astype(values.dtype)
    normal = format_of(values.dtype).smallest_normal

    def inside(z: np.ndarray) -> bool:
        return bool(np.all((z == 0) | ((np.abs(z) >= normal) & np.isfinite(z))))

    there = moved.astype(np.float64)
    exact = np.array_equal(there / factor, given) and inside(there) and inside(given)
    return moved if exact else None
