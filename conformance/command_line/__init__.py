"""The command `normspec`."""

from __future__ import annotations

from .root import main as main
