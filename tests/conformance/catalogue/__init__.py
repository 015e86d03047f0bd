"""Real bugs of real libraries, each written as a small function: bugs.json has them with their sources."""

from . import affine, blocks, dtypes, eps, gradients, layouts, running, sizes, sound, state, statistics
from .written import WRITTEN

#: The files, in the order in which their functions were entered.
THEMES = (eps, statistics, affine, gradients, layouts, sizes, dtypes, state, running, blocks, sound)

#: Every function by its name.
CATALOGUE = {one.name: one for one in WRITTEN}
