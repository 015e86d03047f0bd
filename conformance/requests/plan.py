"""The plan of one run: its targets, requirements and cases."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from ...adapters.target import Target
from ...spec import Level, requirement
from .per_target import setting_of
from .profiles import Profile

if TYPE_CHECKING:  # a Python that was built without SQLite has none
    from ..kept.store import Store


@attrs.frozen
class Plan:
    """All settings of one run."""

    targets: Sequence[Target]
    #: The dtypes to check; None means all that a target supports.
    dtypes: tuple[str, ...] | None
    device: str
    #: Conventions declared by the user, which override those of each binding.
    conventions: dict[str, str]
    profile: Profile
    seed: int
    forward_only: bool = False
    #: Whether calls are slow, so that fewer cases run. None means: known for frameworks, measured for functions.
    slow: bool | None = None
    #: Whether violations are shrunk and explained. A self-test only counts them.
    explain: bool = True
    #: Whether violations of a SHOULD are shrunk too. A campaign keeps none of their cases.
    shrink_advice: bool = True
    #: The only requirements that are judged; None means all.
    requirements: frozenset[str] | None = None
    #: Requirements that are a MUST in this run, whatever their pages say.
    required: frozenset[str] = frozenset()
    #: "training" or "inference" if batch_norm is judged only in that mode; "" for both.
    mode: str = ""
    #: Settings of single targets, by target name (per_target.py).
    per_target: Mapping[str, Mapping[str, Any]] = attrs.field(factory=dict)
    #: Store that keeps truths for later runs; None keeps nothing.
    store: Store | None = None

    def mode_for(self, target: str) -> str:
        """The only mode in which a target's batch_norm is judged; "" for both."""
        return self.mode or setting_of(self.per_target, target, "mode") or ""

    def has_no_gradients(self, target: str) -> bool:
        """Whether the user said that a target has no gradients."""
        return self.forward_only or bool(setting_of(self.per_target, target, "forward_only"))

    def level(self, identifier: str) -> Level:
        """The level of a requirement in this run: MUST or SHOULD."""
        return level_of(identifier, self.required)


def level_of(identifier: str, required: Collection[str]) -> Level:
    """The level of a requirement if those in ``required`` are a MUST, whatever their pages say."""
    return Level.MUST if identifier in required else requirement(identifier).level
