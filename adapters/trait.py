"""Traits: what a framework does on a device, whatever function runs there."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Trait:
    """One thing that a platform does in one dtype."""

    dtype: str
    #: The convention that says so, and its value.
    key: str
    value: str
    #: What was measured.
    evidence: str
