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
    "layer_norm": ("1a11dd8f795e7cc2", "6114c7bb17615567", "119e710d36112af2"),
    "batch_norm": ("88e99eec611aa0ec", "59b4687083b45286", "ba9329ea4bc2c676"),
    "rms_norm": ("afc69731188c11c4", "1f22adc6f982fb11", "496089ebcc7eaf66"),
    "group_norm": ("e913312ce33881e2", "3c63fa273afa9ecb", "fb999e07e4d53381"),
    "instance_norm": ("ebb10fd6db5d7035", "de9c0a19a872c01a", "3da55ced770f54ac"),
    "residual": ("24fc114819bf6ecd", "f81a923d9a880329", "d487ae4e5e6dc7a0"),
    "pre_norm": ("0c84816846db97b0", "af47be8540cbe8f5", "7aaec0238d9aeb97"),
    "post_norm": ("d44e44d159fe5c81", "2b6fa07dad33747c", "41b4be8847d719ec"),
    "highway": ("eea982d4dc5aa0b5", "aa0877932dfc2974", "851c57030491e5ec"),
    "mhc": ("a924863aa936b3f0", "e9ee81a74af1f93b", "3d825c6e641a7e86"),
}


#: The other two profiles' cases at seed 0, without values.
DECKS: dict[str, tuple[str, str]] = {
    "layer_norm": ("cb8e3818780874b8", "ba9d72f6ca5e7cd8"),
    "batch_norm": ("735f4be313c585c1", "90ff1191e2bb98fd"),
    "rms_norm": ("27aa9d0e0454856d", "d3a43b12345b359f"),
    "group_norm": ("4125ef2a5c7d225e", "4b65ae09c3b6de75"),
    "instance_norm": ("8dd38c259974a0fa", "c2e6fedd453f5097"),
    "residual": ("32f9592284b34fa0", "f41fa3577a1d7409"),
    "pre_norm": ("183a67e261a81eb9", "e03d1e8f113c2f38"),
    "post_norm": ("9f9363d3a230ba3d", "ad2ba23e309b9026"),
    "highway": ("690c5f12f54b486c", "6f3add33ffc11a49"),
    "mhc": ("c311b5cd21d49732", "7405c33e35880979"),
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
