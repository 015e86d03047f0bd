"""The main function of another process (answering_process.py): it opens a request, and answers questions about it."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import pickle
import signal
import sys
from collections.abc import Callable, Mapping
from typing import Any

from ...adapters.worker.limits import die_with_parent
from ...spec.errors import NormspecError
from .answering_process import LENGTH
from .message import Message, unit_of
from .single_process import SingleProcess


def main() -> None:
    """Read a request and then questions from standard input, and write answers to standard output."""
    die_with_parent()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the first process sends it after Ctrl-C
    out = os.dup(1)
    os.dup2(2, 1)  # so that prints do not mix with the answers
    with contextlib.suppress(KeyboardInterrupt, BrokenPipeError):
        try:
            _serve(out)
        except NormspecError as error:
            _write(out, error)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it sends another one to a process that it closes


def _serve(out: int) -> None:
    line = sys.stdin.readline()
    if not line:
        return
    request = Message.from_json(line).load()
    with SingleProcess(request, prepares=False) as alone:  # the first process prepares the first units
        for line in sys.stdin:
            question = json.loads(line)
            _write(out, _ANSWERS[question.pop("do")](alone, question))


def _write(out: int, answer: Any) -> None:
    told = pickle.dumps(answer)
    with os.fdopen(os.dup(out), "wb") as pipe:
        pipe.write(LENGTH.pack(len(told)) + told)


def _judge(alone: SingleProcess, told: Mapping[str, Any]) -> Any:
    alone.paces = told["paces"]
    return alone.judge(unit_of(told["unit"]))


def _explain(alone: SingleProcess, told: Mapping[str, Any]) -> Any:
    alone.paces = told["paces"]
    return alone.explained(pickle.loads(base64.b64decode(told["report"])))


#: The questions, each with the function that answers it.
_ANSWERS: Mapping[str, Callable[[SingleProcess, Mapping[str, Any]], Any]] = {
    "judge": _judge,
    "describe": lambda alone, _: alone.described(),
    "measure": lambda alone, _: alone.measure(),
    "explain": _explain,
}
