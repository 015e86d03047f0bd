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
    "layer_norm": ("23d6d3766d59e4e6", "ae6ba0b931d1a847", "ddffbc24fae91d05"),
    "batch_norm": ("c55d4e3f0d9aa1a7", "d62b0dabd2b35185", "c62ea6c77942eb19"),
    "rms_norm": ("07cc8ce791dfdb77", "c06392b30fb71738", "aa183a2fd68dbd6f"),
    "group_norm": ("069419a42538d1b9", "3fc775e3b8a0076b", "87155fef952f309f"),
    "instance_norm": ("e9b90bc4ae750a83", "8574689eb012d86a", "61e6f90d35a9140c"),
    "residual": ("0e95650f076643a4", "505641f3b08ed3a6", "611273f000f9da59"),
    "pre_norm": ("eefb015cf839936b", "b0547d8f41f786db", "ce794e7e02263a81"),
    "post_norm": ("f174b3287ca284f5", "68e2ac5011e9181c", "78f058df0c325ce3"),
    "highway": ("016a1db28d719ce3", "9f4c27403f2dc38e", "e6ff2616f0a3e9cc"),
    "mhc": ("eba677bcff21cc2c", "18b2037d67ee24cd", "bd6cee1cbd885c06"),
}


#: What the other two profiles run at seed 0, without values.
DECKS: dict[str, tuple[str, str]] = {
    "layer_norm": ("54c45a3c486a9f08", "1b9bebc38d2e4c57"),
    "batch_norm": ("91606b8b73183ce7", "010502adf944dc9d"),
    "rms_norm": ("ca746ebe6b71eecf", "849de86d7b9a795e"),
    "group_norm": ("b1cf36ea3588a72f", "ab43873172c60902"),
    "instance_norm": ("1a9d8d23d16d88f4", "5ce952e1d752628f"),
    "residual": ("ac6e113d1c849fd2", "c7680118c6b6b71f"),
    "pre_norm": ("f75984bcd50ed43d", "95b339227bc1cdb7"),
    "post_norm": ("feaa00ecac7a5012", "95f736410b294aec"),
    "highway": ("15c27f8046f30322", "0c26de3acc9857e0"),
    "mhc": ("9830e5bc0bdbfb15", "3d2e383a30cd3e3f"),
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
