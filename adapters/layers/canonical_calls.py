"""
Canonical calls of layers: a layer is made for the settings of a call if its constructor takes them, or used as it is.

Each call lends the layer its parameters and statistics, so that gradients reach the caller's tensors.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...spec.errors import CannotVary, WrongSignature
from ...spec.operators import OPERATORS, Groups
from ..declarations import Declarations
from ..fixed import FixedSettings
from .constructor import Constructor
from .kit import Kit, LayerTensor
from .names import parameters_of


@dataclass(frozen=True)
class MadeLayer:
    """A layer, with the roles of its tensors."""

    layer: Any
    #: For each parameter of the operator, the name of the layer's tensor.
    roles: Mapping[str, str]
    tensors: Mapping[str, LayerTensor]

    @property
    def given(self) -> tuple[str, ...]:
        """Which of gamma and beta it has."""
        return tuple(name for name in ("gamma", "beta") if name in self.roles)

    def extent(self, role: str) -> tuple[int, ...]:
        """The shape of the tensor of a role, without leading and trailing axes of size one."""
        shape = self.tensors[self.roles[role]].shape
        while len(shape) > 1 and shape[0] == 1:
            shape = shape[1:]
        while len(shape) > 1 and shape[-1] == 1:
            shape = shape[:-1]
        return shape


@dataclass
class Layers:
    """The layers of one target; calling it is the canonical call of the operator, on the framework's tensors."""

    kit: Kit
    operator: str
    #: The user's name for the target.
    label: str
    declared: Declarations
    #: Makes the layers; None if there is only one instance.
    constructor: Constructor | None
    instance: Any = None
    #: The settings that none of its layers can vary, as far as known yet.
    fixed: FixedSettings = field(default_factory=FixedSettings)
    #: Whether the constructor gets a size of one axis as a tuple.
    size_as_tuple: bool = False
    #: Whether the layer takes x with batch axes, although the framework's own layers take one sample.
    takes_batch: bool = False
    _made_layers: dict[Any, MadeLayer] = field(default_factory=dict)

    def takes(self, key: str) -> bool:
        """Whether a layer can be made with another value of this setting, a key of names.ARGUMENTS."""
        if self.constructor is None:
            return False
        return self.constructor.sets(key) or (key == "size" and self.kit.builds)

    @property
    def channels_first(self) -> bool:
        """Whether the features, last in the canonical call, are axis 1 for the layer."""
        return self.declared.layout == "channels-first" and OPERATORS[self.operator].groups is Groups.TRAILING

    def made(
        self,
        size: tuple[int, ...],
        given: tuple[str, ...],
        device: str = "cpu",
        rank: int = 2,
        dtype: str = "float32",
        **settings: Any,
    ) -> MadeLayer:
        """
        The layer for this size and x of this rank and dtype; ``given`` says which of gamma and beta it has.

        ``size`` is the extents that are normalised, or the number of channels. Raises WrongSignature.
        """
        if self.constructor is None:
            size, given, settings = (), (), {}
        rank = rank if self.kit.builds and self.constructor is not None else 2
        handed = self.kit.handed(dtype) if self.constructor is not None and self.constructor.handed else {}
        key = (size, given, device, rank, dtype if handed else "", self.size_as_tuple, tuple(sorted(settings.items())))
        if key not in self._made_layers:
            layer = self.instance
            if self.constructor is not None:
                with self.kit.making():
                    layer = self._new(size, given, rank, settings, handed)
            own = self.kit.tensors(layer)
            trained = [name for name, one in own.items() if one.trained]
            roles = parameters_of(own, trained, self.operator, self.declared.parameters, self.label)
            self._made_layers[key] = MadeLayer(self.kit.placed(layer, device), roles, own)
        return self._made_layers[key]

    def _new(
        self,
        size: tuple[int, ...],
        given: tuple[str, ...],
        rank: int,
        settings: Mapping[str, Any],
        handed: Mapping[str, Any],
    ) -> Any:
        assert self.constructor is not None
        extent = size if len(size) != 1 or self.size_as_tuple else size[0]
        affine = {"affine": bool(given), "scale": "gamma" in given, "center": "beta" in given}
        layer = self.constructor(handed, size=extent, **affine, **settings)
        if not self.kit.is_layer(layer):
            raise WrongSignature(f"{self.label} returned {type(layer).__name__}: it has to return a layer")
        return self.kit.built(layer, self._shape(layer, size, rank))

    def _shape(self, layer: Any, size: tuple[int, ...], rank: int) -> tuple[int | None, ...]:
        """The shape of x, of this rank, for a layer of this size; None for an axis whose length is not known."""
        if OPERATORS[self.operator].groups is Groups.TRAILING and not self.channels_first:
            return (*(None,) * (rank - len(size)), *size)
        axis = 1 if self.channels_first else self.kit.axis_of(layer)
        return tuple(size[0] if one == axis % rank else None for one in range(rank))

    def __call__(self, x: Any, *tensors: Any, mode: str, **settings: Any) -> Any:
        """The canonical call. Raises CannotVary if no layer takes this call."""
        record = OPERATORS[self.operator]
        values = dict(zip(record.arguments[1:], tensors))
        training = settings.get("training", mode == "training")
        made = self.made(
            self._size(tuple(x.shape), settings),
            tuple(name for name in ("gamma", "beta") if values.get(name) is not None),
            _device(x),
            len(self._lifted(tuple(x.shape))),
            str(x.dtype),
            **{name: value for name, value in settings.items() if name in _NUMBERS and self.takes(name)},
        )
        lent = {made.roles[role]: self._lent(made, role, value) for role, value in values.items() if value is not None}
        lifted = self._in_its_rank(x)
        handed = self.kit.bridge.move_axis(lifted, -1, 1) if self.channels_first else lifted
        layer = self.kit.ready(made.layer, x, lent)
        y, after = self.kit.run(
            layer, lent, handed, training=training, sample=self._sample(len(handed.shape), settings)
        )
        if self.channels_first:
            self.kit.bridge.written_back(handed, lifted, 1, -1)
        y = self._returned(y, tuple(x.shape))
        if not record.statistics:
            return y
        return (
            y,
            *(self.kit.reshaped(after[made.roles[name]], tuple(values[name].shape)) for name in record.statistics),
        )

    def _sample(self, rank: int, settings: Mapping[str, Any]) -> int:
        """How many trailing axes of the layer's input belong to one sample."""
        if self.takes_batch:
            return rank
        trailing = OPERATORS[self.operator].groups is Groups.TRAILING and not self.channels_first
        return len(settings["axes"]) if trailing else rank - 1

    def _size(self, shape: tuple[int, ...], settings: Mapping[str, Any]) -> tuple[int, ...]:
        """The normalised extents, or the number of channels, for x of this shape."""
        if OPERATORS[self.operator].groups is Groups.TRAILING:
            return shape[len(shape) - len(settings["axes"]) :]
        return (shape[settings["channel_axis"]],)

    def _lent(self, made: MadeLayer, role: str, value: Any) -> Any:
        """The value in the shape of the layer's tensor. Raises CannotVary if there is none, or it has another size."""
        if role not in made.roles:
            raise CannotVary(f"it has no {role}")
        shape = made.tensors[made.roles[role]].shape
        if math.prod(shape) != math.prod(value.shape):
            raise CannotVary("a layer's parameters are of the size that it was made for")
        return value if tuple(value.shape) == shape else self.kit.reshaped(value, shape)

    def _in_its_rank(self, x: Any) -> Any:
        """x, reshaped to a rank that the layer takes."""
        shape = self._lifted(tuple(x.shape))
        return x if shape == tuple(x.shape) else self.kit.reshaped(x, shape)

    def _returned(self, y: Any, shape: tuple[int, ...]) -> Any:
        """y in the layout of the caller's x; a value that is not a tensor of x's shape is returned unchanged."""
        lifted = self._lifted(shape)
        if self.channels_first and len(getattr(y, "shape", ())) == len(lifted):
            y = self.kit.bridge.move_axis(y, 1, -1)
        return self.kit.reshaped(y, shape) if lifted != shape and tuple(getattr(y, "shape", ())) == lifted else y

    def _lifted(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape in a rank that the layer takes: axes of size 1 are added before the normalised ones, or merged."""
        ranks = self.fixed.native
        if not ranks or len(shape) in ranks:
            return shape
        rank, behind = ranks[0], self.fixed.axes or 1
        leading, features = shape[: len(shape) - behind], shape[len(shape) - behind :]
        while len(leading) + behind > rank and len(leading) > 1:
            leading = (leading[0] * leading[1], *leading[2:])
        return (*leading[:1], *(1,) * (rank - behind - len(leading)), *leading[1:], *features)


#: The numeric settings that constructors take.
_NUMBERS = ("eps", "momentum", "groups")


def _device(x: Any) -> str:
    device = getattr(x, "device", None)
    return str(device) if isinstance(getattr(device, "type", None), str) else "cpu"
