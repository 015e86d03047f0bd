"""
Digests of the cases: what a seed means, for every version of everything.

Run this file to print them anew after the cases were changed on purpose.
"""

from __future__ import annotations

import hashlib

import attrs
import numpy as np

from normspec.adapters.binding import OPERATORS
from normspec.conformance.cases.case import build
from normspec.conformance.profiles import PROFILES
from normspec.conformance.shrink import elements

#: The digests of seeds 0, 1 and 2.
DIGESTS: dict[str, tuple[str, str, str]] = {
    "layer_norm": ("fe554b4c2c243646", "7bc6a01ea1b11c1c", "6a38aa0feab60854"),
    "batch_norm": ("8acf0dfce5e823a7", "0c59c49441bc319d", "b5a390c8f3dad905"),
    "residual": ("1ce0094cfd5c84c7", "44d5dafa16ab6eb3", "ad9e2bc916865fb1"),
    "pre_norm": ("b037ff0c09dc4a39", "0a7b0615dfaa028f", "61a2eedb53cca96a"),
    "post_norm": ("02647275f9cc6b7f", "cd35c7ab2284fd93", "0eac61be5054e06f"),
    "highway": ("a218c20e0d9a950e", "ee9c4c6a66f61a0b", "968db72f812da2d2"),
    "mhc": ("fdaee7955f29f049", "64dbd4adc807d9f3", "573135e1250d3653"),
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
