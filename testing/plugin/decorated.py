"""Tests of what `normspec.conforms` decorates: a function, a class, or a fixture, whose value only the run knows."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest

from ...adapters.dtypes import DTYPES
from ...conformance.in_python import in_python
from ...conformance.requests.choosing import selected
from ...spec.errors import NormspecError
from .items import Requirement, Source, Violation, markers, register_markers, verdict_on
from .target_run import OperatorDtype, TargetRun, request_for, requirements_of

#: The parameters of a test of a fixture that are ours.
_OWN = ("normspec_operator_dtype", "normspec_requirement")

#: The work of decorated objects of a session.
TARGET_RUNS = pytest.StashKey[dict[Any, TargetRun]]()


def tests_of(collector: Any, name: str, obj: object, options: Mapping[str, Any]) -> Any:
    """What pytest collects in the place of the object."""
    if TARGET_RUNS not in collector.config.stash:
        register_markers(collector.config)
    if collector.config.getoption("--normspec-no-cache"):
        options = {**options, "cache": False}
    fixture = _fixture_name(obj, name)
    if fixture is not None:
        return _of_fixture(collector, name, fixture, obj, options)
    return [Decorated.from_parent(collector, name=name, obj=obj, options=options)]


def _runs(config: pytest.Config) -> dict[Any, TargetRun]:
    if TARGET_RUNS not in config.stash:
        config.stash[TARGET_RUNS] = target_runs = {}

        def close() -> None:
            for target_run in target_runs.values():
                target_run.close()

        config.add_cleanup(close)
    return config.stash[TARGET_RUNS]


class Decorated(pytest.Collector):
    """A function or a class, and the tests of its operator."""

    def __init__(self, *, obj: Any, options: Mapping[str, Any], **node: Any) -> None:
        super().__init__(**node)
        self.obj, self.options = obj, options

    def collect(self) -> list[Requirement]:
        """A test of each requirement and dtype."""
        shared = hasattr(self.config, "workerinput")
        try:
            made = TargetRun.of(self.obj, self.options, shared=shared)
            target_run = _runs(self.config).setdefault(self.nodeid, made)
            requirements = target_run.requirements()
        except NormspecError as error:
            raise self.CollectError(f"normspec: {in_python(str(error))}") from None
        return [
            Requirement.from_parent(
                self, name=f"{op}::{one}[{dtype}]", target_run=target_run, operator_dtype=(op, dtype), identifier=one
            )
            for (op, dtype), identifiers in requirements.items()
            for one in identifiers
        ]


def _fixture_name(obj: object, name: str) -> str | None:
    """The name of a fixture; None for what is none. pytest has no public way to ask."""
    if type(obj).__name__ != "FixtureFunctionDefinition" and not hasattr(obj, "_pytestfixturefunction"):
        return None
    made = getattr(obj, "_fixture_function_marker", None) or getattr(obj, "_pytestfixturefunction", None)
    return getattr(made, "name", None) or name


def _of_fixture(collector: Any, name: str, fixture: str, obj: Any, options: Mapping[str, Any]) -> Any:
    """Test functions that are handed the fixture: one, with a parameter for each requirement and dtype."""
    if not inspect.ismodule(collector.obj):
        raise collector.CollectError(f"normspec: the fixture {fixture} stands in a class: put it into the module")
    try:
        asked = request_for(_unknown, options)
    except NormspecError as error:
        raise collector.CollectError(f"normspec: {in_python(str(error))}") from None
    only = frozenset(selected(asked.only, "only")) if asked.only else None
    shared = hasattr(collector.config, "workerinput")
    target_runs, key = _runs(collector.config), collector.nodeid
    parameters = [
        pytest.param((op, dtype), one, id=f"{op}-{one}-{dtype}", marks=tuple(markers(one, (op, dtype))))
        for op in asked.op or ()
        for dtype in DTYPES
        if dtype in (asked.dtypes or DTYPES)
        for one in requirements_of(op, dtype)
        if only is None or one in only
    ]

    @pytest.mark.parametrize(("normspec_operator_dtype", "normspec_requirement"), parameters)
    def test(
        request: pytest.FixtureRequest, normspec_operator_dtype: OperatorDtype, normspec_requirement: str, **made: Any
    ) -> None:
        __tracebackhide__ = True
        # Values of a fixture's parameters are told apart by their places: different ones may print alike.
        places = {name: place for name, place in request.node.callspec.indices.items() if name not in _OWN}
        run_key = (key, fixture, *sorted(places.items()))
        if run_key not in target_runs:
            try:
                target_runs[run_key] = target_run = TargetRun.of(made[fixture], options, shared=shared)
            except NormspecError as error:
                raise Violation(f"the fixture {fixture}: {in_python(str(error))}") from None
            for item in request.session.items:
                if item.parent is request.node.parent and getattr(item, "originalname", "") == test.__name__:
                    target_run.expect(*(item.callspec.params[name] for name in _OWN))  # type: ignore[attr-defined]
        request.node.skipped_at = partial(_skipped_at, target_runs[run_key], request.node)
        try:
            verdict_on(target_runs[run_key].report(normspec_operator_dtype), normspec_requirement, request.node)
        except NormspecError as error:
            raise Violation(str(error)) from None

    # The fixture is an argument by its own name, so that it may have parameters and scopes as for any other test.
    names = ("request", fixture, *_OWN)
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    test.__signature__ = inspect.Signature([inspect.Parameter(one, kind) for one in names])  # type: ignore[attr-defined]
    test.__test__ = True  # type: ignore[attr-defined]
    test.__name__ = f"test_{name}_conforms"
    test.place_as = inspect.unwrap(obj)  # type: ignore[attr-defined]  # where pytest says that the test stands
    setattr(collector.obj, test.__name__, test)  # where pytest looks a test up by its name
    return collector.ihook.pytest_pycollect_makeitem(collector=collector, name=test.__name__, obj=test)


def _unknown() -> None:
    """Stands for what a fixture returns, which only the run knows."""


def _skipped_at(target_run: TargetRun, test: pytest.Item) -> tuple[str, int]:
    """Where a test is said to be skipped: at the function of one's own, or at the fixture."""
    where, (_, line, _) = Source.of(target_run), test.location
    return (str(where.file), (where.line or 0) + 1) if where.file else (str(test.path), (line or 0) + 1)
