"""Hostile targets: whatever a target does, only its own results suffer."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import normspec
from normspec.adapters.remote.host import Limits
from normspec.adapters.remote.launching import opened_target, start_host
from normspec.conformance.engine.engine import Run
from normspec.conformance.judging.verdicts import Verdict
from normspec.conformance.requests.plan import Plan
from normspec.conformance.requests.profiles import profile_of
from normspec.conformance.results.report import Report

#: A sound layer_norm that misbehaves where the arrays have four axes.
HOSTILE = """
import os, sys
import numpy as np
from normspec.adapters.numpy.operators.layer_norm import LayerNorm

with open({log!r}, "a") as log:
    log.write(f"{{os.getpid()}}\\n")

def misbehave():
{does}

def layer_norm(x, gamma, beta, *, eps, axes):
    if x.ndim == 4:
        misbehave()
    return LayerNorm().call(x, gamma, beta, eps=eps, axes=axes)

def layer_norm_vjp(x, gamma, beta, g, *, eps, axes):
    return LayerNorm().vjp(x, gamma, beta, g, eps=eps, axes=axes)
"""

#: Requirements, some of which use arrays with four axes and some do not.
REQUIREMENTS = frozenset(("CM-T1", "CM-P4", "CM-N1", "LN-F1", "LN-F2", "LN-F7", "LN-L1", "LN-L8", "LN-G1", "LN-G8"))

#: The behaviour of each kind of hostile target, and the report's words about it.
KINDS = {
    "segmentation fault": ("import ctypes; ctypes.string_at(0)", "by SIGSEGV, in misbehave (layers.py, line"),
    "abort": ("os.abort()", "by SIGABRT, in misbehave (layers.py, line"),
    "exit": ("os._exit(0)", "with exit status 0"),
    "endless loop": ("while True: pass", "took longer than 1 second and was stopped"),
    "endless sleep": ("import time; time.sleep(10_000)", "took longer than 1 second and was stopped"),
    "endless C code": ("(10 ** 10 ** 8) ** 3", "took longer than 1 second and was stopped"),
    "100 GB at once": ("np.empty(100 << 30, np.uint8)", "ran out of memory: "),
    "100 GB bit by bit": ("hoard = []\nwhile True: hoard.append(np.zeros(1 << 24, np.uint8))", "ran out of memory: "),
    "100 GB in a thread": (
        "import threading\nfailed = []\nthreading.excepthook = lambda error: failed.append(error.exc_value)\n"
        "thread = threading.Thread(target=np.ones, args=(100 << 30, np.uint8))\nthread.start(); thread.join()\n"
        "raise failed[0]",
        "ran out of memory: ",
    ),
    "garbage on every descriptor": (
        "for number in range(3, 64):\n    try: os.write(number, b'garbage' * 9)\n    except OSError: pass",
        "disturbed its worker",
    ),
    "a forged reply": (
        "import json, struct\nbody = b'[]'\n"
        "for name in range(1, 500):\n"
        "    body = json.dumps({'arrays': [], 'body': {'id': name, 'ok': {'outputs': {}}}}).encode()\n"
        "    try: os.write(4, struct.pack('<4sIQ', b'NSPW', len(body), 0) + body)\n    except OSError: pass",
        "disturbed its worker",
    ),
    "a forged error of the caller": (
        ""
        "from normspec.adapters.worker import server\n"
        "server.error_to_plain = lambda error: {'kind': 'UnknownTarget', 'message': 'all of this was for nothing'}\n"
        "raise ValueError",
        "disturbed its worker (all of this was for nothing)",
    ),
    "a GPU that must be started again": (
        "def unusable(*arguments, **keywords): raise RuntimeError('CUDA error: misaligned address')\n"
        "LayerNorm.call = LayerNorm.vjp = unusable\nunusable()",
        "left its device unusable: RuntimeError: CUDA error: misaligned address, at ",
    ),
    "closed descriptors": ("os.closerange(0, 64)", "ended its process with exit status"),
    "replaced builtins": (
        "import builtins\nfor name in dir(builtins):\n    if name.islower(): setattr(builtins, name, None)",
        "ended its process with exit status",
    ),
    "replaced NumPy": ("for name in dir(np):\n    if name.islower(): setattr(np, name, None)", ""),
    "no handlers": (
        "import faulthandler, signal, ctypes\nfaulthandler.disable()\n"
        "for number in set(range(1, 32)) - {9, 19}: signal.signal(number, signal.SIG_IGN)\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32))\nos.setpgid\nwhile True: pass",
        "took longer than 1 second and was stopped",
    ),
    "a child that lives on": ("import time\nif os.fork() == 0: time.sleep(10_000)\nos._exit(4)", "with exit status 4"),
}


@pytest.fixture
def hostile(tmp_path: Path) -> Iterator[Callable[[str], str]]:
    """Write a hostile target; at the end none of its workers, and nothing that they started, is left."""
    log = tmp_path / "workers"
    log.touch()

    def hostile(does: str) -> str:
        path = tmp_path / "layers.py"
        path.write_text(
            HOSTILE.format(does=textwrap.indent(textwrap.dedent(does), "    "), log=str(log)), encoding="utf-8"
        )
        return f"{path}:layer_norm"

    yield hostile
    workers = [int(line) for line in log.read_text().split()]
    assert workers
    for worker in workers:
        assert ended(worker), "a worker, or a process of its group, was left behind"


def ended(group: int) -> bool:
    """Whether a process group is empty, or becomes so within a few seconds; any process left is ended now."""
    for _ in range(100):
        if not alive(group):
            return True
        time.sleep(0.05)
    with contextlib.suppress(OSError):
        os.killpg(group, signal.SIGKILL)
    return False


def alive(group: int) -> bool:
    """Whether a process of the group still runs: one that nobody has waited for yet does not."""
    for entry in Path("/proc").iterdir() if Path("/proc/self/stat").exists() else ():
        with contextlib.suppress(OSError, IndexError):
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            if entry.name.isdigit() and int(fields[2]) == group and fields[0] not in "ZX":
                return True
    return False


def judge(target: str, *, seconds: float = 20.0) -> Report:
    """The report on a target in a worker, on the requirements above."""
    opened = opened_target(start_host(target, framework="numpy", limits=Limits(seconds, 1 << 30)))
    try:
        plan = Plan((opened,), ("float64",), "cpu", {}, profile_of("quick"), 0, requirements=REQUIREMENTS)
        return Run(plan).report()
    finally:
        opened.close()


def told(report: Report) -> dict[str, tuple[object, ...]]:
    """What a report says about each requirement."""
    return {r.requirement: (r.verdict, r.ratio, r.cases, r.reason) for r in report.results}


@pytest.fixture(scope="module")
def sound(tmp_path_factory) -> dict[str, tuple[object, ...]]:
    """What a report says about the target if it does not misbehave."""
    folder = tmp_path_factory.mktemp("sound")
    path = folder / "layers.py"
    path.write_text(HOSTILE.format(does="    pass", log=str(folder / "workers")), encoding="utf-8")
    report = judge(f"{path}:layer_norm")
    assert report.conforms
    return told(report)


@pytest.mark.parametrize("kind", KINDS)
def test_a_hostile_target_harms_its_own_results_alone(hostile, sound, kind):
    """Each requirement that met the behaviour is an error that says what happened; all others are unchanged."""
    does, words = KINDS[kind]
    started = time.monotonic()
    report = judge(hostile(does), seconds=1.0 if "took longer" in words else 20.0)
    assert time.monotonic() - started < 60
    assert report.partial and report.exit_status == 3
    found = told(report)
    errors = {name for name, (verdict, *_) in found.items() if verdict is Verdict.ERROR}
    assert "LN-F1" in errors
    assert {name: one for name, one in found.items() if name not in errors} == {
        name: one for name, one in sound.items() if name not in errors
    }
    assert {"LN-F2", "LN-L1"} <= found.keys() - errors
    assert words in found["LN-F1"][3]


@pytest.mark.parametrize("error", ["SystemExit(0)", "KeyboardInterrupt"])
def test_what_it_raises_is_told_as_any_exception(hostile, error):
    """No exception of a target ends the run, or its worker."""
    report = judge(hostile(f"raise {error}"))
    found = told(report)
    assert found["LN-F1"][0] is Verdict.ERROR and error.partition("(")[0] in found["LN-F1"][3]
    assert found["LN-F2"][0] is Verdict.PASS
    assert not report.partial and report.exit_status == 1  # to raise on a layout is to fail


def test_no_room_to_recurse(hostile):
    """A target that breaks its own process has to live with that; the run still ends."""
    report = judge(
        hostile("""
        for number in range(1, 1000):
            try: sys.setrecursionlimit(number)
            except RecursionError: continue
            break
    """)
    )
    found = told(report)
    assert report.exit_status in (1, 3) and len(found) == len(REQUIREMENTS)
    assert found["LN-F1"][0] is Verdict.ERROR


def test_a_flood_is_no_harm(hostile, sound, capfd):
    """A target that prints megabytes is judged as usual, and fills neither the report nor the terminal."""
    report = judge(
        hostile("print('flood' * 200_000); os.write(1, b'flood' * 200_000); os.write(2, b'x' * 1_000_000)"),
        seconds=30.0,
    )
    assert told(report) == sound and report.exit_status == 0
    out, err = capfd.readouterr()
    assert out == "" and len(err) < 70_000


def test_a_sound_target_beside_it_is_judged_whole(hostile):
    """In one run, a sound target has the same results as when it runs alone; the hostile one's are kept apart."""
    options = {"op": "layer_norm", "dtypes": ["float64"], "profile": "quick"}
    target = hostile("os._exit(0)")
    both = normspec.check([target, "numpy"], **options)
    alone = normspec.check("numpy", **options)
    assert both.exit_status == 3
    assert tuple(r for r in both.results if r.target == "numpy") == alone.results
    own = {r.requirement: r for r in both.results if r.target == target}
    assert own.keys() == {r.requirement for r in alone.results}
    assert own["LN-F1"].verdict is Verdict.ERROR and own["LN-L1"].verdict is Verdict.PASS


@pytest.mark.parametrize(
    "raised", ["ValueError('four axes')", "NotImplementedError('four axes')", "RuntimeError('CUDA is not here')"]
)
def test_an_exception_ends_no_process(hostile, tmp_path, raised):
    """A call that raises costs nothing but its own results: one process judges a dtype from beginning to end."""
    target = hostile(f"raise {raised}")
    report = normspec.check(target, op="layer_norm", dtypes=["float64"], profile="quick", jobs=1)
    assert report.exit_status in (0, 1)
    assert len((tmp_path / "workers").read_text().split()) == 1


def test_a_target_that_always_ends_its_process(tmp_path, monkeypatch):
    """It is called once in a dtype, and every requirement is an error that says so."""
    log = tmp_path / "log"
    path = tmp_path / "layers.py"
    path.write_text(
        f"import os\nimport numpy\ndef layer_norm(x, gamma, beta, *, eps, axes):\n"
        f"    open({str(log)!r}, 'a').write('x'); os._exit(0)\n"
    )
    report = normspec.check(f"{path}:layer_norm", dtypes=["float32", "float64"], profile="quick")
    assert report.exit_status == 3 and log.read_text() == "xx"
    assert {result.verdict for result in report.results} == {Verdict.ERROR}
    assert {result.reason for result in report.results} == {
        "in the plainest call the target ended its process with exit status 0"
    }


# The end of the judge -------------------------------------------------------------------------------------------

#: The arguments of a run that ends by Ctrl-C or worse.
RUN = ["--op", "layer_norm", "--framework", "numpy", "--profile", "quick", "--dtype", "float64"]


def command(*arguments: str) -> subprocess.Popen[str]:
    """The command `normspec check`, running."""
    return subprocess.Popen(
        [sys.executable, "-m", "normspec", "check", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A shell that runs tests in the background makes them, and their children, ignore Ctrl-C.
        preexec_fn=None if os.name == "nt" else lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def wait_for(file: Path, text: str) -> None:
    """Wait until a file holds a text."""
    for _ in range(1200):
        if file.exists() and text in file.read_text():
            return
        time.sleep(0.05)
    raise AssertionError(f"{file} never held {text!r}")


def test_ctrl_c_reports_what_is_established_and_leaves_no_worker(hostile, tmp_path):
    """The command ends with exit status 3 and a table of the results so far."""
    mark = tmp_path / "mark"
    target = hostile(f"open({str(mark)!r}, 'a').write('x')\nimport time; time.sleep(2)")
    process = command(target, *RUN)
    wait_for(mark, "xxxxx")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 3, err
    assert "Traceback" not in err
    assert "LN-F1" in out or "layer_norm" in out


def test_ctrl_c_pressed_twice_at_once_is_one_ctrl_c(hostile, tmp_path):
    """The report is written as after one, and no script: there would be one for each violation, and not each cause."""
    mark, report, scripts = tmp_path / "mark", tmp_path / "report.json", tmp_path / "scripts"
    target = hostile(f"open({str(mark)!r}, 'a').write('x')\nimport time; time.sleep(2); return x")
    process = command(target, *RUN, "--json", str(report), "--reproduce", str(scripts))
    wait_for(mark, "xxxxx")
    for _ in range(2):
        process.send_signal(signal.SIGINT)
        time.sleep(0.05)
    _, err = process.communicate(timeout=60)
    assert process.returncode in (1, 3) and "Traceback" not in err, err
    assert "interrupted before scripts were written" in json.loads(report.read_text())["notes"]
    assert list(scripts.iterdir()) == []


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere a worker ends with its requests")
def test_a_judge_that_is_killed_leaves_no_worker(hostile, tmp_path):
    """Not even one that is in an endless loop which lets nothing else run."""
    mark = tmp_path / "mark"
    target = hostile(f"open({str(mark)!r}, 'a').write('x')\n(10 ** 10 ** 8) ** 3")
    process = command(target, *RUN)
    wait_for(mark, "x")
    process.kill()
    process.communicate(timeout=60)
