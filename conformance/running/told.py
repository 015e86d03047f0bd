"""What another process is told: a request and its units, in plain values that any Python reads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import attrs

from ...adapters.loading import load_operators
from ...adapters.remote.host import Limits
from ...spec.operators import files_of
from ..request import Request
from .unit import Unit


@attrs.frozen
class Told:
    """All that another process needs to open a request, each of whose targets has a name there."""

    request: Request
    #: The files that enter operators from elsewhere, which the request names.
    operators: tuple[str, ...] = ()

    @classmethod
    def of(cls, request: Request) -> Told:
        """What there is to tell of a request."""
        return cls(attrs.evolve(request, targets=request.names), files_of(request.op or ()))

    def to_json(self) -> str:
        """The same in one line."""
        return json.dumps(
            {"operators": self.operators, "request": attrs.asdict(self.request, recurse=False)}, default=vars
        )

    @classmethod
    def from_json(cls, text: str) -> Told:
        """What `to_json` wrote."""
        found = json.loads(text)
        values: dict[str, Any] = {key: _value(value) for key, value in found["request"].items()}
        return cls(Request(**{**values, "limits": Limits(**values["limits"])}), _value(found["operators"]))

    def heard(self) -> Request:
        """The request, once its operators are known here. Raises what loading their files raises."""
        load_operators(self.operators)
        return self.request


def unit_to_json(unit: Unit, paces: Mapping[str, str]) -> str:
    """A unit in one line, with the paces of its targets."""
    return json.dumps([attrs.astuple(unit), dict(paces)])


def unit_from_json(text: str) -> tuple[Unit, dict[str, str]]:
    """What `unit_to_json` wrote."""
    (operator, dtype, seed, targets), paces = json.loads(text)
    return Unit(operator, dtype, seed, tuple(targets)), paces


def _value(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
