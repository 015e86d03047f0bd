"""A step of a script, with the variables that hold its results."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from ..judging.call_log import LoggedCall


@attrs.frozen
class Step:
    """One thing that the script asks of the target."""

    call: LoggedCall
    lines: tuple[str, ...]
    #: The variable of each result, and of each input, by name; "g" is the cotangent.
    results: Mapping[str, str]
    inputs: Mapping[str, str]
    #: For a step that reads something again: the place of the step that it belongs to.
    again: int | None = None

    @property
    def times(self) -> int:
        """How often it is done, one time after the other."""
        return self.call.times if self.again is None else 1

    @property
    def read(self) -> dict[str, str]:
        """The variables to read after it: results by name, and inputs as "x now"."""
        return {**self.results, **{f"{name} now": variable for name, variable in self.inputs.items()}}
