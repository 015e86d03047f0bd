"""A measured trait holds for every function on its platform, and for no other; the report says so."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from normspec import Verdict
from normspec.adapters.numpy.bridge import NumpyBridge
from normspec.adapters.target import Target
from normspec.adapters.trait import Trait

from .runs import DTYPES, VARIANT, result, run, specimen

pytestmark = pytest.mark.exhaustive  # it does not depend on the Python version

EVIDENCE = "products below the smallest normal number become 0"
SMALLEST = {"float16": 2.0**-14, "bfloat16": 2.0**-126, "float32": 2.0**-126, "float64": 2.0**-1022}


class Flushing(NumpyBridge):
    """NumPy, with a trait that says that these formats are flushed."""

    def __init__(self, *formats: str) -> None:
        self.formats = formats

    def own_traits(self, device: str) -> tuple[Trait, ...]:
        """The traits, as if measured."""
        return tuple(Trait(dtype, "subnormals", "flushed", EVIDENCE) for dtype in self.formats)


def flushed(value: Any) -> Any:
    """The array with zeros for its subnormal numbers."""
    if not isinstance(value, np.ndarray):
        return value
    return np.where(np.abs(value) < SMALLEST[value.dtype.name], np.zeros((), value.dtype), value)


def residual(*formats: str, conventions: Mapping[str, str] | None = None) -> Target:
    """A residual connection that flushes its result, on a platform that flushes these formats."""

    def call(x: Any, branch: Callable[..., Any], **roles: Any) -> Any:
        return flushed(made.call(x, branch, **roles))

    made = VARIANT[_first("residual")].build()
    target = specimen(VARIANT[_first("residual")])
    (binding,) = target.bindings
    binding = replace(binding, call=call, conventions=conventions or {})
    return replace(target, bridge=Flushing(*formats), bindings=(binding,))


def _first(operator: str) -> str:
    return next(name for name, variant in VARIANT.items() if variant.operator == operator)


@pytest.mark.parametrize("dtype", DTYPES)
def test_who_flushes_where_the_platform_keeps_is_accused(dtype: str) -> None:
    """x + x of subnormal numbers is not zero: a function that returns zeros for them violates the formula."""
    report = run(residual(), dtypes=(dtype,), profile="standard", requirements={"RS-F1"})
    assert result(report, "RS-F1", dtype).verdict is Verdict.FAIL


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_was_measured_is_allowed(dtype: str) -> None:
    """On a platform that flushes this dtype the same function conforms, and the report says why."""
    report = run(residual(dtype), dtypes=(dtype,), profile="standard", requirements={"RS-F1"})
    found = result(report, "RS-F1", dtype)
    assert found.verdict is Verdict.DEVIATES
    assert found.reason == f"subnormals=flushed (measured: in {dtype} {EVIDENCE})"
    (subject,) = report.subjects
    assert subject["conventions"] == {}
    assert subject["measured"] == [{"convention": "subnormals=flushed", "dtypes": [dtype], "evidence": EVIDENCE}]
    assert json.loads(report.to_json())["subjects"][0]["measured"] == list(subject["measured"])


def test_a_trait_is_of_one_format() -> None:
    """If only float32 is flushed, float16 keeps its own subnormal numbers, which a function could lose."""
    report = run(residual("float32"), dtypes=("float16",), profile="standard", requirements={"RS-F1"})
    assert result(report, "RS-F1", "float16").verdict is Verdict.FAIL


def test_a_declaration_is_held_to() -> None:
    """A function that declares subnormal numbers kept must keep them on a platform that flushes, and shows no trait."""
    target = residual("float32", conventions={"subnormals": "kept"})
    report = run(target, profile="standard", requirements={"RS-F1"})
    assert result(report, "RS-F1").verdict is Verdict.FAIL
    assert report.subjects[0]["measured"] == []
    by_user = run(residual("float32"), profile="standard", requirements={"RS-F1"}, conventions={"subnormals": "kept"})
    assert result(by_user, "RS-F1").verdict is Verdict.FAIL


def test_a_declaration_is_of_all_formats() -> None:
    """A function that declares them flushed may flush them in every format."""
    target = residual(conventions={"subnormals": "flushed"})
    report = run(target, dtypes=("float16",), profile="standard", requirements={"RS-F1"})
    assert result(report, "RS-F1", "float16").verdict is Verdict.DEVIATES
