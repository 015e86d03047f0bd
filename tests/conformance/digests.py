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
    "layer_norm": ("d52f5df565d70c99", "33ed36ee796dd330", "6626843d85c4148c"),
    "batch_norm": ("3de902807a06bf84", "f57567c7c4f07a00", "0abfd4d66c937dc1"),
    "rms_norm": ("00638bd1dd7c8781", "908c4d19b9047ed1", "69c8d18bedc99522"),
    "group_norm": ("3f53516f27b35543", "e930f715246e0448", "82c12e06f6e00850"),
    "instance_norm": ("11bebc3215313426", "1ec20197fe756c8e", "2320c0143b947c20"),
    "residual": ("4cfde2aa3d31e988", "e31a74d8a74a45eb", "0c11124ae79380cd"),
    "pre_norm": ("c960ce4d127868ae", "26dd4ed41987c62f", "b0401ef1eded6e47"),
    "post_norm": ("293a32ecc93c3f3d", "a6f0b71cacb6ce58", "73f4f0007a1c5a36"),
    "highway": ("71e1483c5325a9ba", "afcf69fcc90b8e2d", "43138f3459a0d8ab"),
    "mhc": ("1d654631cf6339f2", "e2bbec8e4ed0a7c2", "71f37c3936e707ff"),
}


#: The other two profiles' cases at seed 0, without values.
DECKS: dict[str, tuple[str, str]] = {
    "layer_norm": ("2707327eb18f07bb", "77026b2e1243d076"),
    "batch_norm": ("a73eb3058d535f47", "3bd4d23da16667c3"),
    "rms_norm": ("8f0b254319b013b8", "3f1f35cbe22a64ea"),
    "group_norm": ("6085ede85b3b7968", "0e8e5ac6a83c6164"),
    "instance_norm": ("f7a653e63b1e356d", "1ccfa692e69a9b93"),
    "residual": ("403936b0f7e00229", "1da7203ef88b66dd"),
    "pre_norm": ("7477a1599ca12c1c", "97b0c9e7f27de416"),
    "post_norm": ("624cc025ca21dafe", "189cfaef802406ae"),
    "highway": ("6982a1adbe54f90a", "160dd4ccc76f2545"),
    "mhc": ("76302c0bfd5865c5", "ad1f353fc5e7c1f5"),
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
