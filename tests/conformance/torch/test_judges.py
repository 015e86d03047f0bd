"""The units of one run, divided over two judges: the same report as from one."""

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
from normspec.conformance import judges
from normspec.conformance.judges import SecondJudge, judged, worth_sharing
from normspec.conformance.request import Request
from normspec.spec.errors import NotImportable

REQUEST = Request(
    targets=("torch",), op=("residual",), framework=None, dtypes=None, device="cpu",
    conventions={}, profile="quick", seed=3,
)  # fmt: skip


@pytest.fixture(autouse=True)
def two_cores(monkeypatch):
    """A machine that a second judge can run on."""
    monkeypatch.setattr(judges, "_cores", lambda: 2)


@pytest.fixture(scope="module")
def alone() -> normspec.Report:
    """The report of one judge."""
    return judged(REQUEST, None, shared=False)


def told(report: normspec.Report) -> tuple[object, ...]:
    """What a report says, apart from the time it took."""
    results = [tuple(map(str, attrs.astuple(result, recurse=False))) for result in report.results]
    return results, report.subjects, report.partial, report.profile, report.seed


def test_two_judges_report_what_one_does(alone, monkeypatch):
    """Every result and every subject is the same, in the same order; and the second has done some of it."""
    done = []
    finish = SecondJudge.finish
    monkeypatch.setattr(SecondJudge, "finish", lambda self, **how: done.extend(finish(self, **how)) or done)
    report = judged(REQUEST, None)
    assert told(report) == told(alone)
    assert report.conforms and not report.partial
    assert done and all(not one.partial for one in done)


@pytest.mark.parametrize("program", ["/bin/false", "/bin/cat", "/nonexistent/python"])
def test_nothing_is_lost_without_a_second_judge(alone, monkeypatch, program):
    """Where it dies, speaks nonsense or cannot be started, the first judge does all."""
    monkeypatch.setattr(judges, "_PYTHON", program)
    assert told(judged(REQUEST, None)) == told(alone)


def test_nothing_is_lost_where_the_second_judge_dies_at_work(alone, monkeypatch):
    """The unit that it had is done by the first, even where nothing else was left."""
    begin = SecondJudge.begin

    def begun_and_killed(self, waiting):
        unit = waiting.pop()
        begin(self, type(waiting)([unit]))
        while self._waiting:
            time.sleep(0.01)
        self._process.kill()
        self._thread.join()
        waiting.extend(self._waiting)
        assert list(self._waiting) == [unit] and not self._reports

    monkeypatch.setattr(SecondJudge, "begin", begun_and_killed)
    assert told(judged(REQUEST, None)) == told(alone)


def test_ctrl_c_keeps_what_both_have_established(alone, monkeypatch):
    """The second judge stops at once, and hands over what it has; the report is partial, and true as far as it goes."""
    several = []

    def pressed(progress):
        several.append(progress)
        if len(several) == 40:
            raise KeyboardInterrupt

    found = []
    finish = SecondJudge.finish

    def finish_and_look(self, **how):
        found.append(self)
        return finish(self, **how)

    monkeypatch.setattr(SecondJudge, "finish", finish_and_look)
    report = judged(REQUEST, pressed)
    assert report.partial and report.exit_status == 3
    whole = {(r.binding, r.requirement, r.dtype) for r in alone.results}
    assert {(r.binding, r.requirement, r.dtype) for r in report.results} <= whole
    assert len(report.results) < len(alone.results)
    assert found[0]._process.returncode is not None


def test_ctrl_c_keeps_what_was_established_while_the_second_is_waited_for(alone, monkeypatch):
    """The first judge has done its part: that, and what the second has done by then, is the report."""
    finish, pressed = SecondJudge.finish, []

    def interrupted(self, *, stop):
        if not pressed:
            pressed.append(stop)
            raise KeyboardInterrupt
        return finish(self, stop=stop)

    monkeypatch.setattr(SecondJudge, "finish", interrupted)
    report = judged(REQUEST, None)
    assert pressed == [False]
    assert report.partial and report.exit_status == 3 and report.results
    whole = {(r.binding, r.requirement, r.dtype) for r in alone.results}
    assert {(r.binding, r.requirement, r.dtype) for r in report.results} <= whole


def test_a_killed_judge_takes_the_second_with_it(tmp_path, checkout):
    """Not one process of either is left behind."""
    if not sys.platform.startswith("linux"):
        pytest.skip("elsewhere the second judge ends when its requests do")
    code = (
        "import sys, normspec.conformance.judges as judges\n"
        "judges._cores = lambda: 2\n"
        "started = judges.SecondJudge.started.__func__\n"
        "def noted(cls, *given):\n"
        "    second = started(cls, *given)\n"
        "    open(sys.argv[1], 'w').write(str(second._process.pid) + '\\n')\n"
        "    return second\n"
        "judges.SecondJudge.started = classmethod(noted)\n"
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
        while len(workers) < 2:  # one of each judge
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
    """The workers of the two judges."""
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


def test_a_target_that_cannot_be_had_ends_the_second_judge(monkeypatch):
    """The error is the first judge's, and the second is gone by then."""
    started, found = SecondJudge.started.__func__, []
    monkeypatch.setattr(
        SecondJudge, "started", classmethod(lambda cls, request: found.append(started(cls, request)) or found[0])
    )
    with pytest.raises(NotImportable):
        judged(attrs.evolve(REQUEST, targets=("torch", "exec:/bin/false")), None)
    assert found[0]._process.returncode is not None


def test_what_is_worth_sharing(monkeypatch):
    """A framework with several units is; NumPy, a function, a callable, a GPU and a single core are not."""

    def worth(**changes) -> bool:
        return worth_sharing(attrs.evolve(REQUEST, **changes))

    assert worth()
    assert not worth(dtypes=("float16", "float32", "float64"))
    assert not worth(device="cuda")
    assert not worth(targets=("numpy",))
    assert not worth(targets=("my_layers.py:layer_norm",))
    assert worth(targets=("numpy", "torch"))
    assert not worth(targets=("torch", lambda x: x))
    monkeypatch.setattr(judges, "_cores", lambda: 1)
    assert not worth()


def test_the_second_judge_ends_in_silence():
    """Without a request, and on SIGTERM before it has one."""
    process = subprocess.Popen(
        [sys.executable, "-c", judges._CODE, *sys.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=60)
    assert out == b""
    ended = subprocess.run([sys.executable, "-c", judges._CODE, *sys.path], input=b"", capture_output=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")
