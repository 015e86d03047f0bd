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
    "layer_norm": ("d3a23b086d314160", "64d4412d9c535375", "0d4067db77609197"),
    "batch_norm": ("6a979d7625a02d3a", "ee8a841476836ce4", "ff63fabbef552fad"),
    "rms_norm": ("69eaa6aa0d28f1af", "4fcaa5f591964deb", "39be48649ab5a224"),
    "group_norm": ("61b6e85c7bd20579", "f541337917a181cc", "333cfc2f8635ec41"),
    "instance_norm": ("a77511bb9e51f10c", "b2762e0a72c8b7a6", "a5c44f2798241ffa"),
    "residual": ("5a4503c91518b27f", "0472ef0d617cb13c", "bacae9f268cf7369"),
    "pre_norm": ("336ac3a1fdc15080", "8442739cc011354c", "817b6a64445ad9ca"),
    "post_norm": ("943192374609b3ba", "9698401b63b3bf86", "b9bb83694adaf89b"),
    "highway": ("19d0b44709ec33d5", "d202ef96e9206a42", "cd6da38b517ce17e"),
    "mhc": ("20a253b8afaee49a", "292e4942dfd6a39e", "309f5948012a8de8"),
}


#: The other two profiles' cases at seed 0, without values.
DECKS: dict[str, tuple[str, str]] = {
    "layer_norm": ("9c2774efc58e1bad", "e682c7bae584ccfb"),
    "batch_norm": ("93a2c222a4404a60", "528c5b68af52fc02"),
    "rms_norm": ("9eaa907a0f3a9716", "89d3afa2e23664f4"),
    "group_norm": ("4ad5e31b0d7d156a", "039cfa4a4d44638e"),
    "instance_norm": ("71c3c539a396f3e7", "0f5b9e6d3a8772a1"),
    "residual": ("0e14bd2c94da97e6", "801f0bcfbca995f4"),
    "pre_norm": ("7267053c7962558a", "752d2ffe9d7c1df3"),
    "post_norm": ("1d449c50a812413e", "0a0352c3ad228f3c"),
    "highway": ("9d1d009575e055fb", "569914a8f7f94491"),
    "mhc": ("6b766d8e989a189a", "066a040e3bffc8b3"),
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
