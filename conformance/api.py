"""The front door of the suite: ``check``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ..adapters.remote.host import Limits
from ..adapters.targets import check_operators
from .engine.progress import Listener
from .expected.applying import applied
from .kept.place import checked_cache
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
from .requests.choosing import checked_words, words_of
from .requests.configuration import expected_failures
from .requests.limits import jobs_of
from .requests.mode import checked_mode
from .requests.naming import named
from .requests.per_target import checked_per_target
from .requests.profiles import profile_of
from .requests.request import Request, checked_dtypes
from .results.report import Report

#: The seed of a run that names none: the same cases today and tomorrow.
DEFAULT_SEED = 0

#: What targets may use unless the caller says otherwise.
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
    class of layers, or several names. ``op``: which operator a function implements, or which of a framework's to
    check. ``framework``: whose tensors a function takes, where its imports do not tell. ``dtypes``: some of "float16",
    "bfloat16", "float32", "float64"; all that the target has by default.
    ``device``: where to run, as the framework names it.
    ``conventions``: what the target declares, such as ``{"momentum": "old"}``. ``profile``: "quick",
    "standard" or "thorough". ``seed``: the same seed gives the same cases and the same verdict.
    ``forward_only``: the target has no gradients by design; they are reported as unsupported.
    ``slow``: whether its calls are slow, so that each requirement is put to few cases of few shapes; None: a function
    is timed by its first calls, and slow from 20 ms on.
    ``mode``: "training" or "inference", in which alone batch_norm is judged; by default in both, and in inference
    alone where it declines every training call.
    ``only``: what alone is judged, and the report says so: ids of requirements ("LN-F3"), patterns of ids ("LN-G*"),
    subjects ("gradients") or bundles ("deterministic"); docs/selecting.md has them all. ``binding``: which bindings of
    a framework alone are judged, by name or pattern ("torch.nn.functional.layer_norm", "torch.nn.functional.*").
    ``require``: what is a MUST in this run, in the same words as ``only``, whatever the specification says of it; that
    it is known to be violated excuses nothing then.
    ``per_target``: what is said of one target alone, by its name: ``op``, ``framework``, ``conventions``, ``mode``,
    ``forward_only``, ``parameters``, ``layout``, ``fixed``. What is said of the run outranks it, but for ``op``. What
    stands under the name "" is said of every target, as far as that is about it.
    ``progress`` receives a Progress after every case. ``jobs``: how many processes share operators and dtypes, at most
    one each; None: as many as there are cores, up to 8, where that pays. The report is the same for any number.
    ``cluster``: the address of a Dask scheduler, whose workers judge in place of this machine, each at most ``jobs``
    operators and dtypes at a time; None: one for each of its threads.

    ``replay``: the JSON of a report, whose failed cases alone are judged, by one process.

    ``reproduce``: a folder for scripts, one for each cause and for each violation without one, that show it without
    normspec (docs/counterexamples.md); ``report.reproducers`` says where they lie, or why there is none.

    ``cache``: the folder where exact values, bounds and results are kept for the next run; None: what NORMSPEC_CACHE
    names, or ~/.cache/normspec; False: nothing is kept. No verdict depends on it: a target is not judged again where
    nothing has changed that its results depend on, and docs/kept.md says what that is. ``resume``: go on with the last
    run of this very request, if it was interrupted, whatever else of its targets may have changed.

    ``parameters``: what a layer calls its parameters, where the name is unusual: ``{"gamma": "g"}``. ``layout``:
    "channels-first" where the features that layer_norm or rms_norm normalises lie along axis 1 of x. ``fixed``: what a
    function has written in, or a layer does not tell: ``{"eps": 1e-6, "axes": -1, "beta": "none"}``. ``layers``: the
    target is a model, and one normalisation layer of each kind in it is checked.

    ``expected``: what is expected to fail, and why: the path of a normspec.toml or pyproject.toml with such entries, or
    the entries as dicts, ``{"requirement": "LN-F3", "target": "mine.py:f", "dtypes": ["float16"], "reason": "..."}``.
    What fails as expected deviates; an entry that passes or matches nothing makes the report one that does not conform.

    A target runs in a worker process: a callable too if it can be imported by name, and otherwise in this process.
    ``python``: the interpreter of the worker, or of each target by name. ``time_limit``: the seconds that a target may
    take for one requirement on one case; None for no limit. ``memory_limit``: the bytes of private memory that its
    worker may have; None for no limit. Off the CPU there is none.

    Raises a NormspecError, before anything is checked, where the request cannot be carried out.
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
    # What judges is imported where there is something to judge: see kept_results/keeping.py.
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
    report = applied(report, entries, request)
    if folder is None:
        return report
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
    """What ``check`` is asked for with these arguments, each of them looked at. Raises a NormspecError."""
    operators = None if op is None else check_operators(texts_of(op, "op", "layer_norm"))
    where = text_of(device, "device", "cpu")
    return Request(
        targets=named(targets_of(target), operators),
        op=operators,
        framework=framework_of(framework),
        dtypes=None if dtypes is None else checked_dtypes(texts_of(dtypes, "dtypes", "float32")),
        device=where,
        conventions=conventions_of(conventions),
        profile=profile_of(text_of(profile, "profile", "quick")).name,
        seed=DEFAULT_SEED if seed is None else seed_of(seed),
        forward_only=flag_of(forward_only, "forward_only"),
        slow=None if slow is None else flag_of(slow, "slow"),
        mode=checked_mode(mode),
        only=() if only is None else checked_words(texts_of(only, "only", "LN-F3"), "only"),
        require=() if require is None else checked_words(texts_of(require, "require", "deterministic"), "require"),
        binding=() if binding is None else words_of(texts_of(binding, "binding", "torch.nn.functional.*")),
        own=checked_per_target(per_target),
        pythons=interpreters_of(python),
        limits=limits_of(time_limit, memory_limit, where),
        cache=checked_cache(cache),
        declared=declared_of(parameters, layout, fixed, layers),
    )
