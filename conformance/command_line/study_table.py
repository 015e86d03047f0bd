"""A study as the terminal shows it: the claim, what was measured with its spread, and the verdict."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from ...studies.study import Fact, Outcome, Study, Verdict
from ..reporting.layout import print_prose, width_of

_STYLES = {Verdict.HOLDS: "bold green", Verdict.UNDER_CONDITIONS: "bold yellow", Verdict.DOES_NOT_HOLD: "bold red"}

#: Columns: where the text of a labelled paragraph begins, and the width of a number.
_LABEL, _NUMBER = 11, 10


def print_studies(studies: Sequence[Study], console: Console) -> None:
    """A line or two for each study: its name and its claim."""
    indent = max(len(one.name) for one in studies) + 2
    for one in studies:
        print_prose(Text(one.claim), console, indent=indent, first=Text(one.name, style="bold"))
    console.print()
    console.print("Run one: normspec study NAME; its figure and numbers too: --out DIR", soft_wrap=True)


def print_outcome(outcome: Outcome, console: Console) -> None:
    """The whole outcome."""
    study, scale = outcome.study, outcome.scale
    _print(console, "claim", Text(study.claim, style="bold"))
    for source in study.sources:
        _print(console, "source", Text(f"{source.paper}, {source.place}, {source.link}"))
    _print(console, "measured", Text(study.measured))
    _print(console, "target", Text(f"{outcome.target}: {', '.join(dict.fromkeys(outcome.called.values()))}"))
    seeds = f"{scale.seed} to {scale.seed + scale.seeds - 1}"
    _print(console, "seeds", Text(f"{seeds}{', --quick: smaller than the claim' if scale.quick else ''}"))
    console.print()
    _print_facts(outcome.findings.facts, console)
    console.print()
    _print(console, "rule", Text(study.rule))
    judged = outcome.judgement
    _print(console, "verdict", Text(judged.verdict.value, style=_STYLES[judged.verdict]))
    if judged.conditions:
        _print(console, "if", Text(judged.conditions))
    _print(console, "because", Text(judged.because))


def _print(console: Console, label: str, text: Text) -> None:
    print_prose(text, console, indent=_LABEL, first=Text(label, style="dim"))


def _print_facts(facts: Sequence[Fact], console: Console) -> None:
    """A row for each fact."""
    expects = any(fact.expected is not None for fact in facts)
    heads = ["median", "5 %", "95 %", *(["theory"] if expects else [])]
    room = max(20, width_of(console) - (_NUMBER + 1) * len(heads))
    name = min(room, max(len(fact.name) for fact in facts) + 1)
    console.print(Text(" " * name + "".join(f"{head:>{_NUMBER + 1}}" for head in heads), style="dim"), no_wrap=True)
    for fact in facts:
        numbers = [fact.median, fact.low, fact.high, *([fact.expected] if expects else [])]
        row = "".join(f"{'' if one is None else format(one, '.3g'):>{_NUMBER + 1}}" for one in numbers)
        lines = list(Text(fact.name).wrap(console, name))
        for line in lines[:-1]:
            console.print(line, no_wrap=True)
        last = lines[-1]
        last.pad_right(name - len(last.plain))
        line = last + Text(row)
        line.rstrip()
        console.print(line, no_wrap=True)
