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
    "layer_norm": ("19710208d0ab24be", "3732a425c5776823", "936bc941b5532bba"),
    "batch_norm": ("706f7f8614761d24", "ca1f25aa86458b5b", "bc6c36efafb7c76a"),
    "residual": ("2015f5d4cf00ab05", "e9a2a06219d19c2a", "8f14496ee9f342ed"),
    "pre_norm": ("9614092c71cd632f", "c4df1bdbc23e83dd", "018a13af94436876"),
    "post_norm": ("024b77f70d9765c4", "aebdc9e1e82366f7", "0a12fee48c76f3b5"),
    "highway": ("99b73fc21ada85c2", "e4f928657cb3f20c", "17f4a29116562311"),
    "mhc": ("cc44027cd3a87145", "9954d9948fc6fe55", "b1235d322eea03d2"),
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
