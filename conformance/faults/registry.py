"""Faults as values, and the decorator that enters a wrong step as one."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from ...adapters.numpy.operators import IMPLEMENTATIONS
from ...adapters.numpy.operators.implementation import Implementation
from ...adapters.numpy.operators.staged import Staged
from ...reference.formats import ALL_DTYPES
from ...spec.operators import OPERATORS
from ..checks.catalogue import CHECKS
from ..checks.registry import is_about
from ..sound.registry import NORMALISATIONS, combined, first_sentence, prefix_of

SIXTEEN_BIT = ("float16", "bfloat16")
WIDE = ("float32", "float64")


@attrs.frozen
class Fault:
    """One named wrong semantics of one operator."""

    #: Kebab-case, the operator's prefix first: "ln-eps-on-std".
    name: str
    #: One of the operators.
    operator: str
    #: The id of the requirement that must kill it: the most specific one it violates.
    requirement: str
    #: Where it shows: "value", "gradient", "second-order", "tangent", "statistics", "state", "layout", "size",
    #: "non-finite", "dtype" or "argument".
    kind: str
    #: One sentence: what it does wrongly.
    summary: str
    #: Where it was met: addresses of public reports; empty for a fault that was made up.
    sources: tuple[str, ...]
    #: Makes a fresh implementation, with fresh state.
    build: Callable[[], Implementation]
    #: The sound base with the wrong step in front of it: two of them make a function with two mistakes.
    step: type[Staged]
    #: The dtypes of x in which it shows.
    dtypes: tuple[str, ...] = ALL_DTYPES


_registered: list[Fault] = []


def issue(*references: str) -> tuple[str, ...]:
    """Addresses of GitHub threads, given as "owner/name#number"."""
    addresses = []
    for reference in references:
        repository, number = reference.split("#")
        addresses.append(f"https://github.com/{repository}/issues/{number}")
    return tuple(addresses)


def fault(
    name: str,
    *,
    kind: str = "value",
    sources: tuple[str, ...] = (),
    dtypes: tuple[str, ...] = ALL_DTYPES,
    apart: tuple[str, ...] = (),
    everywhere: str = "",
    **requirements: str,
) -> Callable[[type], type]:
    """Register a class of overridden steps as a fault of one or more operators.

    `requirements` holds the one that must kill it by the operator's prefix: ln="LN-F3", rs="RS-F1", ..., and `in_` for
    "in", which is a keyword. `everywhere` is the one for every operator that has the step. A fault in a step that all
    normalisations share is registered for every operator whose page has a requirement with the same number as
    layer_norm's. `apart` lists operators to leave out, because the step is right there or another requirement covers
    it.
    """
    requirements = {prefix.rstrip("_"): requirement for prefix, requirement in requirements.items()}
    operators = {prefix_of(operator): operator for operator in OPERATORS}

    def enter(step: type) -> type:
        shared = {prefix: everywhere for prefix in _having(step) if everywhere and prefix not in apart}
        for prefix, requirement in {**shared, **_likewise(step, requirements, apart), **requirements}.items():
            operator = operators[prefix]
            wrong = combined(step, operator)
            _registered.append(
                Fault(
                    name=f"{prefix}-{name}",
                    operator=operator,
                    requirement=requirement,
                    kind=kind,
                    summary=first_sentence(step, operator),
                    sources=sources,
                    build=lambda wrong=wrong: wrong().implementation(),
                    step=wrong,
                    dtypes=dtypes,
                )
            )
        return step

    return enter


def _having(step: type) -> tuple[str, ...]:
    """The prefixes of the operators whose sound base is a kind of the class that the step overrides."""
    overridden = next(one for one in step.__mro__ if any(issubclass(base, one) for base in IMPLEMENTATIONS.values()))
    return tuple(prefix_of(operator) for operator, base in IMPLEMENTATIONS.items() if issubclass(base, overridden))


def _likewise(step: type, requirements: Mapping[str, str], apart: tuple[str, ...]) -> dict[str, str]:
    """The requirements of layer_norm's number on other pages, where the step is one that all normalisations share."""
    if "ln" not in requirements or any(issubclass(step, base) for base in IMPLEMENTATIONS.values()):
        return {}
    page, number = requirements["ln"].split("-")
    found = {}
    for operator in NORMALISATIONS:
        prefix = prefix_of(operator)
        own = f"{'CM' if page == 'CM' else prefix.upper()}-{number}"
        if prefix not in ("ln", "bn", *apart) and own in CHECKS and is_about(own, operator):
            found[prefix] = own
    return found


def registered() -> tuple[Fault, ...]:
    """All that is registered, layer_norm first, in order of registration."""
    return tuple(sorted(_registered, key=lambda entry: list(OPERATORS).index(entry.operator)))
