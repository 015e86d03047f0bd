"""For pytest-xdist: sends the tests of one operator and dtype of a target to one worker, which works once for all."""

from __future__ import annotations

import re
from typing import Any

from xdist.scheduler.loadscope import LoadScopeScheduling

#: The end of an id: an operator, a requirement and a dtype.
_END = re.compile(r"::(?P<op>\w+)::[A-Z]+-[A-Z]\d+\[(?P<dtype>\w+)\]$")


class ByOperatorAndDtype(LoadScopeScheduling):
    """Distributes tests by operator and dtype of their target; any other test on its own."""

    def __init__(self, config: Any, log: Any, targets: tuple[str, ...]) -> None:
        super().__init__(config, log)
        self._targets = tuple(f"{name}::" for name in targets)

    def _split_scope(self, nodeid: str) -> str:
        found = _END.search(nodeid) if nodeid.startswith(self._targets) else None
        return nodeid if found is None else f"{nodeid[: found.start()]} {found['op']} {found['dtype']}"
