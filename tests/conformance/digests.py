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
    "layer_norm": ("c582780759cbdff0", "74031a21db508648", "9357b2a512a152e1"),
    "batch_norm": ("8f72d1a4f9fe2b04", "c8ffa14388dbcc5d", "3076b132935ba9ba"),
    "rms_norm": ("8ec59a489402e5b9", "ad2a74881363df26", "85ffff016048ba02"),
    "group_norm": ("78c56e4d7518ef71", "981b6e6ef4532f02", "6785b83e99307634"),
    "instance_norm": ("b18bc18e9cbf8057", "a179dd5f397fefe5", "200325327110534d"),
    "residual": ("520839e0bbae402e", "8e771f045088df82", "adc3b3bb6a415427"),
    "pre_norm": ("af11e1547e20ac04", "4685e3c2775f50a2", "483f3bf4ef4054a5"),
    "post_norm": ("471a9269063daa5b", "f76f0baed886f8b0", "43fa4df43d01e0ed"),
    "highway": ("9e8b74b22bdd0032", "abfb60409ce73192", "0d4691accfddc21a"),
    "mhc": ("498f17fae819f8fa", "8893e984b154f1a5", "55308f8d82e8e845"),
}


#: The other two profiles' cases at seed 0, without values.
DECKS: dict[str, tuple[str, str]] = {
    "layer_norm": ("a63d7cab7f8907ca", "c72e1628b09611ba"),
    "batch_norm": ("274297d2a483b590", "d28e336a360ab6e1"),
    "rms_norm": ("5d55d49d95e3929b", "c4cc2e6c66ea1f28"),
    "group_norm": ("3f7ea02bc72d916e", "6d548eb8eb05c47e"),
    "instance_norm": ("2783ad8ddff57f88", "23161f28505132ca"),
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
