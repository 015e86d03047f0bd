"""
Digests of the cases: what a seed means, for every version of everything.

Run this file to print them anew after the cases were changed on purpose.
"""

from __future__ import annotations

import hashlib

import attrs
import numpy as np

from normspec.conformance.cases.case import build
from normspec.conformance.cases.description import Description
from normspec.conformance.cases.regimes import REGIMES, draw_group
from normspec.conformance.cases.shapes import elements
from normspec.conformance.profiles import PROFILES
from normspec.reference.formats import FORMATS
from normspec.spec.operators import OPERATORS

#: The digests of seeds 0, 1 and 2.
DIGESTS: dict[str, tuple[str, str, str]] = {
    "layer_norm": ("54e6d70e5db5ab41", "2f2121bbaa5dce4d", "94bf46eae2ff6a08"),
    "batch_norm": ("da29ea6a99ed3a58", "7c3829466f20a083", "d5b125e9a092976e"),
    "rms_norm": ("ba69482da4681550", "5aeb7ca171b09d80", "2b15a5714a9d9525"),
    "group_norm": ("f85945a560566a4e", "44997fa82ae3b5d1", "fa5cfc1fc0df44e1"),
    "instance_norm": ("71d500dfa54c55e5", "b0f34fa4f059b8bf", "61ca31c2f3920994"),
    "residual": ("8d3ecc90f963815a", "fd56b8159e924d76", "d1575d1cc6efe4e3"),
    "pre_norm": ("c0e0b2384f77a4f9", "f86ccf3a68e43c14", "3b7c1f8e4facdb19"),
    "post_norm": ("f8f85000d3527e6c", "b8867f79061fb3ed", "20308f9fc7e0f2ff"),
    "highway": ("4a3791f418dd53b0", "e9defea513e99241", "69a04087433ecedc"),
    "mhc": ("453fe611dd5e0c07", "7709836a04c5f8cd", "8f2b55ab385d3938"),
}


#: What the other two profiles run at seed 0, without values.
DECKS: dict[str, tuple[str, str]] = {
    "layer_norm": ("5949cac8cc50a7fa", "aa01138de012efb0"),
    "batch_norm": ("7447e6eadfa2fc42", "809983f4493600f5"),
    "rms_norm": ("1b4aae9a08496348", "d1644525c73634d1"),
    "group_norm": ("f22218ab705da62e", "8c858da41a332b0b"),
    "instance_norm": ("fc45b444802df376", "4d0860d7b1ff5840"),
    "residual": ("ac6e113d1c849fd2", "188a70d5010ce3f9"),
    "pre_norm": ("f75984bcd50ed43d", "ba3f72bb59f3f627"),
    "post_norm": ("feaa00ecac7a5012", "17084d503f19817f"),
    "highway": ("15c27f8046f30322", "ebc71d1bbdcaaa5d"),
    "mhc": ("9830e5bc0bdbfb15", "9e44a47fbd372a89"),
}

#: What each regime draws.
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
