"""The whole report, as it is read in a terminal or a log."""

from __future__ import annotations

from rich.console import Console

from ..report import Report
from .closing import print_closing
from .failures import print_advice, print_failures
from .overview import print_legend, print_section, sections
from .symbols import symbols_for
from .versions import beside_its_name


def print_report(report: Report, console: Console) -> None:
    """Print the table, the violations under it, and the last word.

    Nothing that a target said is read as markup, and only ASCII symbols are drawn
    where the console's encoding has no others.
    """
    symbols = symbols_for(console.encoding)
    versions = {str(s.get("target")): beside_its_name(s) for s in report.subjects}
    for section in sections(report):
        print_section(section, versions.get(section.target, ""), console, symbols)
    if report.results:
        print_legend(console, symbols)
    print_failures(report.failures(), console, symbols, report.advice())
    print_advice(report.advice(), console, symbols)
    print_closing(report, console, symbols)
