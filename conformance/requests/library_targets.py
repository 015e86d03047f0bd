"""The functions of the library by their names as targets. Imported where one is named: it builds the whole library."""

from __future__ import annotations

from collections.abc import Sequence

from ...adapters.target import Target
from ...spec.errors import UnknownOperator, UnknownTarget, near
from ..faults import Fault
from ..faults import registered as registered_faults
from ..sound import Sound
from ..sound import registered as registered_variants
from .implementation_targets import implementation_target
from .library_names import FAULT_PREFIX, SOUND_PREFIX


def sound_targets(op: Sequence[str] | None) -> tuple[str, ...]:
    """The target names of all sound variants, or of those of some operators."""
    return tuple(f"{SOUND_PREFIX}{one.name}" for one in registered_variants() if op is None or one.operator in op)


def library_target(target: str, op: Sequence[str] | None = None) -> Target:
    """
    A function of the library as a target, a sound one with the conventions it declares.

    Raises UnknownTarget and UnknownOperator.
    """
    there: dict[str, Sound | Fault] = (
        {f"{SOUND_PREFIX}{one.name}": one for one in registered_variants()}
        if target.startswith(SOUND_PREFIX)
        else {f"{FAULT_PREFIX}{one.name}": one for one in registered_faults()}
    )
    if target not in there:
        prefix, _, name = target.partition(":")
        meant = near(name, (one.partition(":")[2] for one in there))
        every = "sound` lists the sound functions" if target.startswith(SOUND_PREFIX) else "faults` lists the faults"
        hint = f"did you mean {prefix}:{meant[0]}?" if meant else f"`normspec explain {every}"
        module = f", and there is no module {prefix}" if name.isidentifier() else ""
        raise UnknownTarget(f"the library has no {target}{module}; {hint}")
    found = there[target]
    if op is not None and found.operator not in op:
        raise UnknownOperator(f"{target} is one of {found.operator}, not of {', '.join(op)}")
    conventions = found.conventions if isinstance(found, Sound) else {}
    return implementation_target(target, found.operator, found.build(), conventions)
