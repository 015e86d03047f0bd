"""Names of the sound functions of conformance/sound as targets: `sound` for all, `sound:ln-welford` for one."""

from __future__ import annotations

#: The name for all of them, and the prefix of the name of one.
SOUND = "sound"
PREFIX = f"{SOUND}:"


def names_a_variant(target: object) -> bool:
    """Whether a name is that of a sound variant. `sound:layer_norm` is a function in a module `sound` instead."""
    return isinstance(target, str) and target.startswith(PREFIX) and not target[len(PREFIX) :].isidentifier()
