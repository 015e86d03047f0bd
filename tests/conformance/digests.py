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
    "layer_norm": ("c9da969d60930c06", "c078183809beae54", "15068fe358a7efc6"),
    "batch_norm": ("6a1e7a4fa4cdcaec", "69a1ccc8aeb40667", "d6b1b14ea918db4e"),
    "rms_norm": ("6179d71f7ff325c0", "f0dcc0b8e9a0b197", "ba79501b08313fb4"),
    "group_norm": ("9f74b9876e63f988", "869bd6930599805b", "0f29ea42bb8246de"),
    "instance_norm": ("2efaf589c91b7976", "74d1d73b7ece55b4", "832f7038723d91a8"),
    "residual": ("55488d5b00e3d29e", "8f7bf95dc189ed1b", "1d89763a1bba5287"),
    "pre_norm": ("872435141c1d0996", "aef43793710c3f1e", "4ad598849c636d33"),
    "post_norm": ("75e01d403adef0c7", "5c6bdf1d9e9edfb5", "d91e19228aad65f8"),
    "highway": ("a95a6706f3ca9535", "c024768eb25fe146", "ec5f30c99a529888"),
    "mhc": ("a5b7945070ab6693", "e9123902eb7cd476", "59cf84cfcf359174"),
}


#: The other two profiles' cases at seed 0, without values.
DECKS: dict[str, tuple[str, str]] = {
    "layer_norm": ("a1b33b34430ecc4a", "c40318147fc7456b"),
    "batch_norm": ("edb02e18a6a11683", "51bbd0d6ea882b33"),
    "rms_norm": ("e8f144f47667e49f", "4fa6a4253105757e"),
    "group_norm": ("0d6573b493237a23", "a869bc06dd74905d"),
    "instance_norm": ("bf7dc6a340a0d5bb", "4fcfae68e1c9d31b"),
    "residual": ("9992892c0f6445ac", "e4812fedcd527336"),
    "pre_norm": ("0f2f9c940d356a32", "764b26e4b4517e0b"),
    "post_norm": ("dab7bf250b876e8f", "ebb0bc8a5f786c02"),
    "highway": ("e52e96aa82e16833", "dccf1146106414e0"),
    "mhc": ("172ba808a7c03c3e", "8afd2789f856adba"),
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
