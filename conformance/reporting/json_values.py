"""Values and results as strict JSON: finite numbers are numbers, arrays are exact, and no NaN is written bare."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np

from ..replay.writing import written
from ..verdicts import Result
from .wording import sentence


def plain(value: Any) -> Any:
    """The value in JSON's own types; a float that JSON cannot write becomes "nan", "inf" or "-inf"."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(value) if math.isfinite(value) else str(float(value))
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(v) for v in value]
    return str(value)


def result_in_json(result: Result) -> dict[str, Any]:
    """One result as a JSON object."""
    return {
        "target": result.target,
        "binding": result.binding,
        "op": result.op,
        "requirement": result.requirement,
        "sentence": sentence(result.requirement),
        "level": result.level,
        "dtype": result.dtype,
        "device": result.device,
        "mode": result.mode,
        "verdict": result.verdict.value,
        "ratio": plain(result.ratio),
        "cases": result.cases,
        "declined": plain(result.declined),
        "reason": result.reason,
        "counterexample": None if result.counterexample is None else written(result.counterexample),
        "same_case_as": result.same_case_as,
        "diagnosis": result.diagnosis,
        "traceback": result.traceback,
        "known": [attrs.asdict(one) for one in result.known],
    }
