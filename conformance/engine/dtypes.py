"""Which dtypes a binding works in, tested with its plainest call."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from ...adapters.binding import Binding
from ...adapters.target import Target
from ...spec.errors import CALL_FAILED, TargetLost, TargetRaised, Unsupported
from ..cases.description import Description
from ..cases.few_shapes import in_few_shapes
from ..judging.library import fitted
from ..judging.subject import Subject
from .modes import modes_to_try


@attrs.frozen
class PlainestCall:
    """The outcome of the plainest call of a binding in a dtype."""

    #: Why the dtype is not checked; empty if it is checked.
    reason: str = ""
    #: Whether the target was lost.
    lost: bool = False

    @property
    def works(self) -> bool:
        return not self.reason


@attrs.define
class PlainestCalls:
    """The plainest call of each binding in each dtype, made once."""

    #: Makes the subject for a target, a binding and a dtype.
    _subject: Callable[[Target, Binding, str], Subject]
    _found: dict[tuple[str, str, str, str], PlainestCall] = attrs.field(factory=dict)

    def usable(self, target: Target, binding: Binding, dtype: str) -> PlainestCall:
        """Whether to check a dtype: not if its plainest call raises while that of another dtype works."""
        if dtype not in target.dtypes:
            return PlainestCall(f"{target.name} has no {dtype}")
        found = self._plainest(target, binding, dtype)
        if found.works or found.lost:
            return found
        if any(self._plainest(target, binding, other).works for other in target.dtypes if other != dtype):
            return found
        return PlainestCall()  # no dtype works: check this one, so that every requirement reports it

    def _plainest(self, target: Target, binding: Binding, dtype: str) -> PlainestCall:
        key = (target.name, binding.operator, binding.name, dtype)
        if key not in self._found:
            self._found[key] = self._call(target, binding, dtype)
        return self._found[key]

    def _call(self, target: Target, binding: Binding, dtype: str) -> PlainestCall:
        """The outcome of the plainest call. It is made in inference if batch_norm declines it in training."""
        declined = PlainestCall()
        subject = self._subject(target, binding, dtype)
        for training in modes_to_try(binding, subject.mode):
            plain = Description(
                binding.operator, 4, (("normal", 0), ("normal", 1)), gamma="mixed", beta="mixed", recipe="leaf",
                training=training,
            )  # fmt: skip
            fit = fitted((in_few_shapes(plain) or plain) if subject.slow else plain, binding)
            if fit is None:
                continue
            target.begin()
            try:
                _ = subject.observe(subject.new_library().case(fit)).outputs
            except TargetRaised as raised:
                return PlainestCall(f"the plainest call raises {raised}")
            except TargetLost as lost:
                return PlainestCall(f"in the plainest call {lost}", lost=True)
            except Unsupported as reason:
                declined = PlainestCall(f"the plainest call is declined: {reason}")
                continue
            except CALL_FAILED:
                pass  # it returned something, which the checks judge
            return PlainestCall()
        return declined
