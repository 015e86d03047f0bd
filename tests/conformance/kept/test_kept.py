"""Kept truths change no report: cold, warm, damaged or out of date."""

from __future__ import annotations

import ast
import json
import os
from typing import Any

import numpy as np
import pytest

import normspec
from normspec.conformance.cases.case import build
from normspec.conformance.cases.deck import deck
from normspec.conformance.judging.truth import Truth, arithmetic_of
from normspec.conformance.kept import content
from normspec.conformance.kept.cache_folder import UnusableCache, checked_cache, truths_store
from normspec.conformance.kept.content import digest, token
from normspec.conformance.kept.store import FILE, Store
from normspec.conformance.running.preparation import Preparation
from normspec.reference.accuracy import AccuracyClass, Arithmetic

from .damage import damage

#: One with running statistics, and one composed of parts.
OPERATORS = ("batch_norm", "residual")


def told(cache: Any) -> dict[str, Any]:
    """A report on NumPy, without the time it took."""
    report = normspec.check("numpy", op=OPERATORS, dtypes=("float32",), profile="quick", cache=cache)
    found = json.loads(report.to_json())
    found.pop("seconds")
    return found


@pytest.fixture(scope="module")
def alone() -> dict[str, Any]:
    """The report where nothing is kept."""
    return told(False)


def test_no_report_depends_on_what_is_kept(alone, tmp_path, monkeypatch):
    """The report is the same cold, warm, with 200 damaged entries, and for another version of the code."""
    # How many truths are made while the worker imports depends on time, and entries are counted here.
    monkeypatch.setattr(Preparation, "steps", lambda self: iter(()))
    assert told(tmp_path) == alone
    store = truths_store(str(tmp_path))
    assert store is not None and store.misses > 1000 > 10 * store.hits
    kept, store.misses = store.misses, 0
    assert told(tmp_path) == alone
    assert store.hits >= kept - 4 and store.misses <= 4  # truths of a few megabytes each are not kept

    damage(tmp_path, 200)
    assert told(tmp_path) == alone
    # Several runs of one case share an entry, which is computed once; truths that are not kept are missed in both runs.
    assert 150 <= store.misses <= 208

    monkeypatch.setattr(content, "_version", lambda: b"another")
    store.hits = 0
    assert told(tmp_path) == alone
    assert store.hits < 100


def test_a_key_is_of_content(monkeypatch):
    """Equal values have one key in every run; another value, dtype, shape, name or version has another."""
    x = np.arange(6, dtype=np.float32)
    others = [x + 1, x.astype(np.float64), x.reshape(2, 3), x[:5], -x * 0, None, "x", 1]
    keys = [digest(token(one)) for one in (x, *others)]
    assert len(set(keys)) == len(keys)
    assert digest(token(x[::-1][::-1])) == keys[0]
    assert digest(token({"x": x})) != digest(token({"g": x}))
    accuracy = AccuracyClass(flushed=frozenset({"float16", "float32"}))
    assert digest(Arithmetic.of(np.float32)) != digest(Arithmetic.of(np.float32, accuracy=accuracy))
    monkeypatch.setattr(content, "_version", lambda: b"another")
    assert digest(token(x)) not in keys


def test_a_key_knows_all_the_code_that_a_truth_runs(checkout):
    """Every module of ours that the truths import contributes to the version in a key."""
    names: set[str] = set()
    for name in ("truth.py", "composed_truth.py"):
        for node in ast.walk(ast.parse((checkout / "conformance" / "judging" / name).read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.level:
                room = {1: "conformance/judging/", 2: "conformance/"}.get(node.level, "")
                names.add(room + str(node.module).replace(".", "/"))
    covered = [place.removesuffix(".py") for place in content.TRUTH_SOURCES]
    assert names and all(any(f"{name}/".startswith(f"{place}/") for place in covered) for name in names), names


def test_a_key_is_the_same_in_another_process():
    """Sets of names, whose order differs between processes, do not affect a key."""
    import subprocess
    import sys

    code = (
        "import numpy as np; from normspec.conformance.kept.content import digest\n"
        "from normspec.reference.accuracy import Arithmetic; print(digest(Arithmetic.of(np.float16)).hex())"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True
        ).stdout
        for seed in "123"
    }
    assert found == {digest(Arithmetic.of(np.float16)).hex() + "\n"}


def test_a_damaged_truth_is_computed(tmp_path):
    """Bytes that have the right checksum and are no truth are not taken for one."""
    case = build(deck("layer_norm", "quick", 0)[0], "float32")
    store, arithmetic = Store(tmp_path), arithmetic_of(case, AccuracyClass())
    want = Truth(case, store=store).bound("y", arithmetic)
    for key in list(store._waiting):
        store.put(key, b"nonsense")
    assert np.array_equal(Truth(case, store=store).bound("y", arithmetic), want)


def test_nothing_is_kept_where_nothing_shall_be(tmp_path, monkeypatch):
    """`cache=False` and NORMSPEC_CACHE=none leave no file; a folder in NORMSPEC_CACHE gets one."""
    monkeypatch.setenv("NORMSPEC_CACHE", "none")
    assert truths_store("") is None and truths_store(checked_cache(False)) is None
    monkeypatch.setenv("NORMSPEC_CACHE", str(tmp_path / "named"))
    assert truths_store(checked_cache(False)) is None and not (tmp_path / "named").exists()
    assert truths_store(checked_cache(None)) is not None and (tmp_path / "named" / FILE).exists()


def test_the_usual_place_is_the_users_cache(tmp_path, monkeypatch):
    """Without a word it is normspec's folder in the user's cache; where that cannot be, nothing is kept."""
    monkeypatch.delenv("NORMSPEC_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert truths_store("") is not None and (tmp_path / "normspec" / FILE).exists()
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert truths_store("") is None


@pytest.mark.parametrize("how", ["argument", "variable"])
def test_a_folder_that_cannot_be_used_is_told(tmp_path, monkeypatch, how):
    """One clear error, before anything is checked."""
    (tmp_path / "file").write_text("")
    named = str(tmp_path / "file" / "folder")
    if how == "variable":
        monkeypatch.setenv("NORMSPEC_CACHE", named)
    with pytest.raises(UnusableCache, match=r"cannot be used.*\(cache=False\)"):
        normspec.check("numpy", cache=named if how == "argument" else None)
