"""What a campaign is asked to do: its units, and what tells it from another one."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from ...adapters.dtypes import DTYPES
from ...adapters.own_function import names_a_function
from ..reporting.versions import packaged, versions
from ..requests.request import Request
from ..requests.sound_names import SOUND, names_a_variant
from ..running.unit import Unit
from ..sources import sources

#: Raised by one when what is stored would be misread by an older reader, or the other way round.
SCHEMA = 1

#: What of a request decides on the cases of a unit and on what they are judged by.
_DECIDING = ("op", "framework", "dtypes", "device", "conventions", "profile", "forward_only", "slow", "mode", "pythons")


@attrs.frozen
class Key:
    """One unit of a campaign: all cases of an operator in a dtype from one seed, put to one target."""

    target: str
    operator: str
    dtype: str
    seed: int

    @property
    def kind(self) -> tuple[str, str, str]:
        """The unit but for its seed."""
        return self.target, self.operator, self.dtype


@attrs.frozen
class Campaign:
    """A request on many seeds."""

    #: The targets as they were asked for.
    asked: tuple[str, ...]
    #: What is checked, with the sound functions in the place of `sound`; its seed stands for none.
    request: Request
    #: What is judged, as it stands in a report.
    subjects: Sequence[Mapping[str, Any]]
    seeds: range

    def units(self, units: Iterable[Unit]) -> list[Unit]:
        """
        The units of a campaign, as they are judged: each target by itself, but for sound functions, which come together
        and share their truths where the executor has them so.

        Seed after seed, and dtype after dtype, so that a campaign that is stopped soon has met every operator.
        """
        found = [
            attrs.evolve(unit, targets=names)
            for unit in units
            for asked in self.asked
            if (names := tuple(name for name in unit.targets if asked_as(name) == asked))
        ]
        order = list(DTYPES)
        return sorted(found, key=lambda unit: (unit.seed, order.index(unit.dtype)))

    def asked_for(self, units: Sequence[Unit]) -> dict[str, Any]:
        """What its folder says of it: its identity, and which units there are."""
        kinds = dict.fromkeys(key.kind for unit in units for key in keys_of(unit))
        return {
            "identity": self.identity(),
            "kinds": [list(kind) for kind in kinds],
            "seeds": [self.seeds.start, self.seeds.stop],
        }

    def identity(self) -> dict[str, Any]:
        """
        What has to be the same for another start to go on with this campaign: all but the seeds.

        The files of functions, and our own, count by their content.
        """
        return {
            "schema": SCHEMA,
            "targets": list(self.asked),
            **{name: _plain(getattr(self.request, name)) for name in _DECIDING},
            **{f"version of {name}": number for name, number in versions().items()},
            **{
                f"version of {subject['target']}": packaged(subject)
                for subject in self.subjects
                if asked_as(subject["target"]) != SOUND
            },
            **{f"content of {name}": _file(name) for name in self.asked if names_a_function(name)},
            "files of normspec": sources(),
        }


def keys_of(unit: Unit) -> list[Key]:
    """What is stored of a unit: what was judged of each of its targets."""
    return [Key(target, unit.operator, unit.dtype, unit.seed) for target in unit.targets]


def without(unit: Unit, done: Collection[Key]) -> Unit:
    """What is left of a unit, which may be no target."""
    return attrs.evolve(unit, targets=tuple(key.target for key in keys_of(unit) if key not in done))


def expanded(asked: Sequence[str], op: Sequence[str] | None) -> tuple[str, ...]:
    """The targets to open for those asked for."""
    from ..requests.specimens import variants  # it imports every sound function

    return tuple(dict.fromkeys(name for one in asked for name in (variants(op) if one == SOUND else (one,))))


def asked_as(target: str) -> str:
    """What a target was asked for as: `sound`, of which it is one, or itself."""
    return SOUND if names_a_variant(target) else target


def _plain(value: Any) -> Any:
    """A value as JSON returns it."""
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in sorted(value.items())}
    return list(value) if isinstance(value, tuple) else value


def _file(target: str) -> str:
    """A digest of the file that a function is in; empty for one in a module, which is found by name."""
    path = Path(target.rpartition(":")[0])
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16] if path.is_file() else ""
