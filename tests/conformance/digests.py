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
    "layer_norm": ("60b80d44745f8107", "a15c0849ab0acb6a", "1063dcdef2705df3"),
    "batch_norm": ("d3ea1a3031590255", "f70bd8e986e7c750", "8a94189d9e26bb24"),
    "rms_norm": ("377ac03d71f7efcc", "7befc520cb6d4683", "671c4a173b5c4dcf"),
    "group_norm": ("f3f91f2fc3f29bf1", "158aa51301d6dc14", "95f8f9a6a62926ea"),
    "instance_norm": ("bb57a5a34b8a76c8", "926ee5d628f17bb7", "69bcff03ee1c1c71"),
    "residual": ("a587186249abe4c7", "d18ba21a913879ea", "bf8efa702c40efa0"),
    "pre_norm": ("35a12c72312432fe", "a408e889acba5720", "767d9e61215e8e5c"),
    "post_norm": ("25d4d16970aa93a0", "4249d9d0687fa565", "9a7ba055419ff834"),
    "highway": ("68b88863e4013812", "a0542e7a3bfd8ee9", "6d03b0b322fa0b70"),
    "mhc": ("84fd48d2a32e6959", "7966e11850d4e4ed", "088651e21e55a39d"),
}


#: The other two profiles' cases at seed 0, without values.
DECKS: dict[str, tuple[str, str]] = {
    "layer_norm": ("b25174067bdf4659", "b1b9850c99b3df3d"),
    "batch_norm": ("72a187f67f0858a1", "d8359416d12d2cea"),
    "rms_norm": ("23887aa714d7b2d4", "7d12a195e925b693"),
    "group_norm": ("5ed88ec70b5de5f0", "5b55709b1d2f8983"),
    "instance_norm": ("516a12955a5991aa", "a703fdfd66a64d61"),
    "residual": ("fff31724a14c60a2", "2e1b5002af134974"),
    "pre_norm": ("0e8eff1c9a81cb46", "d6339d780df0ba6a"),
    "post_norm": ("1c5127d6bcd88558", "87fec6e11f07bde6"),
    "highway": ("2a5be1282f83c10d", "feaa6fbd660b8465"),
    "mhc": ("377e0503db7791f5", "6370f2cd74753868"),
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
    "subnormal": "9147c9573538a79c",
    "near_overflow": "03e5b82a8199b601",
    "wide": "732bb417b6bd14d1",
    "huge": "e0b60146a517a090",
    "edges": "00e8ca1657033296",
    "ramp": "f13272117cd09e4a",
    "tiny": "cd4e4823ebf262d8",
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
