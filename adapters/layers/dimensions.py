"""How many dimensions a layer takes, and where it takes the channels to lie: trial calls tell."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import numpy as np

from ...spec.errors import CannotVary, WrongSignature, one_line
from ...spec.layout import Layout
from ...spec.operators import OPERATORS, Groups
from ..declarations import Declarations
from ..fixed import FixedSettings
from .canonical_calls import Layers
from .trial import GROUPS, ordinary_values, shape_of, trial_results

#: How many dimensions x may have in a case.
_RANKS = (1, 2, 3, 4, 5)


def find_ranks(layers: Layers) -> tuple[int, ...]:
    """
    The ranks that x may have; empty if any. Raises WrongSignature if no call works.

    Where the layer's usual layout does not fit, and none is declared, the layout changes to the other one. If no call
    with one sample works, whole batches are tried too.
    """
    try:
        return _ranks_and_layout(layers)
    except WrongSignature:
        if not layers.kit.maps:
            raise
        layers.takes_batch = True
        with contextlib.suppress(WrongSignature):
            return _ranks_and_layout(layers)
        layers.takes_batch = False
        raise


def _ranks_and_layout(layers: Layers) -> tuple[int, ...]:
    """The ranks in the layer's layout, which is set; empty if all are taken."""
    declared = layers.declared.layout or "channel_axis" in layers.declared.fixed
    found = _ranks(layers) if declared else _ranks_of_layout_found(layers)
    return () if found == _candidates(layers) and not layers.channels_first else found


def _ranks_of_layout_found(layers: Layers) -> tuple[int, ...]:
    """
    The ranks in the layout that the layer turns out to have.

    Of a layer over trailing axes that is the usual one, unless no call works there: a layer without parameters that
    normalises axis 1 may just be wrong, and nothing in the report would say how it was judged. Of one with channels,
    whose axis the report names, it is the one in which a value of x reaches the values of y that belong to its group.
    If none is, as in a faulty layer, it is one in which x of rank 3 or more is taken, the usual one first.
    """
    layouts = _layouts(layers)
    found: dict[int, tuple[int, ...]] = {}
    failed: WrongSignature | None = None
    for place, layout in enumerate(layouts):
        layers.declared, layers.fixed = layout
        try:
            ranks = found[place] = _ranks(layers)
        except WrongSignature as error:
            failed = failed or error
            continue
        if _trailing(layers):
            return ranks
        if any(rank > 2 and _reaches_its_group(layers, rank) for rank in ranks):
            return tuple(
                rank for rank in ranks if _reaches_its_group(layers, rank) or not _takes_a_sample(layers, rank)
            )
    place = min(found, key=lambda one: found[one] == (2,), default=0)  # in rank 2 both layouts are the same
    layers.declared, layers.fixed = layouts[place]
    if failed is not None and not found:
        raise failed
    return found[place]


def _layouts(layers: Layers) -> list[tuple[Declarations, FixedSettings]]:
    """The layer's usual layout, and the other one: features or channels in the last axis, or in axis 1."""
    declared, fixed = layers.declared, layers.fixed
    if not _trailing(layers):
        return [(declared, fixed), (declared, replace(fixed, channel_axis=-1 if fixed.channel_axis == 1 else 1))]
    others = [(replace(declared, layout="channels-first"), fixed)] if fixed.axes == 1 else []
    return [(declared, fixed), *others]


def _reached(layers: Layers, rank: int) -> np.ndarray | None:
    """Which values of y change with the first value of x; None if that cannot be told."""
    x = ordinary_values(shape_of(layers, rank))
    other = x.copy()
    other.flat[0] += 1
    try:
        before, after = (trial_results(layers, one, training=True)[0] for one in (x, other))
    except Exception:  # the layer's own: one that takes this rank in inference need not do so in training
        return None
    return before != after if before.shape == after.shape == x.shape else None


def _reaches_its_group(layers: Layers, rank: int) -> bool:
    """Whether the first value of x reaches its group and nothing else."""
    reached, record = _reached(layers, rank), OPERATORS[layers.operator]
    if reached is None:
        return False
    settings = {"channel_axis": layers.fixed.channel_axis, "groups": layers.fixed.groups or GROUPS}
    own = {name: settings[name] for name in settings if name in record.settings}
    groups = Layout.of(layers.operator, reached.shape, own).rows(reached)
    return bool(groups[0].all() and not groups[1:].any())


def _takes_a_sample(layers: Layers, rank: int) -> bool:
    """
    Whether x of this rank counts as one sample: for PyTorch's InstanceNorm2d axis 0 has the channels in rank 3.

    A sample of one channel is a group, so that it makes no difference there.
    """
    record = OPERATORS[layers.operator]
    if record.groups is not Groups.SAMPLE_CHANNELS or not record.channels_alone or _reaches_its_group(layers, rank):
        return False
    reached = _reached(layers, rank)
    return reached is not None and bool(reached[0].all() and not reached[1:].any())


def _ranks(layers: Layers) -> tuple[int, ...]:
    """The ranks in which a call works. Raises WrongSignature if there is none."""
    candidates = _candidates(layers)
    failed: Exception | None = None
    found = []
    for rank in candidates:
        shape = shape_of(layers, rank)
        try:
            y = trial_results(layers, ordinary_values(shape))[0]
        except Exception as error:
            failed = failed or error
            continue
        if y.shape == shape:
            found.append(rank)
    if not found:
        raise WrongSignature(
            f"{layers.label} returns y of x's shape for none of {candidates[0]} to {candidates[-1]} dimensions, and for"
            f" x of shape {shape_of(layers, candidates[0])} {_what_happened(failed)}: it has to take only x"
        )
    return tuple(found)


def _what_happened(failed: Exception | None) -> str:
    """What came of a call that did not return x's shape; ``failed`` is what it raised."""
    if isinstance(failed, CannotVary):  # ours, and not the layer's
        return "its parameters are not all of the size of what is normalised"
    return "returns another shape" if failed is None else f"raises {one_line(failed)}"


def _candidates(layers: Layers) -> tuple[int, ...]:
    if layers.fixed.ranks:  # declared
        return layers.fixed.ranks
    least = max(layers.fixed.axes or 1, 2 if layers.channels_first else 1) if _trailing(layers) else 2
    return tuple(rank for rank in _RANKS if rank >= least)


def _trailing(layers: Layers) -> bool:
    return OPERATORS[layers.operator].groups is Groups.TRAILING
