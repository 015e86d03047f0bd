"""Envelopes for studies: the largest error of a sound algorithm in the target's class of accuracy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..reference.accuracy import AccuracyClass, Arithmetic
from ..reference.envelope import OperatorEnvelope, envelope_of
from .operators import Operators
from .result import Array


def arithmetic_of(operators: Operators, operator: str, x: Array, settings: Mapping[str, Any]) -> Arithmetic:
    """The arithmetic in which the target computes this call, according to its conventions."""
    session = operators.session(operator, x.shape, settings)
    owner = next(one for one in (operators.target, operators.other) if session.binding in one.bindings)
    flushes = frozenset(one.dtype for one in owner.traits("cpu") if (one.key, one.value) == ("subnormals", "flushed"))
    conventions = {**session.binding.conventions, **({"subnormals": "flushed"} if flushes else {})}
    return Arithmetic.of(x.dtype, accuracy=AccuracyClass.from_conventions(conventions, flushes))


def envelope(operators: Operators, operator: str, x: Array, **settings: Any) -> OperatorEnvelope:
    """The envelope of one call of a normalisation without gamma and beta; ``settings`` are the call's."""
    arithmetic = arithmetic_of(operators, operator, x, settings)
    return envelope_of(operator, x, None, None, arithmetic=arithmetic, **settings)
