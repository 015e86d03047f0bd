"""The picture of a report in the README: `python docs/picture.py` runs normspec and draws its output."""

from __future__ import annotations

import io
import os
import shlex
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

COMMAND = """normspec check examples/layer_norm_eps_beside_std.py:layer_norm \\
    --only 'LN-F*' --profile quick"""
PICTURE = Path(__file__).with_name("report.svg")
COLUMNS = 88


def main() -> None:
    """Rewrite the picture."""
    printed = subprocess.run(
        [sys.executable, "-m", *shlex.split(COMMAND.replace("\\\n", "")), "--no-cache"],  # judged now, by this checkout
        cwd=Path(__file__).parent.parent,
        env={**os.environ, "FORCE_COLOR": "1", "COLUMNS": str(COLUMNS), "PYTHONIOENCODING": "utf-8"},
        stdout=subprocess.PIPE,
        encoding="utf-8",
    ).stdout
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    console.print(f"$ {COMMAND}", style="bold", highlight=False, soft_wrap=True)
    console.print(Text.from_ansi(printed.rstrip()))
    # A fixed id, so that the file changes only where the report does.
    console.save_svg(str(PICTURE), title="normspec check", unique_id="normspec")


if __name__ == "__main__":
    main()
