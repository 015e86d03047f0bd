"""Values and results as strict JSON: finite numbers are numbers, arrays are exact, and NaN is never written bare."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np

from ..judging.verdicts import Result
from ..replay.writing import written
from ..results.outcome import Outcome
from .conclusion import target_conclusion
from .failures import violated
from .numbers import ratio_in_three_digits
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
        "kinds": {kind: plain(ratio_in_three_digits(ratio)) for kind, ratio in result.kinds.items()},
        "cases": result.cases,
        "declined": plain(result.declined),
        "reason": result.reason,
        "counterexample": None if result.counterexample is None else written(result.counterexample),
        "same_case_as": result.same_case_as,
        "diagnosis": result.diagnosis,
        "follows_from": list(result.follows_from),
        "traceback": result.traceback,
        "known": [attrs.asdict(one) for one in result.known],
        "upstream": None if result.upstream is None else attrs.asdict(result.upstream),
        "kept": result.kept,
    }


def target_in_json(name: str, report: Outcome) -> dict[str, Any]:
    """The summary of the report on one target, as a JSON object."""
    return {
        "name": name,
        "operators": list(dict.fromkeys(one["op"] for one in report.subjects)),
        "bindings": list(dict.fromkeys(one["binding"] for one in report.subjects)),
        "conforms": report.conforms,
        "exit_status": report.exit_status,
        "verdict": target_conclusion(report)[0],
        "partial": report.partial,
        "violated": violated(report.failures()),
        "advice": violated(report.advice()),
        "errors": list(dict.fromkeys(one.requirement for one in report.errors())),
        "counts": report.counts(),
        "share": plain(report.share),
    }
