"""Shared code of all operators: canonical callables built from methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Tuple

import numpy as np

from ....spec.operators import OPERATORS, Operator
from ...binding import NESTED
from .arguments import check_float
from .implementation import Implementation
from .storage import Storage

Arrays = Tuple["np.ndarray | None", ...]


class Staged(Storage):
    """The base of every operator; a fault in calls rather than in steps overrides ``before`` or ``after``."""

    operator: str
    #: The stage that runs: "call", or one of DERIVATIVES.
    stage = ""
    #: The attributes that note something of the call that is under way.
    of_call: tuple[str, ...] = ("stage", "shape", "data", "work", "settings", "layout")

    @property
    def record(self) -> Operator:
        """The operator's record."""
        return OPERATORS[self.operator]

    def before(self, stage: str, arrays: Arrays) -> None:
        """Runs before a stage with its positional arguments, in order."""

    def after(self, stage: str, arrays: Arrays, results: Arrays) -> Arrays:
        """Runs after a stage and returns the final results."""
        return results

    def implementation(self) -> Implementation:
        """The canonical callables of this instance; arrays are passed by position."""
        return Implementation(
            self._staged("call"),
            self._staged("vjp"),
            self._staged("jvp"),
            self._staged("vjp_vjp"),
            *(self._staged(stage) if hasattr(self, stage) else None for stage in NESTED),
            prepare=getattr(self, "prepare", None),
        )

    def _staged(self, stage: str) -> Callable[..., Any]:
        def run(*arrays: Any, **settings: Any) -> Any:
            # Inf and NaN are legitimate results here, so no floating-point warnings.
            check_float(arrays[0], "x")
            # A part may be the operator itself: this call is then made within another, which finds its own notes again.
            outside = {name: getattr(self, name) for name in self.of_call if hasattr(self, name)} if self.stage else {}
            try:
                with np.errstate(all="ignore"):
                    self.stage = stage
                    self.before(stage, arrays)
                    results = getattr(self, stage)(*arrays, **settings)
                    single = not isinstance(results, tuple)
                    handed_out = self.after(stage, arrays, (results,) if single else results)
            finally:
                self.stage = ""
                vars(self).update(outside)
            return handed_out[0] if single and len(handed_out) == 1 else handed_out

        return run
