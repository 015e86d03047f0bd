"""A slow function gets fewer cases, whatever its framework, and the report says so."""

from __future__ import annotations

from typing import Any

import pytest

import normspec
from normspec import Report

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


def test_the_caller_has_the_last_word(sound: Any) -> None:
    """``slow`` declares a quick function slow, or gives a slow one every case."""
    _, all_cases = checked(sound(0.0))
    assert checked(sound(0.0), slow=True)[1] < all_cases
    assert checked(sound(0.025), slow=False)[1] == all_cases
