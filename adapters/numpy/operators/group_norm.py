"""group_norm and instance_norm on NumPy arrays: the base that variants and faults of them override."""

from __future__ import annotations

from .normalisation import Normalisation


class GroupNorm(Normalisation):
    """Consecutive channels of one sample as rows."""

    operator = "group_norm"


class InstanceNorm(Normalisation):
    """Each channel of each sample as a row."""

    operator = "instance_norm"
