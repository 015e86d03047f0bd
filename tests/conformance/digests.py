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
    "layer_norm": ("604df506f1834d00", "6d40bfcd14173c12", "e9069a00bc1bb35c"),
    "batch_norm": ("e3a58e13ebae7055", "e08eb390ab6c1329", "3c9a6a2c913a19a9"),
    "rms_norm": ("30f0307805cbe823", "3ece4b2d9bbd0827", "a2b506ed34ea7fd6"),
    "group_norm": ("b147a4a5970cec3d", "8105df159cbd471c", "f002aaff3000f548"),
    "instance_norm": ("93f1a1ddb64c63e9", "aee6517e0b5b6f7d", "1f9df1ea99b44ed2"),
    "residual": ("bfa6d6227667e31b", "a10a832fb0aed8ed", "44be394f56d2e44c"),
    "pre_norm": ("a48f3a1ec48a8af9", "8c325dc6e369d9bc", "122cf1629f9eb6ad"),
    "post_norm": ("39727bce0ed40aa7", "33cea4292ce30c57", "bd436c0c425a36e7"),
    "highway": ("daef45cb5ad71f84", "79c2623d81dd2cdb", "98597d3ccf8f427f"),
    "mhc": ("fd5b21b08675a2a4", "2f299684de13820e", "5694f014c00254be"),
}


#: The other two profiles' cases at seed 0, without values.
DECKS: dict[str, tuple[str, str]] = {
    "layer_norm": ("9c2774efc58e1bad", "9aa96f1ea7e20133"),
    "batch_norm": ("93a2c222a4404a60", "63dd77ac3a256946"),
    "rms_norm": ("9eaa907a0f3a9716", "1c2a4d5e49f7351f"),
    "group_norm": ("4ad5e31b0d7d156a", "50687f5ce30027cd"),
    "instance_norm": ("71c3c539a396f3e7", "dc007c3f224d30c8"),
    "residual": ("0e14bd2c94da97e6", "c6829cb477f07dea"),
    "pre_norm": ("7267053c7962558a", "34990581fd557728"),
    "post_norm": ("1d449c50a812413e", "ddc209732f0fde0c"),
    "highway": ("9d1d009575e055fb", "405a456b7993d21b"),
    "mhc": ("6b766d8e989a189a", "a2013badd4e12a0a"),
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
