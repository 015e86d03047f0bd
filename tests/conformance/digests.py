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
    "layer_norm": ("c5e94b7b47f8d8ca", "3fa7a6631bb7f388", "6e4bc5324518d5c2"),
    "batch_norm": ("a67ae272ab43621f", "660a3c10767ed6df", "d2e5a55d6364ca16"),
    "rms_norm": ("2216b518a93d5775", "d36f7ce33d1c219f", "a0a92cec35133e3f"),
    "group_norm": ("f7a362978388bd34", "c16fdf1f7831b893", "4f2a1953a8bdfcbe"),
    "instance_norm": ("6acfdd09a259899e", "a9a3f4f4fd2c8958", "70f44c12fb2d43ee"),
    "residual": ("6eaa0b00f2d5a4bb", "e52e248fc56afe15", "dfc70df936509edd"),
    "pre_norm": ("f6738bf91a8cca6e", "ccc853f253b821c6", "d315af71bc60b2a4"),
    "post_norm": ("9efb73ee5a2be706", "a9b20b03f17746e4", "479f0c400d6de1b8"),
    "highway": ("7ca5971e09cb2c2b", "86e77633f829f9b4", "4ecb27fabfc82780"),
    "mhc": ("291a766c184f1c00", "ad7bcdb3d2967ea0", "35c13434531702cd"),
}


#: What the other two profiles run at seed 0, without values.
DECKS: dict[str, tuple[str, str]] = {
    "layer_norm": ("89a86dd11415e653", "531dc0c5e37037fe"),
    "batch_norm": ("b20c61a2c06610ae", "18ae10fe6ea41c52"),
    "rms_norm": ("37103a0dd3714fd0", "b74f5e0f8d9b7174"),
    "group_norm": ("5cfacdd6b0a2012e", "219d6cef0cd9d3d8"),
    "instance_norm": ("6fa04f486fb26e67", "a0992902b456f7f7"),
    "residual": ("8f1e3fb3367807e2", "94e46c64a6ddc2c6"),
    "pre_norm": ("80cb679d3d5c0a47", "b5d16b93860d7935"),
    "post_norm": ("e50b87d26e5a3524", "8dbc8d9989847d4a"),
    "highway": ("237d4d0c8a819993", "1cd3c83e88a92910"),
    "mhc": ("8954babc7bf4ffb8", "7abbdfe2ef83bb26"),
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
