"""
Digests of the cases: they fix the cases of a seed, for every version of everything.

After an intended change to the cases, run this file to print the new digests.
"""

from __future__ import annotations

import hashlib

import attrs
import numpy as np

from normspec.conformance.cases.case import build
from normspec.conformance.cases.description import Description
from normspec.conformance.cases.regimes import REGIMES, draw_group
from normspec.conformance.cases.shapes import elements
from normspec.conformance.requests.profiles import PROFILES
from normspec.reference.formats import FORMATS
from normspec.spec.operators import OPERATORS

#: The digests of seeds 0, 1 and 2.
DIGESTS: dict[str, tuple[str, str, str]] = {
    "layer_norm": ("315f26d98cdf7d2e", "502cbdee57602717", "b2230f2b87a215e0"),
    "batch_norm": ("c357e99f48bcc90d", "f7b7f1fda666782b", "17d64472c764eae1"),
    "rms_norm": ("0cb16b8173f4ecb8", "01c98f45b6d9da91", "a4006cb8071395e2"),
    "group_norm": ("930b47759f986891", "28e8b9102e06f227", "d183a79756a40775"),
    "instance_norm": ("dd889295f2984d4d", "9d7d3b8c1142e2a8", "a490a0ccf5486bfb"),
    "residual": ("25513c7161343cc9", "2a7a6fb18a88ed53", "08e624705f1cb1d6"),
    "pre_norm": ("be7535961bd64463", "a98cc7fb744054b2", "fc13948317b5309f"),
    "post_norm": ("a975fdd8f62950bc", "565741eb6157bfde", "85b9417fbe2b354a"),
    "highway": ("cdeee84482b552a7", "a8c3532b2f33dfb9", "33478db2d4c6cf83"),
    "mhc": ("e2cc4ba9c3261447", "a18b78a842310899", "aa3899579185d857"),
}


#: The other two profiles' cases at seed 0, without values.
DECKS: dict[str, tuple[str, str]] = {
    "layer_norm": ("cdcf3452b3e8c963", "a8218afc29ce0fa7"),
    "batch_norm": ("91211f27b8711eb6", "3da776592a79521e"),
    "rms_norm": ("6f9e4025fbe48c67", "2145a4ad474d4a21"),
    "group_norm": ("5ff5c1a9db26cd12", "18c6b0fcde073ae2"),
    "instance_norm": ("53025e18e0903b11", "0db41397d4e2d143"),
    "residual": ("241204876f33cd79", "5f136e90bd4ba296"),
    "pre_norm": ("be24a1a73c999a83", "676167d1599aa120"),
    "post_norm": ("c03aa952e34b1434", "a5024ed4649e841c"),
    "highway": ("6a00af7528f9b0fb", "2924f8b02c8e044a"),
    "mhc": ("5ab0dc9a7e4bf6c3", "55e78a7bb28e4bbf"),
}

#: The groups drawn in each regime.
DRAWN: dict[str, str] = {
    "witness": "223cb1e1a6cd338e",
    "normal": "76790f0da7bf0ff4",
    "near_eps": "c51dbba7708c8601",
    "below_eps": "17eb88d68103c6e8",
    "scaled": "09bafb6abfcde828",
    "constant": "667a5a74d974ccf1",
    "one_hot": "16a0f057832898ea",
    "offset": "db43a7ee24caa0ed",
    "heavy_tailed": "f0b011bf994647e4",
    "integers": "166d68aa47d9a17d",
    "subnormal": "fc475e5294f150e7",
    "near_overflow": "03e5b82a8199b601",
    "wide": "732bb417b6bd14d1",
    "huge": "e0b60146a517a090",
    "edges": "00e8ca1657033296",
}


def _said(description: Description) -> bytes:
    said = {**attrs.asdict(description), "requirements": sorted(description.requirements)}
    return repr(sorted(said.items())).encode()


def digest(operator: str, seed: int) -> str:
    """The digest of the small cases of `standard`: descriptions, and values in a narrow and in the widest dtype."""
    found = hashlib.sha256()
    for description in PROFILES["standard"].cases(operator, seed):
        found.update(_said(description))
        if elements(description) > 5000:  # large values are drawn as small ones are
            continue
        for dtype in ("bfloat16", "float64"):
            case = build(description, dtype)
            for array in (*case.inputs.values(), case.g):
                if array is not None:
                    found.update(np.ascontiguousarray(array).tobytes())
            found.update(case.random("a check").permutation(7).tobytes())
    return found.hexdigest()[:16]


def deck_digest(operator: str, profile: str) -> str:
    """The digest of the descriptions of a profile."""
    found = hashlib.sha256()
    for description in PROFILES[profile].cases(operator, 0):
        found.update(_said(description))
    return found.hexdigest()[:16]


def drawn_digest(regime: str) -> str:
    """The digest of a regime's groups: every member of its family in every dtype, alone, in pairs and in sevens."""
    found = hashlib.sha256()
    for dtype in FORMATS.values():
        for index in range(24):
            for n in (1, 2, 7):
                for eps in (1e-5, 0.0):
                    group = draw_group(regime, index, n=n, eps=eps, format=dtype, seed=3, row=1)
                    found.update(np.ascontiguousarray(group).tobytes())
    return found.hexdigest()[:16]


def _shown(name: str, value: object) -> str:
    return f"    {name!r}: {value!r},".replace("'", '"')


if __name__ == "__main__":
    print("DIGESTS")
    for name in OPERATORS:
        print(_shown(name, tuple(digest(name, seed) for seed in range(3))))
    print("DECKS")
    for name in OPERATORS:
        print(_shown(name, (deck_digest(name, "quick"), deck_digest(name, "thorough"))))
    print("DRAWN")
    for name in REGIMES:
        print(_shown(name, drawn_digest(name)))
