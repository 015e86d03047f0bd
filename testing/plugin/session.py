"""The targets named for a run of pytest: their tests, and the work behind them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import pytest

from ...conformance.requests.words import names_of
from ...spec.errors import NormspecError
from .items import Requirement, register_markers
from .target_run import OperatorDtype, TargetRun

#: Separates target, operator and requirement in the id of a test.
ID_SEPARATOR = "::"


class Target(pytest.Collector):
    """A target; its tests are grouped by operator."""

    def __init__(self, *, target_run: TargetRun, ids: tuple[str, ...], **node: Any) -> None:
        super().__init__(**node)
        self.target_run, self.ids = target_run, ids

    def collect(self) -> list[Operator]:
        """One collector for each operator. Raises CollectError if the target cannot be opened."""
        try:
            requirements = self.target_run.requirements()
        except NormspecError as error:
            raise self.CollectError(f"normspec: {error}") from None
        return [
            Operator.from_parent(self, name=op, nodeid=f"{self.nodeid}{ID_SEPARATOR}{op}", requirements=requirements)
            for op in dict.fromkeys(op for op, _ in requirements)
        ]


class Operator(pytest.Collector):
    """An operator of a target."""

    def __init__(self, *, requirements: Mapping[OperatorDtype, tuple[str, ...]], **node: Any) -> None:
        super().__init__(**node)
        self.requirements = requirements

    def collect(self) -> list[Requirement]:
        """A test for each dtype and requirement. Tests of a dtype come together, since they share their work."""
        assert isinstance(self.parent, Target)
        target_run, ids = self.parent.target_run, self.parent.ids
        made = [
            Requirement.from_parent(
                self,
                name=f"{one}[{operator_dtype[1]}]",
                target_run=target_run,
                operator_dtype=operator_dtype,
                identifier=one,
            )
            for operator_dtype, identifiers in self.requirements.items()
            if operator_dtype[0] == self.name
            for one in identifiers
        ]
        return [one for one in made if not ids or any(_is_within(one.nodeid, asked) for asked in ids)]


def _is_within(nodeid: str, asked: str) -> bool:
    """Whether a test is the one that was asked for, or one of its dtypes or requirements: LN-L11 is none of LN-L1."""
    return nodeid == asked or nodeid.startswith((f"{asked}{ID_SEPARATOR}", f"{asked}["))


@attrs.define(eq=False)
class TargetsPlugin:
    """The plugin of a run that names targets."""

    names: tuple[str, ...]
    options: Mapping[str, Any]
    #: Whether this is a worker of pytest-xdist; the other workers run other tests.
    worker: bool
    #: The ids given on the command line, of tests or of groups of them; only these tests run.
    ids: tuple[str, ...] = ()
    _runs: list[TargetRun] = attrs.field(factory=list)

    @classmethod
    def of(cls, config: pytest.Config, names: Sequence[str]) -> TargetsPlugin:
        """Read the options of a run; move the ids of these targets' tests out of pytest's arguments."""
        register_markers(config)
        options = {
            "op": names_of(config.getoption("--normspec-op") or config.getini("normspec_ops")) or None,
            "framework": config.getoption("--normspec-framework"),
            "dtypes": names_of(config.getoption("--normspec-dtype") or config.getini("normspec_dtypes")) or None,
            "profile": config.getoption("--normspec-profile") or config.getini("normspec_profile"),
            "seed": config.getoption("--normspec-seed"),
            "cache": False if config.getoption("--normspec-no-cache") else None,
        }
        ids = tuple(one for one in config.args if any(one.startswith(f"{name}{ID_SEPARATOR}") for name in names))
        config.args[:] = [one for one in config.args if one not in ids]
        return cls(tuple(dict.fromkeys(names)), options, hasattr(config, "workerinput"), ids)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, session: pytest.Session, items: list[pytest.Item]) -> None:
        """Add the tests of all targets, before anything is selected."""
        for name in self.names:
            try:
                target_run = TargetRun.of(name, self.options, shared=self.worker)
            except NormspecError as error:
                raise pytest.UsageError(f"normspec: {error}") from None
            self._runs.append(target_run)
            items += session.genitems(
                Target.from_parent(session, name=name, nodeid=name, target_run=target_run, ids=self.ids)
            )

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        """Where xdist distributes tests one by one, keep those of an operator and a dtype together."""
        if config.getoption("dist") != "load":
            return None
        from .scheduling import ByOperatorAndDtype

        return ByOperatorAndDtype(config, log, self.names)

    def pytest_sessionfinish(self) -> None:
        """Close the targets."""
        for target_run in self._runs:
            target_run.close()
