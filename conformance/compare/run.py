"""``compare``: what targets do where implementations differ, as a table."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ...adapters.dtypes import check_dtype
from ...adapters.frameworks import KNOWN
from ...adapters.target import Target
from ...spec.errors import UnknownDtype
from ..api import DEFAULT_LIMITS, requested
from ..engine.progress import Listener
from ..requests.arguments import flag_of, listener_of, targets_of, text_of
from ..requests.request import Request
from .comparison import Comparison
from .measuring import Measuring
from .opening import each_named, opened_targets, told_apart

#: What `check` takes, or a Target.
OneTarget = str | os.PathLike[str] | Callable[..., Any] | Target

#: The operators compared by default. Frameworks compose the others from plain arithmetic.
_DEFAULT = ("layer_norm", "batch_norm")


def compare(
    targets: OneTarget | Iterable[OneTarget],
    *,
    op: str | Sequence[str] | None = None,
    dtype: str = "float32",
    device: str = "cpu",
    framework: str | None = None,
    all_bindings: bool = False,
    python: str | Mapping[str, str] | None = None,
    time_limit: float | None = DEFAULT_LIMITS.seconds,
    memory_limit: int | None = DEFAULT_LIMITS.memory,
    parameters: Mapping[str, str] | None = None,
    layout: str | None = None,
    fixed: Mapping[str, object] | None = None,
    progress: Listener | None = None,
) -> Comparison:
    """
    Measure what targets do where implementations differ, and return the table.

    ``targets``: several, each as `check` takes it. ``op``: some operators; by default layer_norm and batch_norm.
    ``dtype``: the dtype of every row that is not about another one. ``framework``: the framework whose tensors
    functions take, if their imports do not tell. ``all_bindings``: measure all bindings of an operator that a target
    has, and not only the first. ``python``, ``time_limit``, ``memory_limit``: as in `check`; the time is for one row.
    ``parameters``, ``layout``, ``fixed``: as in `check`, for every layer and function among the targets.
    ``progress`` receives a Progress after every cell.

    Raises a NormspecError, before anything is measured, if the request cannot be carried out.
    """
    given = targets_of(targets)
    request = requested(
        given, op=op, device=device, framework=framework, python=python, time_limit=time_limit,
        memory_limit=memory_limit, parameters=parameters, layout=layout, fixed=fixed, cache=False,
    )  # fmt: skip
    return measured_table(given, request, dtype, all_bindings=all_bindings, progress=progress)


def measured_table(
    targets: Sequence[Any],
    request: Request,
    dtype: str,
    *,
    all_bindings: bool,
    progress: Listener | None,
    every_operator: bool = False,
) -> Comparison:
    """
    Measure these targets in place of the request's, and return the table; a Target is open already.

    ``every_operator``: if no operator is named, take all operators of functions and layers.
    """
    check_dtype(text_of(dtype, "dtype", "float32"))
    every_binding, listener = flag_of(all_bindings, "all_bindings"), listener_of(progress)
    given = each_named(targets, request.op)
    opened = opened_targets([one for one in given if not isinstance(one, Target)], request)
    try:
        following = iter(opened)
        found = [one if isinstance(one, Target) else next(following) for one in given]
        for target in found:
            if dtype not in target.dtypes:
                raise UnknownDtype(f"{target.name} has no {dtype}; choose from {', '.join(target.dtypes)}")
        operators = request.op or _operators(found, every_operator)
        return Measuring(told_apart(found), operators, dtype, request.device, every_binding, listener).comparison()
    finally:
        for target in opened:
            target.close()


def _operators(targets: Sequence[Target], every_operator: bool) -> tuple[str, ...]:
    """
    The operators to measure if none is named: the default ones, if every target has one of these.

    Otherwise, or with ``every_operator``, those of functions and layers; for frameworks, the default ones.
    """
    everyone = all(any(binding.operator in _DEFAULT for binding in target.bindings) for target in targets)
    if everyone and not every_operator:
        return _DEFAULT
    functions = [target for target in targets if target.name not in KNOWN]
    own = tuple(dict.fromkeys(binding.operator for target in functions for binding in target.bindings))
    return own if len(functions) == len(targets) else tuple(dict.fromkeys((*own, *_DEFAULT)))
