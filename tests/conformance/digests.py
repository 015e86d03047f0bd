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
    "layer_norm": ("93f62f637a35abe6", "48990e35668bd2fd", "b765f88029ac19f9"),
    "batch_norm": ("42fe50685cf493c0", "764de82aa61bcb4b", "20809c241b17b798"),
    "rms_norm": ("3e2525e551196279", "031637ab923f37a2", "8799212154dfcd1a"),
    "group_norm": ("c2af92e94f131c6c", "713913f10dc9cf97", "a46212835315078d"),
    "instance_norm": ("778096ec75bc2da9", "2ff0060aadbdc4e7", "bf816cc1271e5bd1"),
    "residual": ("617e9d7c2dfc6fec", "6a4eb7cccbc93189", "56e94bf141eaa3ac"),
    "pre_norm": ("f0cb4c633dfc280e", "86e6187d0cd7b157", "f5fe970fcc82e660"),
    "post_norm": ("dd2860ab80e08831", "f3a30e96b6a68fae", "d1dcce962f5f6576"),
    "highway": ("77a7e505282ff050", "f3281af0e74d3b32", "dc41dbe2728cc05a"),
    "mhc": ("993382da2ef8e0a1", "f05cdc5e1842dc0d", "be487d70d5e188e8"),
}


#: The other two profiles' cases at seed 0, without values.
DECKS: dict[str, tuple[str, str]] = {
    "layer_norm": ("3a09c0f022e6ff92", "d0b9958cbac1f824"),
    "batch_norm": ("15d746493f267c8b", "308b69a9ae0ba654"),
    "rms_norm": ("d46e16a9f9007df8", "afb26a015f458c2e"),
    "group_norm": ("aa7bf63828bf1544", "3dd515be9b70c9c2"),
    "instance_norm": ("41c96526bbdb10f6", "f5210e780e02afe2"),
    "residual": ("c65836876b5cee94", "ba41f5bfa0a217c9"),
    "pre_norm": ("d6fed61662352555", "83823ea3d87184d2"),
    "post_norm": ("1fb1880b23dc6f09", "6dbb95ba9bad3fbe"),
    "highway": ("f2cd9bb10f5cc53f", "dafff098d10d6d1b"),
    "mhc": ("89cd63207dbf6caf", "2e7dadc1e6396f1c"),
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
