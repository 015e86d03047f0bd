"""Groups with an undefined value: nothing is required of them, and everything of the groups beside them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..cases.case import Case
from ..judging.findings import Finding
from ..judging.subject import Subject
from .derived import with_value
from .groups import group_count
from .refusal import outputs_unless_refused
from .registry import INFERENCE, check, in_inference, laws_in_inference


def _has_several_groups(case: Case) -> bool:
    """Cases with several groups."""
    return group_count(case) > 1


def _judge_other_groups(subject: Subject, bad: Case, group: int, note: str) -> Iterator[Finding]:
    """Judge whether y and dx are right in every group except one, whose value is undefined."""
    rows = np.ones((group_count(bad), bad.x.size // group_count(bad)), bool)
    rows[group] = False
    others = bad.layout.back(rows)
    for where_called, outputs in subject.outputs_in_modes(bad):
        yield subject.judge_output(bad, "y", outputs["y"], where=others, note=f"{note}{where_called}")
    if subject.forward_only:
        return
    dx = subject.pull(bad)["dx"]
    exact, bound = subject.truth(bad).gradients()["dx"], subject.bound(bad, "dx")
    yield subject.judge(bad, "dx", dx, exact, lambda normative: np.where(others, bound(normative), np.inf), note)


@check("CM-N8", every=laws_in_inference, when=_has_several_groups, raising="violates")
def undefined_group(subject: Subject, case: Case) -> Iterator[Finding]:
    """A group with eps 0 and a variance, or mean square, of 0 makes no difference to the others."""
    _ = subject.observe(case).outputs
    group, changes = group_count(case) // 2, dict[str, Any](eps=0.0)
    if case.settings.get("training", True):
        rows = case.layout.rows(case.x).copy()
        # The mean and the variance of ones are exact. In rms_norm, which subtracts no mean, only zeros will do.
        rows[group] = 1.0 if case.record.centred else 0.0
        changes["x"] = case.layout.back(rows)
    else:
        changes["running_var"] = with_value(case.inputs["running_var"], group, 0.0)
    yield from _judge_other_groups(subject, case.replace(**changes), group, "variance and eps are 0 in another group")


@check(
    "BN-I5",
    every=laws_in_inference,
    when=lambda case: in_inference(case) and _has_several_groups(case),
    raising="violates",
    modes=INFERENCE,
)
def negative_running_variance(subject: Subject, case: Case) -> Iterator[Finding]:
    """A negative running variance makes no difference to other channels, unless the call raises."""
    _ = subject.observe(case).outputs
    channel = group_count(case) // 2
    bad = case.replace(running_var=with_value(case.inputs["running_var"], channel, -4.0))
    if outputs_unless_refused(subject, bad) is None:
        yield Finding(bad, violated=False)
        return
    yield from _judge_other_groups(subject, bad, channel, "the running variance of another channel is negative")
