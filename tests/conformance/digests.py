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

#: The digests of seeds 0, 1 and 2.
DIGESTS: dict[str, tuple[str, str, str]] = {
    "layer_norm": ("44d064cf31102779", "8a3d680506d29af2", "710a89cd0bed19a7"),
    "batch_norm": ("e60c31dd5a27d491", "cd0a11babec852fc", "9b7796ce03a26ca3"),
    "residual": ("4b2ed399b5b06078", "c28a192335e4ef95", "5b6f7a0fe06ac59e"),
    "pre_norm": ("88e0f65a9d1994fd", "3dff42230f8eabaa", "dd733c05b8d40f39"),
    "post_norm": ("cbc924a126e31430", "ca17cc7221c87325", "695cfc7c156b6e40"),
    "highway": ("c7a9010f4600b6b5", "6380d405792226d0", "3172327b2815ea34"),
    "mhc": ("c7ae75f1ea2eb813", "c26438d0a1f1ced3", "7a7a7cc174ea737b"),
}


def digest(operator: str, seed: int) -> str:
    """The digest of the small cases of `standard`: descriptions, and values in a narrow and in the widest dtype."""
    found = hashlib.sha256()
    for description in PROFILES["standard"].cases(operator, seed):
        said = {**attrs.asdict(description), "tags": sorted(description.tags)}
        found.update(repr(sorted(said.items())).encode())
        if "size" in description.tags:  # the values of a large case are those of a small one, repeated
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
