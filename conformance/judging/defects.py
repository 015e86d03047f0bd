"""Defects of normspec itself: an exception in our own code is told as ours, and never blamed on the target."""

from __future__ import annotations

import traceback

from ...spec.errors import one_line


def words(error: BaseException) -> str:
    """What a report says of an exception of ours, in one line."""
    return f"a defect of normspec: {one_line(error)}"


def trace(error: BaseException) -> str:
    """The whole traceback of an exception of ours, for the JSON."""
    return "".join(traceback.format_exception(type(error), error, error.__traceback__))
