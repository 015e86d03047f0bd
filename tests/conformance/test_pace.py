"""A slow function gets fewer cases, whatever its framework, and the report says so."""

from __future__ import annotations

import time
from typing import Any

import attrs
import pytest

import normspec
from normspec import Report
from normspec.adapters.targets import resolve
from normspec.conformance.cases.description import Description
from normspec.conformance.engine.pace import is_slow_once
from normspec.conformance.judging.subject import Subject

pytestmark = pytest.mark.exhaustive  # it does not depend on the Python version


@pytest.fixture
def sound(tmp_path: Any) -> Any:
    """The file of a LayerNorm of NumPy that waits for a given time, and counts nothing else."""

    def written(seconds: float) -> str:
        file = tmp_path / "mine.py"
        file.write_text(
            "import time\nimport numpy as np\n\n\n"
            "def layer_norm(x, gamma, beta, *, eps, axes):\n"
            f"    time.sleep({seconds})\n"
            "    d = x - x.mean(axes, keepdims=True)\n"
            "    y = d / np.sqrt((d * d).mean(axes, keepdims=True) + eps)\n"
            "    y = y if gamma is None else y * gamma\n"
            "    return (y if beta is None else y + beta).astype(x.dtype)\n"
        )
        return f"{file}:layer_norm"

    return written


def checked(target: str, **options: Any) -> tuple[Report, int]:
    """The report on a function in float64, and on how many cases the formula was judged."""
    report = normspec.check(target, profile="quick", dtypes=["float64"], forward_only=True, **options)
    (formula,) = [result for result in report.results if result.requirement == "LN-F1"]
    return report, formula.cases


def test_a_slow_function_is_found_out(sound: Any) -> None:
    """A function of 25 ms a call is judged on fewer cases than a quick one, and the report says why."""
    quick, all_cases = checked(sound(0.0))
    slow, few = checked(sound(0.025))
    assert few < all_cases
    assert slow.conforms and quick.conforms
    assert quick.subjects[0]["slow"] == ""
    assert slow.subjects[0]["slow"].startswith("a call takes ")


@pytest.mark.nightly
def test_the_caller_has_the_last_word(sound: Any) -> None:
    """``slow`` declares a quick function slow, or gives a slow one every case."""
    _, all_cases = checked(sound(0.0))
    assert checked(sound(0.0), slow=True)[1] < all_cases
    assert checked(sound(0.025), slow=False)[1] == all_cases


def _waits_in_new_shapes(x: Any, gamma: Any, beta: Any, *, eps: float, axes: Any, known: Any = {}) -> Any:  # noqa: B006
    if x.shape not in known:
        known[x.shape] = time.sleep(0.03)
    return x


def _waits(x: Any, gamma: Any, beta: Any, *, eps: float, axes: Any) -> Any:
    time.sleep(0.03)
    return x


def _waits_for_new_values(x: Any, gamma: Any, beta: Any, *, eps: float, axes: Any, known: Any = {}) -> Any:  # noqa: B006
    if x.tobytes() not in known:
        known[x.tobytes()] = time.sleep(0.03)
    return x


def _fails(x: Any, gamma: Any, beta: Any, *, eps: float, axes: Any) -> Any:
    raise ValueError("not here")


_SLOW = {_waits_in_new_shapes: True, _waits_for_new_values: False, _waits: False, _fails: False}


@pytest.mark.parametrize(("call", "once"), _SLOW.items())
def test_what_is_slow_in_new_shapes_alone_is_told_from_what_is_always_slow(call: Any, once: bool) -> None:
    """A second call in the same shape tells it; calls that fail do not."""
    target = resolve(call, op="layer_norm", framework="numpy")
    subject = attrs.evolve(Subject(target, target.bindings[0], "float32", forward_only=True), slow=True)
    assert is_slow_once(subject, Description("layer_norm", 5, (("normal", 0),) * 2)) == once
