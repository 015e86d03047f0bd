"""The command `normspec`."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """
    Run the command with these arguments (default: the process's own) and return its exit status.

    The rest is imported here, so that a Ctrl-C in these first moments is answered in one line too.
    """
    try:
        from .root import main as command
    except KeyboardInterrupt:
        print("normspec: interrupted before anything was established", file=sys.stderr)
        return 3  # as in exit_status.py, which may not be imported yet
    return command(arguments)
