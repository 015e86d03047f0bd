"""The units of one run, shared by several processes: the same report as from one."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from queue import SimpleQueue

import attrs
import pytest

import normspec
from normspec.conformance.engine.progress import Listener
from normspec.conformance.requests.request import Request
from normspec.conformance.running import answering_process, choice, processes
from normspec.conformance.running.answering_process import AnsweringProcess
from normspec.conformance.running.choice import executor, process_count
from normspec.conformance.running.merging import judged
from normspec.spec.errors import NormspecError, NotImportable

REQUEST = Request(
    targets=("torch",), op=("residual",), framework=None, dtypes=None, device="cpu",
    conventions={}, profile="quick", seed=3,
)  # fmt: skip


@pytest.fixture(autouse=True)
def two_cores(monkeypatch):
    """A machine that a second job can run on."""
    monkeypatch.setattr(choice, "cores", lambda: 2)


@pytest.fixture(scope="module")
def alone() -> normspec.Report:
    """The report of one process."""
    return by(1)


def by(count: int | None, request: Request = REQUEST, listener: Listener | None = None) -> normspec.Report:
    """The report by this many processes."""
    return judged(request, executor(request, jobs=count), listener)


def told(report: normspec.Report) -> tuple[object, ...]:
    """The contents of a report, without the time taken."""
    fields = [attrs.asdict(result, recurse=False) for result in report.results]
    cases = [found.pop("violated_on") for found in fields]  # compared as they are: sets print in any order
    return cases, [str(found) for found in fields], report.subjects, report.partial, report.profile, report.seed


@pytest.mark.parametrize("count", [2, pytest.param(3, marks=pytest.mark.nightly)])
def test_several_processes_report_what_one_does(alone, monkeypatch, count):
    """Every result and every subject is the same, in the same order; and the others have done some of it."""
    done: list[normspec.Report] = []
    ask = AnsweringProcess.ask
    monkeypatch.setattr(AnsweringProcess, "ask", lambda *told: done.append(ask(*told)) or done[-1])
    report = by(count)
    assert told(report) == told(alone)
    assert report.conforms and not report.partial
    assert done and all(not one.partial for one in done)


@pytest.mark.nightly
def test_what_is_found_does_not_depend_on_who_finds_it(tmp_path):
    """Each unit shrinks its violations by itself, so any number of processes finds the same counterexamples."""
    file = tmp_path / "wrong.py"
    file.write_text(
        "import torch\n"
        "def residual(x, branch, *, shortcut=None, activation=None):\n"
        "    y = (x if shortcut is None else shortcut(x)) + branch(x) + x.abs().max() * 1e-3\n"
        "    return y if activation is None else activation(y)\n"
    )
    request = attrs.evolve(REQUEST, targets=(f"{file}:residual",), dtypes=("float32", "float64"))
    first, second = by(1, request), by(2, request)
    assert first.failures() and told(first) == told(second)


@pytest.mark.parametrize(
    "program",
    ["/bin/cat", *(pytest.param(one, marks=pytest.mark.nightly) for one in ("/bin/false", "/nonexistent/python"))],
)
def test_nothing_is_lost_without_another_process(alone, monkeypatch, program):
    """Where it dies, speaks nonsense or cannot be started, the first does all."""
    monkeypatch.setattr(answering_process, "_PYTHON", program)
    assert told(by(None)) == told(alone)


def test_nothing_is_lost_where_another_process_dies_at_work(alone, monkeypatch):
    """The unit that it had is done by the first, even where nothing else is left."""
    received, killed = AnsweringProcess._received, []

    def killed_meanwhile(self):
        if not killed:
            time.sleep(0.2)
            self._process.kill()
            killed.append(self)
        return received(self)

    monkeypatch.setattr(AnsweringProcess, "_received", killed_meanwhile)
    assert told(by(None)) == told(alone)
    assert killed


def within(report: normspec.Report, whole: normspec.Report) -> bool:
    """Whether a report says nothing that the whole one does not, and nothing twice."""
    found = [(r.binding, r.requirement, r.dtype) for r in report.results]
    return len(set(found)) == len(found) and set(found) < {(r.binding, r.requirement, r.dtype) for r in whole.results}


def test_ctrl_c_keeps_what_both_have_established(alone, monkeypatch):
    """The other stops at once, and passes its results; the report is partial, and correct as far as it goes."""
    several, ended = [], []

    def pressed(progress):
        several.append(progress)
        if len(several) == 40:
            raise KeyboardInterrupt

    close = AnsweringProcess.close
    monkeypatch.setattr(AnsweringProcess, "close", lambda self: (close(self), ended.append(self._process.returncode)))
    report = by(2, listener=pressed)
    assert report.partial and report.exit_status == 3
    assert within(report, alone)
    assert ended and None not in ended


@pytest.mark.parametrize("waited_for", [0, 1])
def test_ctrl_c_keeps_what_was_established_while_another_is_waited_for(alone, monkeypatch, waited_for):
    """The first process is done: its results, and what the others have finished by then, are the report."""
    ask, asked, established = AnsweringProcess.ask, [], []
    received, interrupted = threading.Event(), threading.Event()

    def ask_and_note(self, *told):
        asked.append(self)
        if len(asked) > waited_for:
            received.wait()  # the first has nothing more to do
        found = ask(self, *told)
        established.append(found)
        return found

    class Waited(SimpleQueue):
        def get(self):
            if self.empty() and not interrupted.is_set():
                interrupted.set()
                received.set()
                raise KeyboardInterrupt
            return super().get()

    monkeypatch.setattr(AnsweringProcess, "ask", ask_and_note)
    monkeypatch.setattr(processes, "SimpleQueue", Waited)
    report = by(3)
    assert interrupted.is_set()
    assert report.partial and report.exit_status == 3 and report.results
    held = {id(result) for result in report.results}
    assert {id(result) for one in established for result in one.results} <= held
    assert within(report, alone)


def test_a_killed_run_takes_the_other_process_with_it(tmp_path, checkout):
    """Not one process of either is left behind."""
    if not sys.platform.startswith("linux"):
        pytest.skip("elsewhere the second job ends when its requests do")
    code = (
        "import sys\n"
        "from normspec.conformance.running import choice, answering_process\n"
        "choice.cores = lambda: 2\n"
        "started = answering_process.AnsweringProcess.started.__func__\n"
        "def noted(cls, *given):\n"
        "    second = started(cls, *given)\n"
        "    open(sys.argv[1], 'w').write(str(second._process.pid) + '\\n')\n"
        "    return second\n"
        "answering_process.AnsweringProcess.started = classmethod(noted)\n"
        "import normspec\nnormspec.check('torch', op=['residual', 'highway'], profile='thorough')\n"
    )
    note = tmp_path / "second"
    process = subprocess.Popen([sys.executable, "-c", code, str(note)], stderr=subprocess.DEVNULL)
    try:
        while not (note.exists() and note.read_text().endswith("\n")):
            assert process.poll() is None
            time.sleep(0.05)
        second = int(note.read_text())
        workers = []
        while len(workers) < 2:  # one of each job
            workers = _children(process.pid, second)
            time.sleep(0.05)
    finally:
        process.kill()
        process.wait()
    deadline = time.monotonic() + 60  # a worker that is importing PyTorch looks at its pipe when that is done
    while any(map(_runs, [second, *workers])) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(_runs, [second, *workers]))


def _children(first: int, second: int) -> list[int]:
    """The workers of the two jobs."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
            number = int(stat.parent.name)
            if (parent == first and number != second) or parent == second:
                found.append(number)
    return found


def _runs(process: int) -> bool:
    """Whether a process is there, and not only its entry."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_a_target_that_cannot_be_had_ends_the_second_job(monkeypatch):
    """The error is the first job's, and the second has ended by then."""
    started, found = AnsweringProcess.started.__func__, []
    monkeypatch.setattr(
        AnsweringProcess, "started", classmethod(lambda cls, told: found.append(started(cls, told)) or found[0])
    )
    with pytest.raises(NotImportable):
        by(None, attrs.evolve(REQUEST, targets=("torch", "exec:/bin/false")))
    assert found[0]._process.returncode is not None


def test_what_is_worth_several_jobs(monkeypatch):
    """Two units are, or four of a function at `quick`; a callable, a GPU and a single core are not."""

    def found(asked=None, **changes) -> int:
        return process_count(attrs.evolve(REQUEST, **changes), asked)

    own = {"targets": ("my_layers.py:layer_norm",), "op": None}
    assert found() == 2
    assert found(dtypes=("float16", "float32")) == 2 and found(dtypes=("float32",)) == 1
    assert found(device="cuda") == 1
    assert found(targets=("numpy",)) == 2
    assert found(**own) == 2
    assert found(**own, dtypes=("float16", "float32", "float64")) == 1
    assert found(**own, profile="standard") == 2
    assert found(**own, profile="standard", dtypes=("float32",)) == 1
    assert found(targets=("numpy", "torch")) == 2
    assert found(targets=("torch", lambda x: x)) == 1
    several = ("my_layers.py:layer_norm", "my_layers.py:rms_norm")
    assert found(targets=several, op=None, dtypes=("float32", "float16")) == 2
    assert found(targets=several, op=None, dtypes=("float32",)) == 1
    assert found(targets=("fault:ln-eps-on-std",), op=None, dtypes=("float32",)) == 2
    monkeypatch.setattr(choice, "cores", lambda: 64)
    assert found(op=None) == 8 and found() == 4
    monkeypatch.setattr(choice, "cores", lambda: 1)
    assert found() == 1


def test_jobs_that_are_asked_for():
    """As many as there are units, on any device; a callable has to stay in its process."""
    assert process_count(REQUEST, 3) == 3 and process_count(REQUEST, 100) == 4 and process_count(REQUEST, 1) == 1
    assert process_count(attrs.evolve(REQUEST, device="cuda"), 2) == 2
    assert process_count(attrs.evolve(REQUEST, targets=(len,)), 2) in (1, 2)
    assert process_count(attrs.evolve(REQUEST, targets=(lambda x: x,)), 2) == 1


@pytest.mark.parametrize("asked", [0, -1, 1.5, True, "2"])
def test_jobs_are_a_number(asked):
    """Anything but a whole number from 1 on is refused before anything is checked."""
    with pytest.raises(NormspecError, match="whole number from 1 on"):
        normspec.check("torch", jobs=asked)


def test_another_process_ends_in_silence():
    """Without a request, and on SIGTERM before it has one."""
    process = subprocess.Popen(
        [sys.executable, "-c", answering_process._CODE, *sys.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=60)
    assert out == b""
    ended = subprocess.run(
        [sys.executable, "-c", answering_process._CODE, *sys.path], input=b"", capture_output=True, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")


def test_a_listener_that_raises_ends_the_run():
    """No unit is judged twice because of it, and it is no defect of ours."""

    def listener(progress):
        if threading.current_thread() is not threading.main_thread():  # a unit of the other process is judged
            raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        by(2, listener=listener)
