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
    "layer_norm": ("54a18cd955247128", "a9308240a6ecbc80", "584720a5931a7704"),
    "batch_norm": ("498aea3772d5fd66", "d22ac1b117e389de", "828672de3cb0180d"),
    "rms_norm": ("d6c6ce464eee1e52", "ea25e69058fa62db", "b21710cc1c8a108c"),
    "group_norm": ("b77f3c47f59bffbc", "e08e3afe654f5ce3", "1056136ed6426502"),
    "instance_norm": ("f5a6bad63b3c028d", "e7c5291d4b5e8c4f", "8d25f1d371c11010"),
    "residual": ("0824e1d87ffd0f65", "c771e7545caf9eae", "9e58aff9acb66b96"),
    "pre_norm": ("cd59dabb7a492d19", "b2eabb52f14f6a5b", "c353460e8f3d8157"),
    "post_norm": ("ef17300ba2f5d75c", "9b6bb4869c8f0d9d", "5ea180bdc455a8d4"),
    "highway": ("febec21ee5de79cf", "96932b5662bb878d", "9b8e7abdfdac45a3"),
    "mhc": ("73ba88989cec0db6", "450af4bbf2405ffb", "63ef3b43f10a8061"),
}


#: The other two profiles' cases at seed 0, without values.
DECKS: dict[str, tuple[str, str]] = {
    "layer_norm": ("3bc28885cb7d8d39", "61d18dec41c1a7cd"),
    "batch_norm": ("320bab7272d5881e", "884ba6b04843f8e7"),
    "rms_norm": ("fe3102f5de043564", "15bbac71bb109382"),
    "group_norm": ("42bc3282dd2e3339", "a66cc802b72e5e93"),
    "instance_norm": ("c3a90081dcb8e7ae", "302e6f1b437d851a"),
    "residual": ("0f3bf7119cde5233", "77032f083f96b4ba"),
    "pre_norm": ("f7762e7862acec4b", "6b2f170d66e7e82b"),
    "post_norm": ("ab276d96758dff33", "fbae6942d1f89504"),
    "highway": ("4e4e6dfa9859d431", "267f25d563708ce1"),
    "mhc": ("5bec1b24692c392d", "863c51ef3b39e4ea"),
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
