"""A target that was lost once is still told its cause; one that is lost again is asked nothing further."""

from __future__ import annotations

from pathlib import Path

import pytest

import normspec

#: layer_norm that divides by sqrt(var) + eps, and dies on some x.
_DIES = """
import os
import numpy as np

def layer_norm(x, gamma, beta, *, eps, axes):
    if {when}:
        os._exit(3)
    d = x.astype(np.float64) - x.astype(np.float64).mean(axes, keepdims=True)
    y = d / (np.sqrt((d * d).mean(axes, keepdims=True)) + eps)
    y = y if gamma is None else y * gamma
    return (y if beta is None else y + beta).astype(x.dtype)
"""


def report_on(folder: Path, *conditions: str, only: tuple[str, ...] = ("LN-F*", "CM-S1")) -> normspec.Report:
    """The report on functions that die under these conditions."""
    targets = []
    for place, when in enumerate(conditions):
        (folder / f"dies_{place}.py").write_text(_DIES.format(when=when))
        targets.append(f"{folder}/dies_{place}.py:layer_norm")
    return normspec.check(tuple(targets), dtypes=["float32"], profile="quick", only=only, cache=False)


def test_the_cause_is_named_where_only_other_calls_kill_the_target(tmp_path):
    """It dies on long groups, and LN-F3 is violated on short ones."""
    report = report_on(tmp_path, "x.shape[-1] > 4000")
    assert report.partial and report.lost == report.targets
    assert [cause.faults for cause in report.causes] == [("ln-eps-on-std",)]
    assert report.exit_status == 3


def test_nothing_is_concluded_from_a_lost_answer(tmp_path):
    """It dies in so many calls that it is called no more: that is no exception of its own, and no cause."""
    report = report_on(tmp_path, "x.shape[-1] > 4", only=("LN-F*",))
    assert report.partial and report.failures() and not report.causes
    assert any("the cause of the violations of" in note and "the target was lost" in note for note in report.notes)


def test_a_lost_target_leaves_the_others_their_causes(tmp_path):
    """The second is lost; the first is whole, and told why it fails."""
    report = report_on(tmp_path, "False", "x.shape[-1] > 4", only=("LN-F*",))
    whole, lost = report.targets
    assert report.lost == (lost,)
    assert {cause.target for cause in report.causes} == {whole}


@pytest.mark.parametrize(("lost", "stopped"), [((), True), (("one",), False)])
def test_a_report_is_stopped_unless_a_target_was_lost(lost, stopped):
    """Ctrl-C stops a run; what a lost target leaves out is known."""
    report = normspec.Report(results=(), profile="quick", seed=0, partial=True, lost=lost)
    assert report.stopped is stopped
