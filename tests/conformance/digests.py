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
    "layer_norm": ("176e32313999278d", "86bec27c22d00ca1", "b118b5b9cb0417a1"),
    "batch_norm": ("26903ba6be74d5b9", "c41de3c7a1b806f0", "a432551c21432b8e"),
    "rms_norm": ("35be35936040ae2f", "68b3305ab5668a22", "5ad0f2cd36db5e82"),
    "group_norm": ("013b9ca02b194216", "eae30faa422a0652", "748a434541e1da62"),
    "instance_norm": ("6a5977facba3abc2", "e6902cdad6a87f6b", "204344f46fd98359"),
    "residual": ("95d00f19a927f191", "dd5e55188f61776e", "07cb872391abc281"),
    "pre_norm": ("3866aa949f36c0c9", "69ec33ca04f4eb17", "460aeb779c270430"),
    "post_norm": ("61621b6bc4f7bd17", "8c976353941e1278", "a109940fad28d17f"),
    "highway": ("ccf077130a8f7773", "ca5939cd12f131f0", "0033b6d8aab8fcf1"),
    "mhc": ("71549f9240e47a86", "65c93624e942d9b4", "a0230576f33fa45e"),
}


#: The other two profiles' cases at seed 0, without values.
DECKS: dict[str, tuple[str, str]] = {
    "layer_norm": ("abcee29c8dad5ff9", "7c8edc1e26b08535"),
    "batch_norm": ("6c88b14fe2ca5c89", "0433b52f066ab895"),
    "rms_norm": ("05b8f1a811c58a45", "9aa2f88e991859b9"),
    "group_norm": ("632319130ab21632", "6b12e394945554d5"),
    "instance_norm": ("5a456547434de66d", "f827e78a1267176e"),
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
