"""From what the user names to a worker that holds it."""

from __future__ import annotations

import os
import select
import shutil
import sys
from collections.abc import Sequence

from ..errors import NotImportable
from ..frameworks import KNOWN, known
from ..targets import TARGETS, check_operators, check_target
from .host import Host, Launch, Limits
from .target import RemoteTarget

#: Whether targets can be put into processes of their own here: it takes POSIX process groups and poll.
ISOLATES = os.name == "posix" and hasattr(select, "poll")


def hosted(
    target: str,
    *,
    op: Sequence[str] | None = None,
    framework: str | None = None,
    python: str = "",
    limits: Limits | None = None,
) -> Host:
    """
    The host of a target, whose worker has been started and imports it now.

    ``python`` is the worker's interpreter, this one by default: it needs NumPy and the target's framework. Raises a
    NormspecError where the request cannot be carried out, as far as that shows before anything is imported.
    """
    operators = None if op is None else check_operators(op)
    check_target(target, framework, elsewhere=bool(python))
    environment = {"TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONDONTWRITEBYTECODE": "1"}
    environment = {name: value for name, value in environment.items() if name not in os.environ}
    whose = known(target if target in TARGETS else framework or "")
    if whose in KNOWN:
        environment.update(KNOWN[whose].environment)
    host = Host(
        Launch(
            target=whose if target in TARGETS else target,
            op=operators,
            framework=framework if target not in TARGETS else None,
            command=(interpreter(python),),
            environment=environment,
            path=() if python else tuple(entry for entry in sys.path if entry),
            limits=limits or Limits(),
            prints=target not in TARGETS,
        )
    )
    host.launch_ahead()
    return host


def ready(host: Host) -> RemoteTarget:
    """The target, once its worker has imported it. Raises the NormspecError that says why there is none."""
    return RemoteTarget.opened(host)


def interpreter(python: str) -> str:
    """The path of a Python interpreter, or of the virtual environment that has one. Raises NotImportable."""
    if not python:
        return sys.executable
    path = os.path.expanduser(python)
    if os.path.isdir(path):
        path = os.path.join(path, "bin", "python")
    found = shutil.which(path)
    if found is None:
        raise NotImportable(f"{python} is no Python interpreter: give the path of one, such as venv/bin/python")
    return found
