"""The front door of the suite: ``check``."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import attrs

from ..adapters.binding import Target
from ..adapters.bridge import DTYPES
from ..adapters.conventions import validate
from ..adapters.errors import UnknownDtype, choices
from ..adapters.targets import resolve
from .engine import Plan, Run
from .profiles import profile_of
from .progress import Listener
from .shares import Share, divided, merged
from .verdicts import Report

#: The seed of a run that names none: the same cases today and tomorrow.
DEFAULT_SEED = 0


def check(
    target: str | os.PathLike[str] | Callable[..., Any],
    *,
    op: str | Sequence[str] | None = None,
    framework: str | None = None,
    dtypes: Iterable[str] | None = None,
    device: str = "cpu",
    conventions: Mapping[str, str] | None = None,
    profile: str = "standard",
    seed: int | None = None,
    forward_only: bool = False,
    progress: Listener | None = None,
    shared: bool = True,
) -> Report:
    """Check a target against the specification and return the report.

    ``target``: "numpy", "torch", "FILE.py:NAME", "package.module:NAME", or a callable with the canonical
    signature of its operator. ``op``: which operator a function implements, or which of a framework's
    to check. ``framework``: whose tensors a function takes, where its imports do not tell. ``dtypes``:
    some of "float16", "bfloat16", "float32", "float64"; all that the target has by default.
    ``conventions``: what the target declares, such as ``{"momentum": "old"}``. ``profile``: "quick",
    "standard" or "thorough". ``seed``: the same seed gives the same cases and the same verdict.
    ``forward_only``: the target has no gradients by design; they are reported as unsupported.
    ``progress`` receives a Progress after every case. ``shared``: the operators of a framework's own layers may
    be divided over two processes.

    Raises a NormspecError, before anything is checked, where the request cannot be carried out.
    """
    chosen = profile_of(profile)
    wanted = checked_dtypes(dtypes)
    declared = validate(dict(conventions or {}))
    found = resolve(target, op=op, framework=framework)
    if wanted is not None and not set(wanted) & set(found.dtypes):
        raise UnknownDtype(f"{found.name} has no {', '.join(wanted)}; choose from {', '.join(found.dtypes)}")
    found.bridge.check_device(device)
    seed = DEFAULT_SEED if seed is None else seed
    own, others = divided(found) if shared and device == "cpu" else ((), ())
    request = {
        "target": target, "dtypes": wanted, "device": device, "conventions": declared, "profile": profile,
        "seed": seed, "forward_only": forward_only,
    }  # fmt: skip
    share = Share.start({**request, "op": others}) if others else None
    plan = Plan((found,), wanted, device, declared, chosen, seed, forward_only)
    if share is None:
        return Run(plan, progress).report()
    started, operators = time.perf_counter(), tuple(dict.fromkeys(b.operator for b in found.bindings))
    first = Run(attrs.evolve(plan, targets=(_only(found, own),)), progress).report()
    second = share.report()
    if second is None:  # it died: nothing is lost but time
        second = Run(attrs.evolve(plan, targets=(_only(found, others),)), progress).report()
    return attrs.evolve(merged(first, second, operators), seconds=time.perf_counter() - started)


def _only(target: Target, operators: Sequence[str]) -> Target:
    return replace(target, bindings=tuple(b for b in target.bindings if b.operator in operators))


def checked_dtypes(dtypes: Iterable[str] | None) -> tuple[str, ...] | None:
    """Return the dtypes, each once; None for none. Raises UnknownDtype."""
    if dtypes is None:
        return None
    names = tuple(dict.fromkeys([dtypes] if isinstance(dtypes, str) else dtypes))
    for name in names:
        if name not in DTYPES:
            raise UnknownDtype(f"unknown dtype {name!r}{choices(name, DTYPES)}")
    return names or None
