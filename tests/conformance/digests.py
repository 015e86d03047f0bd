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
    "layer_norm": ("10e61ca482e0d935", "59e4181a8418f0e2", "4d5d72a610e2fb10"),
    "batch_norm": ("8a6ebe17be0d1946", "697ff202743fb944", "13e239b8224ab209"),
    "rms_norm": ("94cd54b0667efd8f", "87a412ddf2a9b731", "35a1547a8ad15461"),
    "group_norm": ("4cc8b8043d36b266", "fc0cb7edbf4234b6", "9bbbcc14ddce601a"),
    "instance_norm": ("84b186481f93ad55", "476cf63ae1f4f23a", "40597a9853e4d1b8"),
    "residual": ("feee5d8ae7aa0e77", "bd9fc35607b5c97c", "4ecfb36b706fce2e"),
    "pre_norm": ("a43c1f92e0e584e7", "2ee35888e56d0987", "2e0ad0b57ada3f7f"),
    "post_norm": ("cc44a948620057a8", "1f4539ad0866bc74", "518a72b2bcf0db2d"),
    "highway": ("86dc75bf1f1d8e12", "2e5150d62fdd5dfe", "1c1d29e59352eb22"),
    "mhc": ("e50f2578fc57e1c1", "f43e0c08aa0a4893", "3540807e05ae04bd"),
}


def digest(operator: str, seed: int) -> str:
    """The digest of the small cases of `standard`: descriptions, and values in a narrow and in the widest dtype."""
    found = hashlib.sha256()
    for description in PROFILES["standard"].cases(operator, seed):
        said = {**attrs.asdict(description), "requirements": sorted(description.requirements)}
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
