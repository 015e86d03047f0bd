"""Bundles: sets of requirements under a name that says their purpose."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import attrs

from ...spec import Level, requirements


@attrs.frozen
class Bundle:
    """Requirements under one name."""

    #: The property of a target that meets them, in one sentence.
    meaning: str
    requirements: tuple[str, ...]


#: The bundles by name, except `everything`. Each id is a SHOULD, because a MUST applies to every target anyway.
BUNDLES: Mapping[str, Bundle] = MappingProxyType(
    {
        "deterministic": Bundle("Repetitions of a call give the same bits.", ("CM-P3",)),
        "batch-invariant": Bundle(
            "A group, or in inference a sample, has the same bits alone, together with others, and at any "
            "place among them.",
            ("LN-L6", "LN-L8", "BN-I6", "RM-L6", "RM-L8", "GN-L6", "GN-L8", "IN-L6", "IN-L8"),
        ),
        "scale-exact": Bundle(
            "Data times a power of two, and eps times its square, give the same bits in y and in the gradients.",
            ("LN-L2", "LN-G7", "BN-L2", "BN-G8", "RM-L2", "RM-G7", "GN-L2", "GN-G7", "IN-L2", "IN-G7"),
        ),
        "strict": Bundle(
            "A call that is nearly always a mistake raises an error: a shape, an axis, an eps or a momentum that "
            "cannot be meant, and a part whose result would be broadcast or would widen y.",
            ("CM-A1", "CM-A2", "BN-A1", "CM-C6", "CM-C11"),
        ),
    }
)

#: Name of the bundle of every SHOULD, including those of user-defined operators.
EVERYTHING = "everything"


def bundles() -> dict[str, Bundle]:
    """All bundles by name."""
    advice = tuple(one.id for one in requirements().values() if one.level is Level.SHOULD)
    return {**BUNDLES, EVERYTHING: Bundle("No advice is left.", advice)}
