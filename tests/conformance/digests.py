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
    "layer_norm": ("5602cae11a26b925", "2a7d9a9e528f940a", "520d16e2fe3e9808"),
    "batch_norm": ("0bd9cf73ec9e2a13", "bdbd9d34adde49b2", "ada74888d63d8758"),
    "rms_norm": ("69fe339b53228c35", "0eb38ab60b8d61fd", "c38dfff1276f4754"),
    "group_norm": ("b6aa966704d23bc2", "1421b4b7dba83258", "971d4ec3e5a8f0ce"),
    "instance_norm": ("976d16130e17e357", "983e2553c7ed64ee", "8dc7c5828949a950"),
    "residual": ("4b2b699c6c791355", "f4f7e7d8eb8b72dd", "717c45845b70422b"),
    "pre_norm": ("3fae0adac7d68302", "f367ea008246d7e0", "77e0c00d85d40e50"),
    "post_norm": ("73b29c511ed9e835", "1e3c7a5a9b18701f", "b15452a3b6c48420"),
    "highway": ("ecf8249d94ae1c75", "fb8db0995286600d", "b3bc46ff29752ac1"),
    "mhc": ("98e40686063b7683", "30ae550ea15432e0", "236d37a6fd79964b"),
}


#: The other two profiles' cases at seed 0, without values.
DECKS: dict[str, tuple[str, str]] = {
    "layer_norm": ("35ba7799ebd95956", "038ec6a8a28b2d83"),
    "batch_norm": ("651824d45223a0a7", "134fe00ee4dcde39"),
    "rms_norm": ("bbfc7117736cd831", "0d6feaf891c2bedd"),
    "group_norm": ("ee8fd37c8fe7a2ee", "d2b5617bb0987426"),
    "instance_norm": ("41525565849d7712", "af27525ec2aad80a"),
    "residual": ("964f52c378822e66", "b64e3f3b2dd06539"),
    "pre_norm": ("549d416b930d8be6", "344c1021f7c6d0e4"),
    "post_norm": ("9bd9d7a334f9eaa9", "502ba8f3e95429d1"),
    "highway": ("cf0693f57ee4f074", "ac4a9eb70a3356cf"),
    "mhc": ("a09871e8da19b310", "7dbbc52f99211d32"),
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
