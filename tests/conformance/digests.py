"""
Digests of the cases: what a seed means, for every version of everything.

Run this file to print them anew after the cases were changed on purpose.
"""

from __future__ import annotations

import hashlib

import attrs
import numpy as np

from normspec.conformance.cases.case import build
from normspec.conformance.cases.description import Description
from normspec.conformance.cases.regimes import REGIMES, draw_group
from normspec.conformance.cases.shapes import elements
from normspec.conformance.profiles import PROFILES
from normspec.reference.formats import FORMATS
from normspec.spec.operators import OPERATORS

#: The digests of seeds 0, 1 and 2.
DIGESTS: dict[str, tuple[str, str, str]] = {
    "layer_norm": ("d7b54d09365fcf5d", "01914121c8e0b390", "f97cfabf0afc2d6f"),
    "batch_norm": ("b386047504bf2e77", "686cf73fe7074398", "e1b2a7f0a548394f"),
    "rms_norm": ("5bec2a960bfbe32b", "d5bc3a75654d857b", "fb45ae7993d88928"),
    "group_norm": ("1fa4b224c9a4a6b0", "ece7eace59c63655", "f75ecb21dc26c8b0"),
    "instance_norm": ("f8c91a514bba23dc", "db656718981b5d9f", "ff28972e5cc93cf0"),
    "residual": ("ce5f5fe805a1514a", "7fa3a86c799d414d", "3594180fca625aff"),
    "pre_norm": ("f3ebf21222a86452", "96755424ca794799", "5ec45c2fb1aff5b7"),
    "post_norm": ("cc65dc7ea13bbbcc", "c56709989a06be97", "3d03ac0460b34532"),
    "highway": ("016a1db28d719ce3", "9f4c27403f2dc38e", "e6ff2616f0a3e9cc"),
    "mhc": ("13e8d8ea69ef4c4c", "222f6d12ee7937fb", "638d86d51f2abd88"),
}


#: What the other two profiles run at seed 0, without values.
DECKS: dict[str, tuple[str, str]] = {
    "layer_norm": ("8079a5d794b464be", "f32590650c6225cc"),
    "batch_norm": ("2e20311cb508bb0d", "e017d38002808e4e"),
    "rms_norm": ("bb86858950d2fe49", "2921168aa9565051"),
    "group_norm": ("10bf1596a718a9f1", "a6b2e0b808b3eaab"),
    "instance_norm": ("9d6a6d971fbf52ca", "a9ea127367b21ccb"),
    "residual": ("ac6e113d1c849fd2", "fd20d6330be24e8c"),
    "pre_norm": ("cb573111ba88f6d9", "0c886ba5bae7667c"),
    "post_norm": ("a6c45ab4569f4a75", "fa01ca13e0781d29"),
    "highway": ("15c27f8046f30322", "0c26de3acc9857e0"),
    "mhc": ("fd4787e3921aa8eb", "6890a7f68b5590cc"),
}

#: What each regime draws.
DRAWN: dict[str, str] = {
    "witness": "223cb1e1a6cd338e",
    "normal": "76790f0da7bf0ff4",
    "near_eps": "c51dbba7708c8601",
    "below_eps": "17eb88d68103c6e8",
    "scaled": "09bafb6abfcde828",
    "constant": "667a5a74d974ccf1",
    "one_hot": "16a0f057832898ea",
    "offset": "ec3f9eacd4e304fc",
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
