"""
Run the tests against each mutant of a sample, and write what killed it.

    python tests/mutation/run.py mutants.jsonl --out results.jsonl --jobs 2
    python tests/mutation/run.py mutants.jsonl --out results.jsonl --summary

Each job has a copy of the checkout of its own. A mutant goes through stages, the likely and the cheap ones first,
until a test fails that passes on the code as it is; all mutants have been through one stage before the first goes into
the next. A line is written for each mutant and stage, and what stands in the file already is not run again. With
`--shard 0/3` several machines share a sample: their files are put together with `cat`.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar

from stages import PYTEST, STAGES, Stage, stages_of

CHECKOUT = Path(__file__).parent.parent.parent
LEFT_OUT = shutil.ignore_patterns(".git", ".tox", ".venv", ".mutants", "__pycache__", ".*_cache", "*.egg-info")
#: pytest's line about a test that failed, or about a file that it could not load.
FAILED = re.compile(r"^(?:FAILED|ERROR) (tests/.+?)(?: - .*)?$", re.M)


class Copy:
    """A copy of the checkout, in which one mutant at a time lives."""

    #: Tests that were seen to pass on the code as it is, and to fail there: these are left out. All copies share them.
    sound: ClassVar[set[str]] = set()
    broken: ClassVar[set[str]] = set()

    def __init__(self, folder: Path) -> None:
        self.root = folder / "normspec"
        shutil.copytree(CHECKOUT, self.root, ignore=LEFT_OUT)
        # By their content: two mutants of one file may have its size, and be written within a second.
        compiling = ("-m", "compileall", "-q", "--invalidation-mode", "checked-hash", str(self.root))
        subprocess.run([sys.executable, *compiling], check=True)
        settings = self.root / "pyproject.toml"
        text = settings.read_text(encoding="utf-8")
        if importlib.util.find_spec("pytest_timeout") is None:
            text = re.sub(r"(?m)^timeout = .*\n", "", text)
            settings.write_text(text, encoding="utf-8")
        about = folder / "normspec-0.dist-info"
        about.mkdir()
        version = re.search(r'(?m)^version = "(.*)"', text)
        assert version is not None
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: normspec\nVersion: {version[1]}\n")
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(folder),
            "PYTHONDONTWRITEBYTECODE": "1",
            "NORMSPEC_FRAMEWORKS": "numpy",
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "TMPDIR": str(folder),
        }

    def run(self, mutant: dict[str, Any], stage: Stage, deadline: float) -> dict[str, Any] | None:
        """The outcome of one stage for a mutant; None if the time ran out before there was one."""
        started = time.monotonic()
        while True:
            limit = min(stage.seconds, deadline - time.monotonic())
            left_out = [f"--{'deselect' if '::' in test else 'ignore'}={test}" for test in sorted(self.broken)]
            with self._changed(mutant):
                status, output = self._run(
                    [*stage.command(mutant["path"]), *(left_out if stage.is_pytest else ())], limit
                )
            seconds = round(time.monotonic() - started)
            if status is None:
                return {"killed": True, "by": "the time limit", "seconds": seconds} if limit == stage.seconds else None
            if not status:
                return {"killed": False, "by": "", "seconds": seconds}
            tests = FAILED.findall(output)
            if not tests or self._passes(tests[0]):
                last = output.strip().splitlines()[-1:]
                return {"killed": True, "by": (tests or last or ["nothing said"])[0], "seconds": seconds}

    def _passes(self, test: str) -> bool:
        """Whether a test passes on the code as it is; if it does not, it says nothing on this machine."""
        if test not in self.sound and test not in self.broken:
            only = () if "::" in test else ("--collect-only",)
            status, _ = self._run([*PYTEST, test, *only], 600)
            (self.broken if status else self.sound).add(test)
        return test in self.sound

    @contextmanager
    def _changed(self, mutant: dict[str, Any]) -> Iterator[None]:
        """Put the mutant in place of its file."""
        path = self.root / mutant["path"]
        before = path.read_text(encoding="utf-8")
        path.write_text(mutant["text"], encoding="utf-8")
        try:
            yield
        finally:
            path.write_text(before, encoding="utf-8")

    def _run(self, command: Sequence[str], seconds: float) -> tuple[int | None, str]:
        process = subprocess.Popen(
            [sys.executable, *command],
            cwd=self.root,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=max(seconds, 0.01))
            return process.returncode, output
        except subprocess.TimeoutExpired:
            return None, ""
        finally:
            # Whatever it started as well: a worker may outlive a process that was stopped.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


class Results:
    """The lines of a file of results, read and written."""

    def __init__(self, path: Path) -> None:
        self.path, self.lock = path, threading.Lock()
        self.killed: dict[str, dict[str, Any]] = {}
        self.passed: dict[str, list[str]] = {}
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
            self._enter(json.loads(line))

    def _enter(self, one: dict[str, Any]) -> None:
        if one["killed"]:
            self.killed[one["id"]] = one
        else:
            self.passed.setdefault(one["id"], []).append(one["stage"])

    def add(self, one: dict[str, Any]) -> None:
        """Write a line."""
        with self.lock:
            self._enter(one)
            with self.path.open("a", encoding="utf-8") as out:
                out.write(json.dumps(one) + "\n")


def work(tasks: queue.PriorityQueue[Any], results: Results, deadline: float, folder: Path) -> None:
    """Take tasks until none is left or the time is up; a mutant that lives is queued for its next stage."""
    copy = Copy(folder)
    while time.monotonic() < deadline:
        try:
            place, order, mutant = tasks.get(timeout=0.5)
        except queue.Empty:
            if not tasks.unfinished_tasks:
                return
            continue  # another job's mutant may come back for its next stage
        stage = stages_of(mutant["path"])[place]
        said = copy.run(mutant, stage, deadline)
        if said is None:
            return
        results.add({"id": mutant["id"], "stage": stage.name, **said})
        if not said["killed"]:
            _put(tasks, results, mutant, order)
        tasks.task_done()


def _put(tasks: queue.PriorityQueue[Any], results: Results, mutant: dict[str, Any], order: int) -> None:
    """Put a mutant in the queue for the first stage that it has not been through."""
    done = results.passed.get(mutant["id"], ())
    for place, stage in enumerate(stages_of(mutant["path"])):
        if stage.name not in done and stage.name in STAGES:
            tasks.put((place, order, mutant))
            return


def read(path: Path, only: str | None) -> Iterator[dict[str, Any]]:
    """The mutants of a sample: all, or those whose results are asked for again."""
    again = Results(Path(only)) if only else None
    for line in path.read_text(encoding="utf-8").splitlines():
        mutant = json.loads(line)
        if again is None or mutant["id"] not in again.killed:
            yield mutant


def summary(mutants: Sequence[dict[str, Any]], results: Results) -> None:
    """Print what lives, what is left to be run, and the count of each."""
    lives = 0
    for mutant in mutants:
        name = mutant["id"]
        if name in results.killed:
            continue
        left = [stage.name for stage in stages_of(mutant["path"]) if stage.name not in results.passed.get(name, ())]
        lives += not left
        print(
            f"{name}  {mutant['path']}:{mutant['line']}  {mutant['change']}",
            f"  not run: {', '.join(left)}" * bool(left),
        )
        print(f"    - {mutant['was'].strip()}\n    + {mutant['is'].strip()}")
    killed = sum(mutant["id"] in results.killed for mutant in mutants)
    print(f"{len(mutants)} mutants: {killed} killed, {lives} live, {len(mutants) - killed - lives} not run to the end")


def main() -> None:
    """Run a sample, or a share of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mutants", type=Path)
    parser.add_argument("--out", type=Path, required=True, help="the file of results; lines are added to it")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--shard", default="0/1", help="I/N: the mutants I, I + N, I + 2 N, ...")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop what runs after this time")
    parser.add_argument("--stages", nargs="+", choices=list(STAGES), default=list(STAGES), help="only some stages")
    parser.add_argument("--again", help="only the mutants that live in this file of results")
    parser.add_argument("--unchanged", action="store_true", help="run the tests on the code as it is")
    parser.add_argument("--summary", action="store_true", help="run nothing; print what lives")
    chosen = parser.parse_args()
    shard, shards = map(int, chosen.shard.split("/"))
    mutants = list(read(chosen.mutants, chosen.again))[shard::shards]
    if chosen.unchanged:
        path = mutants[0]["path"]
        text = (CHECKOUT / path).read_text(encoding="utf-8")
        mutants = [{"id": "unchanged", "path": path, "text": text, "line": 0, "change": "none", "was": "", "is": ""}]
    results = Results(chosen.out)
    if not chosen.summary:
        for name in set(STAGES) - set(chosen.stages):
            del STAGES[name]
        tasks: queue.PriorityQueue[Any] = queue.PriorityQueue()
        for order, mutant in enumerate(mutants):
            if mutant["id"] not in results.killed:
                _put(tasks, results, mutant, order)
        deadline = time.monotonic() + chosen.seconds
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            folders = [Path(folder) / str(job) for job in range(chosen.jobs)]
            jobs = [threading.Thread(target=work, args=(tasks, results, deadline, one)) for one in folders]
            for job in jobs:
                job.start()
            for job in jobs:
                job.join()
    for test in sorted(Copy.broken):
        print(f"fails on this machine without any change, and was left out: {test}")
    summary(mutants, results)


if __name__ == "__main__":
    main()
