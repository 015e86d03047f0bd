"""The cases of one run, each built once and shared by all bindings."""

from __future__ import annotations

import attrs

from ..adapters.binding import Binding
from ..reference.formats import FORMATS
from .cases.case import Case, Description, build, channel_shape

#: Dimensions to spread a BatchNorm case over, where a binding does not take the case's own.
_RANKS = (4, 3, 2, 5)


@attrs.define
class Library:
    """Cases by description, for one dtype at a time."""

    dtype: str
    _built: dict[Description, Case] = attrs.field(factory=dict)

    def case(self, description: Description) -> Case:
        """Return the case in this library's dtype; the parameters of a "mixed" one are float32."""
        if description not in self._built:
            mixed = "mixed" in description.tags and FORMATS[self.dtype].narrow
            self._built[description] = build(description, self.dtype, "float32" if mixed else None)
        return self._built[description]

    def fresh(self, description: Description) -> Case:
        """Return a case that is not kept: shrinking makes many."""
        mixed = "mixed" in description.tags and FORMATS[self.dtype].narrow
        return build(description, self.dtype, "float32" if mixed else None)


def fitted(description: Description, binding: Binding) -> Description | None:
    """Return the description in a number of dimensions that the binding takes, or None."""
    if binding.seams is not None:
        return _as_sequences(description)
    if description.operator != "batch_norm":
        return description
    asked = [(description.rank, description.channel_axis)]
    if "axes" not in description.tags:  # there the dimensions are what the case is about
        asked += [(rank, 1) for rank in _RANKS]
    channels = description.repeat or len(description.groups)
    for rank, axis in asked:
        if not -rank <= axis < rank:
            continue
        shape = channel_shape(description.n, channels, rank, axis)
        settings = {
            "eps": description.eps,
            "momentum": description.momentum,
            "training": description.training,
            "channel_axis": axis,
        }
        if binding.accepts(shape, settings) is None:
            return attrs.evolve(description, rank=rank, channel_axis=axis)
    return None


def _as_sequences(description: Description) -> Description:
    """The description with its groups as positions of one sequence, as a layer of attention takes them."""
    if description.leading is not None and len(description.leading) == 2:
        return description
    return attrs.evolve(description, leading=(1, description.repeat or len(description.groups)))
