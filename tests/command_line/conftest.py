"""Reports made by hand, so that the renderer is tested on every verdict without a run."""

from __future__ import annotations

import io
from collections.abc import Callable

import numpy as np
import pytest
from rich.console import Console

from normspec import Report, Result, Verdict
from normspec.conformance.judging.verdicts import Counterexample
from normspec.conformance.reporting.render import print_report

SUBJECT = {
    "target": "torch",
    "framework": "torch",
    "version": "2.13.0",
    "binding": "torch.nn.LayerNorm",
    "op": "layer_norm",
    "device": "cpu",
    "conventions": {"variance_algorithm": "shifted"},
    "reasons": {"variance_algorithm": "the kernel shifts by the first element"},
}


def counted(text: str) -> dict[str, int]:
    """The table of counts at the end of a printed report."""
    lines = [line.split() for line in text.splitlines()]
    at = next(i for i, words in enumerate(lines) if words[:2] == ["pass", "fail"])
    return dict(zip(lines[at], map(int, lines[at + 1]), strict=True))


@pytest.fixture
def counts() -> Callable[[str], dict[str, int]]:
    """The function that reads the counts off a printed report."""
    return counted


@pytest.fixture
def a_result() -> Callable[..., Result]:
    """A function that makes a passing result, changed as its keywords say."""

    def make(**changes: object) -> Result:
        fields: dict = {
            "target": "torch",
            "binding": "torch.nn.LayerNorm",
            "op": "layer_norm",
            "requirement": "LN-F1",
            "level": "MUST",
            "dtype": "float32",
            "device": "cpu",
            "mode": "",
            "verdict": Verdict.PASS,
            "ratio": 0.42,
            "cases": 12,
        }
        return Result(**{**fields, **changes})

    return make


@pytest.fixture
def counterexample() -> Counterexample:
    """The two-element group that shows an epsilon outside the root."""
    return Counterexample(
        inputs={"x": np.array([[-0.5, 0.5]], np.float32), "gamma": np.ones(2, np.float32), "beta": None},
        settings={"eps": 0.25, "axes": (-1,)},
        output="y",
        index=(0, 1),
        expected=float.fromhex("0x1.6a09e6p-1"),
        got=0.5,
        envelope=2.0**-22,
        note="x strided",
    )


@pytest.fixture
def a_report() -> Callable[..., Report]:
    """A function that makes a report of the results it is given."""

    def make(*results: Result, **changes: object) -> Report:
        targets = dict.fromkeys(result.target for result in results) or ("torch",)
        subjects = tuple({**SUBJECT, "target": target} for target in targets)
        fields: dict = {"results": results, "profile": "quick", "seed": 7, "subjects": subjects, "seconds": 1.25}
        return Report(**{**fields, **changes})

    return make


@pytest.fixture
def printed() -> Callable[..., str]:
    """A function that prints a report into a string, as a pipe of this encoding and width would get it."""

    def show(report: Report, *, encoding: str = "utf-8", width: int = 80) -> str:
        raw = io.BytesIO()
        stream = io.TextIOWrapper(raw, encoding=encoding, newline="\n")
        print_report(report, Console(file=stream, width=width, highlight=False, markup=False, emoji=False))
        stream.flush()
        return raw.getvalue().decode(encoding)

    return show
