"""Fixed settings: those that no call can vary, because a layer was made with them or a function has them built in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from ..spec.operators import OPERATORS

#: The combinations of gamma and beta.
_COMBINATIONS = (("gamma", "beta"), ("gamma",), ("beta",), ())


@dataclass(frozen=True)
class FixedSettings:
    """The settings and sizes that a binding fixes; a call may choose those that are None or an empty tuple."""

    #: The number added to the variance or the mean square.
    eps: float | None = None
    #: The weight of the new statistic.
    momentum: float | None = None
    #: True if every call normalises by the batch statistics, False if every call uses the running statistics.
    training: bool | None = None
    #: How many trailing axes are normalised.
    axes: int | None = None
    #: The sizes of these axes.
    shape: tuple[int, ...] = ()
    #: The number of channels.
    channels: int | None = None
    #: The number of groups that the channels form.
    groups: int | None = None
    #: The channel axis.
    channel_axis: int | None = None
    #: How many dimensions x may have.
    ranks: tuple[int, ...] = ()
    #: The ranks that it takes directly. For any other rank, x gets leading axes of size one, or its leading axes are
    #: merged.
    native: tuple[int, ...] = ()
    #: The combinations of gamma and beta that a call may give, such as ``("gamma", "beta")``, or ``()`` for neither.
    given: tuple[tuple[str, ...], ...] = ()

    def __bool__(self) -> bool:
        return self != _NOTHING

    def declines(self, operator: str, shape: tuple[int, ...], settings: Mapping[str, Any]) -> str | None:
        """Why a call with x of this shape and these settings cannot be made; None if it can."""
        return next(filter(None, self._reasons(operator, tuple(shape), settings)), None)

    def _reasons(self, operator: str, shape: tuple[int, ...], settings: Mapping[str, Any]) -> list[str | None]:
        def other(name: str, words: str) -> str | None:
            own = getattr(self, name)
            return words.format(own) if own is not None and settings.get(name, own) != own else None

        found = [
            other("eps", "its eps is {:g}"),
            other("groups", "it has {} groups"),
            other("training", "it runs only with training={}"),
            other("momentum", "its momentum is {:g}") if settings.get("training") else None,
        ]
        if self.ranks and len(shape) not in self.ranks:
            found.append(f"it takes x of rank {_listed(self.ranks)}, not {len(shape)}")
        if self.channel_axis is not None and not _same_axis(settings["channel_axis"], self.channel_axis, len(shape)):
            found.append(f"its channels are axis {self.channel_axis}")
        elif self.channels is not None:
            axis = settings["channel_axis"]
            # An axis that x lacks is for the target to refuse.
            if -len(shape) <= axis < len(shape) and shape[axis] != self.channels:
                found.append(f"it has {self.channels} channels")
        if self.axes is not None and len(settings["axes"]) != self.axes:
            found.append(f"it normalises the last {_axes_in_words(self.axes)}")
        elif self.shape and shape[len(shape) - len(self.shape) :] != self.shape:
            found.append(f"it is made for {self.shape} in the last {_axes_in_words(len(self.shape))}")
        return found

    def lacks(self, inputs: Mapping[str, Any]) -> str | None:
        """Why a call with this combination of gamma and beta cannot be made; None if it can."""
        given = tuple(name for name in ("gamma", "beta") if inputs.get(name) is not None)
        if not self.given or given in self.given:
            return None
        never = [name for name in given if not any(name in one for one in self.given)]
        if never:
            return f"it has no {' and no '.join(never)}"
        always = [name for name in ("gamma", "beta") if name not in given and all(name in one for one in self.given)]
        return f"it always has a {' and a '.join(always)}" if always else f"it has no {' and '.join(given)} alone"

    def words(self, operator: str) -> list[str]:
        """Each fixed setting in a few words, for the report, as ``--fixed`` takes them."""
        arguments = [name for name in ("gamma", "beta") if name in OPERATORS[operator].arguments]
        names = ("eps", "momentum", "training", "axes", "channels", "groups", "channel_axis")
        own = {name: value for name in names if (value := getattr(self, name)) is not None}
        if "axes" in own:
            own["axes"] = -own["axes"]  # -2: the last two
        found = [f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}" for name, value in own.items()]
        if self.shape:
            found.append(f"shape={'x'.join(map(str, self.shape))}")
        if self.ranks or self.native:
            found.append(f"only x of rank {_listed(self.ranks or self.native)}")
        if self.given:
            found += [f"{name}=none" for name in arguments if not any(name in one for one in self.given)]
            always = [name for name in arguments if all(name in one for one in self.given)]
            found += [f"{' and '.join(always)} always given"] if always else []
        return found

    def to_plain(self) -> dict[str, Any]:
        """The fixed settings as plain values, which `fixed_from_plain` reads back."""
        return {name: value for name, value in asdict(self).items() if value not in (None, ())}


def fixed_from_plain(plain: Mapping[str, Any]) -> FixedSettings:
    """Fixed settings from what `FixedSettings.to_plain` gives; ValueError if they are invalid."""
    try:
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in plain.items()
        }
        if "given" in values:
            values["given"] = tuple(tuple(one) for one in values["given"])
        found = FixedSettings(**values)
    except TypeError as error:
        raise ValueError(f"no fixed settings: {error}") from None
    for field in fields(FixedSettings):
        value = getattr(found, field.name)
        if value is not None and not _VALID[field.type](value):
            raise ValueError(f"no fixed settings: {field.name} is {value!r}")
    return found


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


#: Whether a value is of the type that a field declares.
_VALID: Mapping[Any, Callable[[Any], bool]] = {
    "float | None": lambda value: _is_count(value) or isinstance(value, float),
    "bool | None": lambda value: isinstance(value, bool),
    "int | None": _is_count,
    "tuple[int, ...]": lambda value: isinstance(value, tuple) and all(map(_is_count, value)),
    "tuple[tuple[str, ...], ...]": lambda value: all(one in _COMBINATIONS for one in value),
}


#: What a binding fixes that fixes nothing.
_NOTHING = FixedSettings()


def _same_axis(one: int, other: int, rank: int) -> bool:
    return -rank <= one < rank and -rank <= other < rank and one % rank == other % rank


def _axes_in_words(count: int) -> str:
    return "axis" if count == 1 else f"{count} axes"


def _listed(numbers: tuple[int, ...]) -> str:
    return " or ".join(map(str, numbers))


def parameter_choices(operator: str) -> list[tuple[str, ...]]:
    """The combinations of gamma and beta that an operator's call can have; the first gives all that it takes."""
    taken = OPERATORS[operator].arguments
    return [one for one in _COMBINATIONS if all(name in taken for name in one)]
