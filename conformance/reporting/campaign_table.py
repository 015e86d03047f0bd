"""The report of a campaign: how near each requirement came to its envelope, the violations, and the conclusion."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console
from rich.text import Text

from ...adapters.dtypes import DTYPES
from ..campaign.summary import Kept, Nearness, Summary
from ..judging.verdicts import Verdict
from ..requests.library_names import SOUND
from .layout import print_conclusion, print_line, print_prose, print_title, width_of
from .markdown import table
from .numbers import duration, ratio_text
from .symbols import COLOURS, symbols_for
from .wording import counted, title

#: Shown for a requirement without a magnitude, which only holds or does not.
_NO_RATIO = "-"

#: Shown if every result was a known violation of the target.
_KNOWN = "known"

#: The widths of the columns: ids, numbers of cases, ratios.
_ID, _JUDGED, _RATIO = 9, 9, 10

#: How many violations are shown; the folder has all.
_SHOWN = 20


def print_campaign(summary: Summary, console: Console, folder: str) -> None:
    """Print the table of largest ratios, the violations, the results that were not judged, and the conclusion."""
    for target in _targets(summary) if summary.units else ():
        _print_table(summary, target, console)
    _print_kept(summary, console, folder)
    for name, number in totals(summary):
        print_prose(Text(number), console, indent=12, first=Text(name, style="dim"))
    print_conclusion(conclusion(summary), console)


def _print_table(summary: Summary, target: str, console: Console) -> None:
    dtypes, symbols = _dtypes(summary), symbols_for(console.encoding)
    print_title(target, console)
    head = f"{'':<{_ID}}{'judged':>{_JUDGED}}" + "".join(f"{dtype:>{_RATIO}}" for dtype in dtypes)
    print_line(Text(f"{head}  nearest", style="dim"), console)
    room = width_of(console) - len(head) - 2
    for requirement, cases, ratios, where in rows(summary, target):
        line = Text(f"{requirement:<{_ID}}{cases:>{_JUDGED},}")
        for dtype, ratio in ratios.items():
            line.append(f"{ratio:>{_RATIO}}", style=_style(summary, target, requirement, dtype))
        short = where if len(where) <= room else where[: max(0, room - len(symbols.ellipsis))] + symbols.ellipsis
        line.append(f"  {short}", style="dim").rstrip()
        print_line(line, console)
    console.print()


def rows(summary: Summary, target: str) -> Iterator[tuple[str, int, dict[str, str], str]]:
    """For each requirement: how often it was judged, the largest ratio by dtype, and where the largest of all was."""
    for requirement in summary.requirements():
        found = {dtype: summary.nearness.get((target, requirement, dtype)) for dtype in _dtypes(summary)}
        near = [one for one in found.values() if one is not None and one.cases]
        if not near:
            continue
        worst = max(near, key=lambda one: -1.0 if one.ratio is None else one.ratio)
        where = "" if not worst.ratio else f"{worst.binding}, seed {worst.seed}"
        ratios = {dtype: _told(one) for dtype, one in found.items()}
        yield requirement, sum(one.cases for one in near), ratios, where


def _told(one: Nearness | None) -> str:
    if one is not None and one.ratio is not None:
        return ratio_text(one.ratio)
    return _KNOWN if one is not None and one.known else _NO_RATIO


def totals(summary: Summary) -> list[tuple[str, str]]:
    """The figures of the whole campaign, each with its name."""
    seeds = " and ".join(f"{first}:{last}" for first, last in summary.stretches())
    missing = f", {summary.missing:,} missing" if summary.missing else ""
    identity = summary.asked["identity"]
    figures = [
        ("profile", f"{identity['profile']}, seeds {seeds}, {_versions(summary)}"),
        ("units", f"{summary.units:,}{missing}, {duration(summary.seconds)} on one core"),
        ("judged", f"{summary.cases:,} cases"),
        ("violations", f"{summary.violations:,}"),
        ("errors", f"{summary.counts['error'] + len(summary.defects):,}"),
        ("advice", f"{summary.counts['advice']:,}"),
    ]
    if summary.damaged:
        records = counted(summary.damaged, "record")
        figures.append(("damaged", f"{records}, cut off or damaged: what is lost by that is done again"))
    return figures


def conclusion(summary: Summary) -> tuple[str, str]:
    """The line that ends the summary, and its colour."""
    largest = [
        (one.ratio, *place) for place, one in summary.nearness.items() if one.ratio is not None and not one.advice
    ]
    near = ""
    if largest:
        ratio, _, requirement, dtype = max(largest)
        near = f"; the largest ratio is {ratio_text(ratio)} ({requirement}, {dtype})"
    if not summary.units and summary.missing:
        words = (
            f"NOTHING WAS JUDGED YET: {counted(summary.missing, 'unit')} not done; the same command begins with them."
        )
        return words, "bold yellow"
    stopped = f" Not done: {counted(summary.missing, 'unit')}; the same command continues." if summary.missing else ""
    if summary.violations:
        broken = sorted({one.requirement for one in summary.kept.values() if one.verdict == "fail"})
        return f"VIOLATED: {counted(len(broken), 'requirement')}, {', '.join(broken[:8])}.{stopped}", "bold red"
    if summary.exit_status == 3 and summary.missing:
        return f"PARTIAL: no violation in {summary.cases:,} cases so far{near}.{stopped}", "bold yellow"
    if summary.exit_status == 3:
        return f"PARTIAL: no violation in {summary.cases:,} cases, and errors{near}.", "bold yellow"
    if summary.exit_status == 2:
        return "NOTHING WAS JUDGED", "bold yellow"
    return f"NO VIOLATION in {summary.cases:,} cases{near}.", "bold green"


def to_markdown(summary: Summary, command: str) -> str:
    """The summary as tables for a page."""
    lines = [f"    $ {command}", ""]
    lines += _markdown(("", ""), totals(summary))
    dtypes = _dtypes(summary)
    for target in _targets(summary):
        lines += ["", f"Largest error / envelope, {target}:", ""]
        header = ("requirement", "", "judged", *dtypes)
        lines += _markdown(
            header, ((r, title(r), f"{n:,}", *ratios.values()) for r, n, ratios, _ in rows(summary, target))
        )
    if summary.kept:
        lines += ["", "Violated, or not judged:", ""]
        header = ("requirement", "where", "dtype", "verdict", "seeds", "again")
        lines += _markdown(header, (_cells(one) for one in _sorted(summary)))
    return "\n".join(lines) + "\n"


def _markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return table(header, ([one.replace("|", "\\|") for one in row] for row in rows))


def _cells(one: Kept) -> tuple[str, ...]:
    return one.requirement, one.binding, one.dtype, one.verdict, _seeds(one), f"`{one.again}`"


def _print_kept(summary: Summary, console: Console, folder: str) -> None:
    symbols = symbols_for(console.encoding)
    kept = _sorted(summary)
    for one in kept[:_SHOWN]:
        verdict = Verdict(one.verdict)
        ratio = f", {ratio_text(float(one.ratio))} envelopes" if one.ratio is not None else ""
        reason = f": {one.reason}" if one.reason else ""
        head = Text.assemble(
            (one.requirement, COLOURS[verdict]), f"  {one.binding} {one.dtype}, seed {_seeds(one)}{ratio}{reason}"
        )
        sign = Text(symbols.verdicts[verdict], style=COLOURS[verdict])
        print_prose(head, console, indent=2, first=sign)
        print_prose(Text(one.again, style="dim"), console, indent=2)
    if len(kept) > _SHOWN:
        console.print(Text(f"and {len(kept) - _SHOWN} more", style="dim"))
    if kept:
        print_prose(Text(f"Each with its whole case: {folder}/units.jsonl", style="dim"), console)
        console.print()
    for defect in summary.defects:
        print_prose(Text(f"a defect of normspec: {defect.strip().splitlines()[-1]}", style="bold magenta"), console)


def _seeds(one: Kept) -> str:
    more = f" and more, {one.units} times" if one.units > len(one.seeds) else ""
    return ", ".join(map(str, one.seeds)) + more


def _sorted(summary: Summary) -> list[Kept]:
    """Violations first, then results that could not be judged."""
    return sorted(
        summary.kept.values(), key=lambda one: (one.verdict != "fail", one.target, one.requirement, one.dtype)
    )


def _style(summary: Summary, target: str, requirement: str, dtype: str) -> str:
    ratio = summary.largest(target, requirement, dtype)
    if ratio is None or ratio <= 1:
        return ""
    return COLOURS[Verdict.ADVICE] if summary.nearness[target, requirement, dtype].advice else "bold red"


def _targets(summary: Summary) -> list[str]:
    return list(summary.asked["identity"]["targets"])


def _dtypes(summary: Summary) -> list[str]:
    there = {dtype for _, _, dtype in summary.nearness}
    return [dtype for dtype in DTYPES if dtype in there]


def _versions(summary: Summary) -> str:
    identity = summary.asked["identity"]
    targets = (identity[f"version of {name}"] for name in identity["targets"] if name != SOUND)
    # Two functions of one framework have the same version.
    return ", ".join(dict.fromkeys((f"normspec {identity['version of normspec']}", *targets)))
