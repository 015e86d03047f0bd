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
    "layer_norm": ("f4c2cd1895038623", "9d824ebc30ba459b", "fca2bb9a719da883"),
    "batch_norm": ("0938e5a09485eb64", "f74fcf4cab0645ef", "cdf7ffc833d27ded"),
    "rms_norm": ("8441829ae72c1d30", "7a132db80aa82b51", "0107c4aa09d1a9cf"),
    "group_norm": ("9d0fae194ce5fa25", "43334b9431707162", "5cf62e6dc834ee67"),
    "instance_norm": ("d21739d6e3557884", "f8abece177676781", "b463d675ad45a302"),
    "residual": ("d0aa3645b08d07ac", "a034feca1739cd86", "5e425861b6d4213b"),
    "pre_norm": ("a484a82f7455d1d1", "2cd252a160bab4db", "9287ed5cb5a0093f"),
    "post_norm": ("0c2daf91ce464b1c", "26aa12c782bee449", "3c005d8f3b1c6033"),
    "highway": ("2986725d6c386153", "1d676dcbcca390c5", "80d7c7738e25162b"),
    "mhc": ("30ea58d337ebed49", "334d34a4a3357138", "682fdf346f0ce558"),
}


#: The other two profiles' cases at seed 0, without values.
DECKS: dict[str, tuple[str, str]] = {
    "layer_norm": ("3029cb87ee54da27", "5d4ca3f4b87ad31f"),
    "batch_norm": ("3b28346df1f98741", "1d2c31414dbe08d1"),
    "rms_norm": ("48c0c79488ecdc14", "251d4977d87685da"),
    "group_norm": ("91464d418696852f", "1f566d4aa17d70c9"),
    "instance_norm": ("b0f5bff1de9d732c", "06a087342f39208a"),
    "residual": ("360b15cf9e0afb66", "63db677bc30f3613"),
    "pre_norm": ("18d3d2bf96e54abc", "e913090c5d5fe065"),
    "post_norm": ("e5f6b176d77876df", "4331acdcab6b165e"),
    "highway": ("542451619dd75875", "d271a4be76999b0e"),
    "mhc": ("577b24569b256f43", "09b60fff206aea83"),
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
