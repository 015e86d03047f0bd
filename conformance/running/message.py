"""Messages to another process: a request and then questions, in plain values that any Python can read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from ...adapters.declarations import Declarations
from ...adapters.loading import load_operators
from ...adapters.own_function import file_of
from ...adapters.remote.host import Limits
from ...spec.operators import files_of
from ..requests.request import Request
from .unit import Unit


@attrs.frozen
class Message:
    """All that another process needs to open a request whose targets are given by name."""

    request: Request
    #: The files of user-defined operators that the request names.
    operators: tuple[str, ...] = ()
    #: Places on the other machine of files that the request names, if they differ.
    places: Mapping[str, str] = attrs.field(factory=dict)

    @classmethod
    def of(cls, request: Request) -> Message:
        """The message for a request."""
        return cls(attrs.evolve(request, targets=request.names), files_of(request.op or ()))

    def to_json(self) -> str:
        """The message as one line of JSON."""
        request = attrs.asdict(self.request, recurse=False)
        return json.dumps({"operators": self.operators, "request": request, "places": dict(self.places)}, default=vars)

    @classmethod
    def from_json(cls, text: str) -> Message:
        """The message that `to_json` wrote."""
        found = json.loads(text)
        values: dict[str, Any] = {key: _value(value) for key, value in found["request"].items()}
        declared = Declarations.from_plain(values["declared"])
        request = Request(**{**values, "limits": Limits(**values["limits"]), "declared": declared})
        return cls(request, _value(found["operators"]), found["places"])

    def files(self) -> tuple[str, ...]:
        """The files that the request names."""
        named = (file_of(name) for name in self.request.targets if isinstance(name, str))
        return tuple(dict.fromkeys([*filter(None, named), *self.operators]))

    def load(self) -> Request:
        """Load the operators that the request names, and return the request. Raises what loading their files raises."""
        load_operators(self.places.get(file, file) for file in self.operators)
        names = [name for name in self.request.targets if isinstance(name, str)]
        files = {name: self.places.get(file_of(name), "") for name in names}
        return attrs.evolve(self.request, files={name: file for name, file in files.items() if file})


def question_of(do: str, **told: Any) -> str:
    """A question as one line of JSON."""
    return json.dumps({"do": do, **told})


def question_to_judge(unit: Unit, paces: Mapping[str, str]) -> str:
    """The question that asks for the report on a unit, with the paces of the targets."""
    return question_of("judge", unit=attrs.astuple(unit), paces=dict(paces))


def unit_of(told: Iterable[Any]) -> Unit:
    """The unit in such a question."""
    operator, dtype, seed, targets = told
    return Unit(operator, dtype, seed, tuple(targets))


def _value(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
