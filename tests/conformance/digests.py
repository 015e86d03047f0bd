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
    "layer_norm": ("6e56fe87ff38c28a", "7d3e9824d66eec99", "be569815c955a3b3"),
    "batch_norm": ("3d6a810fff25394d", "b1dd903d812d8d53", "f7e951ff37492020"),
    "rms_norm": ("ded6c2d4d49a333c", "0d07acce65a144c8", "8df5679948bc2245"),
    "group_norm": ("9258cd58f2187567", "8661473e46682afe", "2f78d01c441fc095"),
    "instance_norm": ("7d05d1e20182855f", "5f9b22f5856cdf3d", "68a3527657ea5059"),
    "residual": ("bd835dfc038d635f", "241ffdc2dc38b7c7", "f1380b6a508c7b71"),
    "pre_norm": ("e218935764e0fbda", "578fefea302bae2c", "94b9cc27f0c2885a"),
    "post_norm": ("97df8184f17f37f5", "f528a9a765250aa6", "3f886a67ffc9cf9d"),
    "highway": ("b6bdad23e063bc66", "4cb690fe23a499a7", "ea0bf397c5cbcbeb"),
    "mhc": ("a77e2b037da69f64", "3e5a141078632e01", "0b561723bfb5628b"),
}


#: The other two profiles' cases at seed 0, without values.
DECKS: dict[str, tuple[str, str]] = {
    "layer_norm": ("fd9db0a4aedcc8ce", "ca9557830c021380"),
    "batch_norm": ("4d3583dca1e127d8", "d50a45900a675cd1"),
    "rms_norm": ("bff9a23d5ec39f72", "a9eca14e6a82eee5"),
    "group_norm": ("3bd06a1230d68232", "018173c36983ac93"),
    "instance_norm": ("364337a3bf4b7740", "c2cfa10b50cd33d3"),
    "residual": ("0caa4e5cb4ccbb6c", "6ae0a8402c4699f0"),
    "pre_norm": ("1d439214b2711c0d", "7a769791465b701f"),
    "post_norm": ("73fa8904c0931f36", "715944d7eea3ff85"),
    "highway": ("ef0f798df3d72485", "313c21f02190eaf6"),
    "mhc": ("af70b561a2f00c0e", "2deca163fed9c61e"),
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
    "tiny": "0e10cbe01cc18786",
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
