"""Values and results as strict JSON: finite numbers are numbers, arrays are exact, and no NaN is written bare."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np

from ...spec.parts import Part
from ..verdicts import Counterexample, Result
from .numbers import hex_float
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


def _exact(value: Any) -> Any:
    if isinstance(value, Part):
        return str(value)
    if isinstance(value, tuple):
        return [_exact(one) for one in value]
    return hex_float(float(value)) if isinstance(value, (float, np.floating)) else plain(value)


def _array(array: np.ndarray | None) -> dict[str, Any] | None:
    if array is None:
        return None
    values = np.asarray(array).astype(np.float64).ravel()
    return {"dtype": str(array.dtype), "shape": list(array.shape), "values": [hex_float(v) for v in values]}


def _case(case: Counterexample | None) -> dict[str, Any] | None:
    if case is None:
        return None
    return {
        "inputs": {name: _array(array) for name, array in case.inputs.items()},
        "settings": {name: _exact(value) for name, value in case.settings.items()},
        "output": case.output,
        "index": [int(i) for i in case.index],
        "expected": _exact(case.expected),
        "got": _exact(case.got),
        "envelope": _exact(case.envelope),
        "note": case.note,
    }


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
        "counterexample": _case(result.counterexample),
        "diagnosis": result.diagnosis,
        "traceback": result.traceback,
        "known": [attrs.asdict(one) for one in result.known],
    }
