"""
Digests of the cases: what a seed means, for every version of everything.

Run this file to print them anew after the cases were changed on purpose.
"""

from __future__ import annotations

import hashlib

import attrs
import numpy as np

from normspec.conformance.cases.case import build
from normspec.conformance.cases.shapes import elements
from normspec.conformance.profiles import PROFILES
from normspec.spec.operators import OPERATORS

#: The digests of seeds 0, 1 and 2.
DIGESTS: dict[str, tuple[str, str, str]] = {
    "layer_norm": ("154737d5fefada42", "e25c8932456261a9", "959fdf13aead2832"),
    "batch_norm": ("6d95d6a6ea6739bf", "07382330e5caae67", "ba7bef1e2abe718b"),
    "rms_norm": ("9a4e83b4dd31b0db", "7b349fb7bd2f9313", "99c162b487c574fc"),
    "group_norm": ("221ab696e8715e62", "e5cb8604e936bfba", "e85968c5c4e23e68"),
    "instance_norm": ("5b876b05c1dd09a7", "edd0bc567c35d741", "80d7f56121f69d48"),
    "residual": ("664ca893c6956416", "30100a9632ce41d5", "b4a8656ca70bc9ae"),
    "pre_norm": ("dc2a2a6a56b7c4f8", "88b70573ac764239", "48bc22d73d355cea"),
    "post_norm": ("efa9b60b461157c5", "5965347f46cc3d71", "b16b51bbdd8d12a5"),
    "highway": ("1aca62f6a4b2bd0a", "a6d4f1bee320bae6", "8fde4c724543322f"),
    "mhc": ("f5ce61e680ddc7bb", "288a358aad84db33", "a7615ade8ee56cfc"),
}


def digest(operator: str, seed: int) -> str:
    """The digest of the small cases of `standard`: descriptions, and values in a narrow and in the widest dtype."""
    found = hashlib.sha256()
    for description in PROFILES["standard"].cases(operator, seed):
        said = {**attrs.asdict(description), "tags": sorted(description.tags)}
        found.update(repr(sorted(said.items())).encode())
        if elements(description) > 5000:  # large values are drawn as small ones are
            continue
        for dtype in ("bfloat16", "float64"):
            case = build(description, dtype)
            for array in (*case.inputs.values(), case.g):
                if array is not None:
                    found.update(np.ascontiguousarray(array).tobytes())
            found.update(case.random("a check").permutation(7).tobytes())
    return found.hexdigest()[:16]


if __name__ == "__main__":
    for name in OPERATORS:
        print(f"    {name!r}: {tuple(digest(name, seed) for seed in range(3))},".replace("'", '"'))
