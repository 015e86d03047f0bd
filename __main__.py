"""`python -m normspec`, the same command as `normspec`."""

from __future__ import annotations

import sys

from .conformance.command_line import main

if __name__ == "__main__":
    sys.exit(main())
