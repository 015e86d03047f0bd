"""Defects of normspec: an exception in our own code is reported as ours and never blamed on the target."""

from __future__ import annotations

import traceback

from ...spec.errors import one_line


def words(error: BaseException) -> str:
    """The line that reports an exception in our own code."""
    return f"a defect of normspec: {one_line(error)}"


def trace(error: BaseException) -> str:
    """The whole traceback of an exception in our own code, for the JSON."""
    return "".join(traceback.format_exception(type(error), error, error.__traceback__))
