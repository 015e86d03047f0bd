"""Relations between runs: numerically equal [=], or within the envelopes of both runs [~]."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from ...reference.formats import format_of
from ..cases.case import Case
from ..findings import Finding, as_exact
from ..subject import Bound, Subject


def close(
    subject: Subject, case: Case, name: str, got: np.ndarray, want: np.ndarray, bound: Bound, note: str
) -> Finding:
    """[~]: what was received equals the related value within the sum of the envelopes.

    ``want`` is float64 and was itself received; ``bound`` adds up the envelopes of all runs.
    """
    return subject.judge(case, name, got, as_exact(want), bound, note)


def same(subject: Subject, case: Case, name: str, got: np.ndarray, want: np.ndarray, note: str) -> Finding:
    """[~]: an output or gradient equals the one that another call with the same values gave."""
    if got.dtype == want.dtype and np.array_equal(got, want, equal_nan=True):  # no envelope is needed to see that
        judged = bool(np.isfinite(want.astype(np.float64)).any())  # of NaNs that are alike nothing is known
        return Finding(case, violated=False, judged=judged, ratio=0.0 if judged else None, output=name, note=note)
    bound = subject.bound(case, name)
    return close(subject, case, name, got, want.astype(np.float64), lambda n: 2 * bound(n), note)


def same_gradients(
    subject: Subject, case: Case, found: Mapping[str, np.ndarray], want: Mapping[str, np.ndarray], note: str
) -> Iterator[Finding]:
    """[~]: the gradients of two calls with the same values, of which neither may lack one that the other has."""
    for name in dict.fromkeys((*want, *found)):
        if name in found and name in want:
            yield same(subject, case, name, found[name], want[name], note)
        else:
            words = f"{note}: {name} is missing" if name in want else f"{note}: {name} is there, and is missing without"
            yield Finding(case, violated=True, output=name, note=words)


def equal(subject: Subject, case: Case, name: str, got: np.ndarray, want: np.ndarray, note: str) -> Finding:
    """[=]: numerically equal over the normal range, judged where repeated calls agree."""
    if not subject.repeatable(case):
        return Finding(case, violated=False, judged=False, output=name, note=note)
    stored = format_of(got.dtype)
    a, b = got.astype(np.float64), want.astype(np.float64)
    size = np.maximum(np.abs(a), np.abs(b))
    with np.errstate(invalid="ignore"):
        judged = ((size >= stored.smallest_normal) & (size < stored.largest)) | (size == 0)
        judged |= np.isfinite(a) != np.isfinite(b)
    differs = judged & (a != b)
    count = int(np.count_nonzero(differs))
    if not count:
        return Finding(case, violated=False, judged=bool(judged.any()), output=name, note=note)
    index = tuple(int(i) for i in np.argwhere(differs)[0]) if differs.ndim else ()
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
    """Return values times a power of two in the same dtype, or None where either leaves the normal range."""
    given = values.astype(np.float64)
    with np.errstate(all="ignore"):
        moved = (given * factor).astype(values.dtype)
    normal = format_of(values.dtype).smallest_normal

    def inside(z: np.ndarray) -> bool:
        return bool(np.all((z == 0) | ((np.abs(z) >= normal) & np.isfinite(z))))

    there = moved.astype(np.float64)
    exact = np.array_equal(there / factor, given) and inside(there) and inside(given)
    return moved if exact else None
