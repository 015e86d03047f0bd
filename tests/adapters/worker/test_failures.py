"""Ways in which a call ends: they are sent to the judge, and are the same on the other side."""

from __future__ import annotations

import json

import numpy as np
import pytest

from normspec.adapters.worker.failures import error_from_plain, error_to_plain
from normspec.spec import errors
from normspec.spec.errors import (
    BadOutput,
    MissingGradient,
    NormspecError,
    TakesNoPart,
    TargetLost,
    TargetRaised,
    Unsupported,
)


def carried(error):
    """The exception that arrives."""
    return error_from_plain(json.loads(json.dumps(error_to_plain(error))))


def test_what_the_target_raised():
    """Its words and its stage arrive, and the exception itself does not."""
    found = carried(TargetRaised(ValueError("no\nsecond line"), "vjp"))
    assert type(found) is TargetRaised and found.original is None
    assert (str(found), found.stage, found.by_a_part) == ("ValueError: no", "vjp", False)


def test_what_a_part_raised():
    """The judge knows that an exception came from a part whose task is to raise."""
    try:
        try:
            raise errors.part_error(1)
        except ValueError as error:
            raise RuntimeError("wrapped") from error
    except RuntimeError as error:
        found = carried(TargetRaised(error, "call"))
    assert found.by_a_part and str(found) == "RuntimeError: wrapped"


def test_what_a_part_raised_for_want_of_memory_is_no_loss():
    """A part that raises a MemoryError on purpose has used none: the target's process goes on."""
    found = carried(TargetRaised(errors.part_error(errors.PART_ERRORS.index(MemoryError)), "call"))
    assert type(found) is TargetRaised and found.by_a_part


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("[enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't allocate memory"),
        RuntimeError("CUDA out of memory. Tried to allocate 93.13 GiB"),
        type("XlaRuntimeError", (RuntimeError,), {})(
            "RESOURCE_EXHAUSTED: Out of memory allocating 400000000000 bytes."
        ),
        type("ResourceExhaustedError", (Exception,), {})("{{function_node ...}} OOM when allocating tensor"),
        RuntimeError("std::bad_alloc"),
    ],
)
def test_no_memory_is_a_loss(error):
    """Whatever words a framework uses for lack of memory, nothing is known of the call."""
    found = carried(TargetRaised(error, "call"))
    assert type(found) is TargetLost and found.reason.startswith("ran out of memory: ")


@pytest.mark.parametrize(
    "error",
    [
        BadOutput("y is None", "type"),
        BadOutput("y has shape (3,)", "shape"),
        MissingGradient("no gradient reaches x, beta", ("x", "beta")),
        Unsupported("no gradients"),
        TakesNoPart("it takes no shortcut"),
        TargetLost("was lost"),
    ],
)
def test_the_other_ends_of_a_call(error):
    """Kind, words and what else they carry are the same."""
    found = carried(error)
    assert type(found) is type(error) and str(found).endswith(str(error).rpartition("the target ")[2])
    for name in ("kind", "missing", "message"):
        assert getattr(found, name, None) == getattr(error, name, None)


@pytest.mark.parametrize(
    "kind",
    [
        kind
        for kind in map(errors.__dict__.get, errors.__all__)
        if isinstance(kind, type) and issubclass(kind, NormspecError)
    ],
)
def test_errors_of_the_caller(kind):
    """Each is the same class, with the same message."""
    found = carried(kind("say what to do"))
    assert type(found) is kind and str(found) == "say what to do"


@pytest.mark.parametrize(
    ("error", "lost"),
    [
        (RuntimeError("CUDA error: misaligned address"), True),
        (RuntimeError("CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered"), True),
        (RuntimeError("HIP error: unspecified launch failure"), True),
        (RuntimeError("CUDA error: invalid argument"), False),
        (ValueError("misaligned address: pass an x that 16 bytes divide"), False),
    ],
)
def test_an_error_that_leaves_the_device_unusable(error, lost):
    """It is a loss if the platform says so; what a target refuses in like words is an exception as any other."""
    assert (type(carried(TargetRaised(error, "call"))) is TargetLost) == lost


def test_what_the_worker_itself_runs_into():
    """An error of the worker is a loss; a KeyboardInterrupt there is the target's."""
    assert carried(KeyError("x")).reason == "made its worker fail: KeyError: 'x'"
    assert carried(MemoryError()).reason == "ran out of memory: MemoryError"
    found = carried(KeyboardInterrupt())
    assert type(found) is TargetRaised and str(found) == "KeyboardInterrupt"


@pytest.mark.parametrize(
    "forged",
    [
        {},
        {"kind": "TargetRaised"},
        {"kind": "TargetRaised", "message": "m"},
        {"kind": "TargetRaised", "message": "m", "out_of_memory": np.ones(2)},
        {"kind": "MissingGradient", "message": "m", "missing": 3},
        {"kind": "BadOutput", "message": "m"},
        {"kind": "choices", "message": "m"},
        {"kind": "TargetRaisedNot", "message": "m"},
        {"kind": ["x"], "message": {"y": 1}},
        {"kind": "__class__", "message": "m"},
        {"kind": "KeyboardInterrupt", "message": "m"},
    ],
)
def test_forged_failures(forged):
    """A failure that is not one of ours is a loss, and no other exception."""
    assert type(error_from_plain(forged)) is TargetLost


def test_a_message_is_one_line_of_some_length():
    """A target cannot fill the report."""
    found = error_from_plain({"kind": "Unsupported", "message": "a\nb\r\x0b c" * 10_000})
    assert "\n" not in str(found) and "\r" not in str(found) and len(str(found)) <= 2000
