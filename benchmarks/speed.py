"""How long everything takes, side by side with another version.

    python benchmarks/speed.py [--against COMMIT] [--row NAME ...] [--runs N] [--kept] [--json FILE]

Every run of a row is a process of its own. With ``--against`` a working tree of that commit is made and measured in
turns with this one; the ratio is the median of those of neighbouring runs, so that a busy machine slows both alike.
Imports of frameworks are left out. A figure is seconds, unless its name says otherwise. ``--list`` shows the rows.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from rows import ROWS
from rows.row import KEPT
from table import Side, Taken, lines

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parent


@contextlib.contextmanager
def sides(against: str | None) -> Iterator[list[Side]]:
    """This version, and the one to compare it with, each in a folder that has it as `normspec`."""
    with tempfile.TemporaryDirectory() as folder:
        now = Path(folder, "now")
        now.mkdir()
        (now / "normspec").symlink_to(CHECKOUT)
        found = [Side("now", str(now))]
        if against is None:
            yield found
            return
        tree = Path(folder, "then", "normspec")
        git = ["git", "-C", str(CHECKOUT), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(tree), against], check=True)
        try:
            yield [Side("then", str(tree.parent)), *found]
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def measured(side: Side, row: str, kept: str) -> Taken:
    """The measurement of one run of a row, or the reason why there is none."""
    path = os.pathsep.join(filter(None, (side.path, os.environ.get("PYTHONPATH"))))
    command = [sys.executable, str(HERE / "measure.py"), row, kept]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": path, "NORMSPEC_CACHE": "none"}, capture_output=True, text=True,
        encoding="utf-8",
    )  # fmt: skip
    if done.returncode:
        return Taken(missing=(done.stderr.strip().splitlines() or ["it ended without a word"])[-1])
    return Taken(**json.loads(done.stdout.splitlines()[-1]))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print each figure as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", metavar="COMMIT", help="measure that version too, in turns with this one")
    parser.add_argument(
        "--row", action="append", choices=ROWS, metavar="NAME", help="only this row; several may be named"
    )
    parser.add_argument("--runs", type=int, default=3, metavar="N", help="runs of each row, of which the median counts")
    parser.add_argument(
        "--kept", action="store_true", help="also with truths kept on disk, cold and warm, and with results kept"
    )
    parser.add_argument("--json", metavar="FILE", help="write every figure there")
    parser.add_argument("--list", action="store_true", help="show the rows")
    asked = parser.parse_args(arguments)
    if asked.list:
        for row in ROWS.values():
            print(f"{row.name:20} {row.what}{' (only if named)' if row.long else ''}")
        return 0
    rows = [ROWS[name] for name in asked.row or (row.name for row in ROWS.values() if not row.long)]
    found = []
    with sides(asked.against) as both:
        for row in rows:
            for kept in KEPT if asked.kept and row.judges else ["nothing"]:
                runs = [{side.name: measured(side, row.name, kept) for side in both} for _ in range(asked.runs)]
                title = "; ".join(filter(None, (row.what, KEPT[kept])))
                told = lines(title, runs)
                print("\n".join(line.text() for line in told), flush=True)
                found += [line.plain() for line in told]
    if asked.json:
        about = {"against": asked.against, "runs": asked.runs, "python": platform.python_version()}
        about |= {"machine": platform.platform(), "cores": os.cpu_count()}
        Path(asked.json).write_text(json.dumps({**about, "figures": found}, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
