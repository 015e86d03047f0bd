"""A worker that knows the protocol's page and nothing of normspec is judged like any other."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import normspec
from normspec.adapters.remote import replies
from normspec.adapters.remote.launching import opened_target, start_host
from normspec.adapters.worker import failures
from normspec.adapters.worker.server import Server
from normspec.spec.errors import DeviceUnavailable, Unsupported

WORKER = Path(__file__).with_name("other_worker.py")
TARGET = f"exec:{sys.executable} -I -S '{WORKER}'"


def test_it_imports_nothing_of_ours():
    """The worker needs only the standard library."""
    tree = ast.parse(WORKER.read_text(encoding="utf-8"))
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert names == {"json", "math", "struct", "sys"}
    assert not any(isinstance(node, ast.ImportFrom) for node in ast.walk(tree))


def test_it_is_judged():
    """Every forward requirement is judged and passed, and every gradient is unsupported."""
    report = normspec.check(TARGET, profile="quick")
    assert report.conforms and report.exit_status == 0
    verdicts = {result.requirement: result.verdict.value for result in report.results}
    assert all(verdicts[f"LN-F{number}"] == "pass" for number in range(1, 9))
    assert all(verdicts[f"LN-G{number}"] == "unsupported" for number in range(1, 12))
    assert {*verdicts.values()} == {"pass", "unsupported", "not-exercised"}
    assert {result.target for result in report.results} == {TARGET}
    assert report.subjects[0]["framework"] == "plain"


@pytest.fixture
def other():
    """Its target on the judge's side."""
    target = opened_target(start_host(TARGET))
    yield target
    target.close()


def test_it_is_called(other, layer_norm_inputs):
    """Its results are arrays, what it lacks is Unsupported, and optional fields have defaults."""
    assert (other.layouts, other.devices(), other.dtypes) == (("contiguous",), ("cpu",), ("float64",))
    assert other.bindings[0].accepts((3, 4), {}) is None
    assert other.traits("cpu") == ()
    assert other.upstream("layer_norm") == ()
    with pytest.raises(DeviceUnavailable, match="the CPU alone"):
        other.check_device("cuda")
    session = other.session(other.bindings[0])
    evaluation = session.start(layer_norm_inputs, {"eps": 0.1, "axes": (-1,)})
    x = layer_norm_inputs["x"]
    exact = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 0.1)
    exact = exact * layer_norm_inputs["gamma"] + layer_norm_inputs["beta"]
    np.testing.assert_allclose(evaluation.outputs()["y"], exact, rtol=1e-14)
    np.testing.assert_array_equal(evaluation.inputs()["x"], x)
    with pytest.raises(Unsupported, match="the forward pass alone"):
        evaluation.pull(x)
    with pytest.raises(Unsupported):
        session.jvp(layer_norm_inputs, {"eps": 0.1, "axes": (-1,)}, {"x": x})


def _named(table: str) -> set[str]:
    """The names in the first column of a table of the page."""
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    return {name for row in rows for name in re.findall(r"`(\w+)`", row)}


def test_the_page_has_every_request_and_every_failure(checkout):
    """The worker's replies, the judge's requests, and the page agree."""
    page = (checkout / "adapters" / "worker" / "PROTOCOL.md").read_text(encoding="utf-8")
    requests = _named(page.partition("## Requests")[2].partition("## Failing")[0])
    assert requests - {"do"} == set(replies._FORMS)
    server = Server()
    for do in set(replies._FORMS):
        with pytest.raises((KeyError, AssertionError)):
            server.answer({"do": do})
    with pytest.raises(Unsupported, match="does not know"):
        server.answer({"do": "dance"})
    kinds = _named(page.partition("## Failing")[2].partition("## What is kept")[0])
    told = set(re.findall(r'"kind": "(\w+)"', Path(failures.__file__).read_text(encoding="utf-8")))
    assert told <= kinds
    assert all(f"`{name}`" in page for name in replies.OPTIONAL if name != "recorded")
