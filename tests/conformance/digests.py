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
    "layer_norm": ("19b96fbd58d8eb0a", "198b58f8243b50d4", "8a5fb8423eecfc96"),
    "batch_norm": ("47270de0b86defdf", "d91fc17f05bc7839", "840448bc631e0dab"),
    "rms_norm": ("2b754ac2086630a9", "f7cf3060ee702c13", "60038bde6fe39e53"),
    "group_norm": ("e610320d4d8c4706", "f6fa973586663c00", "6a64f08f1a1586fa"),
    "instance_norm": ("ab47b90de7fd17cc", "339959c00923df5e", "87214bbff88a1536"),
    "residual": ("570944172ed92494", "397db6ea5f06e66f", "eb90b6d3d103b276"),
    "pre_norm": ("0fc64a2a00513b54", "e2dc0165331676a4", "52f99857019017ee"),
    "post_norm": ("4de748cee3d8be52", "e3d51a9cf1f33186", "71cdc0adba08182e"),
    "highway": ("fadee8314944835e", "cf244b00e7d6753f", "c7406b6368d5a637"),
    "mhc": ("278af457ea15d29c", "a3c6eb279c4e5810", "b7ba528bee438fc3"),
}


#: What the other two profiles run at seed 0, without values.
DECKS: dict[str, tuple[str, str]] = {
    "layer_norm": ("548df0cbb9ab7748", "f32590650c6225cc"),
    "batch_norm": ("a77c505fd5c9cd61", "e017d38002808e4e"),
    "rms_norm": ("561e08782f77a2c0", "2921168aa9565051"),
    "group_norm": ("b169104c0eea72d4", "a6b2e0b808b3eaab"),
    "instance_norm": ("5eacaad4172f4c2a", "a9ea127367b21ccb"),
    "residual": ("f0ae14bfc82f2ba9", "fd20d6330be24e8c"),
    "pre_norm": ("5d0ad2ebd5722e4b", "0c886ba5bae7667c"),
    "post_norm": ("5af636e27fdf1b1b", "fa01ca13e0781d29"),
    "highway": ("456424431b60cd1f", "0c26de3acc9857e0"),
    "mhc": ("d7049c9d7e674f4c", "5504a63b81295a24"),
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
