"""The sound variants, as values, and the decorator that enters them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from ...adapters.numpy.operators import IMPLEMENTATIONS
from ...adapters.numpy.operators.implementation import Implementation
from ...adapters.numpy.operators.staged import Staged
from ...spec.operators import OPERATORS


@attrs.frozen
class Sound:
    """One sound way to compute an operator."""

    #: Kebab-case, the operator's prefix first: "ln-welford".
    name: str
    #: One of OPERATORS.
    operator: str
    #: One sentence: how it computes.
    summary: str
    #: Makes a fresh implementation.
    build: Callable[[], Implementation]
    #: What it must declare to conform; empty for a variant that needs no declaration.
    conventions: Mapping[str, Any] = attrs.field(factory=dict)


#: The operators that are a normalisation and nothing else, and those of them that take a mean out.
NORMALISATIONS = tuple(name for name in OPERATORS if not OPERATORS[name].composed)
CENTRED = tuple(name for name in NORMALISATIONS if OPERATORS[name].centred)

_registered: list[Sound] = []


def prefix_of(operator: str) -> str:
    """What the names of an operator's faults and variants begin with."""
    return OPERATORS[operator].prefix.lower()


#: How the statistic is called, in this order, where a step that all normalisations share takes no mean out.
_WITHOUT_MEAN = {
    "The mean first, then the variance from the deviations": "The mean square",
    "mean absolute deviation": "mean magnitude",
    "all values are equal": "all values are 0",
    r"(the )?mean and (variance|reciprocal root)": r"the \2",
    "variance": "mean square",
    "deviations": "values",
    "deviation": "root mean square",
    r"\bvar\b": "mean(x^2)",
    r"\bsigma\b": "rms",
    r"sqrt\(n - 1\)": "sqrt(n)",
    "0/0": "a division by 0",
}


def first_sentence(step: type, operator: str) -> str:
    """The first sentence of a class's docstring, on one line; a shared step's in the words of the operator."""
    text = " ".join((inspect.getdoc(step) or "").split("\n\n")[0].split())
    if not OPERATORS[operator].centred and not issubclass(step, IMPLEMENTATIONS[operator]):
        for words, instead in _WITHOUT_MEAN.items():
            text = re.sub(words, instead, text)
    return text.split(". ")[0].rstrip(".") + "."


def combined(step: type, operator: str) -> type[Staged]:
    """The operator's sound base with the overridden steps in front of it."""
    base = IMPLEMENTATIONS[operator]
    return step if issubclass(step, base) else type(step.__name__, (step, base), {})


def sound(
    name: str,
    *,
    operators: tuple[str, ...] = NORMALISATIONS,
    conventions: Mapping[str, str] | None = None,
) -> Callable[[type], type]:
    """Register a class of overridden steps as a sound variant of each of the operators."""

    def enter(step: type) -> type:
        for operator in operators:
            variant = combined(step, operator)
            _registered.append(
                Sound(
                    name=f"{prefix_of(operator)}-{name}",
                    operator=operator,
                    summary=first_sentence(step, operator),
                    build=lambda variant=variant: variant().implementation(),
                    conventions=dict(conventions or {}),
                )
            )
        return step

    return enter


def registered() -> tuple[Sound, ...]:
    """All that is registered, layer_norm first, in order of registration."""
    return tuple(sorted(_registered, key=lambda variant: list(OPERATORS).index(variant.operator)))
