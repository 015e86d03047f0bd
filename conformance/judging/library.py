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

#: Dimensions to spread a case with channels over, where a binding does not take the case's own.
_RANKS = (4, 3, 2, 5)


@attrs.define
class Library:
    """Cases by description, for one dtype at a time."""

    dtype: str
    #: Whether gamma - 1 has to be exact in gamma's dtype.
    one_plus: bool = False
    #: Whether y has the dtype of float32 parameters, and so its cotangent.
    promoted: bool = False
    _built: dict[Description, Case] = attrs.field(factory=dict)

    @property
    def kind(self) -> tuple[Any, ...]:
        """What its cases are of: libraries of one kind hold the same."""
        return self.dtype, self.one_plus, self.promoted

    def case(self, description: Description) -> Case:
        """Return the case in this library's dtype; the parameters of a mixed one are float32."""
        if description not in self._built:
            self._built[description] = self.fresh(description)
        return self._built[description]

    def fresh(self, description: Description) -> Case:
        """Return a case that is not kept: shrinking makes many."""
        mixed = description.mixed and self.format.narrow
        return self.adapted(build(description, self.dtype, "float32" if mixed else None))

    def adapted(self, case: Case) -> Case:
        """The case as those of this library are: with a gamma and a cotangent that its subjects can be handed."""
        gamma, mixed = case.inputs.get("gamma"), case.description is not None and case.description.mixed
        if self.one_plus and gamma is not None:
            case = case.replace(gamma=one_plus(gamma))
        return case.replace(g=case.g.astype(np.float32)) if self.promoted and mixed and self.format.narrow else case

    @property
    def format(self) -> Format:
        """The format of x."""
        return FORMATS[self.dtype]


def fitted(description: Description, binding: Binding) -> Description | None:
    """
    Return the description with what the binding cannot vary, in a number of dimensions that it takes; None where that
    alone keeps the case from it.

    What it declines for another reason is returned all the same: its call says so.
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
    bound = "LN-F7" in description.requirements  # the dimensions are what the case is about
    places = [own] if bound else [own, *((rank, axis) for axis in (1, -1) for rank in _RANKS)]
    for place in places:
        if _takes(binding, description, *place):
            return attrs.evolve(description, rank=place[0], channel_axis=place[1])
    if bound and any(_takes(binding, description, rank, own[1]) for rank in _RANKS):
        return None
    plain = Description(description.operator, description.n, description.groups, repeat=description.repeat)
    plain = with_own_settings(plain, binding.fixed) or plain
    for mode in (description.training, not description.training):
        for rank, axis in places:  # its own reason to decline shows in a shape that it takes
            if _takes(binding, attrs.evolve(plain, training=mode), rank, axis):
                samples = None if rank == 2 else description.samples  # of rank 2, the samples are all that there is
                return attrs.evolve(description, rank=rank, channel_axis=axis, samples=samples)
    return description


def _takes(binding: Binding, description: Description, rank: int, axis: int) -> bool:
    """Whether the binding takes a case in so many dimensions, the channels along that axis."""
    record = OPERATORS[description.operator]
    if not -rank <= axis < rank:
        return False
    if record.groups is Groups.CHANNEL and rank == 2 and description.samples not in (None, description.n):
        return False
    placed = attrs.evolve(description, rank=rank, channel_axis=axis)
    shape, settings = shape_of(placed), settings_of(placed)
    return (binding.fixed.declines(record.name, shape, settings) or binding.accepts(shape, settings)) is None


def _as_sequences(description: Description) -> Description:
    """
    The description with its groups as positions of one sequence, as a layer of attention takes them.

    The layer brings its own sublayers, so that descriptions which differ in their parts alone are one and the same.
    """
    description = attrs.evolve(
        description, recipe="leaf", logits="mixed", requirements=description.requirements - LAWS - PARTS
    )
    if description.leading is not None and len(description.leading) == 2:
        return description
    return attrs.evolve(description, leading=(1, description.repeat or len(description.groups)))
