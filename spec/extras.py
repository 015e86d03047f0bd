"""How to install the optional packages: the extras of pyproject.toml, from a clone, since no index has normspec."""

from __future__ import annotations

#: Where the command is run, as the README says.
CLONE = "in a clone of normspec"


def install_command(*extras: str) -> str:
    """The command that installs normspec with extras."""
    return f"python -m pip install '.[{','.join(extras)}]'"


def how_to_add(*extras: str) -> str:
    """The command, and where it is run, for a message about a missing package."""
    return f"{CLONE}, {install_command(*extras)}"
