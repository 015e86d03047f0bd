"""Every argument of check, compare and a campaign: a value that it cannot have is one clear error of ours."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import pytest

import normspec
from normspec.conformance.campaign.running import run
from normspec.conformance.requests.arguments import WrongType, WrongValue, interpreters_of
from normspec.conformance.requests.limits import WrongLimit
from normspec.conformance.requests.naming import named_targets
from normspec.conformance.requests.request import Request
from normspec.spec.errors import NormspecError

pytestmark = pytest.mark.exhaustive  # it does not depend on the Python version

#: For each argument values that it cannot have, by its name in both functions, or in one.
WRONG = {
    "target": [
        *(None, 3, [], [3], b"numpy", {"numpy": 1}, ["numpy", None], object(), ""),
        *("~nosuchuser/mine.py", "~nosuchuser/mine.py:layer_norm"),
    ],
    "op": [3, [], ["layer_norm", 3], "layernorm", {"layer_norm": 1}, ""],
    "framework": [3, "toch", [], "", ["numpy"], True],
    "dtypes": [3, "int8", [3], ["float32", None], []],
    "dtype": [3, None, "int8", ["float32"]],
    "device": [3, None, "", ["cpu"], "warp"],
    "conventions": [3, "momentum=old", ["momentum"], {"momentum": 3}, {3: "old"}, {"momentum": ["old"]}],
    "profile": [3, None, "fast", ["quick"]],
    "seed": ["a", -1, 1.5, True, [1], float("nan")],
    "forward_only": ["yes", 3, None],
    "all_bindings": ["yes", 3, None],
    "slow": ["yes", 3],
    "mode": [3, "train", ["training"]],
    "only": [3, [3], {"LN-F3": 1}, "LN-F33", b"LN-F3", []],
    "require": [3, [3], "determinism", []],
    "binding": [3, [3], "nothing.like.it", []],
    "per_target": [3, {"numpy": 3}],
    "python": [3, ["venv"], {"numpy": 3}, "/nonesuch/python", {3: "venv"}],
    "time_limit": ["a", -1, 0, True, float("nan"), [1]],
    "memory_limit": ["a", -1, 0, True, 1.5, 8, [1]],
    "progress": [3, "bar"],
    "jobs": ["a", 0, -1, 1.5, True],
    "cache": [3, "", ["folder"], 1.5, "~nosuchuser/kept"],
    "resume": ["yes", 3, None],
    "expected": [
        *(3, "nonesuch.toml", "~nosuchuser/x.toml", ["LN-F3"], [{"requirement": "LN-F3"}], {"requirement": "LN-F3"}),
    ],
    "replay": [3, "", ["report.json"], "nonesuch.json"],
    "reproduce": [3, "", ["scripts"]],
    "parameters": [3, "gamma=g", {"gain": "g"}, {"gamma": 3}, ["gamma"]],
    "layout": [3, "channels-somewhere", ["channels-first"], ""],
    "layers": ["yes", 3, None],
    "fixed": [3, "eps=1", {"epsilon": 1e-6}, {"eps": "small"}, ["eps"]],
    "cluster": [3, "", ["tcp://127.0.0.1"]],
}


def with_one_wrong(function, name, value):
    """A short call of check or compare with this argument."""
    if function is normspec.check:
        arguments = {"op": "layer_norm", "profile": "quick", "dtypes": "float32", "only": "LN-F1", "cache": False}
    else:
        arguments = {"op": "residual"}
    if name != "target":
        arguments[name] = value
    return function(value if name == "target" else "numpy", **arguments)


def cases(function):
    """The arguments of a function with their wrong values."""
    names = [name.replace("targets", "target") for name in inspect.signature(function).parameters]
    return [(name, value) for name in names for value in WRONG[name]]


@pytest.mark.parametrize(("name", "value"), cases(normspec.check))
def test_check_refuses_it(name, value):
    """One line, before anything is checked."""
    with pytest.raises(NormspecError) as caught:
        with_one_wrong(normspec.check, name, value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("name", "value"), cases(normspec.compare))
def test_compare_refuses_it(name, value):
    """Likewise, before anything is measured."""
    with pytest.raises(NormspecError) as caught:
        with_one_wrong(normspec.compare, name, value)
    assert "\n" not in str(caught.value)


def test_an_error_is_of_the_kind_that_python_has_for_it():
    """A type is a TypeError and a value a ValueError, each with what to give."""
    with pytest.raises(TypeError, match="seed is 'a': give a whole number from 0 on"):
        normspec.check("numpy", seed="a")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="seed is -1: give a whole number from 0 on"):
        normspec.check("numpy", seed=-1)
    with pytest.raises(ValueError, match="time_limit: -1 is not a time limit"):
        normspec.check("numpy", time_limit=-1)
    assert issubclass(WrongType, TypeError)
    assert issubclass(WrongValue, ValueError)
    assert issubclass(WrongLimit, ValueError)


def test_what_an_argument_can_have_is_taken():
    """A path, an iterable of names, a number of NumPy, a limit as a text."""
    report = normspec.check(
        iter(["numpy"]), op=("layer_norm",), dtypes=iter(["float32"]), only=["LN-F1"], profile="quick",
        seed=3, time_limit=float("inf"), memory_limit="2GiB", cache=False,
    )  # fmt: skip
    assert report.conforms
    assert report.seed == 3


def test_an_interpreter_for_keras_is_one_for_the_backend_that_it_would_take(monkeypatch):
    """A target is known by its full name; a function keeps the name that it is given."""
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    given = {"keras": "/venv", "mine.py:layer_norm": Path("/other")}
    assert interpreters_of(given) == {"keras[jax]": "/venv", "mine.py:layer_norm": "/other"}


@pytest.mark.parametrize("seeds", [3, [0, 1], range(0), range(0, 10, 2), range(-1, 3)])
def test_a_campaign_refuses_seeds_that_are_none(seeds, tmp_path):
    """They are a range from 0 on, one after the other."""
    with pytest.raises((WrongType, WrongValue), match="range"):
        run(("numpy",), REQUEST, seeds, tmp_path / "out")


def test_a_campaign_refuses_jobs_that_are_none(tmp_path):
    """As a check does."""
    with pytest.raises(WrongLimit, match="jobs"):
        run(("numpy",), REQUEST, range(1), tmp_path / "out", jobs=0)


REQUEST = Request((), ("residual",), None, ("float32",), "cpu", {}, "quick", 0)


def test_each_target_counts_once_and_need_not_be_hashable():
    """Names count by their text, a path too, callables by identity."""

    class Layer:
        __hash__ = None  # type: ignore[assignment]

        def __call__(self, x):
            return x

    layer = Layer()
    assert named_targets(["numpy", Path("a.py:f"), "a.py:f", layer, "numpy", layer]) == ("numpy", "a.py:f", layer)


def test_two_callables_of_one_name_are_two_targets():
    """Neither gets the other's verdict or declaration."""

    def made(inside):
        def layer_norm(x, gamma, beta, *, eps, axes):
            d = (x - x.mean(axes, keepdims=True, dtype=np.float64)).astype(np.float64)
            v = np.square(d).mean(axes, keepdims=True)
            y = d / (np.sqrt(v + eps) if inside else np.sqrt(v) + eps)
            y = y if gamma is None else y * gamma
            return (y if beta is None else y + beta).astype(x.dtype)

        return layer_norm

    report = normspec.check(
        [made(False), made(True)], op="layer_norm", framework="numpy", only=["LN-F3"], dtypes=["float32"]
    )
    assert {one.target: one.verdict.value for one in report.results} == {"layer_norm": "fail", "layer_norm 2": "pass"}


def test_a_name_may_have_braces(tmp_path):
    """A name is text as it stands: a folder's, or a command's with JSON in it."""
    file = tmp_path / "{x}" / "mine.py"
    file.parent.mkdir()
    file.write_text("def layer_norm(x, gamma, beta, *, eps, axes):\n    return x\n", encoding="utf-8")
    report = normspec.check(f"{file}:layer_norm", framework="numpy", only=["LN-F1"], profile="quick", jobs=1)
    assert {one.target for one in report.results} == {f"{file}:layer_norm"}
