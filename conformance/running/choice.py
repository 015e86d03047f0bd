"""Chooses the executor of a request."""

from __future__ import annotations

from ...adapters.dtypes import DTYPES
from ...adapters.remote.launching import ISOLATES
from ...adapters.targets import TARGETS
from ...spec.errors import NormspecError
from ...spec.extras import how_to_add
from ...spec.operators import OPERATORS
from ..cores import cores
from ..requests.library_names import is_in_library
from ..requests.request import Request
from .executor import Executor
from .processes import Processes
from .single_process import SingleProcess

#: Most processes that are started unless the user asks for more. Each imports the framework, which takes half a
#: gigabyte.
_MOST = 8


def executor(request: Request, *, jobs: int | None = None, cluster: str | None = None, seeds: int = 1) -> Executor:
    """
    The executor of a request.

    It has ``jobs`` processes, or as many as pay off for ``seeds`` seeds. With ``cluster`` it is the cluster at this
    address, where each worker judges at most ``jobs`` units at a time.

    Raises NoDask.
    """
    if cluster is not None:
        return _on(cluster, request, jobs)
    count = process_count(request, jobs, seeds)
    return Processes(request, count) if count > 1 else SingleProcess(request)


class NoDask(NormspecError):
    """Dask, which connects to clusters, is not installed."""


def _on(cluster: str, request: Request, jobs: int | None) -> Executor:
    try:
        from .cluster import Cluster
    except ModuleNotFoundError as error:
        if error.name not in ("distributed", "dask"):
            raise
        raise NoDask(f"Dask is not installed: {how_to_add('cluster')}") from None
    return Cluster(request, cluster, jobs)


def process_count(request: Request, asked: int | None, seeds: int = 1) -> int:
    """
    How many processes a request gets: as many as are asked for, or else one a core, but no more than it has units.

    Unless asked for, several processes do not share a GPU, nor work that is done before another process is ready: one
    unit, or up to three of a function at `quick`.
    """
    names = request.names
    if not (ISOLATES and all(isinstance(name, str) for name in names)):
        return 1
    shown = {operator for name in names for operator in request.likely_operators(name)}
    if any(map(is_in_library, names)):  # their names do not say which operators they are
        shown = set(request.op or OPERATORS)
    units = max(len(shown), 1) * len(request.dtypes or DTYPES) * seeds
    if asked is not None:
        return min(asked, units)
    frameworks = any(name in TARGETS and name != "numpy" for name in names)
    pays = units > (3 if request.profile == "quick" and not frameworks else 1)
    return min(cores(), units, _MOST) if pays and request.device == "cpu" else 1
