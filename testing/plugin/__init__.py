"""
The pytest plugin: tests of the targets that a run names, and of objects decorated with `normspec.conforms`.

pytest loads this file in every run, so it imports nothing of normspec until one of these is used.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from typing import Any

import pytest

#: Options that do nothing unless a target is named; `normspec.conforms` takes its own options.
_ABOUT_TARGETS = tuple(f"--normspec-{name}" for name in ("op", "dtype", "framework", "profile", "seed"))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options and their counterparts in the configuration."""
    group = parser.getgroup("normspec", "normalisation layers")
    group.addoption(
        "--normspec",
        action="append",
        metavar="TARGET",
        help="a test for each requirement, operator and dtype of a target: torch, FILE.py:NAME, package.module:NAME",
    )
    group.addoption(
        "--normspec-op", action="append", metavar="OPERATOR", help="only these operators; repeatable, or with commas"
    )
    group.addoption(
        "--normspec-dtype", action="append", metavar="DTYPE", help="only these dtypes; repeatable, or with commas"
    )
    group.addoption("--normspec-framework", metavar="NAME", help="whose tensors a function takes")
    group.addoption("--normspec-profile", metavar="NAME", help="quick (the default), standard or thorough")
    group.addoption("--normspec-no-cache", action="store_true", help="judge everything now, and keep nothing")
    group.addoption("--normspec-seed", type=int, metavar="SEED", help="the seed of the cases")
    parser.addini("normspec_targets", "targets to make tests for, as --normspec names them", type="linelist")
    parser.addini("normspec_ops", "the only operators that are tested", type="args")
    parser.addini("normspec_dtypes", "the only dtypes that are tested", type="args")
    parser.addini("normspec_profile", "quick, standard or thorough", default="quick")


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers, and the collecting plugin if targets are named."""
    config.addinivalue_line("markers", "normspec: a requirement of a normalisation layer")
    config.addinivalue_line("markers", "normspec_must: one that a target has to keep to conform")
    config.addinivalue_line("markers", "normspec_should: one that is advice; normspec_layer_norm and so on: operators")
    targets = config.getoption("--normspec") or config.getini("normspec_targets")
    if targets:
        from .session import TargetsPlugin

        config.pluginmanager.register(TargetsPlugin.of(config, targets), "normspec of this run")
    elif about := [option for option in _ABOUT_TARGETS if config.getoption(option) is not None]:
        raise pytest.UsageError(
            f"{about[0]} is about the targets of --normspec, and there is none: add --normspec TARGET"
        )


def pytest_pycollect_makeitem(collector: Any, name: str, obj: object) -> Any:
    """Make tests of an object decorated with `normspec.conforms`."""
    conforming = sys.modules.get("normspec.testing.conforming")
    options = None if conforming is None else conforming.options_of(obj)
    if options is None:
        return None
    from .decorated import tests_of

    return tests_of(collector, name, obj, options)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Tell the work which tests are left after selection; it judges nothing else."""
    if items := sys.modules.get(f"{__name__}.items"):
        items.expect(session.items)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say how many results come from an earlier run, if any do."""
    if items := sys.modules.get(f"{__name__}.items"):
        reports = [
            one for some in terminalreporter.stats.values() for one in some if getattr(one, "when", "") == "call"
        ]
        if since := [value for one in reports for name, value in one.user_properties if name == items.KEPT]:
            terminalreporter.write_line(
                f"normspec: {len(since):,} results kept from {min(since)}; --normspec-no-cache judges them again"
            )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show findings without a traceback of ours; a skipped test is located at its target."""
    report = yield
    items = sys.modules.get(f"{__name__}.items")
    if items is not None and call.excinfo is not None and isinstance(call.excinfo.value, items.Violation):
        report.longrepr = str(call.excinfo.value)
    skipped_at = getattr(item, "skipped_at", None)
    if report.skipped and isinstance(report.longrepr, tuple) and skipped_at is not None:
        report.longrepr = (*skipped_at(), report.longrepr[2])
    return report
