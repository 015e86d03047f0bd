"""Requests: what a user wants checked, in plain values. A request opens its targets and makes the plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import attrs

from ...adapters.binding import Binding
from ...adapters.declarations import NOTHING_DECLARED, Declarations
from ...adapters.dtypes import check_dtype
from ...adapters.frameworks import KNOWN
from ...adapters.importable import importable_name
from ...adapters.remote.host import Host, Limits
from ...adapters.remote.launching import ISOLATES, opened_target, start_host
from ...adapters.remote.process import NO_STEPS
from ...adapters.target import Target
from ...adapters.targets import TARGETS, resolve
from ...spec.conventions import ensure_about
from ...spec.errors import NormspecError, UnknownDtype
from ...spec.operators import OPERATORS
from ..kept.cache_folder import truths_store
from .about import ensure_declared_about, ensure_mode_about, ensure_table_about, operators_in
from .choosing import check_bindings, matches, operators_of, selected
from .library_names import is_in_library
from .per_target import ensure_conventions_apply, setting_of, with_conventions
from .plan import Plan
from .profiles import profile_of


class NothingAsked(NormspecError):
    """The request asks for something that no target has."""


#: A target as the user gives it: its name, or a callable.
GivenTarget = str | Callable[..., Any]


@attrs.frozen
class Request:
    """What a user wants checked, in plain values."""

    targets: tuple[GivenTarget, ...]
    op: tuple[str, ...] | None
    framework: str | None
    dtypes: tuple[str, ...] | None
    device: str
    conventions: Mapping[str, str]
    profile: str
    seed: int
    forward_only: bool = False
    slow: bool | None = None
    #: "training" or "inference" for batch_norm; "" for both.
    mode: str = ""
    #: Python interpreters of workers by target name; "" stands for all other targets.
    pythons: Mapping[str, str] = attrs.field(factory=dict)
    limits: Limits = attrs.field(factory=Limits)
    #: Words for the only requirements to judge (choosing.py); empty means all.
    only: tuple[str, ...] = ()
    #: Words for the requirements that are a MUST in this run, whatever their pages say.
    require: tuple[str, ...] = ()
    #: Name patterns for the only bindings of frameworks to judge; empty means all.
    binding: tuple[str, ...] = ()
    #: Settings of single targets, by target name (per_target.py). The arguments of the run outrank them.
    per_target: Mapping[str, Mapping[str, Any]] = attrs.field(factory=dict)
    #: Whether these targets are only a part of a run's. Then a setting may be about none of them: it may be about the
    #: others.
    part: bool = False
    #: The folder where truths are kept; "none" keeps nothing, "" is the usual place.
    cache: str = ""
    #: What the user declares about layers, and about functions with another than the canonical signature.
    declared: Declarations = NOTHING_DECLARED
    #: The place of the file of a target FILE.py:NAME, by target name, if it is not at FILE.py.
    files: Mapping[str, str] = attrs.field(factory=dict)
    #: See Plan.explain and Plan.shrink_advice.
    explain: bool = True
    shrink_advice: bool = True

    def open(self, meanwhile: Iterator[object] = NO_STEPS, *, derivatives: bool = False) -> list[Target]:
        """
        Open the targets, each in its own worker. Callables that cannot be imported by name stay in this process.

        All workers start at once, because importing a framework takes seconds. The steps of ``meanwhile`` run in that
        time. With ``derivatives``, workers also import what derivatives need. Each target keeps only the bindings that
        are asked for. Of two callables of the same name, the second is called `NAME 2`.
        Raises the NormspecError of the first target that cannot be opened, or of what is asked and is about no target.
        """
        hosts: list[Host] = []
        try:
            started = [self._started(target, hosts, derivatives=derivatives) for target in self.names]
            opened = [
                opened_target(one, meanwhile) if isinstance(one, Host) else self._resolved(one) for one in started
            ]
            for target in opened:
                self._check(target)
                ensure_table_about(target, self.per_target.get(target.name, {}))
            opened = _with_own_names(self._with_bindings_asked_for(opened))
            for target in opened:
                ensure_conventions_apply(target, self.per_target)
        except BaseException:
            for host in hosts:
                host.close()
            raise
        return opened

    def plan(self, targets: Sequence[Target]) -> Plan:
        """The plan of this request for its opened targets."""
        return Plan(
            targets=tuple(with_conventions(target.on(self.device), self.per_target) for target in targets),
            dtypes=self.dtypes,
            device=self.device,
            conventions=dict(self.conventions),
            profile=profile_of(self.profile),
            seed=self.seed,
            forward_only=self.forward_only,
            slow=self.slow,
            requirements=frozenset(selected(self.only, "only")) if self.only else None,
            required=self.required,
            explain=self.explain,
            shrink_advice=self.shrink_advice,
            mode=self.mode,
            per_target=self.per_target,
            store=truths_store(self.cache),
        )

    @property
    def required(self) -> frozenset[str]:
        """The requirements that are a MUST in this run, whatever their pages say."""
        return frozenset(selected(self.require, "require"))

    @property
    def operators(self) -> tuple[str, ...] | None:
        """The operators of a framework that the request is about; None means all."""
        if not self.only:
            return self.op
        asked = operators_of(selected(self.only, "only"))
        return asked if self.op is None else tuple(name for name in self.op if name in asked)

    def python_of(self, name: str) -> str:
        """The interpreter of a target's worker; empty for the current one."""
        return self.pythons.get(name, self.pythons.get("", ""))

    def op_of(self, target: GivenTarget) -> tuple[str, ...] | None:
        """The operator that a function is, or the operators of a framework whose bindings are imported."""
        if target in TARGETS:
            return self.operators or self.op
        own = setting_of(self.per_target, target, "op")
        return self.op if own is None else (own,)

    def likely_operators(self, target: GivenTarget) -> tuple[str, ...]:
        """The operators of a target that is not open yet, as far as its name shows them; empty if it does not."""
        asked = self.op_of(target)
        if asked is not None or target in TARGETS:
            return tuple(OPERATORS) if asked is None else asked
        function = target.rpartition(":")[2].rpartition(".")[2] if isinstance(target, str) else ""
        return (function,) if function in OPERATORS else ()

    def framework_of(self, target: GivenTarget) -> str | None:
        """The framework whose tensors a function takes, if the user said it."""
        return self.framework or (None if target in TARGETS else setting_of(self.per_target, target, "framework"))

    def declared_of(self, target: GivenTarget) -> Declarations:
        """What the user declares about a layer, or a function with another than the canonical signature."""
        run = self.declared
        own = {key: setting_of(self.per_target, target, key) for key in ("parameters", "layout", "fixed")}
        if not any(own.values()):
            return run
        parameters = {**(own["parameters"] or {}), **run.parameters}
        fixed = {**(own["fixed"] or {}), **run.fixed}
        return replace(run, parameters=parameters, layout=run.layout or own["layout"] or "", fixed=fixed)

    @property
    def names(self) -> tuple[GivenTarget, ...]:
        """The targets; a callable is given by name if a worker would import the same one."""
        return tuple(one if isinstance(one, str) else importable_name(one) or one for one in self.targets)

    def _started(self, target: GivenTarget, hosts: list[Host], *, derivatives: bool) -> GivenTarget | Host:
        """The host of a target given by name, also added to ``hosts``; a callable is returned unchanged."""
        if not isinstance(target, str) or not ISOLATES or is_in_library(target):
            return target
        host = start_host(
            target,
            op=self.op_of(target),
            framework=self.framework_of(target),
            python=self.python_of(target),
            limits=self.limits,
            file=self.files.get(target, ""),
            declared=self.declared_of(target),
            derivatives=derivatives,
        )
        hosts.append(host)
        return host

    def _resolved(self, target: GivenTarget) -> Target:
        """The target that lives in this process."""
        if isinstance(target, str) and is_in_library(target):
            from .library_targets import library_target  # it imports the whole library

            return library_target(target, self.op)
        op, framework = self.op_of(target), self.framework_of(target)
        return resolve(target, op=op, framework=framework, declared=self.declared_of(target))

    def _with_bindings_asked_for(self, targets: Sequence[Target]) -> list[Target]:
        """The targets, each with only the bindings asked for. Raises UnknownBinding or NothingAsked."""
        known = [target for target in targets if target.name in KNOWN]
        if not self.part:
            names = dict.fromkeys(binding.name for target in known for binding in target.bindings)
            check_bindings(self.binding, names)
        operators = self.operators

        def asked(target: Target, binding: Binding) -> bool:
            named = target.name not in KNOWN or matches(binding.name, self.binding)
            return named and (operators is None or binding.operator in operators)

        found = list(targets)
        if self.only or self.binding:
            found = [replace(one, bindings=tuple(b for b in one.bindings if asked(one, b))) for one in targets]
        if not self.part:
            self._ensure_about(found, targets)
        return found

    def _ensure_about(self, found: Sequence[Target], targets: Sequence[Target]) -> None:
        """Raise the NormspecError of what is asked or declared and is about no target."""
        there = {binding.operator for target in found for binding in target.bindings}
        for what, words in (("only", self.only), ("require", self.require)):
            for word in words:
                about = operators_of(selected((word,), what))
                if there.isdisjoint(about):
                    raise NothingAsked(_nothing(what, word, about, targets))
        ensure_about(self.conventions, operators_in(found), "what is checked is")
        ensure_declared_about(self.declared, found)
        ensure_mode_about(self.mode, found)

    def _check(self, target: Target) -> None:
        wanted = self.dtypes
        alone = len(self.targets) == 1 and not self.part
        if wanted is not None and alone and not set(wanted) & set(target.dtypes):
            raise UnknownDtype(f"{target.name} has no {', '.join(wanted)}; choose from {', '.join(target.dtypes)}")
        target.check_device(self.device)


def _with_own_names(targets: Iterable[Target]) -> list[Target]:
    """The targets, each with a name of its own: what is known of a target is kept by its name."""
    found: dict[str, Target] = {}
    for target in targets:
        names = (target.name, *(f"{target.name} {number}" for number in range(2, len(found) + 3)))
        name = next(name for name in names if name not in found)
        found[name] = target if name == target.name else replace(target, name=name)
    return list(found.values())


def _nothing(what: str, word: str, about: Sequence[str], targets: Sequence[Target]) -> str:
    """The message that a word is about operators that the targets do not have."""
    there = ", ".join(dict.fromkeys(binding.operator for target in targets for binding in target.bindings))
    whose = " and ".join(target.name for target in targets)
    return f"{what}: {word} is about {', '.join(about)}, and {whose} has {there or 'none of them'}"


def checked_dtypes(dtypes: Iterable[str] | None) -> tuple[str, ...] | None:
    """Return the dtypes, each once; None if none are given. Raises UnknownDtype."""
    if dtypes is None:
        return None
    return tuple(dict.fromkeys(check_dtype(name) for name in dtypes)) or None
