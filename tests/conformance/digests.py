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
    "layer_norm": ("c2abd1a2f3d2b9ee", "67e486228f30fc3b", "5ac8ab88a5f93cf6"),
    "batch_norm": ("5bbd096cffd6ef5e", "972916e4d1f9e0a0", "3e8950ab0fe3d4fb"),
    "rms_norm": ("26323148902f09cb", "ef44f64092b79923", "729e25be57a3f66f"),
    "group_norm": ("59ec1609cfe40edb", "53243f3e95a23220", "2736a8dc2f81fa79"),
    "instance_norm": ("09f3f988a85ef0a6", "315c81ab7c2254d2", "5c8df17564dfe4f7"),
    "residual": ("ea9a0db7d7da0395", "399d8339f454e207", "97b3d4612b88436a"),
    "pre_norm": ("ff66466d1e13bcfc", "4d03d8610d1ec399", "debe12ef1526abcf"),
    "post_norm": ("6e27dc7156e31e1e", "639fe30308d55b78", "d9a6cc85fef85d6a"),
    "highway": ("a524ffead54b8b29", "34f0593b8142d862", "7eb0ec8cccfd6984"),
    "mhc": ("296be2489ef939cf", "19415a4e39511479", "9e749552a37c60b6"),
}


#: The other two profiles' cases at seed 0, without values.
DECKS: dict[str, tuple[str, str]] = {
    "layer_norm": ("d3af79ba19217807", "a7a49bb18ad0b29f"),
    "batch_norm": ("c1a71059ad672403", "bc723c30c67fc9b5"),
    "rms_norm": ("0ff3007d338ff3e2", "faa711987dc4679c"),
    "group_norm": ("11a19f1c33bbbdb4", "4f519f17c1cf8778"),
    "instance_norm": ("e26246c72f2e4cb2", "930838e8fe6aaea4"),
    "residual": ("9d6928f12f81b6c4", "e00b01b438ee6ea1"),
    "pre_norm": ("11eee43f26f05981", "de961c34d4003ebf"),
    "post_norm": ("df339225eebca741", "9a33033296eade21"),
    "highway": ("35be41f420dc20cb", "b63b970e47422165"),
    "mhc": ("c151938df79e2122", "1268afd851cc6d67"),
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
