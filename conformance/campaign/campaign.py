"""The request of a campaign: its units, and its identity."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import attrs

from ...adapters.dtypes import DTYPES
from ...adapters.own_function import names_a_function
from ..kept_results.following import sources_of_target
from ..kept_results.installed import digest_of
from ..reporting.versions import name_and_version, versions
from ..requests.library_names import SOUND, is_in_library
from ..requests.request import Request
from ..running.unit import Unit
from ..sources import sources

#: Version of the stored form. It is raised by one when an older reader would misread the new form, or the other way
#: round.
SCHEMA = 1

#: Fields of a request that affect the cases of a unit and how they are judged.
_DECIDING = (
    "op",
    "framework",
    "dtypes",
    "device",
    "conventions",
    "profile",
    "forward_only",
    "slow",
    "mode",
    "per_target",
    "pythons",
)


@attrs.frozen
class Key:
    """One unit of a campaign: all cases of an operator in a dtype from one seed, run on one target."""

    target: str
    operator: str
    dtype: str
    seed: int

    @property
    def kind(self) -> tuple[str, str, str]:
        """The unit without its seed."""
        return self.target, self.operator, self.dtype


@attrs.frozen
class Campaign:
    """A request with many seeds."""

    #: The targets as the user named them.
    asked: tuple[str, ...]
    #: The request, with the sound functions in place of `sound`. Its seed is not used.
    request: Request
    #: The subjects, as they stand in a report.
    subjects: Sequence[Mapping[str, Any]]
    seeds: range

    def units(self, units: Iterable[Unit]) -> list[Unit]:
        """
        The units of a campaign, one for each target. Sound functions share a unit, and so its truths, if the executor
        put them together.

        They are ordered by seed and then by dtype, so that a campaign that is stopped early has met every operator.
        """
        found = [
            attrs.evolve(unit, targets=names)
            for unit in units
            for asked in self.asked
            if (names := tuple(name for name in unit.targets if asked_as(name, self.asked) == asked))
        ]
        order = list(DTYPES)
        return sorted(found, key=lambda unit: (unit.seed, order.index(unit.dtype)))

    def asked_for(self, units: Sequence[Unit]) -> dict[str, Any]:
        """The request as its folder stores it: its identity, kinds of units and seeds."""
        kinds = dict.fromkeys(key.kind for unit in units for key in keys_of(unit))
        return {
            "identity": self.identity(),
            "kinds": [list(kind) for kind in kinds],
            "seeds": [self.seeds.start, self.seeds.stop],
        }

    def identity(self) -> dict[str, Any]:
        """
        All that must be the same for a later command to continue this campaign: everything but the seeds.

        Files of functions, and our own files, count by content.
        """
        return {
            "schema": SCHEMA,
            "targets": list(self.asked),
            **{name: _plain(getattr(self.request, name)) for name in _DECIDING},
            "declared": _plain(self.request.declared.to_plain()),
            **{f"version of {name}": number for name, number in versions().items()},
            **{
                f"version of {subject['target']}": name_and_version(subject)
                for subject in self.subjects
                if asked_as(subject["target"], self.asked) != SOUND
            },
            **{f"content of {name}": _content(name) for name in self.asked if names_a_function(name)},
            "files of normspec": sources(),
        }


def keys_of(unit: Unit) -> list[Key]:
    """The keys under which a unit is stored, one for each target."""
    return [Key(target, unit.operator, unit.dtype, unit.seed) for target in unit.targets]


def without(unit: Unit, done: Collection[Key]) -> Unit:
    """The unit with only the targets that are not done, which may be none."""
    return attrs.evolve(unit, targets=tuple(key.target for key in keys_of(unit) if key not in done))


def expanded(asked: Sequence[str], op: Sequence[str] | None) -> tuple[str, ...]:
    """The targets to open for those that the user named: `sound` becomes all sound functions."""
    from ..requests.library_targets import sound_targets  # it imports every sound function

    return tuple(dict.fromkeys(name for one in asked for name in (sound_targets(op) if one == SOUND else (one,))))


def asked_as(target: str, asked: Collection[str]) -> str:
    """The name among those asked for that a target goes by: its own, or `sound` for one of all sound functions."""
    return SOUND if is_in_library(target) and target not in asked else target


def _plain(value: Any) -> Any:
    """A value in the form in which JSON returns it."""
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in sorted(value.items())}
    return list(value) if isinstance(value, tuple) else value


def _content(target: str) -> str:
    """A digest of the files that a function is made of: its own, and those of the project that they import."""
    files = sources_of_target(target).files
    return hashlib.sha256(" ".join(map(digest_of, files)).encode()).hexdigest()[:16]
