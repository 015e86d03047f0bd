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
    "layer_norm": ("861daee387edddb2", "f89e46139c766986", "274e3fa37d6a216a"),
    "batch_norm": ("87ea81cd8a3c5849", "0b57adffb6020639", "aff4f6c96c4ef0cd"),
    "rms_norm": ("6c1fdd7c82a8c9fe", "ede8d5c5d77e013f", "6fa9a08a8c3d146e"),
    "group_norm": ("616852240c572d29", "9b8f98b8edf89f89", "a0a518de97ec60f1"),
    "instance_norm": ("a3a94b74d6fd8e6e", "955c70dadc34dffd", "ab5e72e4c6d96331"),
    "residual": ("8ee782dc0065f3c4", "5ddf2dc6d9deab84", "811c91c0b634599a"),
    "pre_norm": ("c8c8f0b591bca97b", "6280c287865cef7d", "8d602f246224323a"),
    "post_norm": ("03c6d25b356ad0b4", "b7d717e57c871976", "1e2cd66fa5e52632"),
    "highway": ("289f506c2714dcc3", "73fe1f632a52fcbe", "808dc60c4667a1ed"),
    "mhc": ("7d36bcd23d088588", "9e260a0a0007360c", "4dc2021ad99bb882"),
}


#: The other two profiles' cases at seed 0, without values.
DECKS: dict[str, tuple[str, str]] = {
    "layer_norm": ("b7fa8c2587d8870a", "a17ed73ff08e79d6"),
    "batch_norm": ("4712a3050fba1ed4", "8acb27467cde8f07"),
    "rms_norm": ("77d1873cbb1edcd8", "501e00b136a16a11"),
    "group_norm": ("c126562ce31e0017", "5fb84c2cde524a31"),
    "instance_norm": ("8edd4eba2873e0f7", "93f8095bf8967dd4"),
    "residual": ("90c77ef49ac99fc5", "2ef190678f499701"),
    "pre_norm": ("73471ddb1c5863fe", "e1abe073dd259ad3"),
    "post_norm": ("181cc4a45a758151", "6d87bd09af39cdf6"),
    "highway": ("f9540a06fc94bae8", "eb0d866d04faf309"),
    "mhc": ("4fed4bbf6a7f916e", "2d1a653cc24158ad"),
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
