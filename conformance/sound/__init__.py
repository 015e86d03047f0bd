"""Sound variants: implementations that a correct suite must let pass.

Each computes the operator in another way that real kernels use. SOUND holds those that need no
declaration, DECLARED those that conform only under the conventions they name.
"""

from __future__ import annotations

from ...adapters.numpy.operators.implementation import Implementation
from . import channel_groups as channel_groups
from . import conventions as conventions
from . import mean_square as mean_square
from . import plain as plain
from . import unordered as unordered
from . import variants as variants
from .composed import variants as composed_variants  # noqa: F401
from .registry import Sound, registered

#: The variants that conform without declaring anything; `registered` has those of operators from elsewhere too.
SOUND: tuple[Sound, ...] = tuple(variant for variant in registered() if not variant.conventions)
#: The variants that conform under the conventions they declare, and not without them.
DECLARED: tuple[Sound, ...] = tuple(variant for variant in registered() if variant.conventions)

__all__ = ["DECLARED", "SOUND", "Implementation", "Sound", "registered"]
