"""Mistakes that no fault of the library makes, as their authors would write them."""

from .layers import LAYERS
from .norms import NORMS

#: Every mistake by its name.
UNSEEN = {one.name: one for one in (*NORMS, *LAYERS)}
