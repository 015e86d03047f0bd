"""The plan of one run: what is checked, on what, and how thoroughly."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from ...adapters.target import Target
from ...spec import Level, requirement
from .per_target import of
from .profiles import Profile

if TYPE_CHECKING:  # a Python that was built without SQLite has none
    from ..kept.store import Store


@attrs.frozen
class Plan:
    """What one run does."""

    targets: Sequence[Target]
    #: None: every dtype that the target is written for.
    dtypes: tuple[str, ...] | None
    device: str
    #: Conventions declared by the user, over those of each binding.
    conventions: dict[str, str]
    profile: Profile
    seed: int
    forward_only: bool = False
    #: Whether calls are slow, so that fewer cases run; None: taken from a table for frameworks, measured for functions.
    slow: bool | None = None
    #: Whether violations are shrunk and explained; a self-test only counts them.
    explain: bool = True
    #: Only these requirements, where given.
    requirements: frozenset[str] | None = None
    #: Requirements that are a MUST in this run, whatever their pages say.
    required: frozenset[str] = frozenset()
    #: "training" or "inference": batch_norm is judged in that mode alone.
    mode: str = ""
    #: What is said of one target alone, by its name (per_target.py).
    own: Mapping[str, Mapping[str, Any]] = attrs.field(factory=dict)
    #: Where truths are kept for other runs; None: nowhere.
    store: Store | None = None

    def mode_for(self, target: str) -> str:
        """The mode that a target's batch_norm is judged in alone; "" for both."""
        return self.mode or of(self.own, target, "mode") or ""

    def has_no_gradients(self, target: str) -> bool:
        """Whether a target is said to have no gradients."""
        return self.forward_only or bool(of(self.own, target, "forward_only"))

    def level(self, identifier: str) -> Level:
        """How binding a requirement is in this run."""
        return level_of(identifier, self.required)


def level_of(identifier: str, required: Collection[str]) -> Level:
    """How binding a requirement is where these are a MUST, whatever their pages say."""
    return Level.MUST if identifier in required else requirement(identifier).level
