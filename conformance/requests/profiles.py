"""Profiles: how much a run does."""

from __future__ import annotations

from functools import lru_cache

import attrs

from ...spec.errors import UnknownProfile, choices
from ..cases.deck import deck
from ..cases.description import Description
from ..cases.generate import generate


@attrs.frozen
class Profile:
    """How many cases a run generates beside the fixed deck, and how often it repeats a call."""

    name: str
    #: Generated cases for each operator: free ones, and variations of every case of the deck (cases/generate.py).
    free: int
    rounds: int
    #: Repetitions of one call, a multiple of 32 (checks/purity.py), of the gradients as often. A race that shows once
    #: in sixty calls goes unseen with probability (59/60)^k: 34% for 64 calls, 0.02% for 512, so that in twenty runs of
    #: `standard` it does with 0.4%, and 3e-8 for 1024.
    repeats: int
    #: How many cases each requirement gets at least in the secondary bindings of an operator, which wrap the same
    #: code as the first; None: all.
    secondary_bindings: int | None = None
    #: The same where a call of a new shape takes 10 to 100 ms: for the first binding of an operator in such a framework
    #: in float32, and for a function of the user's. Secondary bindings and other dtypes have one case each there.
    slow: int | None = None
    slow_own: int | None = None
    #: Repetitions in such a framework: a call takes milliseconds there.
    slow_repeats: int = 64
    #: Repetitions of a call of 65,536 values or more, which takes milliseconds everywhere, but in the one dtype in
    #: which it is repeated as often as any: a race between threads is one in every dtype.
    large_repeats: int = 64

    def cases(self, operator: str, seed: int) -> tuple[Description, ...]:
        """The cases of an operator, in the order they run: the fixed deck first."""
        return _cases(self, operator, seed)

    def repeated(self, *, slow: bool, large: bool = False) -> int:
        """How often one call is repeated; ``large``: of many values, and not in the dtype where that is done."""
        most = (self.repeats, *((self.slow_repeats,) if slow else ()), *((self.large_repeats,) if large else ()))
        return min(most)

    def minimum(self, dtype: str, *, slow: bool, first: bool, own: bool) -> int | None:
        """How many cases each requirement gets at least; None: all that there are."""
        if not slow:
            return None if first else self.secondary_bindings
        if own or self.slow is None:
            return self.slow_own
        return self.slow if first and dtype == "float32" else 1


@lru_cache(maxsize=64)  # each dtype asks for the same
def _cases(profile: Profile, operator: str, seed: int) -> tuple[Description, ...]:
    return (*deck(operator, profile.name, seed), *generate(operator, seed, profile.free, profile.rounds))


PROFILES: dict[str, Profile] = {
    profile.name: profile
    for profile in (
        Profile("quick", 0, 0, 64, secondary_bindings=1, slow=1, slow_own=4),
        Profile("standard", 40, 1, 512, secondary_bindings=8, slow=2, slow_own=8),
        Profile("thorough", 400, 8, 1024, slow_repeats=1024),
    )
}


def profile_of(name: str) -> Profile:
    """Return a profile by name; raise UnknownProfile naming those there are."""
    if name not in PROFILES:
        raise UnknownProfile(f"unknown profile {name!r}{choices(name, PROFILES)}")
    return PROFILES[name]
