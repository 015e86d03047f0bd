"""A report's words for what the run was asked to judge: a verdict on a part must not read as one on the whole."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from ..judging.verdicts import Verdict
from ..requests.choosing import ids_of
from ..results.outcome import Outcome
from .layout import print_rows
from .wording import page_order, several

#: How many ids are listed for a word that selects several.
_MOST_IDS = 8


def selection_in_words(report: Outcome) -> str:
    """The words after CONFORMS that name the only parts that were judged; empty if all that a target has was judged."""
    judged, lacking = _judged(report.only, report)
    parts = [", ".join(words) for words in (judged, report.binding) if words]
    parts += [f"nothing of {', '.join(lacking)} was judged"] if lacking else []
    parts += [f"the failed cases of {report.replayed}"] if report.replayed else []
    return f" in what was asked: {'; '.join(parts)}" if parts else ""


def required_in_words(report: Outcome) -> str:
    """The words after those for what was required beyond the specification; empty if nothing was."""
    judged, lacking = _judged(report.require, report)
    words = f", with {', '.join(judged)} required" if judged else ""
    return words + (f"; required and not judged: {', '.join(lacking)}" if lacking else "")


def _judged(words: Sequence[str], report: Outcome) -> tuple[list[str], list[str]]:
    """The words with a requirement that was judged, and the words without."""
    unjudged = (Verdict.UNSUPPORTED, Verdict.NOT_EXERCISED)
    there = {result.requirement for result in report.results if result.verdict not in unjudged}
    found = {word: not there.isdisjoint(ids_of(word)) for word in words}
    return [word for word in words if found[word]], [word for word in words if not found[word]]


def violated_advice_in_words(report: Outcome) -> str:
    """The words for violated SHOULDs in a run that asked only for some requirements; empty otherwise."""
    broken = page_order(result.requirement for result in report.advice()) if report.only else ()
    return f". Advice, which --require makes a MUST: {several(broken, _MOST_IDS)}" if broken else ""


def print_selection(report: Outcome, console: Console) -> None:
    """Print to what the run was limited and what was a MUST in this run, with the ids behind each word."""
    rows = [("only", _with_ids(report.only, report)), ("binding", ", ".join(report.binding))]
    rows.append(("required", _with_ids(report.require, report)))
    print_rows("What was asked", [row for row in rows if row[1]], console, indent=12)


def _with_ids(words: Sequence[str], report: Outcome) -> str:
    """The words, each with those of its ids for which the report has results."""
    there = {result.requirement for result in report.results}
    told = []
    for word in words:
        # A report from elsewhere may have words that this version lacks: they select nothing.
        ids = [one for one in page_order(ids_of(word)) if one in there and one != word.upper()]
        told.append(f"{word} ({several(ids, _MOST_IDS)})" if ids else word)
    return ", ".join(told)
