"""Whether NaN or infinity shows in the results that depend on it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from ..cases.case import Case
from ..judging.findings import Finding, place_of_largest


def judge_shown(
    bad: Case, results: Mapping[str, np.ndarray], masks: Mapping[str, np.ndarray], note: str, *, nan: bool = True
) -> Iterator[Finding]:
    """
    Judge whether each result is NaN where its mask says so; without ``nan``, whether it is at least not finite.

    A result that is missing is not judged, and neither is one with a mask that marks nothing.
    """
    for name, mask in masks.items():
        if name not in results:
            continue
        value = results[name].astype(np.float64)
        wrong = mask & (~np.isnan(value) if nan else np.isfinite(value))
        if not wrong.any():
            yield Finding(bad, violated=False, judged=bool(mask.any()), output=name, note=note)
            continue
        index = place_of_largest(wrong)
        yield Finding(
            bad, violated=True, output=name, index=index, expected=float("nan"), got=float(value[index]), note=note
        )
