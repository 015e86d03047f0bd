"""A session whose calls are all made in inference mode, for a target that is wrong only there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np


@attrs.frozen
class InferenceSession:
    """An adapters.session.Session in inference mode, where nothing is tracked: it has no gradients."""

    _session: Any

    def start(
        self, inputs: Mapping[str, np.ndarray | None], settings: Mapping[str, Any], *, mode: str = "", **options: Any
    ) -> Any:
        """Call the target; see Session.start."""
        return self._session.start(inputs, settings, mode="inference", **options)

    def call(
        self, inputs: Mapping[str, np.ndarray | None], settings: Mapping[str, Any], *, mode: str = "", **options: Any
    ) -> list[dict[str, np.ndarray]]:
        """The results of one or several calls; see Session.call."""
        return self._session.call(inputs, settings, mode="inference", **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)
