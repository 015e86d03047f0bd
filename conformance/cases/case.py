"""A case: one generated input, as plain arrays, built from its description."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, TypeVar

import attrs
import numpy as np
from numpy.typing import NDArray

from ...reference.formats import FORMATS, Format
from ...spec.layout import Layout
from ...spec.operators import OPERATORS, Operator
from ...spec.parts import Parts
from ..kept.content import fingerprint, token
from .description import Description
from .parameters import affine_values, cotangent_values
from .recipes import Drawn, made
from .shapes import settings_of, shape_of
from .stream import Stream

#: From this number of values on, the truths about a case are not kept: they take about 500 bytes a value, and few
#: bindings run such a case.
_BULKY = 1 << 13

T = TypeVar("T")


@attrs.frozen(eq=False, slots=False)
class Case:
    """One input of an operator: arrays, settings and the cotangent of y."""

    operator: str
    #: x, gamma, beta and, for batch_norm, running_mean and running_var, in the dtypes under test. A composed operator
    #: also has the leaves of its parts here.
    inputs: Mapping[str, NDArray[Any] | None]
    #: The keyword arguments.
    settings: Mapping[str, Any]
    #: The cotangent of y.
    g: NDArray[Any]
    #: The requirements that it is made for (description.py).
    requirements: frozenset[str] = frozenset()
    description: Description | None = None
    #: The parts of a composed operator, by role.
    parts: Parts = attrs.field(factory=dict)

    @property
    def x(self) -> NDArray[Any]:
        return self.given("x")

    def given(self, name: str) -> NDArray[Any]:
        """An input that every case of this kind has."""
        value = self.inputs[name]
        assert value is not None, f"{name} is None"
        return value

    @property
    def whole(self) -> bool:
        """Whether every input is given."""
        return all(value is not None for value in self.inputs.values())

    @property
    def only(self) -> bool:
        """Whether it is judged only on the requirements that it names."""
        return self.description is not None and self.description.only

    @property
    def mixed(self) -> bool:
        """Whether it has float32 parameters beside 16-bit data, in a dtype of 16 bits."""
        return self.description is not None and self.description.mixed

    @property
    def record(self) -> Operator:
        """The record of its operator."""
        return OPERATORS[self.operator]

    @cached_property
    def layout(self) -> Layout:
        """How its groups lie. If the operator does not normalise, the groups that it could have."""
        return Layout.of(self.operator, self.x.shape, self.settings)

    @property
    def promoted(self) -> bool:
        """Whether y, and so its cotangent, has another dtype than x."""
        return self.g.dtype != self.x.dtype

    def random(self, purpose: str) -> Stream:
        """A stream for random values that a check needs besides the case; the same for the same purpose."""
        seed = self.description.seed if self.description else 0
        return Stream(seed, self.x.size, zlib.crc32(purpose.encode()))

    @cached_property
    def content(self) -> bytes:
        """Everything that a truth about the case depends on, as part of a key."""
        given = token(self.inputs), token(self.settings), token(self.g)
        return fingerprint(self.operator, *given, repr(sorted(self.parts.items())))

    @cached_property
    def _truths(self) -> dict[tuple[str, str], Any]:
        return {}

    def truth(self, eps_dtype: str, running_variance: str, make: Any) -> Any:
        """The truth about this case under two conventions, made once by ``make``."""
        key = (eps_dtype, running_variance)
        if key not in self._truths:
            self._truths[key] = make(self, eps_dtype, running_variance)
        return self._truths[key]

    @property
    def bulky(self) -> bool:
        """Whether its truths are dropped between one binding and the next."""
        return self.x.size >= _BULKY

    def forget_truths(self) -> None:
        """Free the computed truths; they are made again on request."""
        self._truths.clear()

    def forget_intermediates(self) -> None:
        """Free what the truths were computed from; it is computed again on request."""
        for truth in self._truths.values():
            truth.forget_intermediates()

    @cached_property
    def _derived(self) -> dict[str, Any]:
        return {}

    def derived(self, name: str, make: Callable[[Case], T]) -> T:
        """Return what ``make`` makes from this case under this name: it is made once, and every binding gets it."""
        if name not in self._derived:
            self._derived[name] = make(self)
        return self._derived[name]

    def alone(self) -> Case:
        """A copy of the case without anything computed from it."""
        return attrs.evolve(self)

    def replace(self, **changes: Any) -> Case:
        """
        Return the case with some inputs, settings, the parts or the cotangent (``g``) replaced.

        Arrays in another order are copied to C order; a check about memory asks for a layout itself.
        """
        inputs, settings = dict(self.inputs), dict(self.settings)
        g, parts = np.asarray(changes.pop("g", self.g), order="C"), changes.pop("parts", self.parts)
        for name, value in changes.items():
            if name in inputs:
                inputs[name] = None if value is None else np.asarray(value, order="C")
            elif name in settings:
                settings[name] = value
            else:
                raise KeyError(name)
        return Case(self.operator, inputs, settings, g, self.requirements, self.description, parts)


def build(description: Description, dtype: str, parameter_dtype: str | None = None) -> Case:
    """Return the case of a description, in one data dtype and one parameter dtype."""
    data, held = FORMATS[dtype], FORMATS[parameter_dtype or dtype]
    if not OPERATORS[description.operator].composed:
        return _normalisation_case(description, data, held)
    return _composed_case(description, data, held)


def _normalisation_case(description: Description, data: Format, held: Format) -> Case:
    record, seed = OPERATORS[description.operator], description.seed
    rows = description.group_values(data)
    shape, settings = shape_of(description), settings_of(description)
    layout = Layout.of(record.name, shape, settings)
    inputs: dict[str, NDArray[Any] | None] = {"x": np.ascontiguousarray(layout.back(rows)).astype(data.dtype)}
    for role, name in enumerate(("gamma", "beta"), start=1):
        if name in record.arguments:
            inputs[name] = affine_values(getattr(description, name), layout.parameter_shape, held, seed, role)
    if record.statistics:
        inputs |= dict(zip(record.statistics, running_values(rows, held, seed, description), strict=True))
    g = cotangent_values(description.cotangent, shape, data, seed)
    return Case(record.name, inputs, settings, g, description.requirements, description)


def _composed_case(description: Description, data: Format, held: Format) -> Case:
    rows = description.group_values(data)
    leading = description.leading if description.leading is not None else (len(rows),)
    shape = (*leading, description.n)
    x = rows.reshape(shape).astype(data.dtype)
    handed = made(
        description.operator,
        description.recipe,
        Drawn(shape, data, held, description.seed, description.logits, description.count, x),
    )
    inputs: dict[str, NDArray[Any] | None] = {"x": x}
    settings: dict[str, Any] = {}
    if OPERATORS[description.operator].normalises:
        inputs["gamma"] = affine_values(description.gamma, shape[-1:], held, description.seed, 1)
        inputs["beta"] = affine_values(description.beta, shape[-1:], held, description.seed, 2)
        settings["eps"] = description.eps
    inputs |= handed.inputs
    g = cotangent_values(description.cotangent, shape, data, description.seed)
    return Case(description.operator, inputs, settings, g, description.requirements, description, handed.parts)


def running_values(
    rows: NDArray[np.float64], held: Format, seed: int, description: Description
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return running statistics away from every default, as large as the data.

    The mean differs in every channel and is never 0; the variance is neither 1 nor that of the batch. One channel in
    four has a running variance near eps, where eps shows in inference. With the gamma and beta of a new layer, the
    statistics are a new layer's too: 0 and 1.
    """
    if (description.gamma, description.beta) == ("ones", "ones"):
        return np.zeros(len(rows), held.dtype), np.ones(len(rows), held.dtype)
    random = Stream(seed, 77, len(rows))
    channels = len(rows)
    top = min(2.0**10, math.sqrt(held.largest) / 4)
    size = np.clip(np.abs(rows).max(axis=1, initial=0.0), 2.0**-10, top)
    mean = size * (0.5 + random.random(channels)) * random.choice([-1.0, 1.0], channels)
    sigma = size * (0.25 + random.random(channels))
    variance = sigma * sigma
    # Cases of sizes must show only what depends on the size.
    near = (np.arange(channels) % 4 == 3) & ("CM-S1" not in description.requirements)
    about = max(description.eps, held.smallest_normal) * np.ones(channels)
    if not description.training and description.requirements & {"LN-F3", "LN-F4"}:  # every channel is about eps there
        near = np.full(channels, description.eps > 0)
        about *= 4.0 ** (np.arange(channels) % 3 - 1)  # far enough apart that a wrong eps cannot fit all of them
    variance[near] = about[near] * (0.5 + random.random(int(near.sum())))
    return mean.astype(held.dtype), variance.astype(held.dtype)
