"""
Names of functions of the suite's own library as targets.

`sound:ln-welford` is a sound function, `fault:ln-eps-on-std` a known mistake, and `sound` stands for all sound ones.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from importlib.machinery import PathFinder

#: The name for all sound functions, and the prefixes of the name of one function.
SOUND = "sound"
SOUND_PREFIX, FAULT_PREFIX = f"{SOUND}:", "fault:"


def is_in_library(target: object) -> bool:
    """
    Whether a name is that of a function of the library.

    `sound:layer_norm` is one in a module `sound` instead, if there is such a module.
    """
    if not isinstance(target, str) or not target.startswith((SOUND_PREFIX, FAULT_PREFIX)):
        return False
    module, _, name = target.partition(":")
    return not (name.isidentifier() and _is_module(module))


def _is_module(name: str) -> bool:
    """Whether there is a module or package of this name, installed or in the working directory."""
    there = name in sys.modules or importlib.util.find_spec(name) is not None
    return there or PathFinder.find_spec(name, [os.getcwd()]) is not None
