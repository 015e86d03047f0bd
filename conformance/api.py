"""The front door of the suite: ``check``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import attrs

from ..adapters.remote.host import Limits
from ..adapters.targets import check_operators
from .engine.progress import Listener
from .expected.applying import apply_expected
from .kept.cache_folder import checked_cache
from .kept_results.keeping import report_on
from .requests.arguments import (
    conventions_of,
    declared_of,
    flag_of,
    framework_of,
    interpreters_of,
    limits_of,
    listener_of,
    path_of,
    seed_of,
    targets_of,
    text_of,
    texts_of,
)
from .requests.choosing import binding_names_of, checked_words
from .requests.configuration import expected_failures
from .requests.limits import jobs_of
from .requests.mode import checked_mode
from .requests.naming import named_targets
from .requests.per_target import checked_per_target
from .requests.profiles import profile_of
from .requests.request import Request, checked_dtypes
from .requests.words import names_of
from .results.outcome import NOT_EXPLAINED
from .results.report import Report

#: The seed of a run that names none, so that its cases are always the same.
DEFAULT_SEED = 0

#: The default limits of time and memory.
DEFAULT_LIMITS = Limits()


def check(
    target: str | os.PathLike[str] | Callable[..., Any] | Sequence[str],
    *,
    op: str | Sequence[str] | None = None,
    framework: str | None = None,
    dtypes: Iterable[str] | None = None,
    device: str = "cpu",
    conventions: Mapping[str, str] | None = None,
    profile: str = "standard",
    seed: int | None = None,
    forward_only: bool = False,
    slow: bool | None = None,
    mode: str | None = None,
    only: str | Iterable[str] | None = None,
    binding: str | Iterable[str] | None = None,
    require: str | Iterable[str] | None = None,
    per_target: Mapping[str, Mapping[str, Any]] | None = None,
    python: str | Mapping[str, str] | None = None,
    time_limit: float | None = DEFAULT_LIMITS.seconds,
    memory_limit: int | None = DEFAULT_LIMITS.memory,
    progress: Listener | None = None,
    jobs: int | None = None,
    cache: str | os.PathLike[str] | bool | None = None,
    resume: bool = False,
    cluster: str | None = None,
    replay: str | os.PathLike[str] | None = None,
    reproduce: str | os.PathLike[str] | None = None,
    parameters: Mapping[str, str] | None = None,
    layout: str | None = None,
    fixed: Mapping[str, object] | None = None,
    layers: bool = False,
    expected: str | os.PathLike[str] | Iterable[Mapping[str, Any]] = (),
) -> Report:
    """Check a target, or several, against the specification and return the report.

    ``target``: a name that `normspec list` shows, "FILE.py:NAME", "FILE.py" for every function in it that is named
    after an operator, "package.module:NAME", a callable with the canonical signature of its operator, a layer or a
    class of layers, or several names. ``op``: the operator that a function implements, or the operators of a framework
    to check. ``framework``: the framework whose tensors a function takes, if its imports do not show it. ``dtypes``:
    some of "float16", "bfloat16", "float32", "float64"; by default all that the target has. Several names may also be
    one text with commas: "float16,float32".
    ``device``: the device to run on, under the framework's name for it.
    ``conventions``: the conventions that the target declares, such as ``{"momentum": "old"}``. ``profile``: "quick",
    "standard" or "thorough". ``seed``: the same seed gives the same cases and the same verdict.
    ``forward_only``: the target has no gradients by design; they are reported as unsupported.
    ``slow``: whether calls are slow, so that each requirement runs on few cases of few shapes. None: the first calls of
    a function are timed, and it is slow from 20 ms on.
    ``mode``: "training" or "inference", to judge batch_norm only in that mode. By default it is judged in both, or
    only in inference if it declines every training call.
    ``only``: the only requirements to judge, which the report says: ids ("LN-F3"), patterns of ids ("LN-G*"), subjects
    ("gradients") or bundles ("deterministic"); docs/selecting.md has them all. ``binding``: the only bindings of a
    framework to judge, by name or pattern ("torch.nn.functional.layer_norm", "torch.nn.functional.*").
    ``require``: the requirements that are a MUST in this run, whatever the specification says, in the same words as
    ``only``. A known violation does not excuse them.
    ``per_target``: settings of single targets, by target name: ``op``, ``framework``, ``conventions``, ``mode``,
    ``forward_only``, ``parameters``, ``layout``, ``fixed``. The arguments of the run outrank them, except ``op``.
    Settings under the name "" apply to every target that they fit.
    ``progress`` receives a Progress after every case. ``jobs``: how many processes share the operators and dtypes, at
    most one for each. None: one a core, up to 8, if that pays. The report is the same for any number.
    ``cluster``: the address of a Dask scheduler whose workers judge instead of this machine. Each works on at most
    ``jobs`` operators and dtypes at a time; None: one for each of its threads.

    ``replay``: the JSON of a report. Only its failed cases are judged, by one process.

    ``reproduce``: a folder for scripts that show a failure without normspec, one for each cause and for each violation
    without a cause (docs/counterexamples.md). ``report.reproducers`` says where they are, or why there is none.

    ``cache``: the folder where exact values, bounds and results are kept for the next run. None: the folder that
    NORMSPEC_CACHE names, or ~/.cache/normspec. False: nothing is kept. No verdict depends on it: a target is not judged
    again if nothing changed that its results depend on (docs/kept.md). ``resume``: continue the last run of this same
    request, if it was interrupted, whatever else of its targets may have changed.

    ``parameters``: a layer's names for its parameters, if they are unusual: ``{"gamma": "g"}``. ``layout``:
    "channels-first" if layer_norm or rms_norm normalises features along axis 1 of x. ``fixed``: settings that are
    hard-coded in a function or that a layer does not show: ``{"eps": 1e-6, "axes": -1, "beta": "none"}``. ``layers``:
    the target is a model, and one normalisation layer of each kind in it is checked.

    ``expected``: the failures that are expected, with reasons: the path of a normspec.toml or pyproject.toml with such
    entries, or the entries as dicts, ``{"requirement": "LN-F3", "target": "mine.py:f", "dtypes": ["float16"], "reason":
    "..."}``. A failure that is expected deviates. An entry that passes or matches nothing makes the report not conform.

    A target runs in a worker process. A callable that cannot be imported by name runs in this process. ``python``: the
    interpreter of the worker, or of each target by name. ``time_limit``: the seconds that a target may take for one
    requirement on one case; None for no limit. ``memory_limit``: the bytes of private memory that its worker may use;
    None for no limit. Off the CPU there is no memory limit.

    Raises a NormspecError, before anything is checked, if the request cannot be carried out.
    """
    request = requested(
        target,
        op=op,
        framework=framework,
        dtypes=dtypes,
        device=device,
        conventions=conventions,
        profile=profile,
        seed=seed,
        forward_only=forward_only,
        slow=slow,
        mode=mode,
        only=only,
        binding=binding,
        require=require,
        per_target=per_target,
        python=python,
        time_limit=time_limit,
        memory_limit=memory_limit,
        cache=cache,
        parameters=parameters,
        layout=layout,
        fixed=fixed,
        layers=layers,
    )
    entries = expected_failures(expected)
    listener = listener_of(progress)
    folder = None if reproduce is None else path_of(reproduce, "reproduce", "scripts")
    # The code that judges is imported only if there is something to judge: see kept_results/keeping.py.
    if folder is not None:
        from .reproduce.files import ensure_folder

        ensure_folder(folder)
    if replay is not None:
        from .replay.replaying import replayed

        report = replayed(request, path_of(replay, "replay", "report.json"), listener)
    else:
        address = None if cluster is None else text_of(cluster, "cluster", "tcp://127.0.0.1:8786")
        count, going_on = None if jobs is None else jobs_of(jobs), flag_of(resume, "resume")
        report = report_on(request, jobs=count, cluster=address, resume=going_on, listener=listener)
    report = apply_expected(report, entries, request)
    if folder is None:
        return report
    if report.stopped or NOT_EXPLAINED in report.notes:  # each violation, and not each cause, would get a script
        return attrs.evolve(report, notes=(*report.notes, "interrupted before scripts were written"))
    from .reproduce.reproducing import reproduced

    return reproduced(report, request, folder, listener)


def requested(
    target: Any,
    *,
    op: str | Sequence[str] | None = None,
    framework: str | None = None,
    dtypes: Iterable[str] | None = None,
    device: str = "cpu",
    conventions: Mapping[str, str] | None = None,
    profile: str = "standard",
    seed: int | None = None,
    forward_only: bool = False,
    slow: bool | None = None,
    mode: str | None = None,
    only: str | Iterable[str] | None = None,
    binding: str | Iterable[str] | None = None,
    require: str | Iterable[str] | None = None,
    per_target: Mapping[str, Mapping[str, Any]] | None = None,
    python: str | Mapping[str, str] | None = None,
    time_limit: float | None = DEFAULT_LIMITS.seconds,
    memory_limit: int | None = DEFAULT_LIMITS.memory,
    cache: str | os.PathLike[str] | bool | None = None,
    parameters: Mapping[str, str] | None = None,
    layout: str | None = None,
    fixed: Mapping[str, object] | None = None,
    layers: bool = False,
) -> Request:
    """The request that ``check`` makes of its arguments, each of them checked. Raises a NormspecError."""
    operators = None if op is None else check_operators(names_of(texts_of(op, "op", "layer_norm")))
    where = text_of(device, "device", "cpu")
    return Request(
        targets=named_targets(targets_of(target), operators),
        op=operators,
        framework=framework_of(framework),
        dtypes=None if dtypes is None else checked_dtypes(names_of(texts_of(dtypes, "dtypes", "float32"))),
        device=where,
        conventions=conventions_of(conventions),
        profile=profile_of(text_of(profile, "profile", "quick")).name,
        seed=DEFAULT_SEED if seed is None else seed_of(seed),
        forward_only=flag_of(forward_only, "forward_only"),
        slow=None if slow is None else flag_of(slow, "slow"),
        mode=checked_mode(mode),
        only=() if only is None else checked_words(texts_of(only, "only", "LN-F3"), "only"),
        require=() if require is None else checked_words(texts_of(require, "require", "deterministic"), "require"),
        binding=() if binding is None else binding_names_of(texts_of(binding, "binding", "torch.nn.functional.*")),
        per_target=checked_per_target(per_target),
        pythons=interpreters_of(python),
        limits=limits_of(time_limit, memory_limit, where),
        cache=checked_cache(cache),
        declared=declared_of(parameters, layout, fixed, layers),
    )
