"""The mode of batch_norm that a run is restricted to."""

from __future__ import annotations

from ...spec.errors import UnknownMode, choices

#: The modes that a run can be restricted to; "" is both.
MODES = ("training", "inference")


def checked_mode(mode: str | None) -> str:
    """Return the mode, "" for None. Raises UnknownMode."""
    if mode is not None and mode not in MODES:
        raise UnknownMode(f"unknown mode {mode!r}{choices(mode, MODES)}")
    return mode or ""
