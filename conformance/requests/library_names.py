"""
Names of functions of the suite's own library as targets.

`sound:ln-welford` is a sound function, `fault:ln-eps-on-std` a known mistake, and `sound` stands for all sound ones.
"""

from __future__ import annotations

#: The name for all sound functions, and the prefixes of the name of one function.
SOUND = "sound"
SOUND_PREFIX, FAULT_PREFIX = f"{SOUND}:", "fault:"


def is_in_library(target: object) -> bool:
    """Whether a name is that of a function of the library. `sound:layer_norm` is one in a module `sound` instead."""
    if not isinstance(target, str) or not target.startswith((SOUND_PREFIX, FAULT_PREFIX)):
        return False
    return not target.partition(":")[2].isidentifier()
