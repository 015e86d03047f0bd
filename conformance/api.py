"""The front door of the suite: ``check``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ..adapters.bridge import DTYPES
from ..adapters.conventions import validate
from ..adapters.errors import UnknownDtype, choices
from ..adapters.targets import resolve
from .engine import Plan, Run
from .profiles import profile_of
from .progress import Listener
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
) -> Report:
    """Check a target against the specification and return the report.

    ``target``: "numpy", "torch", "FILE.py:NAME", "package.module:NAME", or a callable with the canonical
    signature of its operator. ``op``: which operator a function implements, or which of a framework's
    to check. ``framework``: whose tensors a function takes, where its imports do not tell. ``dtypes``:
    some of "float16", "bfloat16", "float32", "float64"; all that the target has by default.
    ``conventions``: what the target declares, such as ``{"momentum": "old"}``. ``profile``: "quick",
    "standard" or "thorough". ``seed``: the same seed gives the same cases and the same verdict.
    ``forward_only``: the target has no gradients by design; they are reported as unsupported.
    ``progress`` receives a Progress after every case.

    Raises a NormspecError, before anything is checked, where the request cannot be carried out.
    """
    chosen = profile_of(profile)
    wanted = checked_dtypes(dtypes)
    declared = validate(dict(conventions or {}))
    found = resolve(target, op=op, framework=framework)
    if wanted is not None and not set(wanted) & set(found.dtypes):
        raise UnknownDtype(f"{found.name} has no {', '.join(wanted)}; choose from {', '.join(found.dtypes)}")
    found.bridge.check_device(device)
    plan = Plan(
        targets=(found,),
        dtypes=wanted,
        device=device,
        conventions=declared,
        profile=chosen,
        seed=DEFAULT_SEED if seed is None else seed,
        forward_only=forward_only,
    )
    return Run(plan, progress).report()


def checked_dtypes(dtypes: Iterable[str] | None) -> tuple[str, ...] | None:
    """Return the dtypes, each once; None for none. Raises UnknownDtype."""
    if dtypes is None:
        return None
    names = tuple(dict.fromkeys([dtypes] if isinstance(dtypes, str) else dtypes))
    for name in names:
        if name not in DTYPES:
            raise UnknownDtype(f"unknown dtype {name!r}{choices(name, DTYPES)}")
    return names or None
