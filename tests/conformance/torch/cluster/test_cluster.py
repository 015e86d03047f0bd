"""A Dask cluster judges instead of this machine: the report is the same, whatever happens to the workers."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dask
import pytest
from distributed import Client, LocalCluster

import normspec
from normspec.conformance.running import cluster as running
from normspec.conformance.running.cluster import NoCluster
from normspec.conformance.running.worker_pool import WorkerPool
from normspec.spec.errors import NormspecError, NotImportable

#: A sound function of NumPy: four units of a second each. `{before}` runs at each call.
RESIDUAL = """
import os
import signal
from pathlib import Path

import numpy as np


def parent(process):
    return int(Path(f"/proc/{{process}}/stat").read_text().rpartition(")")[2].split()[1])


def residual(x, branch, *, shortcut=None, activation=None):
    {before}
    y = (x if shortcut is None else shortcut(x)) + branch(x)
    return y if activation is None else activation(y)
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    """Two workers of one thread each, in their own processes, which are restarted when they die."""
    with (
        # The cluster drops a worker that is not back after 15 seconds, which a busy machine may need to start it.
        dask.config.set({"distributed.deploy.lost-worker-timeout": "10 minutes"}),
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", worker_dashboard_address=None
        ) as found,
    ):
        yield found


def settled(cluster: LocalCluster, workers: int = 2) -> None:
    """Wait until this many workers are there: others may have been killed."""
    with Client(cluster.scheduler_address, set_as_default=False) as client:
        client.wait_for_workers(workers, timeout=60)


def written(tmp_path: Path, before: str = "pass", name: str = "mine.py") -> str:
    """A function in a file, and its name as a target."""
    file = tmp_path / name
    file.write_text(RESIDUAL.format(before=before))
    return f"{file}:residual"


def told(report: normspec.Report) -> dict[str, Any]:
    """The contents of the JSON, without the time taken."""
    found = json.loads(report.to_json())
    del found["seconds"]
    return found


def judged(target: Any, cluster: LocalCluster | None, **options: Any) -> normspec.Report:
    """The report on the function, on few cases in two dtypes."""
    where = {"jobs": 1} if cluster is None else {"cluster": cluster.scheduler_address}
    few = {"op": "residual", "profile": "quick", "dtypes": ["float32", "float64"], "forward_only": True, "slow": True}
    return normspec.check(target, **{**few, **where, **options})


def test_a_cluster_reports_what_this_machine_does(cluster, tmp_path):
    """The JSON is the same, and the workers do not need the function's file on their disks."""
    note = tmp_path / "note"
    target = written(tmp_path, f"Path({str(note)!r}).write_text(__file__)")
    remote = judged(target, cluster)
    assert "normspec-" in Path(note.read_text()).parent.parent.name
    assert told(remote) == told(judged(target, None))
    assert note.read_text() == target.rpartition(":")[0]
    assert remote.conforms and remote.notes == ()


def test_a_framework_and_a_faulty_function_in_one_run(cluster, tmp_path):
    """Each unit is of one target, and the report is of both; missing declarations are searched for there too."""
    file = tmp_path / "wrong.py"
    file.write_text(
        "import torch\n"
        "def residual(x, branch, *, shortcut=None, activation=None):\n"
        "    y = (x if shortcut is None else shortcut(x)).half().to(x.dtype) + branch(x)\n"
        "    return y if activation is None else activation(y)\n"
    )
    targets, options = ("torch", f"{file}:residual"), {"dtypes": ["float64"], "seed": 3}
    remote, local = judged(targets, cluster, **options), judged(targets, None, **options)
    assert {result.target for result in local.failures()} == {targets[1]}
    assert told(remote) == told(local)


@pytest.mark.parametrize("depth", [1, 2])
def test_what_dies_once_is_judged_elsewhere(cluster, tmp_path, depth):
    """The process that judges is killed, or the worker that started it: the report is complete."""
    settled(cluster)
    note, process = tmp_path / "note", "parent(" * (depth - 1) + "os.getppid()" + ")" * (depth - 1)
    target = written(
        tmp_path,
        f"x.dtype == 'float32' and not Path({str(note)!r}).exists() and"
        f" (Path({str(note)!r}).touch(), os.kill({process}, signal.SIGKILL))",
    )
    remote = judged(target, cluster)
    assert note.exists()
    assert told(remote) == told(judged(target, None))


@pytest.mark.parametrize("depth", [1, 2])
def test_what_dies_twice_is_an_error(cluster, tmp_path, depth):
    """Every requirement of that unit says what happened; all else is judged, by restarted workers if need be."""
    settled(cluster)
    process = "parent(" * (depth - 1) + "os.getppid()" + ")" * (depth - 1)
    target = written(tmp_path, f"x.dtype == 'float32' and x.ndim > 1 and os.kill({process}, signal.SIGKILL)")
    report = judged(target, cluster, dtypes=None)
    assert report.partial and report.exit_status == 3
    by_dtype = {dtype: [one for one in report.results if one.dtype == dtype] for dtype in ("float32", "float64")}
    assert {one.requirement for one in by_dtype["float32"]} == {one.requirement for one in by_dtype["float64"]}
    assert {one.verdict.value for one in by_dtype["float32"]} == {"error"}
    assert all("lost twice" in one.reason for one in by_dtype["float32"])
    assert not report.failures() and "pass" in {one.verdict.value for one in by_dtype["float64"]}
    assert {one.dtype for one in report.results} == {"float16", "bfloat16", "float32", "float64"}


def worker(address: str, name: str, folder: Path, **environment: str) -> subprocess.Popen[bytes]:
    """One more worker, in its own environment; `folder` is first on its import path."""
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH", "")])])
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "distributed.cli.dask_worker", address, "--no-nanny", "--no-dashboard"),
            *("--nthreads", "1", "--name", name),
        ],
        env={**os.environ, "PYTHONPATH": path, **environment},
        stderr=subprocess.DEVNULL,
        cwd=folder,
    )


def without(package: str, folder: Path) -> Path:
    """A folder that hides a package from interpreters with the folder on their import path."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(
        "import importlib.machinery as machinery\n"
        "find = machinery.PathFinder.find_spec\n"
        "def found(name, path=None, target=None):\n"
        f"    return None if name.partition('.')[0] == {package!r} else find(name, path, target)\n"
        "machinery.PathFinder.find_spec = found\n"
    )
    return folder


def altered(folder: Path) -> Path:
    """A folder with a normspec of the same version, in which one file differs."""
    source, copy = Path(normspec.__file__).parent, folder / "normspec"
    for room in ("spec", "reference", "adapters", "conformance"):
        shutil.copytree(source / room, copy / room, ignore=shutil.ignore_patterns("__pycache__"))
    for file in source.glob("*.py"):
        shutil.copy(file, copy)
    with (copy / "conformance" / "report.py").open("a") as file:
        file.write("# another\n")
    return folder


def test_workers_that_differ_are_told_apart(cluster, tmp_path):
    """One has no PyTorch, one a different normspec, one none: they are named, and the others judge."""
    settled(cluster)
    address = cluster.scheduler_address
    more = [
        worker(address, "bare", without("torch", tmp_path / "a")),
        worker(address, "altered", altered(tmp_path / "b")),
        worker(address, "empty", without("normspec", tmp_path / "c")),
    ]
    try:
        settled(cluster, 5)
        report = judged("torch", cluster)
    finally:
        for one in more:
            one.kill()
            one.wait()
    notes = {
        name: next((one for one in report.notes if f"worker {name} at tcp://" in one), "")
        for name in ("bare", "altered", "empty")
    }
    assert "torch is not installed" in notes["bare"]
    assert "has normspec " in notes["altered"] and "and this is" in notes["altered"]
    assert "cannot import this normspec" in notes["empty"]
    assert len(report.notes) == len(notes)
    assert {**told(report), "notes": []} == told(judged("torch", None))


def test_ctrl_c_keeps_what_was_established(cluster, tmp_path):
    """The report has everything that workers have finished; nothing of the run is left on them."""
    settled(cluster)
    note = tmp_path / "note"
    target = written(tmp_path, f"Path({str(note)!r} + str(os.getpid())).touch()")

    def pressed(_: Any) -> None:
        raise KeyboardInterrupt

    report = judged(target, cluster, progress=pressed)
    whole = {(one.dtype, one.requirement) for one in judged(target, None).results}
    found = [(one.dtype, one.requirement) for one in report.results]
    assert report.partial and report.exit_status == 3
    assert found and set(found) < whole and len(set(found)) == len(found)
    processes = {int(path.name.removeprefix("note")) for path in tmp_path.glob("note*")}
    deadline = time.monotonic() + 120
    while any(Path(f"/proc/{one}").exists() for one in processes) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert processes and not any(Path(f"/proc/{one}").exists() for one in processes - {os.getpid()})


def test_what_a_cluster_cannot_judge_is_one_error(cluster, tmp_path):
    """A function without a name, a missing file, and a file that needs others next to it."""
    settled(cluster)
    with pytest.raises(NoCluster, match="put it into a file"):
        judged(lambda x, branch: x, cluster, framework="numpy")
    with pytest.raises(NotImportable, match=r"nothing\.py cannot be read"):
        judged(f"{tmp_path / 'nothing.py'}:residual", cluster)
    with pytest.raises(NotImportable, match=r"~nosuchuser/nothing\.py cannot be read"):
        judged("~nosuchuser/nothing.py:residual", cluster)
    (tmp_path / "beside.py").write_text("")
    (tmp_path / "needy.py").write_text("import numpy\nimport beside\ndef residual(x, branch): pass\n")
    with pytest.raises(NoCluster, match=r"No module named 'beside'.*only the file itself is sent to a cluster"):
        judged(f"{tmp_path / 'needy.py'}:residual", cluster)


def test_a_cluster_that_is_not_there(monkeypatch):
    """Nobody answers, or nobody can: one error, after a while that is bounded, and no client is left open."""
    made: list[Client] = []
    start = Client.start

    def recorded(client: Client, **options: Any) -> Any:
        made.append(client)
        return start(client, **options)

    monkeypatch.setattr(Client, "start", recorded)
    monkeypatch.setattr(running, "_CONNECTING", 1.0)
    started = time.monotonic()  # seconds, not the minutes of Dask's own limits
    for address in ("tcp://127.0.0.1:1", "no address:", "http://127.0.0.1:1"):
        with pytest.raises(NoCluster, match="no Dask scheduler answers at"):
            normspec.check("numpy", cluster=address)
    assert time.monotonic() - started < 60
    left = [one for one in made if one.status != "closed"]
    assert made and not left, "a client left open is closed by the garbage collector, which may block"
    monkeypatch.undo()
    with (
        LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as empty,
        pytest.raises(NormspecError, match="has no workers"),
    ):
        normspec.check("numpy", cluster=empty.scheduler_address)


@pytest.mark.parametrize(("status", "heard", "found"), [("running", 0, None), ("running", 61, {}), ("closed", 0, {})])
def test_a_scheduler_that_does_not_answer_once_has_lost_no_worker(status, heard, found):
    """The workers are unknown for a while; they are lost if it stays away, or the connection is closed."""

    def nthreads():
        raise OSError("busy")

    client: Any = SimpleNamespace(nthreads=nthreads, status=status)
    pool = WorkerPool(client, "", {}, {}, lambda addresses: None)
    pool._heard -= heard
    assert pool.threads() == found
