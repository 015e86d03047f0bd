"""The units of one run, shared by several jobs: the same report as from one."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import time
from pathlib import Path

import attrs
import pytest

import normspec
from normspec.conformance import jobs
from normspec.conformance.jobs import Job, judged, worth
from normspec.conformance.request import Request
from normspec.spec.errors import NormspecError, NotImportable

REQUEST = Request(
    targets=("torch",), op=("residual",), framework=None, dtypes=None, device="cpu",
    conventions={}, profile="quick", seed=3,
)  # fmt: skip


@pytest.fixture(autouse=True)
def two_cores(monkeypatch):
    """A machine that a second job can run on."""
    monkeypatch.setattr(jobs, "_cores", lambda: 2)


@pytest.fixture(scope="module")
def alone() -> normspec.Report:
    """The report of one job."""
    return judged(REQUEST, None, jobs=1)


def told(report: normspec.Report) -> tuple[object, ...]:
    """What a report says, apart from the time it took."""
    fields = [attrs.asdict(result, recurse=False) for result in report.results]
    cases = [found.pop("violated_on") for found in fields]  # compared as they are: sets print in any order
    return cases, [str(found) for found in fields], report.subjects, report.partial, report.profile, report.seed


@pytest.mark.parametrize("count", [2, 3])
def test_several_jobs_report_what_one_does(alone, monkeypatch, count):
    """Every result and every subject is the same, in the same order; and the others have done some of it."""
    done: list[normspec.Report] = []
    finish = Job.finish

    def finish_and_look(self, **how):
        found = finish(self, **how)
        done.extend(found)
        return found

    monkeypatch.setattr(Job, "finish", finish_and_look)
    report = judged(REQUEST, None, jobs=count)
    assert told(report) == told(alone)
    assert report.conforms and not report.partial
    assert done and all(not one.partial for one in done)


@pytest.mark.parametrize("program", ["/bin/false", "/bin/cat", "/nonexistent/python"])
def test_nothing_is_lost_without_a_second_job(alone, monkeypatch, program):
    """Where it dies, speaks nonsense or cannot be started, the first job does all."""
    monkeypatch.setattr(jobs, "_PYTHON", program)
    assert told(judged(REQUEST, None)) == told(alone)


def test_nothing_is_lost_where_the_second_job_dies_at_work(alone, monkeypatch):
    """The unit that it had is done by the first, even where nothing else was left."""
    begin = Job.begin

    def begun_and_killed(self, waiting, paces):
        unit = waiting.pop()
        begin(self, type(waiting)([unit]), paces)
        while self._waiting:
            time.sleep(0.01)
        self._process.kill()
        self._thread.join()
        waiting.extend(self._waiting)
        assert list(self._waiting) == [unit] and not self._reports

    monkeypatch.setattr(Job, "begin", begun_and_killed)
    assert told(judged(REQUEST, None)) == told(alone)


def test_ctrl_c_keeps_what_both_have_established(alone, monkeypatch):
    """The second job stops at once, and hands over what it has; the report is partial, and true as far as it goes."""
    several = []

    def pressed(progress):
        several.append(progress)
        if len(several) == 40:
            raise KeyboardInterrupt

    found = []
    finish = Job.finish

    def finish_and_look(self, **how):
        found.append(self)
        return finish(self, **how)

    monkeypatch.setattr(Job, "finish", finish_and_look)
    report = judged(REQUEST, pressed)
    assert report.partial and report.exit_status == 3
    whole = {(r.binding, r.requirement, r.dtype) for r in alone.results}
    assert {(r.binding, r.requirement, r.dtype) for r in report.results} <= whole
    assert len(report.results) < len(alone.results)
    assert found[0]._process.returncode is not None


@pytest.mark.parametrize("waited_for", [0, 1])
def test_ctrl_c_keeps_what_was_established_while_another_is_waited_for(alone, monkeypatch, waited_for):
    """The first job has done its part: that, and what the others have done by then, is the report."""
    finish, asked, established = Job.finish, [], []

    def interrupted(self, *, stop):
        asked.append(stop)
        if len(asked) == waited_for + 1:
            raise KeyboardInterrupt
        found = finish(self, stop=stop)
        established.extend(result for report in found for result in report.results)
        return found

    monkeypatch.setattr(Job, "finish", interrupted)
    report = judged(REQUEST, None, jobs=3)
    assert asked[: waited_for + 2] == [False] * (waited_for + 1) + [True]
    assert report.partial and report.exit_status == 3 and report.results
    assert {id(result) for result in established} <= {id(result) for result in report.results}
    whole = {(r.binding, r.requirement, r.dtype) for r in alone.results}
    assert {(r.binding, r.requirement, r.dtype) for r in report.results} <= whole


def test_a_killed_job_takes_the_second_with_it(tmp_path, checkout):
    """Not one process of either is left behind."""
    if not sys.platform.startswith("linux"):
        pytest.skip("elsewhere the second job ends when its requests do")
    code = (
        "import sys, normspec.conformance.jobs as jobs\n"
        "jobs._cores = lambda: 2\n"
        "started = jobs.Job.started.__func__\n"
        "def noted(cls, *given):\n"
        "    second = started(cls, *given)\n"
        "    open(sys.argv[1], 'w').write(str(second._process.pid) + '\\n')\n"
        "    return second\n"
        "jobs.Job.started = classmethod(noted)\n"
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
    """The error is the first job's, and the second is gone by then."""
    started, found = Job.started.__func__, []
    monkeypatch.setattr(
        Job, "started", classmethod(lambda cls, request: found.append(started(cls, request)) or found[0])
    )
    with pytest.raises(NotImportable):
        judged(attrs.evolve(REQUEST, targets=("torch", "exec:/bin/false")), None)
    assert found[0]._process.returncode is not None


def test_what_is_worth_several_jobs(monkeypatch):
    """A framework with several units is, and a function beyond `quick`; a callable, a GPU and a single core are not."""

    def found(asked=None, **changes) -> int:
        return worth(attrs.evolve(REQUEST, **changes), asked)

    own = {"targets": ("my_layers.py:layer_norm",), "op": None}
    assert found() == 2
    assert found(dtypes=("float16", "float32", "float64")) == 1
    assert found(device="cuda") == 1
    assert found(targets=("numpy",)) == 1
    assert found(**own) == 1
    assert found(**own, profile="standard") == 2
    assert found(**own, profile="standard", dtypes=("float32",)) == 1
    assert found(targets=("numpy", "torch")) == 2
    assert found(targets=("torch", lambda x: x)) == 1
    monkeypatch.setattr(jobs, "_cores", lambda: 64)
    assert found(op=None) == 8 and found() == 4
    monkeypatch.setattr(jobs, "_cores", lambda: 1)
    assert found() == 1


def test_jobs_that_are_asked_for():
    """As many as there are units, on any device; a callable has to stay in its process."""
    assert worth(REQUEST, 3) == 3 and worth(REQUEST, 100) == 4 and worth(REQUEST, 1) == 1
    assert worth(attrs.evolve(REQUEST, device="cuda"), 2) == 2
    assert worth(attrs.evolve(REQUEST, targets=(len,)), 2) in (1, 2)
    assert worth(attrs.evolve(REQUEST, targets=(lambda x: x,)), 2) == 1


@pytest.mark.parametrize("asked", [0, -1, 1.5, True, "2"])
def test_jobs_are_a_number(asked):
    """Anything but a whole number from 1 on is refused before anything is checked."""
    with pytest.raises(NormspecError, match="whole number from 1 on"):
        normspec.check("torch", jobs=asked)


def test_a_job_ends_in_silence():
    """Without a request, and on SIGTERM before it has one."""
    process = subprocess.Popen(
        [sys.executable, "-c", jobs._CODE, *sys.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=60)
    assert out == b""
    ended = subprocess.run([sys.executable, "-c", jobs._CODE, *sys.path], input=b"", capture_output=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")
