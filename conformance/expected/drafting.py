"""`--write-expected`: drafts of entries for the present failures, with reasons left for the user to fill in."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from ...adapters.own_function import file_of
from ...spec.errors import NormspecError
from ..judging.verdicts import Result
from ..reporting.wording import title
from ..requests.configuration import OWN
from ..results.outcome import Outcome

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # pyright: ignore[reportMissingImports]


class WrongDraft(NormspecError):
    """Entries cannot be drafted into that file."""


def table_in(file: str) -> str:
    """
    The table name of an entry in a file of this name, to whose end drafts will be appended.

    Raises WrongDraft if it is not a TOML file, or one to which entries cannot be added.
    """
    path = Path(file)
    table = "expected" if path.name == OWN else "tool.normspec.expected"
    if path.suffix != ".toml":
        raise WrongDraft(
            f"--write-expected {file} is not a TOML file: name normspec.toml, or another file that ends in .toml"
        )
    try:
        tomllib.loads((path.read_text(encoding="utf-8-sig") if path.exists() else "") + f"\n[[{table}]]\n")
    except (OSError, ValueError, RecursionError) as error:
        raise WrongDraft(f"--write-expected {file}: entries cannot be added to what is in it: {error}") from error
    return table


def drafts(report: Outcome, folder: str, table: str) -> str:
    """
    The entries, in TOML; empty if nothing fails.

    ``folder``: the file's folder, to which targets are relative. ``table``: the table name of an entry.
    """
    return "".join(_draft(report, several, folder, table) for several in _grouped(report))


def drafts_in_words(file: str | None, report: Outcome) -> str:
    """What was added to this file, and what is left to do; empty without a file."""
    if file is None:
        return ""
    count = len(_grouped(report))
    if not count:
        return f"nothing fails, and {file} is as it was"
    what = "an entry for one failing requirement" if count == 1 else f"entries for {count} failing requirements"
    return f"{file} has {what} more: say in each `reason` why it is expected to fail"


def _grouped(report: Outcome) -> list[list[Result]]:
    """The failing results of each target, operator and requirement."""
    grouped: dict[tuple[str, str, str], list[Result]] = {}
    for result in report.failures():
        grouped.setdefault((result.target, result.op, result.requirement), []).append(result)
    return list(grouped.values())


def _draft(report: Outcome, failing: Sequence[Result], folder: str, table: str) -> str:
    """The entries of one requirement: one for all bindings if they fail alike, else one for each."""
    first = failing[0]
    dtypes: dict[str, tuple[str, ...]] = {}
    for result in failing:
        dtypes[result.binding] = (*dtypes.get(result.binding, ()), result.dtype)
    every = {one.binding for one in report.results if (one.target, one.op) == (first.target, first.op)}
    if set(dtypes) == every and len(set(dtypes.values())) == 1:
        return _entry(report, first, "", next(iter(dtypes.values())), folder, table)
    return "".join(_entry(report, first, name, found, folder, table) for name, found in dtypes.items())


def _entry(report: Outcome, result: Result, binding: str, dtypes: Sequence[str], folder: str, table: str) -> str:
    cause = next((one for one in report.causes if one.explains_result(result)), None)
    hint = f"{title(result.requirement)}{f'; {cause.sentence}' if cause else ''}"
    lines = [
        f"[[{table}]]  # {' '.join(hint.split())}",
        f"requirement = {_quoted(result.requirement)}",
        f"target = {_quoted(_relative(result.target, folder))}",
        f"operator = {_quoted(result.op)}",
        *([f"binding = {_quoted(binding)}"] if binding else []),
        f"dtypes = [{', '.join(map(_quoted, dtypes))}]",
        'reason = ""',
    ]
    return "\n" + "\n".join(lines) + "\n"


def _quoted(words: str) -> str:
    """A text in TOML, whose basic strings are escaped like JSON's, but hold no halves of characters."""
    whole = words.encode("utf-8", "replace").decode()
    return json.dumps(whole, ensure_ascii=False).replace("\x7f", "\\u007f")


def _relative(target: str, folder: str) -> str:
    """A target as the configuration names it: FILE.py relative to the configuration's folder."""
    file = file_of(target)
    if not file:
        return target
    place = os.path.relpath(os.path.realpath(os.path.expanduser(file)), os.path.realpath(folder or os.curdir))
    return f"{place.replace(os.sep, '/')}:{target.rpartition(':')[2]}"
