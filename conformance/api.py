"""The front door of the suite: ``check``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ..adapters.remote.host import Limits
from ..adapters.targets import check_operators
from ..spec.conventions import validate
from .asking import checked_words, words_of
from .kept.place import checked_cache
from .limits import jobs_of
from .modes import checked_mode
from .naming import named
from .per_target import checked_per_target
from .profiles import profile_of
from .progress import Listener
from .replay.replaying import replayed
from .report import Report
from .request import Request, checked_dtypes
from .running.choice import executor
from .running.judging import judged

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
    cluster: str | None = None,
    replay: str | os.PathLike[str] | None = None,
) -> Report:
    """Check a target, or several, against the specification and return the report.

    ``target``: a name that `normspec list` shows, "FILE.py:NAME", "FILE.py" for every function in it that is named
    after an operator, "package.module:NAME", a callable with the canonical signature of its operator, or several names.
    ``op``: which operator a function implements, or which of a framework's to check. ``framework``: whose tensors a
    function takes, where its imports do not tell. ``dtypes``:
    some of "float16", "bfloat16", "float32", "float64"; all that the target has by default.
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
    ``forward_only``. What is said of the run outranks it, but for ``op``. What stands under the name "" is said of
    every target, as far as that is about it.
    ``progress`` receives a Progress after every case. ``jobs``: how many processes share operators and dtypes, at most
    one each; None: as many as there are cores, up to 8, where that pays. The report is the same for any number.
    ``cluster``: the address of a Dask scheduler, whose workers judge in place of this machine, each at most ``jobs``
    operators and dtypes at a time; None: one for each of its threads.

    ``replay``: the JSON of a report, whose failed cases alone are judged, by one process.

    ``cache``: the folder where exact values and bounds are kept for the next run; None: what NORMSPEC_CACHE names, or
    ~/.cache/normspec; False: they are not kept. No verdict depends on it.

    A target runs in a worker process: a callable too if it can be imported by name, and otherwise in this process.
    ``python``: the interpreter of the worker, or of each target by name. ``time_limit``: the seconds that a target may
    take for one requirement on one case; None for no limit. ``memory_limit``: the bytes of private memory that its
    worker may have; None for no limit. Off the CPU there is none.

    Raises a NormspecError, before anything is checked, where the request cannot be carried out.
    """
    profile_of(profile)
    several = isinstance(target, Sequence) and not isinstance(target, str)
    given: tuple[Any, ...] = tuple(target) if several else (target,)  # type: ignore[arg-type]
    operators = None if op is None else check_operators(op)
    request = Request(
        targets=named(given, operators),
        op=operators,
        framework=framework,
        dtypes=checked_dtypes(dtypes),
        device=device,
        conventions=validate(dict(conventions or {})),
        profile=profile,
        seed=DEFAULT_SEED if seed is None else seed,
        forward_only=forward_only,
        slow=slow,
        mode=checked_mode(mode),
        only=checked_words(only, "only"),
        require=checked_words(require, "require"),
        binding=words_of(binding),
        own=checked_per_target(per_target),
        pythons=dict(python) if isinstance(python, Mapping) else {"": python} if python else {},
        limits=Limits(
            seconds=float("inf") if time_limit is None else time_limit,
            memory=memory_limit if device == "cpu" else None,
        ),
        cache=checked_cache(cache),
    )
    if replay is not None:
        return replayed(request, str(os.fspath(replay)), progress)
    chosen = executor(request, jobs=None if jobs is None else jobs_of(jobs), cluster=cluster)
    return judged(request, chosen, progress)
