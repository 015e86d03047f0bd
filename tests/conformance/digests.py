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
    "layer_norm": ("0ffbfbadb97583d4", "810e121d00779aeb", "1afbb8affdb40c11"),
    "batch_norm": ("f66327682e1f9ae2", "a8718f22d543b157", "666a439d9829b6c1"),
    "rms_norm": ("7666806edcebb2b0", "6a44444680211d23", "a09cb077565bee48"),
    "group_norm": ("11bb46e4eda47dd0", "51e5be0a7acab121", "b99b0eb1d55234bd"),
    "instance_norm": ("65a5da4199e45f9c", "1ec4d1b85bde7ab3", "5c05e1ed12ffcb52"),
    "residual": ("d34c1ae73a6d2d24", "f921eb4b1c23a890", "310d5b8a92dbedd7"),
    "pre_norm": ("e3b2725f5d09f0c2", "cf875a03744983f8", "45fd57475a19a47a"),
    "post_norm": ("2871325a8f7e12f2", "165745391ef84cbb", "20790ff781db0e8d"),
    "highway": ("3f4c13fdd15b0033", "e0687e025db43c33", "33b0717129a8b1e0"),
    "mhc": ("da91714daff0d16d", "44acdb5d448e7a8c", "ff47af1b1a39e60c"),
}


#: The other two profiles' cases at seed 0, without values.
DECKS: dict[str, tuple[str, str]] = {
    "layer_norm": ("5949cac8cc50a7fa", "3da35a9bc5a20890"),
    "batch_norm": ("7447e6eadfa2fc42", "be51ad7ee9843f8c"),
    "rms_norm": ("1b4aae9a08496348", "fe0945b85a5d06b3"),
    "group_norm": ("f22218ab705da62e", "53e1368e1df050b5"),
    "instance_norm": ("fc45b444802df376", "db1ab90c88978b81"),
    "residual": ("ac6e113d1c849fd2", "c7680118c6b6b71f"),
    "pre_norm": ("f75984bcd50ed43d", "95b339227bc1cdb7"),
    "post_norm": ("feaa00ecac7a5012", "95f736410b294aec"),
    "highway": ("15c27f8046f30322", "0c26de3acc9857e0"),
    "mhc": ("9830e5bc0bdbfb15", "3d2e383a30cd3e3f"),
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
