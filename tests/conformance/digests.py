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
    "layer_norm": ("fc9bbe4e4daaadc4", "2ad6dade993a7656", "c4cd93546654cd0e"),
    "batch_norm": ("2ed14be520f7d141", "307a506b83b4773c", "986a38f47556dd0b"),
    "rms_norm": ("e98716cb6508008d", "411785f770ebba06", "604743ff1d887014"),
    "group_norm": ("64038dc3f3d58623", "7a9103b4cec0ca6b", "b574d4cf6295f218"),
    "instance_norm": ("4e24bc34f11c123c", "680986fe6f8f1cd7", "7d9d7c7fef2530d7"),
    "residual": ("9b2725543ae383b7", "fbbf6a15a8635b47", "e26dde6876343be8"),
    "pre_norm": ("cac7eebfb290e740", "1431f3602cb00b70", "c17b5e8ccf21eb1b"),
    "post_norm": ("c3efbf68c9b9ea29", "016b39600ddc35a9", "0e6d122cb8d406ec"),
    "highway": ("5ba2749d0558b03e", "17668be6d661155a", "1ade1e8c59fcffd1"),
    "mhc": ("087886a4d623973e", "24a09c12c05ce0f3", "4a633c4147d3c701"),
}


#: The other two profiles' cases at seed 0, without values.
DECKS: dict[str, tuple[str, str]] = {
    "layer_norm": ("bc4526103dcf6757", "c28410879691bec1"),
    "batch_norm": ("bba2631bb7b0f979", "69b74247fc2f28b6"),
    "rms_norm": ("1ab2ea3a94bdbfe3", "ff82e33c8a108476"),
    "group_norm": ("011515949318d3e6", "6bd98ccc3d277df4"),
    "instance_norm": ("e301b10479226daa", "6424bd3551c245ea"),
    "residual": ("753582f85050c095", "30211b29b50c109e"),
    "pre_norm": ("0a67f129bea4173d", "c7918638521bb73b"),
    "post_norm": ("5bcabc31fabdb8b4", "6f271511aa438559"),
    "highway": ("0a983555246265aa", "4e5d8b6321d4edd5"),
    "mhc": ("0df4a1c71a69398a", "eebb2cd3930d90ec"),
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
