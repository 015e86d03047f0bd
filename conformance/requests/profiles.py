"""Profiles: how many cases and repetitions a run has."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import attrs

from ...spec.errors import UnknownProfile, choices
from ..cases.deck import deck
from ..cases.description import Description
from ..cases.generate import generate


@attrs.frozen
class Profile:
    """How many cases a run generates in addition to the fixed deck, and how often it repeats a call."""

    name: str
    #: Generated cases for each operator: the number of free ones, and rounds of variations of every case of the deck
    #: (cases/generate.py).
    free: int
    rounds: int
    #: Repetitions of one call, a multiple of 32 (checks/repetitions.py); gradients are repeated as often. A race that
    #: shows once in sixty calls goes unseen in k calls with probability (59/60)^k: 34% for 64 calls, 0.02% for 512
    #: (0.4% in one of twenty runs of `standard`), and 3e-8 for 1024.
    repeats: int
    #: Minimum number of cases of each requirement in the secondary bindings of an operator, which wrap the same code as
    #: the first; also the most on which a check makes extra calls. None means all cases.
    secondary_bindings: int | None = None
    #: The same for the first binding of an operator in the other dtypes of a framework: one dtype, the foremost, gets
    #: all cases. A user's function gets all in every dtype.
    other_dtypes: int | None = None
    #: In that one dtype, the most cases with x of one rank on which a check makes dozens of calls; None means all. A
    #: layout that a function misreads, and a part that it calls twice, depend on the rank more than on values. With
    #: six, 280 of the 287 faults that these checks are for are caught in float32; with two, 267.
    calls_often: int | None = None
    #: Repetitions in the secondary bindings and other dtypes of a framework: a race occurs in each of them.
    other_repeats: int = 64
    #: The minimum if a call of a new shape takes 10 to 100 ms: in such a framework for the first binding of an operator
    #: in the foremost dtype, and for a user's function. Secondary bindings and other dtypes get one case each.
    slow: int | None = None
    slow_own: int | None = None
    #: Repetitions in such a framework, where a call takes milliseconds.
    slow_repeats: int = 64
    #: Repetitions of a call of 65,536 values or more, which takes milliseconds in any framework. In one dtype such a
    #: call is repeated like a small one. One is enough, because a race between threads occurs in every dtype.
    large_repeats: int = 64

    def cases(self, operator: str, seed: int) -> tuple[Description, ...]:
        """The cases of an operator in the order in which they run: the fixed deck first."""
        return _cases(self, operator, seed)

    def repeated(self, *, slow: bool, other: bool = False, large: bool = False) -> int:
        """
        How often one call is repeated.

        ``other``: in a secondary binding or another dtype of a framework. ``large``: a call of many values, except in
        the one thorough dtype.
        """
        limits = ((slow, self.slow_repeats), (other, self.other_repeats), (large, self.large_repeats))
        return min([self.repeats, *(most for applies, most in limits if applies)])

    def minimum(self, *, slow: bool, own: bool, first: bool, foremost: bool) -> int | None:
        """
        Minimum number of cases of each requirement; None means all cases.

        ``own``: a user's function. ``first``: the first binding of its operator. ``foremost``: the foremost dtype.
        """
        if not slow and not first:
            return self.secondary_bindings
        if not slow:
            return None if own or foremost else self.other_dtypes
        if own or self.slow is None:
            return self.slow_own
        return self.slow if first and foremost else 1


@lru_cache(maxsize=64)  # all dtypes have the same cases
def _cases(profile: Profile, operator: str, seed: int) -> tuple[Description, ...]:
    return (*deck(operator, profile.name, seed), *generate(operator, seed, profile.free, profile.rounds))


PROFILES: dict[str, Profile] = {
    profile.name: profile
    for profile in (
        Profile(
            "quick", 0, 0, 64, secondary_bindings=1, other_dtypes=1, calls_often=6, other_repeats=32, slow=1, slow_own=4
        ),
        Profile("standard", 40, 1, 512, secondary_bindings=8, slow=2, slow_own=8),
        Profile("thorough", 400, 8, 1024, other_repeats=1024, slow_repeats=1024),
    )
}


def foremost(dtypes: Sequence[str]) -> str:
    """The dtype in which a target of these dtypes is checked most thoroughly; empty if there is none."""
    return "float32" if "float32" in dtypes else next(iter(dtypes), "")


def profile_of(name: str) -> Profile:
    """Return a profile by name. Raises UnknownProfile, which lists the profiles."""
    if name not in PROFILES:
        raise UnknownProfile(f"unknown profile {name!r}{choices(name, PROFILES)}")
    return PROFILES[name]
