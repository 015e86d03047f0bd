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
    "batch_norm": ("65138876ff1f0c98", "3e95057636c7ee04", "b4e5019131f6d43a"),
    "rms_norm": ("6179d71f7ff325c0", "f0dcc0b8e9a0b197", "ba79501b08313fb4"),
    "group_norm": ("b9c8538859c0e8c1", "10137c76b4ec3c4c", "747114c2f577629e"),
    "instance_norm": ("7e26cc2de23e7fe8", "09800186defd5716", "fd115ec7a60019b4"),
    "residual": ("7cdf85d02011c693", "56fb5632b3c62819", "d8c9e85a21e05f98"),
    "pre_norm": ("59f69908526df87c", "cc179935daea8289", "9bf23e820702be6a"),
    "post_norm": ("b4f77f3f1f1ac22c", "03f8fb0c9c48abb3", "3d17ea786f71bc67"),
    "highway": ("daef45cb5ad71f84", "79c2623d81dd2cdb", "98597d3ccf8f427f"),
    "mhc": ("a534ecfff75e69d1", "19c7ccf43950e739", "6ab4984b53bdd790"),
}


#: The other two profiles' cases at seed 0, without values.
DECKS: dict[str, tuple[str, str]] = {
    "layer_norm": ("a1b33b34430ecc4a", "c40318147fc7456b"),
    "batch_norm": ("8d0ec359354738a4", "077f998af3d7dd9e"),
    "rms_norm": ("e8f144f47667e49f", "4fa6a4253105757e"),
    "group_norm": ("46dcdf78636d9289", "f9cf2a8f050319b0"),
    "instance_norm": ("ab7e6ad056948936", "84ab0bfd9753bf62"),
    "residual": ("0e14bd2c94da97e6", "8c9ff53268f5755f"),
    "pre_norm": ("5883c26e39c0e963", "f64e050ff31d6aa8"),
    "post_norm": ("df89812dff9d38c5", "3a3828bdb5521d8d"),
    "highway": ("9d1d009575e055fb", "405a456b7993d21b"),
    "mhc": ("98f26b3b548269a8", "facc2bbe20f50bfb"),
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
