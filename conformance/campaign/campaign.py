"""What a campaign is asked to do: its units, and what tells it from another one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from ...adapters.dtypes import DTYPES
from ...adapters.own_function import names_a_function
from ...adapters.target import Target
from ...spec.operators import OPERATORS
from ..reporting.versions import versions
from ..request import Request
from ..sound_names import SOUND

#: Raised by one when what is stored would be misread by an older reader, or the other way round.
SCHEMA = 1

#: Our own files on which cases and verdicts depend.
_SOURCES = ("spec", "reference", "adapters", "conformance")

#: What of a request decides on the cases of a unit and on what they are judged by.
_DECIDING = ("op", "framework", "dtypes", "device", "conventions", "profile", "forward_only", "slow", "mode", "pythons")


@attrs.frozen
class Key:
    """One unit of a campaign: all cases of an operator in a dtype from one seed, put to one target."""

    #: As it was asked for: "torch", "mine.py:layer_norm", or "sound" for all sound functions of the operator.
    target: str
    operator: str
    dtype: str
    seed: int


@attrs.frozen
class Campaign:
    """A request on many seeds."""

    #: The targets as they were asked for.
    asked: tuple[str, ...]
    #: What is checked, with the sound functions in the place of `sound`; its seed stands for none.
    request: Request
    #: The targets of the request, opened.
    targets: Mapping[str, Target]
    seeds: range

    def members(self, asked: str, operator: str) -> tuple[Target, ...]:
        """The targets that one stands for, as far as they have the operator."""
        names = variants(self.request.op) if asked == SOUND else (asked,)
        found = (self.targets[name] for name in names)
        return tuple(one for one in found if any(binding.operator == operator for binding in one.bindings))

    def kinds(self) -> list[tuple[str, str, str]]:
        """The targets as asked for, each with its operators and dtypes, in the order they run."""
        return [
            (asked, operator, dtype)
            for operator in OPERATORS
            for dtype in DTYPES
            for asked in self.asked
            if any(dtype in (self.request.dtypes or one.dtypes) for one in self.members(asked, operator))
        ]

    def units(self) -> Iterator[Key]:
        """Every unit, seed after seed, so that what is done so far is about all operators and dtypes alike."""
        kinds = self.kinds()
        return (Key(*kind, seed) for seed in self.seeds for kind in kinds)

    def identity(self) -> dict[str, Any]:
        """
        What has to be the same for another start to go on with this campaign: all but the seeds.

        The files of functions, and our own, count by their content.
        """
        asked = {name: _plain(getattr(self.request, name)) for name in _DECIDING}
        return {
            "schema": SCHEMA,
            "targets": list(self.asked),
            **asked,
            **{f"version of {name}": number for name, number in versions().items()},
            **{f"version of {name}": f"{one.framework} {one.version}" for name, one in self._frameworks().items()},
            **{f"content of {name}": _file(name) for name in self.asked if names_a_function(name)},
            "files of normspec": _sources(),
        }

    def _frameworks(self) -> dict[str, Target]:
        return {name: self.targets[name] for name in self.asked if name != SOUND}


def variants(op: Sequence[str] | None) -> tuple[str, ...]:
    """The names of the sound functions of some operators."""
    from ..specimens import variants as there  # it imports every sound function

    return there(op)


def expanded(asked: Sequence[str], op: Sequence[str] | None) -> tuple[str, ...]:
    """The targets to open for those asked for."""
    return tuple(dict.fromkeys(name for one in asked for name in (variants(op) if one == SOUND else (one,))))


def _plain(value: Any) -> Any:
    """A value as JSON returns it."""
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in sorted(value.items())}
    return list(value) if isinstance(value, tuple) else value


def _file(target: str) -> str:
    """A digest of the file that a function is in; empty for one in a module, which is found by name."""
    path = Path(target.rpartition(":")[0])
    return _digest([path]) if path.is_file() else ""


def _sources() -> str:
    root = Path(__file__).parents[2]
    return _digest(sorted(file for room in _SOURCES for kind in ("*.py", "*.md") for file in (root / room).rglob(kind)))


def _digest(files: Sequence[Path]) -> str:
    found = hashlib.sha256()
    for file in files:
        found.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return found.hexdigest()[:16]
