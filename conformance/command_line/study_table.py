"""A study for the terminal: the claim, what was measured with its spread, and the verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from ...studies.study import Study, Verdict
from ..reporting.layout import print_prose, width_of

_STYLES = {
    Verdict.HOLDS.value: "bold green",
    Verdict.UNDER_CONDITIONS.value: "bold yellow",
    Verdict.DOES_NOT_HOLD.value: "bold red",
}

#: A note on the verdict of a --quick run, which readers need before they quote it.
_SMALLER = (
    "This run used smaller models, fewer steps and fewer points than described above, and the verdict is about that run"
    " only. Leave out --quick for the verdict on the claim."
)

#: Columns: where the text of a labelled paragraph begins, and the width of a number.
_LABEL, _NUMBER = 11, 10


def print_studies(studies: Sequence[Study], console: Console) -> None:
    """Print a line or two for each study: its name and its claim."""
    indent = max(len(one.name) for one in studies) + 2
    for one in studies:
        print_prose(Text(one.claim), console, indent=indent, first=Text().append(one.name, style="bold"))
    console.print()
    console.print("Run one: normspec study NAME; its figure and numbers too: --out DIR", soft_wrap=True)


def print_outcome(outcome: Mapping[str, Any], console: Console) -> None:
    """Print a whole outcome, given as in its JSON (studies/written.py)."""
    _print(console, "claim", Text(outcome["claim"], style="bold"))
    for source in outcome["sources"]:
        _print(console, "source", Text("{paper}, {place}, {link}".format(**source)))
    _print(console, "measured", Text(outcome["measured"]))
    _print(console, "target", Text(f"{outcome['target']}: {', '.join(dict.fromkeys(outcome['called'].values()))}"))
    _print(console, "seeds", Text(f"{outcome['seeds'][0]} to {outcome['seeds'][-1]}"))
    console.print()
    _print_facts(outcome["facts"], console)
    console.print()
    _print(console, "rule", Text(outcome["rule"]))
    _print(console, "verdict", Text(outcome["verdict"], style=_STYLES[outcome["verdict"]]))
    if outcome["conditions"]:
        _print(console, "if", Text(outcome["conditions"]))
    _print(console, "because", Text(outcome["because"]))
    if outcome["quick"]:
        _print(console, "--quick", Text(_SMALLER, style="yellow"))


def _print(console: Console, label: str, text: Text) -> None:
    print_prose(text, console, indent=_LABEL, first=Text().append(label, style="dim"))  # only the label is dim


def _print_facts(facts: Sequence[Mapping[str, Any]], console: Console) -> None:
    """Print a row for each fact."""
    expects = any(fact["expected"] is not None for fact in facts)
    columns = {"median": "median", "5 %": "from", "95 %": "to", **({"theory": "expected"} if expects else {})}
    room = max(20, width_of(console) - (_NUMBER + 1) * len(columns))
    name = min(room, max(len(fact["name"]) for fact in facts) + 1)
    console.print(Text(" " * name + "".join(f"{head:>{_NUMBER + 1}}" for head in columns), style="dim"), no_wrap=True)
    for fact in facts:
        numbers = [fact[key] for key in columns.values()]
        row = "".join(f"{'' if one is None else format(one, '.3g'):>{_NUMBER + 1}}" for one in numbers)
        *before, last = Text(fact["name"]).wrap(console, name)
        for line in before:
            console.print(line, no_wrap=True)
        last.pad_right(name - len(last.plain))
        last.append(row)
        last.rstrip()
        console.print(last, no_wrap=True)
