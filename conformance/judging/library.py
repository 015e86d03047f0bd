"""The cases of one run, each built once and shared by all bindings."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from ...adapters.binding import Binding
from ...reference.formats import FORMATS, Format
from ...spec.operators import OPERATORS, Groups
from ..cases.case import Case, build
from ..cases.composed_deck import LAWS, PARTS
from ..cases.description import Description
from ..cases.own_settings import with_own_settings
from ..cases.shapes import settings_of, shape_of
from .translated import one_plus

#: Ranks to try for a case with channels, if the binding does not take the case's own rank.
_RANKS = (4, 3, 2, 5)


@attrs.define
class Library:
    """Cases by description, for one dtype."""

    dtype: str
    #: Whether gamma - 1 must be exact in gamma's dtype.
    one_plus: bool = False
    #: Whether y, and so its cotangent, has the dtype of float32 parameters.
    promoted: bool = False
    _built: dict[Description, Case] = attrs.field(factory=dict)

    @property
    def kind(self) -> tuple[Any, ...]:
        """Key of the library: libraries of the same kind hold the same cases."""
        return self.dtype, self.one_plus, self.promoted

    def case(self, description: Description) -> Case:
        """Return the case in this library's dtype; a mixed case has float32 parameters."""
        if description not in self._built:
            self._built[description] = self.fresh(description)
        return self._built[description]

    def forget(self) -> None:
        """Drop all cases and their truths; the two refer to each other, so nothing else would free them at once."""
        for case in self._built.values():
            case.forget_truths()
        self._built.clear()

    def fresh(self, description: Description) -> Case:
        """Build a case without keeping it, because shrinking makes many."""
        mixed = description.mixed and self.format.narrow
        return self.adapted(build(description, self.dtype, "float32" if mixed else None))

    def adapted(self, case: Case) -> Case:
        """The case with a gamma and a cotangent that the subjects of this library can take."""
        gamma = case.inputs.get("gamma")
        if self.one_plus and gamma is not None:
            case = case.replace(gamma=one_plus(gamma))
        wide = self.promoted and case.mixed and self.format.narrow
        return case.replace(g=case.g.astype(np.float32)) if wide else case

    @property
    def format(self) -> Format:
        """The format of x."""
        return FORMATS[self.dtype]


def fitted(description: Description, binding: Binding) -> Description | None:
    """
    Return the description with the settings that the binding fixes, in a rank that it takes.

    Returns None if only a fixed setting or the rank keeps the binding from taking the case.

    A case that the binding declines for another reason is returned: its call reports the reason.
    """
    if binding.seams is not None:
        return _as_sequences(description)
    drawn = with_own_settings(description, binding.fixed)
    if drawn is None:
        return None
    description = drawn
    if not OPERATORS[description.operator].has_channels:
        return description
    own = (description.rank, description.channel_axis)
    bound = "LN-F7" in description.requirements  # the case is about its dimensions, so they must stay
    axes = (1, -1) if binding.fixed.channel_axis is None else (binding.fixed.channel_axis,)
    places = [own] if bound else [own, *((rank, axis) for axis in axes for rank in _RANKS)]
    for place in places:
        if _takes(binding, description, *place):
            return attrs.evolve(description, rank=place[0], channel_axis=place[1])
    if bound and any(_takes(binding, description, rank, own[1]) for rank in _RANKS):
        return None
    plain = Description(description.operator, description.n, description.groups, repeat=description.repeat)
    plain = with_own_settings(plain, binding.fixed) or plain
    for mode in (description.training, not description.training):
        for rank, axis in places:  # in a shape that it takes for a plain case, its real reason to decline shows
            if _takes(binding, attrs.evolve(plain, training=mode), rank, axis):
                samples = None if rank == 2 else description.samples  # in rank 2 the samples are all there is
                return attrs.evolve(description, rank=rank, channel_axis=axis, samples=samples)
    return description


def _takes(binding: Binding, description: Description, rank: int, axis: int) -> bool:
    """Whether the binding takes a case of this rank with the channels along this axis."""
    record = OPERATORS[description.operator]
    least = 1 if record.groups is Groups.SAMPLE_CHANNELS else 0  # axis 0 has the samples
    if not (-rank <= axis < rank and axis % rank >= least):
        return False
    if record.groups is Groups.CHANNEL and rank == 2 and description.samples not in (None, description.n):
        return False
    placed = attrs.evolve(description, rank=rank, channel_axis=axis)
    shape, settings = shape_of(placed), settings_of(placed)
    return (binding.fixed.declines(record.name, shape, settings) or binding.accepts(shape, settings)) is None


def _as_sequences(description: Description) -> Description:
    """
    The description with its groups as positions of one sequence, as an attention layer takes them.

    The layer has its own sublayers, so descriptions that differ only in their parts become the same.
    """
    description = attrs.evolve(
        description, recipe="leaf", logits="mixed", requirements=description.requirements - LAWS - PARTS
    )
    if description.leading is not None and len(description.leading) == 2:
        return description
    return attrs.evolve(description, leading=(1, description.repeat or len(description.groups)))
