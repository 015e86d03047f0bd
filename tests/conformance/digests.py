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
    "layer_norm": ("d7521cc275eb6494", "9a92e510b93c05c9", "2645dc827dda8485"),
    "batch_norm": ("005ca148d0c58122", "24f5ae84ae585f60", "b17ad1ef00c6c66d"),
    "rms_norm": ("a223bac8c799d37e", "0ad3b9ceb32d3d0b", "2c0e0cf6a82182c1"),
    "group_norm": ("d9bc140c07c1358a", "6373eedefec48a92", "2028375b29c32160"),
    "instance_norm": ("4f66eb671571e20c", "936f1f9bf0ed180e", "8d49789b5ad5f3aa"),
    "residual": ("520839e0bbae402e", "8e771f045088df82", "adc3b3bb6a415427"),
    "pre_norm": ("af11e1547e20ac04", "4685e3c2775f50a2", "483f3bf4ef4054a5"),
    "post_norm": ("471a9269063daa5b", "f76f0baed886f8b0", "43fa4df43d01e0ed"),
    "highway": ("9e8b74b22bdd0032", "abfb60409ce73192", "0d4691accfddc21a"),
    "mhc": ("498f17fae819f8fa", "8893e984b154f1a5", "55308f8d82e8e845"),
}


#: The other two profiles' cases at seed 0, without values.
DECKS: dict[str, tuple[str, str]] = {
    "layer_norm": ("b4ce85d179689cee", "3631ecf1e6f07ef8"),
    "batch_norm": ("b2a568300809cb70", "d150722702ae33d9"),
    "rms_norm": ("a59a0258275b0470", "141358bf8a2b25a0"),
    "group_norm": ("313fcc87c68fd288", "7ae01841f1f0fc44"),
    "instance_norm": ("d11531b283ba04cd", "11151cc2c689e28e"),
    "residual": ("03fc7413a933082c", "1ff41feae026b430"),
    "pre_norm": ("c2581f8aa6cf5190", "67534efb0cddb194"),
    "post_norm": ("417d147539f58a61", "e95151a0bb1447ec"),
    "highway": ("48ffd1b8c3b9d4ff", "2c1fe3d88983afe6"),
    "mhc": ("88b5fe902b13abe6", "e44eb536285e6ac5"),
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
