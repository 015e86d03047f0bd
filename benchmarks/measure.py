"""Measures one row once, with the normspec on the path: `python measure.py ROW KEPT`. Prints JSON."""

from __future__ import annotations

import json
import sys

from rows import ROWS
from rows.row import NotThere


def main(name: str, kept: str) -> int:
    """Print the measurements, or the reason why there are none."""
    try:
        found = {"measured": dict(ROWS[name].measure(kept))}
    except (NotThere, ImportError) as missing:
        found = {"missing": str(missing)}
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
