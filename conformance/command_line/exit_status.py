"""The exit statuses of a command that did not do all that it was asked."""

from __future__ import annotations

#: Nothing was checked because the command or the target cannot be used, or a file was not written.
EXIT_UNUSABLE = 2

#: The command was stopped before the end.
EXIT_PARTIAL = 3
