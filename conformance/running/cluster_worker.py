"""A worker of a Dask cluster, and the questions that it works on."""

from __future__ import annotations

import attrs
from distributed import Future  # pyright: ignore[reportMissingImports]


@attrs.define(eq=False)
class ClusterWorker:
    """A worker of the cluster."""

    address: str
    name: str
    #: Number of questions that it answers at a time.
    threads: int
    #: The targets that it can judge.
    targets: set[str] = attrs.field(factory=set)
    #: The questions that it has not answered yet, by the future's key.
    pending: dict[str, Future] = attrs.field(factory=dict)
    #: Whether it gets no second question for now, because it answers one that is asked alone.
    reserved: bool = False

    @property
    def free(self) -> bool:
        """Whether it can take a question now."""
        return not self.reserved and len(self.pending) < self.threads

    def __str__(self) -> str:
        return f"{self.name} at {self.address}" if self.name not in ("", self.address) else self.address
