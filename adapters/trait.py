"""Traits: properties of a framework on a device that hold for every function that runs there."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Trait:
    """One property of a platform in one dtype."""

    dtype: str
    #: The convention that describes it, and its value.
    key: str
    value: str
    #: The measurement, in words.
    evidence: str
