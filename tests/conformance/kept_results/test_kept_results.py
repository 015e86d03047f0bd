"""Work on unchanged targets is not run again, and no verdict changes because of that."""

from __future__ import annotations

import json
import os
import pickle
import random
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import attrs
import pytest

import normspec
from normspec.conformance.api import requested
from normspec.conformance.engine import declaration_search
from normspec.conformance.kept.cache_folder import results_store
from normspec.conformance.kept.store import Store
from normspec.conformance.kept_results import keeping, result_store
from normspec.conformance.kept_results.dependencies import dependencies_of
from normspec.conformance.kept_results.installed import Installed
from normspec.conformance.kept_results.pickled import Unreadable, Unwritable, pickled, unpickled
from normspec.conformance.running.single_process import SingleProcess
from normspec.spec.errors import NormspecError

RIGHT = """import numpy as np


def layer_norm(x, gamma, beta, *, eps, axes):
    wide = x.astype(np.float64)
    d = wide - wide.mean(axes, keepdims=True)
    y = d / np.sqrt(np.square(d).mean(axes, keepdims=True) + eps)
    y = y if gamma is None else y * gamma
    return (y if beta is None else y + beta).astype(x.dtype)
"""
WRONG = RIGHT.replace("+ eps)", ") + eps").replace("d / np.sqrt(", "d / (np.sqrt(").replace(") + eps\n", ") + eps)\n")
FEW = {"dtypes": ("float32",), "profile": "quick"}
ASKED = {**FEW, "only": ("LN-F3",), "jobs": 1}


@pytest.fixture(autouse=True)
def _kept(monkeypatch, tmp_path):
    """Here results are kept, for each test in its own folder."""
    monkeypatch.delenv("NORMSPEC_RESULTS")
    monkeypatch.setenv("NORMSPEC_CACHE", str(tmp_path / "kept"))


@pytest.fixture
def opened(monkeypatch) -> list[str]:
    """The targets that were opened, and the units that were judged, in order."""
    found: list[str] = []
    enter, judge = SingleProcess.__enter__, SingleProcess.judge

    def entered(self):
        found.extend(map(str, self.request.names))
        return enter(self)

    def judged(self, unit, listener=None):
        found.append(f"{unit.operator} {unit.dtype}")
        return judge(self, unit, listener)

    monkeypatch.setattr(SingleProcess, "__enter__", entered)
    monkeypatch.setattr(SingleProcess, "judge", judged)
    return found


def told(report: normspec.Report) -> dict[str, Any]:
    """A report as JSON, without the time it took and since when it is kept."""
    return plain(json.loads(report.to_json()))


def plain(document: dict[str, Any]) -> dict[str, Any]:
    """The same for JSON read from a file."""
    document.pop("seconds")
    return {**document, "results": [{**one, "kept": ""} for one in document["results"]]}


def target(folder: Path, source: str, name: str = "mine") -> str:
    """A function in a file."""
    (folder / f"{name}.py").write_text(source)
    return f"{folder / name}.py:layer_norm"


@pytest.mark.parametrize("source", [RIGHT, WRONG], ids=["right", "wrong"])
def test_a_second_run_opens_nothing_and_says_the_same(tmp_path, opened, source):
    """Verdicts, causes, counterexamples and declarations are those of the first run, and the text says since when."""
    mine = target(tmp_path, source)
    first = normspec.check(mine, **ASKED)
    assert opened and not any(one.kept for one in first.results)
    opened.clear()
    second = normspec.check(mine, **ASKED)
    assert opened == []
    assert told(second) == told(first) and first.causes == second.causes
    assert all(one.kept for one in second.results)
    assert "--no-cache judges them again" in str(second) and "--no-cache" not in str(first)


def test_what_changed_is_run_again(tmp_path, opened):
    """An edit of the file or a module next to it, another option, another version of ours: each is judged again."""
    (tmp_path / "helping.py").write_text("eps_factor = 1\n")
    mine = target(tmp_path, "import helping\n" + RIGHT)

    def judged(**options: Any) -> normspec.Report:
        opened.clear()
        return normspec.check(mine, **{**ASKED, **options})

    assert judged().conforms and opened
    assert judged().conforms and not opened
    for options in ({"seed": 1}, {"require": "LN-L2"}, {"dtypes": ("float64",)}, {"only": "LN-F2"}, {"time_limit": 7}):
        judged(**options)
        assert opened, options
    judged(seed=1)
    assert not opened
    target(tmp_path, "import helping\n" + WRONG)
    assert not judged().conforms and opened
    target(tmp_path, "import helping\n" + RIGHT)
    assert judged().conforms and not opened
    (tmp_path / "helping.py").write_text("eps_factor = 2\n")
    assert judged().conforms and opened


@pytest.mark.parametrize(
    ("package", "variable"),
    [("flax", "JAX_ENABLE_X64"), ("equinox", "JAX_ENABLE_X64"), ("transformers", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE")],
)
def test_what_runs_below_an_imported_package_counts(tmp_path, monkeypatch, package, variable):
    """A file that imports Flax alone is run again when a variable that JAX reads has changed."""
    (tmp_path / "site-packages" / package).mkdir(parents=True)
    (tmp_path / "site-packages" / package / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path / "site-packages")
    mine = target(tmp_path, f"import {package}\n{RIGHT}")

    def key() -> bytes:
        return dependencies_of(requested(mine, **FEW), mine, (), Installed.now()).key

    before = key()
    monkeypatch.setenv(variable, "1")
    assert key() != before


def test_the_framework_of_one_target_counts(tmp_path, monkeypatch):
    """Also where the configuration alone says which framework a function is for."""
    mine = target(tmp_path, RIGHT)
    request = requested(mine, **FEW, per_target={mine: {"framework": "jax"}})
    before = dependencies_of(request, mine, (), Installed.now())
    monkeypatch.setenv("JAX_ENABLE_X64", "1")
    assert dependencies_of(request, mine, (), Installed.now()).key != before.key


def test_another_state_of_our_own_code_runs_everything(tmp_path, opened, monkeypatch):
    """Results found with other sources of normspec are not used."""
    from normspec.conformance.kept_results import dependencies

    mine = target(tmp_path, RIGHT)
    normspec.check(mine, **ASKED)
    opened.clear()
    monkeypatch.setattr(dependencies, "sources", lambda: "another")
    normspec.check(mine, **ASKED)
    assert opened


@pytest.mark.parametrize("options", [{"cache": False}, {"python": sys.executable}])
def test_what_may_not_be_kept_is_run(tmp_path, opened, options):
    """Without a cache, and under another interpreter, everything is run."""
    mine = target(tmp_path, RIGHT)
    for _ in range(2):
        opened.clear()
        assert normspec.check(mine, **ASKED, **options).conforms
        assert opened


def test_a_target_that_cannot_be_followed_is_always_run(tmp_path, opened):
    """It reads the environment, and so the same file may be another function."""
    mine = target(tmp_path, "import os\n" + RIGHT)
    for _ in range(2):
        opened.clear()
        assert normspec.check(mine, **ASKED).conforms
        assert opened


def test_of_several_targets_the_changed_one_alone_is_run(tmp_path, opened):
    """The others are not even opened, and the report is the one that a run of all of them makes."""
    names = [target(tmp_path, RIGHT, name) for name in ("one", "two", "three")]
    asked = {"profile": "quick", "dtypes": ("float32",), "forward_only": True, "slow": True, "jobs": 1}
    normspec.check(names, **asked)
    target(tmp_path, RIGHT + "\n", "two")
    opened.clear()
    found = normspec.check(names, **asked)
    assert {one for one in opened if ":" in one} == {names[1]}
    assert found.targets == tuple(names)
    assert told(found) == told(normspec.check(names, **asked, cache=False))


def test_an_edit_during_the_run_is_not_kept(tmp_path, monkeypatch, opened):
    """The run may have judged the file before or after the edit."""
    mine, judge = target(tmp_path, RIGHT), SingleProcess.judge

    def edited(self, unit, listener=None):
        target(tmp_path, RIGHT + "\n")
        return judge(self, unit, listener)

    monkeypatch.setattr(SingleProcess, "judge", edited)
    normspec.check(mine, **ASKED)
    opened.clear()
    normspec.check(mine, **ASKED)
    assert opened


def test_a_result_that_may_come_out_otherwise_is_not_kept(tmp_path, opened):
    """Requirements that stayed unjudged, because the target raised or died, are judged again."""
    mine = target(tmp_path, RIGHT.replace("    wide", "    raise RuntimeError('out of memory')\n    wide"))
    for _ in range(2):
        opened.clear()
        assert normspec.check(mine, **ASKED).errors()
        assert any("float32" in one for one in opened)


def test_a_search_that_ran_out_of_time_is_not_kept(tmp_path, opened, monkeypatch):
    """A less busy machine may find a declaration; where the search came to its end, the report is kept."""
    mine = target(tmp_path, WRONG)
    with monkeypatch.context() as patch:
        patch.setattr(declaration_search, "_MIN_SECONDS", 0.0)
        patch.setattr(declaration_search, "_TIME_FACTOR", 0.0)
        assert normspec.check(mine, **ASKED).failures()
    for opens in (True, False):
        opened.clear()
        assert normspec.check(mine, **ASKED).failures()
        assert bool(opened) is opens


def test_a_damaged_cache_changes_no_verdict(tmp_path, opened):
    """Entries that are changed, cut off or swapped are noticed, and their requirements are judged again."""
    mine = target(tmp_path, WRONG)
    want = told(normspec.check(mine, **ASKED))
    file = tmp_path / "kept" / "results.sqlite"
    for change in (
        "words = x'00' || substr(words, 2)",
        "words = substr(words, 1, length(words) - 1)",
        "words = 7",
    ):
        with sqlite3.connect(file) as connection:
            connection.execute(f"UPDATE results SET {change}")
        connection.close()
        opened.clear()
        assert told(normspec.check(mine, **ASKED)) == want
        assert opened, change


def test_two_hundred_damaged_caches_hold_what_they_held_or_nothing(tmp_path):
    """A file of results that is cut off, overwritten or exchanged in part never holds another report."""
    mine = target(tmp_path, WRONG)
    want = told(normspec.check(mine, **ASKED))
    asked = requested(mine, **{key: value for key, value in ASKED.items() if key != "jobs"})
    store = results_store("")
    assert store is not None
    whole = result_store.ResultStore.of(store, asked, [mine], interdependent=True, resume=False)
    assert told(whole.whole(mine)) == want
    store.close()
    sound, outside = (tmp_path / "kept" / "results.sqlite").read_bytes(), tmp_path / "outside"
    outside.mkdir()
    for number in range(200):
        draw, content = random.Random(number), bytearray(sound)
        if number % 4 == 0:
            del content[draw.randrange(len(content)) :]
        else:
            for _ in range(10 ** (number % 3)):
                content[draw.randrange(len(content))] = draw.randrange(256)
        folder = outside / str(number)
        folder.mkdir()
        (folder / "results.sqlite").write_bytes(content)
        damaged = Store(folder, what="results")
        found = attrs.evolve(whole, store=damaged).whole(mine)
        assert found is None or told(found) == want, number
        damaged.close()
        assert {one.name.partition(".")[0] for one in folder.iterdir()} <= {"results"}
    assert {one.name for one in tmp_path.iterdir()} == {"mine.py", "kept", "outside"}


def test_no_pickle_runs_anything(tmp_path):
    """A pickle with a callable's name is refused; data that is not compressed, or not a pickle, is unreadable."""

    class Evil:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "made"),)

    import zlib

    evil = zlib.compress(pickle.dumps(Evil()))
    for words in (
        evil,
        evil[:-3],
        zlib.compress(pickle.dumps(keeping.report_on)),
        zlib.compress(pickle.dumps(NormspecError("x"))),
        b"nonsense",
    ):
        with pytest.raises(Unreadable):
            unpickled(words)
    for value in (Evil(), keeping.report_on, lambda: 0):
        with pytest.raises(Unwritable):
            pickled(value)
    assert not (tmp_path / "made").exists()


def test_resume_needs_what_was_kept(tmp_path):
    """One clear error where nothing is kept, on a cluster, and for a callable that has no name."""
    mine = target(tmp_path, RIGHT)
    for asked, options, words in (
        (mine, {"cache": False}, "go without cache=False"),
        (mine, {"cluster": "tcp://127.0.0.1:1"}, "campaign"),
        (lambda x: x, {"op": "layer_norm", "framework": "numpy"}, "have a name"),
    ):
        with pytest.raises(keeping.NothingToResume, match=words):
            normspec.check(asked, resume=True, **options)


# -- interruptions ----------------------------------------------------------------------------------------------

#: Some seconds of work in twenty units: the first requirement of each of these operators, in every dtype.
COMMAND = (
    *("check", "numpy", "--only", "*-F1", "--profile", "quick", "--jobs", "1"),
    *(word for op in ("layer_norm", "rms_norm", "residual", "pre_norm", "highway") for word in ("--op", op)),
    "--json",
)

#: The same target in a form that cannot be followed.
UNFOLLOWED = "import os\n" + RIGHT


class Interrupted:
    """A command that is killed and started again, in its own folder."""

    def __init__(self, folder: Path, asked: tuple[str, ...]) -> None:
        folder.mkdir()
        self.folder, self.asked, self.killed = folder, asked, 0
        self.out = folder / "report.json"

    def run(self, moment: float | None = None) -> dict[str, Any] | None:
        """The JSON of a run that came to its end; None where it was killed at that moment, with `kill -9`."""
        environment = {**os.environ, "NORMSPEC_CACHE": str(self.folder / "kept")}
        environment.pop("NORMSPEC_RESULTS", None)
        again = ["--resume"] if self.killed else []
        process = subprocess.Popen(
            [sys.executable, "-m", "normspec", *self.asked, str(self.out), *again],
            cwd=self.folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            process.wait(moment)
        except subprocess.TimeoutExpired:
            self.killed += 1
            return None
        finally:  # it does not go on running if the test's time limit ends the test
            process.kill()
            process.wait()
        return plain(json.loads(self.out.read_text()))


@pytest.mark.exhaustive
@pytest.mark.parametrize("count", [2, pytest.param(50, marks=[pytest.mark.campaign, pytest.mark.timeout(3600)])])
def test_a_killed_run_goes_on(tmp_path, count):
    """`kill -9` at random moments of a run, then `--resume`: the report of a run that nothing disturbed."""
    started = time.perf_counter()
    want = Interrupted(tmp_path / "alone", COMMAND).run()
    whole = time.perf_counter() - started
    killed, folders = 0, 0
    while killed < count:  # a run that came to its end before it was killed is followed by another
        folders += 1
        mine, found = Interrupted(tmp_path / str(folders), COMMAND), None
        while found is None:
            found = mine.run(random.uniform(0.0, whole) if killed + mine.killed < count else None)
        assert found == want
        killed += mine.killed


def test_a_run_that_cannot_be_followed_goes_on_where_it_is_asked_to(tmp_path, opened, monkeypatch):
    """`resume` reuses its units, once: a finished run is not resumed."""
    mine, judge = target(tmp_path, UNFOLLOWED), SingleProcess.judge
    asked = {"profile": "quick", "jobs": 1, "only": ("LN-F1", "LN-F3")}
    want = told(normspec.check(mine, **asked))

    def interrupted(self, unit, listener=None):
        if unit.dtype == "float64":
            raise KeyboardInterrupt
        return judge(self, unit, listener)

    with monkeypatch.context() as patch:
        patch.setattr(SingleProcess, "judge", interrupted)
        stopped = normspec.check(mine, **asked)
        assert stopped.partial
        assert "the same command with --resume goes on" in str(stopped)
        assert "--resume" not in str(normspec.check(mine, **asked, cache=False))
    opened.clear()
    resumed = normspec.check(mine, **asked, resume=True)
    assert told(resumed) == want
    judged = [one for one in opened if one.startswith("layer_norm ")]
    assert judged == ["layer_norm float64"]
    assert {one.dtype for one in resumed.results if one.kept} == {"float16", "bfloat16", "float32"} & {
        one.dtype for one in resumed.results
    }
    opened.clear()
    assert told(normspec.check(mine, **asked, resume=True)) == want
    assert len([one for one in opened if one.startswith("layer_norm ")]) > 1


def test_only_what_is_final_is_kept():
    """A partial report, one with a defect of ours, and one with a note on how it came about are judged again."""
    report = normspec.check("numpy", op="residual", dtypes=["float64"], profile="quick", only="RS-F1", cache=False)
    assert result_store._is_final(report)
    for change in ({"partial": True}, {"defects": ("x",)}, {"notes": ("x",)}, {"lost": ("numpy",)}):
        assert not result_store._is_final(attrs.evolve(report, **change))
    first, *others = report.results
    ordinary = attrs.evolve(first, reason="the variance of x with the channels last in memory")
    assert result_store._is_final(attrs.evolve(report, results=(ordinary, *others)))
    for words in ("raised RuntimeError: CUDA out of memory", "took longer than 60 s and was stopped"):
        for changed in (attrs.evolve(first, reason=words), attrs.evolve(first, declined={words: 1})):
            assert not result_store._is_final(attrs.evolve(report, results=(changed, *others)))
