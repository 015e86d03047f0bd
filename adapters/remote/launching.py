"""Start a worker for the target that the user names."""

from __future__ import annotations

import contextlib
import os
import select
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from ...spec.errors import NotImportable, UnknownTarget
from ..declarations import NOTHING_DECLARED, Declarations
from ..frameworks import KNOWN, full_name
from ..targets import EXEC_PREFIX, TARGETS, check_operators, check_target
from .host import WORKER_SCRIPT, Host, Launch, Limits
from .process import NO_STEPS
from .target import RemoteTarget

#: Whether this system can run targets in processes of their own: that needs POSIX process groups and poll.
ISOLATES = os.name == "posix" and hasattr(select, "poll")


def start_host(
    target: str,
    *,
    op: Sequence[str] | None = None,
    framework: str | None = None,
    python: str = "",
    limits: Limits | None = None,
    file: str = "",
    declared: Declarations = NOTHING_DECLARED,
    derivatives: bool = False,
) -> Host:
    """
    The host of a target; its worker has been started and is importing the target.

    For ``exec:COMMAND`` the command is itself a worker (adapters/worker/PROTOCOL.md), and the target is the one it
    holds. ``python`` is the worker's interpreter, this one by default: it needs NumPy and the target's framework.
    ``file`` is the real path of FILE.py, if it differs. ``declared`` holds the user's declarations. ``derivatives``:
    whether derivatives will be needed, so that their modules are imported now. Raises a NormspecError for any mistake
    that shows before anything is imported.
    """
    operators = None if op is None else check_operators(op)
    if target.startswith(EXEC_PREFIX):
        launch = Launch(target, operators, framework, command_of(target), limits=limits or Limits(), prints=True)
    else:
        launch = _in_python(target, operators, framework, python, limits or Limits(), file, declared)
        launch = replace(launch, derivatives=derivatives)
    host = Host(launch)
    host.launch_early()
    return host


def _in_python(
    target: str,
    operators: tuple[str, ...] | None,
    framework: str | None,
    python: str,
    limits: Limits,
    file: str,
    declared: Declarations,
) -> Launch:
    check_target(target, framework, elsewhere=bool(python))
    environment = {name: value for name, value in environment_of_a_worker().items() if name not in os.environ}
    whose = full_name(target if target in TARGETS else framework or "")
    if whose in KNOWN:
        environment.update(KNOWN[whose].environment)
    return Launch(
        target=whose if target in TARGETS else target,
        op=operators,
        framework=framework if target not in TARGETS else None,
        command=(interpreter(python), WORKER_SCRIPT),
        environment=environment,
        # Python ignores entries that are no text.
        path=() if python else tuple(entry for entry in sys.path if isinstance(entry, str) and entry),
        limits=limits,
        file=file,
        declared=declared,
        prints=target not in TARGETS,
    )


def environment_of_a_worker() -> dict[str, str]:
    """The environment variables of a worker, by name; a variable that the user has set keeps its value."""
    found = {
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "PYTHONDONTWRITEBYTECODE": "1",
        # Otherwise OpenMP's threads spin while they wait: on a busy machine that took ten times the work of a large
        # call.
        "OMP_WAIT_POLICY": "passive",
    }
    with contextlib.suppress(RuntimeError):  # the user of a container may have no home, and so no cache
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "normspec"
        # JAX compiles for each new shape. The cache passes one worker's compiled programs to the next.
        found |= {
            "JAX_COMPILATION_CACHE_DIR": str(cache / "jax"),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        }
    return found


def opened_target(host: Host, meanwhile: Iterator[object] = NO_STEPS) -> RemoteTarget:
    """
    Wait until the worker has imported the target, and return it; steps of ``meanwhile`` run while it waits.

    Raises the NormspecError that says why there is none.
    """
    try:
        return RemoteTarget.opened(host, meanwhile)
    except NotImportable as error:
        program = host.launch.command[0]
        if host.launch.target.startswith(EXEC_PREFIX) or program == sys.executable:
            raise
        if not _runs(program, "print(6 * 7)"):
            raise NotImportable(f"{_no_interpreter(program)} ({error})") from None
        if not _runs(program, "import numpy; print(6 * 7)"):
            needs = f"install NumPy and the target's framework there ({program} -m pip install numpy ...)"
            raise NotImportable(f"{program} does not import NumPy, which every target needs: {needs}") from None
        raise


def _runs(program: str, code: str) -> bool:
    """Whether a program executes Python code that prints 42, as far as that can be told."""
    try:
        told = subprocess.run([program, "-c", code], stdin=subprocess.DEVNULL, capture_output=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return True
    return told.stdout.strip() == b"42"


def _no_interpreter(python: str) -> str:
    return f"{python} is not a Python interpreter: give the path of one, such as venv/bin/python"


def interpreter(python: str) -> str:
    """The path of a Python interpreter, given its path or that of its virtual environment. Raises NotImportable."""
    if not python:
        return sys.executable
    path = os.path.expanduser(python)
    if os.path.isdir(path):
        path = os.path.join(path, "bin", "python")
    found = shutil.which(path)
    if found is None:
        raise NotImportable(_no_interpreter(python))
    return found


def command_of(target: str) -> tuple[str, ...]:
    """The command of ``exec:COMMAND``, split as a shell does. Raises UnknownTarget."""
    try:
        command = tuple(shlex.split(target[len(EXEC_PREFIX) :]))
    except ValueError as error:
        raise UnknownTarget(f"target {target!r} is not a command: {error}") from None
    if not command:
        raise UnknownTarget(
            f"target {target!r} names no command: write {EXEC_PREFIX}COMMAND, such as {EXEC_PREFIX}./worker"
        )
    return command
