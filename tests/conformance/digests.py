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
    "layer_norm": ("e7ea9d2949e566df", "e9d682bbb6115a70", "d9b8d1f7706ddbd4"),
    "batch_norm": ("f15e1c3becc76c34", "ee2af44e77b63661", "45cbbe42738770e3"),
    "rms_norm": ("a8c5b0ae41ffbd09", "77f51f1b602e5c6d", "a5ebaabc2114fe15"),
    "group_norm": ("2d9436bb0d1361f2", "346afea9c7ecaf3b", "f677290b4aa1ea12"),
    "instance_norm": ("4f476f12c106d5c9", "63d27917aca7af6a", "82a58b4ea8f7a3d4"),
    "residual": ("ab000e1c9b000373", "b49e3639b253bfb1", "a22091c658be1f21"),
    "pre_norm": ("30d043602b43cb8a", "8a3bf3bcef9ece7f", "d60306a5d99357df"),
    "post_norm": ("39a114fa2fcdd907", "b808ccd6c93b14cc", "0259e9fa7c103997"),
    "highway": ("90a898b50700c2fd", "28f6e8f61081e4a0", "d7468f322d969b53"),
    "mhc": ("12481af355fea96b", "c3b076fbfdc6b115", "4e2cd49a7ac4a587"),
}


#: The other two profiles' cases at seed 0, without values.
DECKS: dict[str, tuple[str, str]] = {
    "layer_norm": ("08b0ca16254f33fa", "2bc421b7be5416ff"),
    "batch_norm": ("36be0a4e5259873a", "88516de095540f22"),
    "rms_norm": ("857036f6f84d4f46", "1813fb1a39e6bf2f"),
    "group_norm": ("e473c3d29e5a29dc", "cbb51622d7455168"),
    "instance_norm": ("6ec94951a8f9ba7e", "95dd534cad8992ff"),
    "residual": ("89bd8b4e66ef2aab", "e73f33fa60d350db"),
    "pre_norm": ("5b8f61c6539b6cda", "63ef5b3f614e6496"),
    "post_norm": ("f6e3084a73f8f398", "48610a46fa36d0f3"),
    "highway": ("709bdcba5f7664f5", "05be1386c11ace31"),
    "mhc": ("ac84cca7f3e4ce9a", "51c59b19d81218be"),
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
    "tiny": "cd4e4823ebf262d8",
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
