"""The changes between two reports, in words, in Markdown and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import attrs
from rich.console import Console
from rich.text import Text

from ..diagnosis.cause import Cause
from ..judging.verdicts import Result
from ..results.changes import Change, Changes
from ..results.outcome import Outcome
from .json_values import plain
from .layout import print_conclusion, print_prose, print_title
from .located import definition, definition_in_words
from .numbers import ratio_text
from .wording import several, title

#: The version of the JSON's form.
SCHEMA = 1


@attrs.frozen
class Part:
    """The changes in one respect."""

    heading: str
    #: Whether they are a regression.
    worse: bool
    lines: tuple[str, ...]


def parts_of(found: Changes) -> tuple[Part, ...]:
    """The changes, regressions first; parts without a change are left out."""
    new, old = found.new, found.old
    parts = (
        Part("Ceased to conform", True, tuple(_place(name, new) for name in found.ceased)),
        Part("New causes", True, tuple(_cause(one, new) for one in found.new_causes)),
        Part("Violated now", True, tuple(_change(one, new) for one in found.violated)),
        Part("No longer judged", True, tuple(_change(one, new) for one in found.unjudged)),
        Part("Began to conform", False, tuple(_place(name, new) for name in found.began)),
        Part("Causes that are gone", False, tuple(_cause(one, old) for one in found.gone_causes)),
        Part("No longer violated", False, tuple(_change(one, new) for one in found.mended)),
        Part("Judged now", False, tuple(_change(one, new) for one in found.judged)),
        Part("Errors that changed by more than a factor of two", False, tuple(_moves(found))),
    )
    return tuple(one for one in parts if one.lines)


def _place(target: str, report: Outcome) -> str:
    """A target with the line that defines it: `mine.py:layer_norm at mine.py:4`."""
    where = definition_in_words(report, target)
    return f"{target} at {where}" if where else target


def _cause(cause: Cause, report: Outcome) -> str:
    return f"{cause.sentence} ({cause.op} of {_place(cause.target, report)}; {', '.join(cause.dtypes)})"


def _change(change: Change, report: Outcome) -> str:
    """`LN-F3 eps inside the root: fail, was pass (layer_norm of mine.py:f at mine.py:4; float32)`."""
    words = dict.fromkeys(f"{_verdict(new)}, was {_verdict(old)}" for old, new in change.pairs)
    return f"{change.requirement} {title(change.requirement)}: {'; '.join(words)} {_where(change, report)}"


def _verdict(result: Result | None) -> str:
    return "not asked" if result is None else result.verdict.value


def _where(change: Change, report: Outcome) -> str:
    bindings = () if change.bindings == (change.target,) else (several(change.bindings, 3),)
    return f"({'; '.join((f'{change.op} of {_place(change.target, report)}', *bindings, ', '.join(change.dtypes)))})"


def _moves(found: Changes) -> Iterator[str]:
    for change in found.moved:
        numbers = []
        for old, new in change.pairs:
            if old is not None and new is not None and old.ratio is not None and new.ratio is not None:
                numbers.append(f"{new.dtype} {ratio_text(new.ratio)}, was {ratio_text(old.ratio)}")
        where = f"{change.op} of {_place(change.target, found.new)}"
        yield f"{change.requirement} {title(change.requirement)}: {'; '.join(dict.fromkeys(numbers))} ({where})"


def verdict_on(found: Changes) -> str:
    """The verdict on the changes, in one line."""
    if found.regression:
        counts = (
            (len(found.ceased), "target", "ceased to conform"),
            (len(found.new_causes), "new cause", ""),
            (len(found.violated), "requirement", "violated now"),
            (len(found.unjudged), "requirement", "no longer judged"),
        )
        told = [f"{number} {what}{'' if number == 1 else 's'} {how}".strip() for number, what, how in counts if number]
        return f"REGRESSION: {', '.join(told)}."
    return "NOTHING CHANGED" if found.nothing else "NO REGRESSION"


def print_changes(found: Changes, console: Console) -> None:
    """Print the changes, the differences between what the two runs were asked, and the conclusion."""
    for part in parts_of(found):
        _print_list(part.heading, part.lines, "bold red" if part.worse else "bold", console)
    _print_list("The two runs had different requests", found.asked, "bold", console)
    print_conclusion((verdict_on(found), "bold red" if found.regression else "bold green"), console)


def _print_list(title: str, lines: Sequence[str], style: str, console: Console) -> None:
    """Print a title with lines under it; nothing if there are none."""
    if lines:
        print_title(title, console, style)
    for line in lines:
        print_prose(Text(line), console, indent=4, first=Text("  -", style="dim"))


def changes_in_json(found: Changes) -> dict[str, Any]:
    """The changes as a JSON object."""
    named = ("violated", "mended", "unjudged", "judged", "moved")
    return {
        "schema": SCHEMA,
        "written_by": "normspec diff",
        "regression": found.regression,
        "verdict": verdict_on(found),
        "ceased": [_target_in_json(name, found.new) for name in found.ceased],
        "began": [_target_in_json(name, found.new) for name in found.began],
        **{name: [_change_in_json(one, found.new) for one in getattr(found, name)] for name in named},
        "new_causes": [attrs.asdict(one) for one in found.new_causes],
        "gone_causes": [attrs.asdict(one) for one in found.gone_causes],
        "asked": list(found.asked),
    }


def _target_in_json(name: str, report: Outcome) -> dict[str, Any]:
    file, line = definition(report, name) or ("", None)
    return {"target": name, "file": file, "line": line}


def _change_in_json(change: Change, report: Outcome) -> dict[str, Any]:
    pairs = [
        {"binding": one.binding, "dtype": one.dtype, "old": _result_in_json(old), "new": _result_in_json(new)}
        for old, new in change.pairs
        if (one := new or old) is not None
    ]
    return {
        **_target_in_json(change.target, report),
        "op": change.op,
        "requirement": change.requirement,
        "title": title(change.requirement),
        "results": pairs,
    }


def _result_in_json(result: Result | None) -> dict[str, Any] | None:
    return None if result is None else {"verdict": result.verdict.value, "ratio": plain(result.ratio)}
