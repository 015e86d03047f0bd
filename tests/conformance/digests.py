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
    "layer_norm": ("e3e846a94b0f49ed", "f5e0ce442755d916", "89d948b70b8e8275"),
    "batch_norm": ("236c887024230135", "c3e73e5993a78eeb", "b3da387b35f7299a"),
    "rms_norm": ("75ae36416e59ff2f", "aa39b3f462cb0757", "2b6bbaaf31d77353"),
    "group_norm": ("abc439a8ac14e812", "43f2e4b94b30a726", "b601c0eeb904bd40"),
    "instance_norm": ("1343ff3dd09a0baf", "59b1f0db24c2b6a3", "0f49669a5e1fe951"),
    "residual": ("c9341a92042fc30e", "e554a43c9e83901d", "35fc09d3754a349b"),
    "pre_norm": ("d6c8d97b87b9978d", "245c97ffd83380fe", "6d338da195b94f3b"),
    "post_norm": ("e5dfd7563ce7e888", "60bda3d9bb5980da", "2b7131a18cacf458"),
    "highway": ("fa15e9e8a10a0740", "1baf9d093b09ee97", "d564f50f03f4fcdd"),
    "mhc": ("466e2222d6b08d01", "b918dd1aa936d8e4", "88f1466a46590fbd"),
}


#: The other two profiles' cases at seed 0, without values.
DECKS: dict[str, tuple[str, str]] = {
    "layer_norm": ("b6bacc8b501b14e1", "c73e728398c2b579"),
    "batch_norm": ("5ebab3c5f2f4fab1", "5f95cb51cebe65fb"),
    "rms_norm": ("7d79875252faede3", "aae336668f2e10dc"),
    "group_norm": ("7d969587030802e5", "117507f02e9f173d"),
    "instance_norm": ("b8d8a2072f3660ba", "b2d5f2e373b379e2"),
    "residual": ("f172e69861838348", "649ec42c166e0c45"),
    "pre_norm": ("cb2a69f123d6c5ab", "73373360fa2a7e4a"),
    "post_norm": ("8ec0cf31602381a5", "583f25c4d09b8d82"),
    "highway": ("9d4a8efc34ac887d", "5bbaeb5f250c8498"),
    "mhc": ("88e38ed158da5406", "b412a3940c2a5471"),
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
