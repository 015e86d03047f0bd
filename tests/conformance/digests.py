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
    "layer_norm": ("5db51c58edb2d253", "ac93678b770aee5d", "6ce85952d941b7e0"),
    "batch_norm": ("6d4d09ea2e5b1bdd", "f43799017a9f7d91", "1f231f581d82d10f"),
    "rms_norm": ("d85586067730a196", "b217f6879c4e06a5", "14dbd451c863d99d"),
    "group_norm": ("3ee9d4cc648974ef", "0997528077d93e78", "3fa9a8c2a05a497b"),
    "instance_norm": ("eda14d5751238143", "1dd7f65647a741be", "a0f3849cf63fe9ba"),
    "residual": ("f0262821a9ba81dd", "54677aaa24ee5188", "eca0f1929883a4cf"),
    "pre_norm": ("1c2080730b6cb97d", "2372fc708103b062", "e4ab7b015439f325"),
    "post_norm": ("c9b3a81818b5ca9e", "1f4a7e0132e3af0e", "bd24a480918db26b"),
    "highway": ("338c3b56b4422ebf", "9772779f86bcea0b", "9315ce4eee147853"),
    "mhc": ("3fc1e964ed4d3fd1", "462a491365ff4f7d", "a838fd178469316d"),
}


#: The other two profiles' cases at seed 0, without values.
DECKS: dict[str, tuple[str, str]] = {
    "layer_norm": ("d55bc4fe4a847b75", "1214772c7e29b356"),
    "batch_norm": ("d57dc19913b431ee", "d6e3caf15eb4749a"),
    "rms_norm": ("2275abd4586f0f4f", "9c7880a5ba3ddf13"),
    "group_norm": ("1d204f9e440eba67", "3a0044c6cfb74c2d"),
    "instance_norm": ("3bd6c25f6af2ce97", "138d76bc2bcf2a4d"),
    "residual": ("c54d2ec31518ecc6", "87877a62fe0f1b42"),
    "pre_norm": ("4e43fae8fe907945", "f242f4d7f42fd5e3"),
    "post_norm": ("ff591a1eff62f93b", "453d2f5e89891579"),
    "highway": ("3287b61be85110bb", "4eab87bf13aa80ea"),
    "mhc": ("74642f82a79c1680", "b3afd2afd539f21c"),
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
