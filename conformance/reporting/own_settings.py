"""Settings that no call of a layer or function could vary: its cases are drawn with them, and no others were tried."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from ..results.outcome import Outcome
from .layout import print_prose, print_title
from .wording import several

#: How many paths of a model's layers are told; the JSON has all of them.
_SHOWN = 8


def print_own_settings(report: Outcome, console: Console) -> None:
    """Print, for each binding, the only settings, sizes and parameters that it was checked with."""
    found = [subject for subject in report.subjects if subject.get("fixed")]
    if not found:
        return
    print_title("Fixed, so no other value was tried", console)
    for subject in found:
        line = Text.assemble((", ".join(subject["fixed"]), "cyan"), (f" ({subject['binding']})", "dim"))
        layers = subject.get("layers", ())
        if len(layers) > 1:
            line.append(f"; {len(layers)} layers: {several(layers, _SHOWN)}")
        print_prose(line, console, indent=2, first=Text("="))
