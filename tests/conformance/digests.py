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
    "layer_norm": ("f79eb191e59bb6ad", "b7ffcbd0e24e0735", "867a76f2766fb1df"),
    "batch_norm": ("6a2d5c845d6a66e4", "2ef0622fc3fa39bd", "aa43b5f64298ef2b"),
    "residual": ("c647f8482097ebcc", "0661601f686e5035", "1b0cb0c20048b2e0"),
    "pre_norm": ("919d621453b48b75", "beffe8798e556e3a", "0852cb8dc74e0139"),
    "post_norm": ("54c5172053f41a98", "c97702282df34420", "23bff45a002eb118"),
    "highway": ("a7667aedc015ebe6", "402be3d090547565", "c4e99b5e6e05daa1"),
    "mhc": ("4d78f59e13cceb0b", "a140f73553845d0b", "bd3699e7a6590789"),
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
