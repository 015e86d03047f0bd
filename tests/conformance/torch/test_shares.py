"""The operators of a framework, divided over two processes: the same report as from one."""

from __future__ import annotations

import dataclasses

import pytest

import normspec
from normspec.adapters.targets import resolve
from normspec.conformance import shares
from normspec.conformance.shares import Share, divided

REQUEST = {"op": ["residual", "highway"], "dtypes": ["float32"], "profile": "quick", "seed": 3}


def _told(report: normspec.Report) -> list[tuple[object, ...]]:
    """What a report says, apart from the time it took."""
    return [(r.binding, r.op, r.requirement, r.dtype, r.verdict, r.ratio, r.cases, r.reason) for r in report.results]


@pytest.fixture(scope="module")
def alone() -> normspec.Report:
    """The report of one process."""
    return normspec.check("torch", **REQUEST, shared=False)


def test_two_processes_report_what_one_does(alone):
    """Every result and every subject is the same, in the same order."""
    report = normspec.check("torch", **REQUEST)
    assert _told(report) == _told(alone)
    assert report.subjects == alone.subjects
    assert report.conforms


def test_nothing_is_lost_where_the_other_process_dies(monkeypatch, alone):
    """A share whose process ends without a report is done by this one."""
    monkeypatch.setattr(shares.sys, "executable", "/bin/false")
    assert _told(normspec.check("torch", **REQUEST)) == _told(alone)


def test_nothing_is_lost_where_no_process_can_be_started(monkeypatch, alone):
    """Neither is it where none can be started."""
    monkeypatch.setattr(shares.sys, "executable", "/nonexistent/python")
    assert Share.start({}) is None
    assert _told(normspec.check("torch", **REQUEST)) == _told(alone)


def test_the_shares_are_about_equal_and_hold_every_operator(monkeypatch):
    """On two cores the bindings are divided in halves; on one, and for one operator, there is nothing to divide."""
    monkeypatch.setattr(shares.os, "cpu_count", lambda: 2)
    target = resolve("torch")
    first, second = divided(target)
    assert {*first, *second} == {binding.operator for binding in target.bindings}
    assert not {*first} & {*second}
    load = [sum(binding.operator in share for binding in target.bindings) for share in (first, second)]
    assert abs(load[0] - load[1]) <= 3
    one = dataclasses.replace(target, bindings=tuple(b for b in target.bindings if b.operator == "mhc"))
    assert divided(one) == (("mhc",), ())
    monkeypatch.setattr(shares.os, "cpu_count", lambda: 1)
    assert divided(target)[1] == ()


def test_a_users_function_is_never_shared():
    """It is loaded once, in the caller's process."""
    assert divided(resolve("numpy"))[1] == ()
