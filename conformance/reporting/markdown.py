"""A report as GitHub's Markdown: a comment on a pull request, and the summary of a job."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ..results.changes import Changes
from ..results.outcome import Outcome
from .causes import remedy_rows, without_cause
from .changes import parts_of, verdict_on
from .closing import SIGNS, run_in_words
from .conclusion import conclusion, target_conclusion
from .failures import shown_violations
from .in_short import in_one_line
from .located import definition_in_words
from .symbols import UNICODE
from .versions import versions_in_words

#: How many violations of a target are told one by one, and how many lines each part of the changes has.
_SHOWN = 20

#: GitHub refuses a comment of more than 65,536 characters.
_MOST = 60_000


def as_markdown(report: Outcome, against: Changes | None) -> str:
    """The verdict, the targets, the causes, the violations without a cause, and the changes since another report."""
    lines = [f"### normspec: {escaped(conclusion(report)[0])}", "", *_targets(report)]
    for name in report.targets:
        lines += _target(report.target(name), name)
    if against is not None:
        lines += ["", "#### What changed", "", escaped(verdict_on(against)), *_changes(against)]
    told = f"{run_in_words(report)}; {versions_in_words(report.all_versions)}"
    text = "\n".join([*lines, "", f"<sub>{escaped(told)}</sub>", ""])
    if len(text) > _MOST:
        text = text[:_MOST].rpartition("\n")[0]
        text += "\n\n</details>" * (text.count("<details>") - text.count("</details>"))
        text += "\n\n(cut off here: the whole is in the JSON)\n"
    return text


def _targets(report: Outcome) -> list[str]:
    """A table of the targets with their verdicts."""
    lines = ["| | target | verdict |", "|---|---|---|"]
    for name in report.targets:
        alone = report.target(name)
        sign, where = UNICODE.verdicts[SIGNS[alone.exit_status]], definition_in_words(report, name)
        place = f" at {code(where)}" if where else ""
        lines.append(f"| {sign} | {code(name)}{place} | {escaped(target_conclusion(alone)[0])} |")
    return lines


def _target(alone: Outcome, name: str) -> Iterator[str]:
    """The causes and the violations of one target."""
    for cause in alone.causes:
        where = f"{cause.op}; {', '.join(cause.dtypes)}"
        yield from ("", f"**{escaped(cause.sentence)}** {code(name)} ({escaped(where)})", "")
        yield from (f"- {label}: {escaped(words)}" for label, words in remedy_rows(cause))
        if cause.faults:
            yield f"- more: {code(f'normspec explain {cause.faults[0]}')}"
    if alone.unmet():
        yield from ("", "**Expected failures that did not happen**", "")
        yield from (f"- {escaped(f'{one.requirement} ({one.reason}): {one.wrong}')}" for one in alone.unmet())
    found = shown_violations(without_cause(alone))
    if found:
        yield from ("", f"<details><summary>{len(found)} violated without a known cause</summary>", "")
        yield from _listed([in_one_line(one.clearest) for one in found])
        yield from ("", "</details>")


def _changes(against: Changes) -> Iterator[str]:
    for part in parts_of(against):
        yield from ("", f"**{escaped(part.heading)}**", "")
        yield from _listed(part.lines)
    if against.asked:
        yield from ("", "**The two runs had different requests**", "")
        yield from (f"- {escaped(words)}" for words in against.asked)


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a table; what its cells hold stands as it is."""
    return [_cells(header), f"|{'---|' * len(header)}", *map(_cells, rows)]


def _cells(words: Sequence[str]) -> str:
    return f"| {' | '.join(words)} |"


def _listed(lines: Sequence[str]) -> list[str]:
    """The first lines as a list, with the number of the others."""
    shown = [f"- {escaped(line)}" for line in lines[:_SHOWN]]
    return [*shown, f"- and {len(lines) - _SHOWN} more"] if lines[_SHOWN:] else shown


def escaped(words: str) -> str:
    """The words in one line, escaped: nothing in them acts as Markdown or HTML, and nobody is mentioned."""
    words = " ".join(words.split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    for letter in "\\|*_[]`#~":
        words = words.replace(letter, f"\\{letter}")
    return words.replace("@", "@\u2060")  # an invisible word joiner


def code(words: str) -> str:
    """The words as code; also safe in a table."""
    plain = " ".join(words.split()).replace("|", "\\|")
    fence = "`"
    while fence in plain:
        fence += "`"
    return f"{fence}{plain}{fence}" if len(fence) == 1 else f"{fence} {plain} {fence}"
