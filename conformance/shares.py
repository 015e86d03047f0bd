"""
Two shares of one run: the operators of a framework's own layers, divided over two processes.

The second process is normspec itself, started anew: it imports the framework by its name, so that nothing of the
caller's program runs in it, and it returns its report. Where it cannot be had, the first does its share too.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from ..adapters.binding import Target
from ..adapters.targets import BUILTIN
from .verdicts import Report


def divided(target: Target) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """
    The operators of a target in two shares of about equal weight, a binding being one; the second may be empty.

    Only a framework's own layers are shared: a user's function is loaded once, and NumPy's own take seconds.
    """
    weights = {b.operator: sum(other.operator == b.operator for other in target.bindings) for b in target.bindings}
    if target.name not in BUILTIN or target.name == "numpy" or len(weights) < 2 or (os.cpu_count() or 1) < 2:
        return tuple(weights), ()
    shares: tuple[list[str], list[str]] = ([], [])
    loads = [0.0, 1.0]  # the second process has its imports to do, which take as long as a binding
    for operator in sorted(weights, key=lambda name: -weights[name]):
        lighter = loads.index(min(loads))
        shares[lighter].append(operator)
        loads[lighter] += weights[operator]
    return tuple(shares[0]), tuple(shares[1])


@attrs.define
class Share:
    """A share that another process is at work on."""

    _process: subprocess.Popen[bytes]

    @classmethod
    def start(cls, request: Mapping[str, Any]) -> Share | None:
        """Start a process on ``check(**request)``, everything in it being JSON; None where none can be started."""
        try:
            process = subprocess.Popen(
                [sys.executable, "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
            )
            assert process.stdin is not None
            process.stdin.write(json.dumps(request).encode())
            process.stdin.close()
        except OSError:
            return None
        return cls(process)

    def report(self) -> Report | None:
        """Its report, waited for; None where it died."""
        assert self._process.stdout is not None
        with self._process:
            answer = self._process.stdout.read()
        if self._process.returncode != 0:
            return None
        try:
            found = pickle.loads(answer)  # what our own process wrote, on our own pipe
        except Exception:
            return None
        return found if isinstance(found, Report) else None


def merged(first: Report, second: Report, operators: Sequence[str]) -> Report:
    """The report on all operators, in their order."""

    def place(operator: str) -> int:
        return operators.index(operator)

    return attrs.evolve(
        first,
        results=tuple(sorted((*first.results, *second.results), key=lambda result: place(result.op))),
        subjects=tuple(sorted((*first.subjects, *second.subjects), key=lambda subject: place(subject["op"]))),
        partial=first.partial or second.partial,
    )


def main() -> None:
    """Read a request from standard input, and write the report on it to standard output."""
    from .api import check

    answer = os.dup(1)
    os.dup2(2, 1)  # what a framework prints must not get between
    report = check(**json.load(sys.stdin), shared=False)
    with contextlib.suppress(BrokenPipeError), os.fdopen(answer, "wb") as out:
        pickle.dump(report, out)


if __name__ == "__main__":
    main()
