"""Losing a worker: what is reported, what is repeated, and what is not."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import normspec
from normspec import Verdict
from normspec.adapters.frameworks import full_name
from normspec.adapters.remote import host as hosting
from normspec.adapters.remote.host import Host, Launch, Limits
from normspec.adapters.remote.launching import environment_of_a_worker, interpreter, opened_target, start_host
from normspec.adapters.remote.session import MOST_LOSSES, RemoteRequest
from normspec.conformance.running.answering_process import AnsweringProcess
from normspec.spec.errors import (
    DeviceUnavailable,
    NormspecError,
    NotImportable,
    TargetLost,
    UnknownTarget,
    WrongSignature,
)

LAYER_NORM = {"eps": 0.1, "axes": (-1,)}

#: Misbehaves only in calls whose x is larger than one; all others return x.
ABOVE_ONE = """
def layer_norm(x, gamma, beta, *, eps, axes):
    if abs(x).max() > 20:
        {}
    return x
"""

#: Writes garbage wherever a process can write.
WRITE_EVERYWHERE = """import contextlib, os
        for number in range(3, 50):
            with contextlib.suppress(OSError):
                os.write(number, b"garbage" * 9)"""


def gone(process: int) -> bool:
    """Whether a process has ended, or does so within a few seconds."""
    for _ in range(100):
        try:
            with open(f"/proc/{process}/stat") as file:
                if file.read().rpartition(")")[2].split()[0] == "Z":
                    return True
        except OSError:
            return True
        time.sleep(0.05)
    return False


def test_a_crash_is_told_where_it_was_and_the_next_call_works(function, call):
    """A segmentation fault names the function and the line; a new worker makes the next call."""
    target = function(ABOVE_ONE.format("import ctypes; ctypes.string_at(0)"))
    process = target.host._worker._process.pid
    with pytest.raises(TargetLost, match=r"ended its process by SIGSEGV, in layer_norm \(layers.py, line 5\)"):
        call(target, 100.0)
    assert gone(process)
    assert call(target)["y"].shape == (4, 7)
    assert target.host.generation == 1


def test_a_crash_is_told_of_the_thread_that_crashed(function, call):
    """The other threads of a target are at lines of their own, which faulthandler prints too."""
    target = function(
        "import threading, time\ndef waits(seconds):\n    time.sleep(seconds)\n"
        + ABOVE_ONE.format(
            "threading.Thread(target=waits, args=(60,), daemon=True).start()\n        time.sleep(0.1)\n"
            "        import ctypes; ctypes.string_at(0)"
        )
    )
    with pytest.raises(TargetLost, match="SIGSEGV, in layer_norm"):
        call(target, 100.0)


@pytest.mark.parametrize("memory", [None, 1 << 70])
def test_a_worker_is_the_first_to_go(function, call, memory):
    """It is killed before others where the machine runs out of memory, whatever its own limit."""
    target = function(
        "def layer_norm(x, gamma, beta, *, eps, axes):\n"
        "        return x * 0 + float(open('/proc/self/oom_score_adj').read())",
        memory=memory,
    )
    assert (call(target)["y"] == 1000).all()


@pytest.mark.parametrize(
    ("does", "words"),
    [
        ("import os; os.abort()", r"by SIGABRT, in layer_norm \(layers.py, line 5\)"),
        ("import os; os._exit(0)", "with exit status 0$"),
        ("import os; print('farewell', flush=True); os._exit(7)", "with exit status 7: farewell$"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "by SIGKILL, perhaps for want of memory"),
        ("import os; os.closerange(3, 50)", "ended its process with exit status 1"),
        ("import os, time; os.closerange(3, 50); time.sleep(100)", "closed its worker's pipe"),
        (WRITE_EVERYWHERE, r"disturbed its worker \(what came is no"),
        ("np.ones(40 << 30, np.uint8)", "ran out of memory: .*MemoryError"),
        (
            "import mmap; m = mmap.mmap(-1, 3 << 30)\n        while m.write(bytes(1 << 24)): pass",
            "took more than 1024 M",
        ),
        (
            "import os, threading; t = threading.Thread(target=os._exit, args=(3,)); t.start(); t.join()",
            "exit status 3",
        ),
        (
            "raise RuntimeError('CUDA error: an illegal memory access was encountered\\nIt may be reported late.')",
            "left its device unusable: RuntimeError: CUDA .* illegal memory access was encountered, at .*layers.py:5",
        ),
        ("import resource; resource.setrlimit(resource.RLIMIT_CPU, (1, 9))\n        while True: pass", "by SIGXCPU"),
    ],
)
def test_what_becomes_of_a_worker(function, call, does, words):
    """Each way to end is distinguished, and the target goes on in a new worker."""
    target = function(ABOVE_ONE.format(does))
    with pytest.raises(TargetLost, match=words):
        call(target, 100.0)
    assert call(target)["y"].shape == (4, 7)


@pytest.mark.parametrize("does", ["while True: pass", "import time; time.sleep(1000)", "(10 ** 10 ** 8) ** 3"])
def test_what_never_ends_is_stopped(function, call, does):
    """At the limit, be it in Python, asleep, or in C code that lets nothing else run."""
    target = function(ABOVE_ONE.format(does), seconds=1.0)
    started = time.monotonic()
    with pytest.raises(TargetLost, match="took longer than 1 second and was stopped"):
        call(target, 100.0)
    assert time.monotonic() - started < 5
    assert call(target)["y"].shape == (4, 7)


def test_the_limit_is_for_one_requirement(function, call, inputs):
    """Calls of one requirement share the time; a new requirement has its own, and so has an extra question."""
    target = function(ABOVE_ONE.format("import time; time.sleep(0.7)"), seconds=1.0)
    for _ in range(2):
        call(target, 100.0)
    session = target.session(target.bindings[0])
    x = {**inputs, "x": 100.0 * inputs["x"]}
    target.begin()
    session.start(x, LAYER_NORM)
    target.check_device("cpu")
    with pytest.raises(TargetLost, match="longer than 1 second"):
        session.start(x, LAYER_NORM)


def test_many_repetitions_have_more_time(function, inputs):
    """128 calls have twice the time of 64, and what they leave is for the rest of the requirement."""
    target = function(ABOVE_ONE.format("import time; time.sleep(0.01)"), seconds=1.0)
    session = target.session(target.bindings[0])
    x = {**inputs, "x": 100.0 * inputs["x"]}
    target.begin()
    assert len(session.call(x, LAYER_NORM, times=128)) == 128
    target.begin()
    session.call(x, LAYER_NORM, times=40)
    with pytest.raises(TargetLost, match="longer than 1 second"):
        session.call(x, LAYER_NORM, times=63)


def test_the_very_same_call_is_not_made_again(function, inputs, tmp_path):
    """It would be lost again, after the whole time; another is made."""
    log = tmp_path / "log"
    log.touch()
    target = function(ABOVE_ONE.format(f"open({str(log)!r}, 'a').write('called\\n'); import os; os._exit(1)"))
    session = target.session(target.bindings[0])
    for _ in range(3):
        with pytest.raises(TargetLost, match="exit status 1"):
            session.start({**inputs, "x": 100.0 * inputs["x"]}, LAYER_NORM)
    assert log.read_text() == "called\n"
    with pytest.raises(TargetLost):
        session.start({**inputs, "x": 100.0 * inputs["x"]}, {"eps": 0.2, "axes": (-1,)})
    assert log.read_text() == "called\n" * 2


def test_after_some_losses_no_call_is_made(function, inputs):
    """Each costs a new worker and perhaps the whole time; another dtype is another matter."""
    target = function(ABOVE_ONE.format("import os; os._exit(1)"))
    session = target.session(target.bindings[0])
    for number in range(MOST_LOSSES):
        with pytest.raises(TargetLost, match="exit status 1"):
            session.start({**inputs, "x": (100.0 + number) * inputs["x"]}, LAYER_NORM)
    with pytest.raises(TargetLost, match=f"was lost {MOST_LOSSES} times before, and is called no more"):
        session.start(inputs, LAYER_NORM)
    narrow = {name: value.astype(np.float32) for name, value in inputs.items()}
    assert session.start(narrow, LAYER_NORM).outputs()["y"].shape == (4, 7)


def test_what_a_lost_worker_held_is_lost(function, inputs):
    """Results that only an earlier worker held cannot be read again; those that came with the call are kept."""
    target = function(ABOVE_ONE.format("import os; os._exit(1)"))
    session = target.session(target.bindings[0])
    first = session.start(inputs, LAYER_NORM)
    with pytest.raises(TargetLost):
        session.start({**inputs, "x": 100.0 * inputs["x"]}, LAYER_NORM)
    with pytest.raises(TargetLost, match="was lost meanwhile, and what it had returned with it"):
        first.outputs()


def test_an_end_between_two_calls_is_told_of(function, call):
    """A target whose thread ends the process after the call is not restarted silently."""
    target = function(ABOVE_ONE.format("import os, threading; threading.Timer(0.2, os._exit, (5,)).start()"))
    call(target, 100.0)
    assert gone(target.host._worker._process.pid)
    with pytest.raises(TargetLost, match="exit status 5"):
        call(target)
    assert call(target, 2.0)["y"].shape == (4, 7)


def test_a_fork_is_the_targets_own(function, call):
    """A child that comes back from the call answers nothing, and one that lives on is ended with its worker."""
    target = function("""
        import os, time

        def layer_norm(x, gamma, beta, *, eps, axes):
            child = os.fork()
            if child == 0 and abs(x).max() > 20:
                time.sleep(1000)
            if child and abs(x).max() <= 20:
                os.waitpid(child, 0)
            return np.full(x.shape, float(child))
    """)
    assert call(target)["y"][0, 0] > 0
    assert call(target, 2.0)["y"][0, 0] > 0
    child = int(call(target, 100.0)["y"][0, 0])
    os.kill(child, 0)
    target.close()
    assert gone(child)


def test_a_fork_repeats_no_calls(function, inputs, tmp_path):
    """A child ends when it comes back from the call, also within a request for several calls."""
    called = tmp_path / "called"
    target = function(f"""
        import os

        def layer_norm(x, gamma, beta, *, eps, axes):
            with open({str(called)!r}, "a") as file:
                file.write("called ")
            child = os.fork()
            if child:
                os.waitpid(child, 0)
            return x
    """)
    target.begin()
    target.session(target.bindings[0]).call(inputs, LAYER_NORM, times=6)
    assert called.read_text() == "called " * 6


def test_a_child_that_holds_the_pipes_does_not_hide_the_end(function, call):
    """A dead worker is found dead, although its child could still answer for it."""
    target = function(ABOVE_ONE.format("import os, time\n        if os.fork(): os._exit(4)\n        time.sleep(1000)"))
    started = time.monotonic()
    with pytest.raises(TargetLost, match="exit status 4"):
        call(target, 100.0)
    assert time.monotonic() - started < 10


def test_a_child_that_has_left_the_group_keeps_nobody_waiting(function, call, tmp_path):
    """It holds the pipe of printed output, but the wait for the worker's end is only a moment."""
    number = tmp_path / "number"
    target = function(
        ABOVE_ONE.format(
            "import os, time\n        if not os.fork():\n            os.setsid()\n"
            f"            open({str(number)!r}, 'w').write(str(os.getpid()))\n            time.sleep(60)"
        )
    )
    call(target, 100.0)
    while not number.exists() or not number.read_text():
        time.sleep(0.01)
    started = time.monotonic()
    target.close()
    assert time.monotonic() - started < 5
    os.kill(int(number.read_text()), signal.SIGKILL)


def test_ctrl_c_leaves_no_reply_that_is_taken_for_another(function, call, monkeypatch):
    """An interrupted request ends its worker: the late reply is not taken for that to the next request."""
    target = function(ABOVE_ONE.format("import time; time.sleep(2)"))

    def pressed(*_: object) -> None:
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGALRM, pressed)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        with pytest.raises(KeyboardInterrupt):
            call(target, 100.0)
    finally:
        signal.signal(signal.SIGALRM, previous)
    assert target.host.generation == 1
    np.testing.assert_array_equal(call(target, 2.0)["y"] / 2.0, call(target)["y"])


# Printed output ---------------------------------------------------------------------------------------------------


def test_what_a_function_prints_is_shown_and_no_more_than_a_little(function, call, capfd):
    """On standard output or standard error, it goes to standard error; a flood ends in a note."""
    target = function(
        "import sys\nprint('hello')\n" + ABOVE_ONE.format("print('x' * 10_000_000); sys.stderr.write('y' * 10_000_000)")
    )
    call(target)
    call(target, 100.0)
    target.close()
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("hello\n") and len(err) < 70_000
    assert err.endswith("normspec: what else the target prints is left out\n")


def test_a_long_line_is_cut(function, call, capfd):
    """A flood without line ends is one line, and only its beginning is shown; the next line is shown again."""
    target = function(ABOVE_ONE.format("print('x' * 30_000); print('after')"))
    call(target, 100.0)
    target.close()
    assert capfd.readouterr().err == "x" * 500 + " ...\nafter\n"


def test_text_may_come_in_pieces(function, call, capfd):
    """A character and the words that begin a crash are recognised across two pieces, and nothing else is held back."""
    does = (
        "import os, time\n        for piece in (b'\\xc3', b'\\xa4 Fat', b'her\\n', b'Fatal Py', b'thon error: x'):\n"
        "            os.write(2, piece); time.sleep(0.2)"
    )
    target = function(ABOVE_ONE.format(does))
    call(target, 100.0)
    target.close()
    assert capfd.readouterr().err == "\u00e4 Father\n"
    target = function(ABOVE_ONE.format("os.write(2, b'Fatal')").replace("def", "import os\ndef", 1))
    call(target, 100.0)
    target.close()
    assert capfd.readouterr().err == "Fatal"


def test_standard_input_is_empty(function, call):
    """A target that reads from it meets its end, and no request."""
    target = function(ABOVE_ONE.format("import sys; assert sys.stdin.read() == ''; x = x / 2"))
    call(target, 100.0)
    assert target.host.generation == 0


# Opening -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("raise ValueError('broken')", "raises when it is imported: ValueError: broken"),
        ("import os; os._exit(3)", "ended its process with exit status 3 while it was imported"),
        ("import ctypes; ctypes.string_at(0)", "ended its process by SIGSEGV.* while it was imported"),
        ("import time; time.sleep(100)", "took longer than 2 seconds to import"),
        ("import os; [os.write(n, b'junk' * 9) for n in (4, 5)]", "disturbed its worker"),
        ("np.ones(40 << 30, np.uint8)", "ran out of memory while it was imported"),
        ("raise KeyboardInterrupt", "was interrupted while it was imported"),
        ("raise SystemExit", "exits when it is imported"),
        ("x = ", "SyntaxError"),
    ],
)
def test_a_target_that_cannot_be_opened(function, monkeypatch, source, words):
    """It is reported in one line why, and no worker is left."""
    monkeypatch.setattr(hosting, "OPENING_SECONDS", 2.0 if "sleep" in source else 60.0)
    with pytest.raises(NotImportable, match=words) as caught:
        function(source)
    assert "\n" not in str(caught.value)


def test_errors_of_the_caller_arrive(function):
    """Errors in the request are reported as in this process."""
    with pytest.raises(WrongSignature, match="cannot be called as"):
        function("def layer_norm(x): return x")
    with pytest.raises(UnknownTarget, match="did you mean 'numpy'"):
        start_host("nunpy")


def test_a_target_that_can_be_opened_once(function, call, tmp_path):
    """If it cannot be opened again after a loss, that is tried once."""
    mark = tmp_path / "mark"
    mark.touch()
    target = function(
        f"open({str(mark)!r}, 'a').write('x')\nassert open({str(mark)!r}).read() == 'x', 'again'\n"
        + ABOVE_ONE.format("import os; os._exit(1)")
    )
    with pytest.raises(TargetLost, match="exit status 1"):
        call(target, 100.0)
    for number in (1.0, 2.0):
        with pytest.raises(TargetLost, match=r"could not be loaded again: .*AssertionError: again"):
            call(target, number)
    assert mark.read_text() == "xx"


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ("{'protocol': 2}", "not an answer"),
        ("{**GOOD, 'dtypes': ['float128']}", "not an answer"),
        ("{**GOOD, 'dtypes': []}", "not an answer"),
        ("{**GOOD, 'dtypes': [['float64']]}", "not an answer"),
        ("{**GOOD, 'bindings': [{'operator': 'layer_norm'}]}", "not an answer"),
        ("{**GOOD, 'bindings': [{'operator': 'dance', 'name': 'x'}]}", "no operator is called 'dance'"),
        ("{**GOOD, 'bindings': [{**BINDING, 'conventions': {'eps': 'none'}}]}", "unknown convention 'eps'"),
        ("{**GOOD, 'bindings': [{**BINDING, 'fixed': {'ranks': 3}}]}", "no fixed settings: ranks is 3"),
        ("{**GOOD, 'bindings': [{**BINDING, 'fixed': {'eps': 'small'}}]}", "no fixed settings: eps is 'small'"),
        ("3", "not an answer"),
    ],
)
def test_a_worker_that_describes_nonsense(tmp_path, reply, words):
    """A command's description of its target is checked before it is used."""
    script = tmp_path / "worker.py"
    script.write_text(f"""
import json, struct, sys
BINDING = {{"operator": "layer_norm", "name": "x"}}
GOOD = {{"protocol": 1, "framework": "f", "version": "1", "dtypes": ["float64"], "bindings": [BINDING]}}
body = json.dumps({{"arrays": [], "body": {{"id": 1, "ok": {reply}}}}}).encode()
sys.stdout.buffer.write(struct.pack("<4sIQ", b"NSPW", len(body), 0) + body)
sys.stdout.flush()
sys.stdin.buffer.read()
""")
    with pytest.raises(NormspecError, match=words):
        opened_target(start_host(f"exec:{sys.executable} -S {script}"))


#: A worker without NumPy: it opens a target, and answers every other request as {answer} says.
_WORKER = """
import json, struct, sys
BINDING = {{"operator": "layer_norm", "name": "x", **{binding}}}
OPENED = {{"protocol": 1, "framework": "f", "version": "1", "dtypes": ["float64"], "bindings": [BINDING]}}
stdin, stdout = sys.stdin.buffer, sys.stdout.buffer
while header := stdin.read(struct.calcsize("<4sIQ")):
    _, length, more = struct.unpack("<4sIQ", header)
    asked = json.loads(stdin.read(length))["body"]
    stdin.read(more)
    reply = {{"ok": OPENED}} if asked["do"] == "open" else {answer}
    body = json.dumps({{"arrays": [], "body": {{"id": asked["id"], **reply}}}}).encode()
    stdout.write(struct.pack("<4sIQ", b"NSPW", len(body), 0) + body)
    stdout.flush()
"""


def test_a_reply_without_outputs_is_no_reply(tmp_path):
    """A worker that opens its target properly, and answers every call with nothing, is lost; the run goes on."""
    script = tmp_path / "worker.py"
    answer = '{"ok": {"traits": []} if asked["do"] == "traits" else {}}'
    script.write_text(_WORKER.format(binding={}, answer=answer))
    report = normspec.check(f"exec:{sys.executable} -S {script}", only=["LN-F1"], profile="quick", jobs=1)
    (result,) = report.results
    assert result.verdict is Verdict.ERROR and "not an answer to the request" in result.reason


def test_a_worker_that_does_not_know_a_request_is_asked_on(tmp_path):
    """Unsupported is an answer to every request: no device, a declined call. A failure leaves accepts to the call."""
    script = tmp_path / "worker.py"
    kind = 'asked["device"] if asked["do"] == "device" else asked.get("settings", {}).get("kind")'
    rest = {"message": "what?", "stage": "", "by_a_part": False, "out_of_memory": False, "about": ""}
    answer = f'{{"raised": {{"kind": {kind}, **{rest}}}}}'
    script.write_text(_WORKER.format(binding={"accepts_all": False}, answer=answer))
    target = opened_target(start_host(f"exec:{sys.executable} -S {script}"))
    try:
        for kind in ("Unsupported", "TargetRaised", "BadOutput"):
            with pytest.raises(DeviceUnavailable, match=f"cannot say whether it runs on '{kind}': what?"):
                target.check_device(kind)
        accepts = target.bindings[0].accepts
        found = {kind: accepts((3, 4), {"kind": kind}) for kind in ("Unsupported", "TargetRaised", "BadOutput")}
        assert found == {"Unsupported": "what?", "TargetRaised": None, "BadOutput": None}
    finally:
        target.close()


@pytest.mark.parametrize(
    ("target", "kind", "words"),
    [
        ("exec:", UnknownTarget, "names no command"),
        ("exec:'", UnknownTarget, "is not a command: No closing quotation"),
        ("exec:/nonexistent/worker --fast", NotImportable, "/nonexistent/worker does not start"),
        ("exec:/bin/true", NotImportable, "exit status 0 while it was imported"),
        ("exec:/bin/echo hello", NotImportable, "while it was imported"),
        ("exec:/bin/cat", NotImportable, "disturbed its worker"),
    ],
)
def test_commands_that_are_no_workers(target, kind, words):
    """They are recognised at once."""
    with pytest.raises(kind, match=words):
        opened_target(start_host(target))


@pytest.mark.parametrize("python", ["/nonexistent/python", "no-such-python", __file__])
def test_an_interpreter_that_does_not_exist(python):
    """A path that cannot be run is reported with what it should be."""
    with pytest.raises(NotImportable, match="is not a Python interpreter: give the path of one"):
        start_host("numpy", python=python)


@pytest.mark.parametrize("python", ["/bin/cat", "/bin/ls"])
def test_a_program_that_is_no_interpreter(python):
    """What it writes is not taken for something that the target did."""
    with pytest.raises(NotImportable, match=f"{python} is not a Python interpreter: give the path of one"):
        opened_target(start_host("numpy", python=python))


def test_an_interpreter_without_numpy(tmp_path):
    """It is told what to install there."""
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    python.chmod(0o755)
    with pytest.raises(NotImportable, match=rf"{python} does not import NumPy.*{python} -m pip install numpy"):
        opened_target(start_host("numpy", python=str(python)))


def test_an_interpreter_that_is_none(tmp_path):
    """A program that is not Python ends, and its output is passed on."""
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\necho 'I am no Python' >&2\nexit 9\n")
    program.chmod(0o755)
    with pytest.raises(NotImportable, match="exit status 9: I am no Python while it was imported"):
        opened_target(start_host("numpy", python=str(program)))


def test_without_a_home(monkeypatch):
    """In a container the user may have none: then JAX keeps no programs, and Keras has no configuration."""
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("KERAS_HOME", raising=False)
    monkeypatch.delenv("KERAS_BACKEND", raising=False)

    def home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", home)
    found = environment_of_a_worker()
    assert found["OMP_WAIT_POLICY"] == "passive" and not any(name.startswith("JAX") for name in found)
    assert full_name("keras").startswith("keras[")


def test_an_import_path_with_a_path_on_it(monkeypatch, call):
    """Python ignores entries of sys.path that are no text, such as those of some conftest.py, and so do workers."""
    monkeypatch.setattr(sys, "path", [*sys.path, Path("/somewhere")])
    target = opened_target(start_host("numpy"))
    try:
        assert call(target)["y"].shape == (4, 7)
    finally:
        target.close()
    judge = AnsweringProcess.started("{}")
    judge.close()


def test_an_interpreter_that_starts_another(tmp_path, call):
    """A wrapper that stays, as those of containers do, is the worker's parent."""
    program = tmp_path / "python"
    program.write_text(f'#!/bin/sh\n"{sys.executable}" "$@"\nexit $?\n')
    program.chmod(0o755)
    target = opened_target(start_host("numpy", python=str(program)))
    try:
        assert call(target)["y"].shape == (4, 7)
    finally:
        target.close()


def test_the_folder_of_a_virtual_environment(tmp_path):
    """The folder stands for the interpreter in it."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    assert interpreter(str(tmp_path)) == str(tmp_path / "bin" / "python")
    assert interpreter("") == sys.executable


def test_a_request_that_was_never_made_costs_no_worker():
    """The clock had run out before it: five of them are no five losses, and the call may be made again."""
    host = Host(Launch("mine", limits=Limits(seconds=1.0)))
    host._spent = 2.0
    with pytest.raises(TargetLost) as lost:
        RemoteRequest(host, {"do": "call"}, "a binding").reply()
    assert not lost.value.called
    assert not host.losses and not host.lost
