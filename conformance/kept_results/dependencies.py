"""Keys of all that results depend on: for a target in a request, and for its units."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from ...adapters.frameworks import IMPLIED, KNOWN, full_name
from ...adapters.remote.launching import ISOLATES
from ...adapters.targets import EXEC_PREFIX
from ...spec.operators import OPERATORS
from ..requests.library_names import is_in_library
from ..requests.request import Request
from ..sources import sources
from .following import sources_of_target
from .installed import Installed, digest_of
from .runtime_environment import runtime_environment

#: Fields of a request that no result depends on: where things are kept, and which other targets there are.
_IRRELEVANT_FIELDS = {"targets", "cache", "part", "files"}


#: The framework that runs below a package: a layer of Flax depends on JAX too, with its variables and its files.
_FRAMEWORKS: Mapping[str, str] = {**IMPLIED, "transformers": "torch"}


@attrs.frozen
class Dependencies:
    """All that the results of a target depend on."""

    #: The key of a target's results, and the key without the fields that units do not depend on.
    key: bytes
    units_key: bytes
    #: Why results may depend on more than the keys hold, so that the target is always run; empty if they do not.
    obstacle: str
    #: The target's own files with their digests.
    files: Mapping[Path, str]

    def files_unchanged(self) -> bool:
        """Whether the target's own files are unchanged."""
        return all(digest_of(file) == content for file, content in self.files.items())


def dependencies_of(request: Request, target: str, other_targets: Sequence[str], installed: Installed) -> Dependencies:
    """
    All that the results of a target in a request depend on now.

    ``other_targets`` also count, because options of the request may be about only some of them.
    ``installed`` holds the packages that are installed now.
    """
    obstacle, files = _obstacle_of(request, target), dict[Path, str]()
    packages: dict[str, None] = {"numpy": None, "ml_dtypes": None}
    for name in (target, request.framework_of(target) or ""):
        packages |= _packages_of(name)
    if not obstacle and target not in KNOWN and not is_in_library(target):
        made_of = sources_of_target(target)
        files, obstacle = {file: digest_of(file) for file in made_of.files}, made_of.obstacle
        for package in made_of.packages:
            packages |= {package: None, **_packages_of(_FRAMEWORKS.get(package, ""))}
    around, unknown = runtime_environment(packages, request.device)
    there, unrecorded = installed.for_key(packages)
    told = [
        sources(),
        target,
        *other_targets,
        *(f"{file} {content}" for file, content in files.items()),
        *around,
        *there,
    ]
    said = {
        field.name: getattr(request, field.name)
        for field in attrs.fields(Request)
        if field.name not in _IRRELEVANT_FIELDS
    }
    # A unit does not depend on the other operators and dtypes. But the key of a function must hold its operator.
    many = ("dtypes", "op") if target in KNOWN else ("dtypes",)
    few = {name: value for name, value in said.items() if name not in many}
    return Dependencies(_key(told, said), _key(told, few), obstacle or unknown or unrecorded, files)


def _packages_of(name: str) -> dict[str, None]:
    """The packages of a known target or of a framework; none for another name."""
    known = KNOWN.get(full_name(name))
    return {} if known is None else dict.fromkeys(known.packages)


def _obstacle_of(request: Request, target: str) -> str:
    """Why a target cannot be followed, whatever its files contain; empty if it may be."""
    if target.startswith(EXEC_PREFIX):
        return "it is a command"
    if not ISOLATES:
        return "it runs in this process"
    if request.python_of(target):
        return "the packages of another interpreter are not known here"
    if any(record.file for record in OPERATORS.values()):
        return "an operator comes from elsewhere"
    return ""


def _key(told: Sequence[str], said: dict[str, Any]) -> bytes:
    text = json.dumps([told, said], default=_plain, sort_keys=True)
    return hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=16).digest()


def _plain(value: Any) -> Any:
    return sorted(value) if isinstance(value, (set, frozenset)) else vars(value)
