"""What the assertions of `normspec.testing` catch and cost. docs/testing.md has the figures.

python benchmarks/assertion.py caught [DATA ...]   the library's faults and sound functions, compared with assert_close
python benchmarks/assertion.py alarms [DRAWS]      sound functions on 10,000 draws of randn, or as many as are named
python benchmarks/assertion.py cost                the cost relative to the operator's in float64 NumPy, for many shapes
python benchmarks/assertion.py frameworks [VALUES] arrays of every framework that is installed, up to so many values
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from assertions.alarms import alarms
from assertions.caught import caught
from assertions.cost import cost
from assertions.data import KINDS
from assertions.frameworks import frameworks


def main(arguments: Sequence[str]) -> None:
    """Run one of the four."""
    match arguments:
        case ["caught", *kinds] if set(kinds) <= KINDS.keys():
            caught(kinds or tuple(KINDS))
        case ["alarms"]:
            alarms(10_000)
        case ["alarms", draws]:
            alarms(int(draws))
        case ["cost"]:
            cost()
        case ["frameworks"]:
            frameworks(1 << 30)
        case ["frameworks", values]:
            frameworks(int(values))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
