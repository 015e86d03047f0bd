"""The platform of a binding: measured traits of its framework and device, which hold for every function there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from ...adapters.binding import Binding
from ...adapters.target import Target
from ...adapters.trait import Trait
from ...reference.formats import FORMATS
from ...spec.conventions import CONVENTIONS
from ..grouping import grouped


@attrs.frozen
class Platform:
    """
    The traits that count for one binding: those that neither the binding nor the user declares.

    A declared convention counts, whatever the platform does. Code that declares subnormal numbers kept while its
    framework loses them says that it does not leave them to the framework.
    """

    traits: tuple[Trait, ...]
    declared: frozenset[str]

    def of(self, dtype: str) -> list[Trait]:
        """The traits that affect data of a dtype: its own, and for 16 bits also those of float32, which computes it."""
        formats = {dtype, "float32"} if FORMATS[dtype].narrow else {dtype}
        return [trait for trait in self.traits if trait.dtype in formats]

    def values(self, dtype: str) -> dict[str, str]:
        """The conventions that follow from the traits, with their values."""
        return {trait.key: trait.value for trait in self.of(dtype)}

    def evidence(self, dtype: str) -> dict[str, str]:
        """The measured evidence for each of these conventions."""
        return {trait.key: _where(trait) for trait in reversed(self.of(dtype))}

    @property
    def flushes(self) -> frozenset[str]:
        """The formats whose subnormal numbers become zero: those measured, or all if that was declared."""
        if "subnormals" in self.declared:
            return frozenset(FORMATS)
        return frozenset(trait.dtype for trait in self.traits if trait.key == "subnormals")

    def described(self, dtypes: Sequence[str]) -> list[dict[str, Any]]:
        """The traits for the report: each convention with its value, the dtypes that have it, and the evidence."""
        shown = [one for one in self.traits if any(one in self.of(dtype) for dtype in dtypes)]
        found = grouped(((f"{one.key}={one.value}", one.evidence), one.dtype) for one in shown)
        return [
            {"convention": convention, "dtypes": formats, "evidence": evidence}
            for (convention, evidence), formats in found.items()
        ]


def _where(trait: Trait) -> str:
    return f"in {trait.dtype} {trait.evidence}"


def platform_of(target: Target, binding: Binding, device: str, declared: Mapping[str, str]) -> Platform:
    """The platform of a binding on a device, for conventions that the user declared."""
    known = frozenset({**binding.conventions, **declared})
    return Platform(tuple(trait for trait in target.traits(device) if trait.key not in known), known)


def described(
    target: Target, binding: Binding, device: str, conventions: Mapping[str, str], dtypes: Sequence[str]
) -> dict[str, Any]:
    """A binding for the report: target, versions and device, declared conventions with reasons, measured traits."""
    declared = {**binding.conventions, **conventions}
    return {
        "target": target.name,
        "binding": binding.name,
        "op": binding.operator,
        "framework": target.framework,
        "version": target.version,
        "device": device,
        "conventions": {k: v for k, v in declared.items() if v != CONVENTIONS[k][0]},
        "reasons": {k: v for k, v in binding.reasons.items() if k in declared},
        "fixed": binding.fixed.words(binding.operator),
        "layers": list(binding.layers),
        "measured": platform_of(target, binding, device, conventions).described(dtypes),
        "file": "" if binding.where is None else binding.where.file,
        "line": None if binding.where is None else binding.where.line,
    }
