"""What the sound functions of conformance/sound are called as targets: all of them `sound`, one `sound:ln-welford`."""

from __future__ import annotations

#: All of them as one name, and what the name of one begins with.
SOUND = "sound"
PREFIX = f"{SOUND}:"


def names_a_variant(target: object) -> bool:
    """Whether a name is that of a sound variant; `sound:layer_norm` is a function in a module of that name."""
    return isinstance(target, str) and target.startswith(PREFIX) and not target[len(PREFIX) :].isidentifier()
