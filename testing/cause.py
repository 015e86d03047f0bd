"""Finds the known mistakes that return the same result on the same data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs
import numpy as np

from ..adapters.numpy.operators.implementation import Implementation
from ..conformance.diagnosis.answers import CLEARLY_WRONG, Values
from ..reference.formats import format_of
from ..spec.operators import Groups
from .call import Call
from .in_blocks import envelopes
from .options import JudgementOptions

#: Up to this many values of x, every known mistake runs on all groups; on larger data it runs on a few groups with
#: about this many values. A hundred such calls take a second, and only a failure has to wait for it.
_ALL_GROUPS_LIMIT = 1 << 15

#: On larger data mistakes run on this many groups that have values outside, and on as many others.
_GROUPS_OF_EACH_KIND = 4

#: If more mistakes than this return the same on the data, the data does not tell which one was made.
_MOST_CAUSES = 3

#: Kinds of faults that begin at a size that their author chose: a target's own mistake begins at another.
_KINDS_LEFT_OUT = ("size",)


@attrs.frozen
class Mistake:
    """A fault of the library that returns the same result, apart from roundings."""

    fault: str
    sentence: str
    requirement: str


def mistakes(
    call: Call, results: Mapping[str, np.ndarray], g: np.ndarray | None, groups: np.ndarray
) -> tuple[Mistake, ...]:
    """
    The known mistakes that return these values of "y", or of "dx", in every judged element; none if that is ambiguous.

    ``groups``: the groups that have values outside. On large data only a few groups are compared, so a mistake that
    mixes groups is not found there.
    """
    # Imported here because it builds every fault; that takes a quarter of a second, which only failures need.
    from ..conformance.faults import registered

    subset = _Subset.of(call, groups)
    some, cotangent = subset.subset_call(), None if g is None else subset.take(g)
    if some.x.size > 8 * _ALL_GROUPS_LIMIT:
        return ()
    asked = {}
    for name, value in results.items():
        got, found = subset.take(value), envelopes(some, (name,), cotangent, JudgementOptions())[name]
        unit = format_of(got.dtype).unit_roundoff
        asked[name] = Values(got.astype(np.float64), found.exact, found.bound, unit)
    if not any(values.worst_error() >= CLEARLY_WRONG for values in asked.values()):
        return ()
    dtype = some.x.dtype.name
    found = []
    for fault in registered():
        if fault.operator == call.operator and fault.kind not in _KINDS_LEFT_OUT and dtype in fault.dtypes:
            answers = dict(_answers(fault.build(), some, cotangent))
            if asked.keys() <= answers.keys() and all(_alike(asked[name], answers[name]) for name in asked):
                found.append(Mistake(fault.name, fault.summary, fault.requirement))
    return tuple(found) if len(found) <= _MOST_CAUSES else ()


def _alike(asked: Values, answer: np.ndarray) -> bool:
    if not asked.got.any() and answer.any():  # zeros are near all that is small, and nothing small is why they are zero
        return False
    return asked.agrees(attrs.evolve(asked, got=answer.astype(np.float64)))


def _answers(implementation: Implementation, call: Call, g: np.ndarray | None) -> Iterator[tuple[str, np.ndarray]]:
    # Copies, because a mistake may write into its arguments, which are the user's arrays.
    given = [None if value is None else value.copy() for value in call.inputs.values()]
    try:
        with np.errstate(all="ignore"):
            if g is None:
                found = implementation.call(*given, **call.settings)
                yield "y", found[0] if isinstance(found, tuple) else found
            else:
                yield "dx", implementation.vjp(*given, g.copy(), **call.settings)[0]
    except Exception:  # some mistakes raise
        return


@attrs.frozen(eq=False)
class _Subset:
    """Some groups of a call, as a call of its own: some that have values outside and some others."""

    call: Call
    #: The indices kept along an axis, None for all. Where ``flat``, the axes in front are merged into one.
    indices: np.ndarray | None
    axis: int
    flat: bool

    @classmethod
    def of(cls, call: Call, groups: np.ndarray) -> _Subset:
        layout = call.layout
        if call.x.size <= _ALL_GROUPS_LIMIT:
            return cls(call, None, 0, flat=False)
        spread = np.linspace(0, layout.count - 1, _GROUPS_OF_EACH_KIND).astype(int)
        chosen = np.unique(np.concatenate([groups[:_GROUPS_OF_EACH_KIND], spread]))
        if call.record.groups is Groups.TRAILING:
            return cls(call, chosen, 0, flat=True)
        if layout.along_columns:
            return cls(call, chosen, layout.parameter[0], flat=False)
        return cls(call, np.unique(chosen // layout.blocks), 0, flat=False)

    def take(self, values: np.ndarray) -> np.ndarray:
        """Those groups, taken from an array of x's shape."""
        if self.indices is None:
            return values
        if self.flat:
            values = values.reshape(-1, *self.call.layout.parameter_shape)
        return np.ascontiguousarray(values.take(self.indices, axis=self.axis))

    def subset_call(self) -> Call:
        """The call of those groups; unused running statistics become those of a fresh layer."""
        call, indices = self.call, self.indices
        inputs = {name: value for name, value in call.inputs.items() if name != "x"}
        if indices is not None and call.layout.along_columns:
            inputs = {name: None if value is None else value[indices] for name, value in inputs.items()}
        x = self.take(call.x)
        for name, filled in (("running_mean", np.zeros), ("running_var", np.ones)):
            if name in inputs and inputs[name] is None:
                inputs[name] = filled(x.shape[call.layout.parameter[0]], x.dtype)
        return attrs.evolve(call, inputs={"x": x, **inputs})
