"""
The blocks of README and docs/ as a reader meets them, and how they are run.

A block is fenced, or indented by four spaces. In a `console` block, and in any other that contains one, a line that
begins with `$ ` is a command, followed by its output; a line `...` stands for any omitted lines. Python blocks are run,
toml and json blocks are read. Anything else that a test has to know is in comments above the block, which a reader of
the rendered page does not see:

    <!-- file: mine.py -->                 it is a file for the commands of its page; README's are there on every page
    <!-- run with: --profile quick -->     options that make `normspec` commands shorter for the test
    <!-- not run: it needs a GPU -->       it is not run, and why

The frameworks that a block needs are derived from its targets and imports: it runs in the environment for them.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import attrs

CHECKOUT = Path(__file__).parent.parent.parent
PAGES = ("README.md", *sorted(file.relative_to(CHECKOUT).as_posix() for file in (CHECKOUT / "docs").rglob("*.md")))

#: The folder of tests that runs a block by the frameworks that it needs: the first that has them all.
HOMES = {
    "": set(),
    "torch": {"torch", "transformers"},
    "jax": {"jax", "flax", "equinox"},
    "onnx": {"onnx"},
    "tensorflow": {"tensorflow"},
    "keras": {"keras", "tensorflow", "torch", "jax", "flax"},
}
FRAMEWORKS = sorted({*set().union(*HOMES.values()), "mxnet", "cluster"})

FENCE = re.compile(r"(`{3,})(\w*)")
COMMENT = re.compile(r"<!-- (file|run with|not run)(?:: *(.*?))? *-->")


@attrs.frozen
class Block:
    """A block of a page."""

    page: str
    #: The number of its first line.
    line: int
    #: The word after the fence; "" of an indented block.
    language: str
    text: str
    #: The contents of the comments above it: "file", "run with", "not run".
    notes: dict[str, str]

    @property
    def commands(self) -> list[tuple[str, list[str]]]:
        """Each command with the lines that it prints."""
        found: list[tuple[str, list[str]]] = []
        for line in self.text.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            elif found and found[-1][0].endswith("\\") and not found[-1][1]:
                found[-1] = (f"{found[-1][0]}\n{line.removeprefix('> ')}", [])
            elif found:
                found[-1][1].append(line)
        return found

    @property
    def runs(self) -> bool:
        """Whether it is something to run or to read."""
        return bool(self.commands) or self.language in ("python", "toml", "json")


def blocks(page: str) -> list[Block]:
    """The blocks of a page, in order."""
    return [*_blocks(page, (CHECKOUT / page).read_text(encoding="utf-8").splitlines())]


def _blocks(page: str, lines: list[str]) -> Iterator[Block]:
    notes: dict[str, str] = {}
    number = 0
    while number < len(lines):
        line, start = lines[number], number
        number += 1
        fence = FENCE.match(line)
        if fence:
            while number < len(lines) and lines[number] != fence[1]:
                number += 1
            yield Block(page, start + 1, fence[2], "\n".join(lines[start + 1 : number]) + "\n", notes)
            notes, number = {}, number + 1
        elif line.startswith("    ") and not lines[start - 1].strip():
            while number < len(lines) and (lines[number].startswith("    ") or not lines[number].strip()):
                number += 1
            text = "\n".join(one[4:] for one in lines[start:number]).rstrip() + "\n"
            yield Block(page, start + 1, "", text, notes)
            notes = {}
        elif comment := COMMENT.fullmatch(line):
            notes = {**notes, comment[1]: comment[2] or ""}
        elif line.strip():
            notes = {}


def files(page: str) -> dict[str, str]:
    """The files that a page shows, and those of the README."""
    both = [*blocks("README.md"), *blocks(page)]
    return {block.notes["file"]: block.text for block in both if "file" in block.notes}


def needs(block: Block) -> set[str]:
    """The frameworks that a block needs, by its targets, its imports, and those of the files that it names."""
    text = "\n".join(command for command, _ in block.commands) or (block.text if block.language == "python" else "")
    written = files(block.page)
    named = set(re.findall(r"[\w./-]+\.py\b", text))
    for name in named:
        example = CHECKOUT / name
        text += "\n"
        text += written.get(name, "") or (example.read_text(encoding="utf-8") if example.is_file() else "")
    imports = set(re.findall(r"^(?:import|from) (\w+)", text, re.M))
    targets = {word for command, _ in block.commands for word in re.findall(r"(?<![\w./=-])[a-z]+", _bare(command))}
    targets |= {"onnx"} if re.search(r"\bonnx(runtime|-reference)\b", text) else set()
    return {one for one in FRAMEWORKS if one in imports | targets}


def _bare(command: str) -> str:
    """A command without the remark next to it."""
    return re.sub(r"\s+# .*", "", command)


def home(block: Block) -> str | None:
    """The folder of tests that runs it; None if no environment has what it needs."""
    return next((name for name, has in HOMES.items() if needs(block) <= has), None)


def pages_of(home_of: str) -> list[str]:
    """The pages with blocks that this home runs."""
    return [page for page in PAGES if any(_is_run(block, home_of) for block in blocks(page))]


def _is_run(block: Block, home_of: str) -> bool:
    return block.runs and "not run" not in block.notes and home(block) == home_of


# Running ------------------------------------------------------------------------------------------------


def run_page(page: str, home_of: str, folder: Path) -> None:
    """Run the blocks of a page that belong to a home, in order, in a folder with its files and the examples."""
    prepare(page, folder)
    for block in blocks(page):
        if _is_run(block, home_of):
            _run(block, folder)


def prepare(page: str, folder: Path) -> None:
    """Lay the files of a page into a folder, with the examples and the programs that its commands name."""
    for name, text in files(page).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "examples").symlink_to(CHECKOUT / "examples")
    programs = folder / ".programs"
    programs.mkdir()
    for program, options in (("normspec", "-m normspec "), ("python", "")):
        (programs / program).write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {options}"$@"\n')
        (programs / program).chmod(0o755)


def _run(block: Block, folder: Path) -> None:
    place = f"{block.page}, line {block.line}"
    if block.commands:
        for command, printed in block.commands:
            _run_command(command, printed, block.notes.get("run with", ""), folder, place)
    elif block.language == "json":
        json.loads(block.text)
    elif block.language == "toml":
        _read_toml(block, folder, place)
    elif "file" not in block.notes:
        doctest = block.text.startswith(">>> ")
        (folder / "block.txt").write_text(block.text, encoding="utf-8")
        done = shell("python -m doctest block.txt" if doctest else "python block.txt", folder)
        assert done.returncode == 0, f"{place}: {done.stdout}{done.stderr}"


#: A program that reads a configuration, and rejects unknown keys and impossible values.
READ = "from normspec.conformance.requests.configuration import configuration; configuration('read.toml')"


def _read_toml(block: Block, folder: Path, place: str) -> None:
    """The configuration is one that normspec takes."""
    (folder / "read.toml").write_text(block.text, encoding="utf-8")
    for file, name in re.findall(r'^\[tool\.normspec\.target\."(.+\.py):(.+)"\]$', block.text, re.MULTILINE):
        (folder / file).parent.mkdir(exist_ok=True)
        with (folder / file).open("a", encoding="utf-8") as stream:  # a table is about a function that is there
            stream.write(f"def {name}(): ...\n")
    for name in re.findall(r'"(venvs/[\w-]+)"', block.text):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).symlink_to(sys.prefix)
    done = shell(f"python -c {shlex.quote(READ)}", folder)
    assert done.returncode == 0, f"{place}: {done.stderr}"


def _run_command(command: str, printed: list[str], shorter: str, folder: Path, place: str) -> None:
    line = _bare(command) + (f" {shorter}" if shorter and command.startswith("normspec ") else "")
    done = shell(line, folder)
    told = f"{place}: {line}\n{done.stdout}{done.stderr}"
    # 1 means that something does not conform. With any other status the command did not do what the page says.
    assert done.returncode == 0 or (done.returncode == 1 and "normspec" in line) or printed, told
    while printed and not printed[-1].strip():
        printed = printed[:-1]
    missing = differs(printed, shown(done)) if printed else ""
    assert not missing, f"{place}: these lines are not printed:\n{missing}\nThis is:\n{told}"


def shown(done: subprocess.CompletedProcess[str]) -> list[str]:
    """The lines that a reader sees: the output and the command's error messages."""
    return [*done.stdout.splitlines(), *(line for line in done.stderr.splitlines() if line.startswith("normspec: "))]


def shell(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a line as a reader would, in 80 columns."""
    places = os.pathsep.join((str(folder / ".programs"), os.environ.get("PATH", "")))
    wanted = {"PATH": places, "COLUMNS": "80", "PYTHONIOENCODING": "utf-8"}
    return subprocess.run(
        ["bash", "-c", line],
        cwd=folder,
        env={**os.environ, **wanted},
        capture_output=True,
        text=True,
        encoding="utf-8",
        stdin=subprocess.DEVNULL,
    )


# Comparing ----------------------------------------------------------------------------------------------


def differs(page: list[str], printed: list[str]) -> str:
    """The first lines of the page between two `...` that are not printed, in this order; empty where all are."""
    got, position = [plain(line) for line in printed], 0
    parts = [part.strip("\n") for part in re.split(r"^\.\.\.$", "\n".join(page), flags=re.M)]
    for number, part in enumerate(parts):
        wanted = [plain(line) for line in part.split("\n")] if part else []
        ends = number == len(parts) - 1 and bool(wanted)
        at = _find(wanted, got, position, begins=number == 0, ends=ends)
        if at is None:
            return part
        position = at + len(wanted)
    return ""


def _find(wanted: list[str], got: list[str], position: int, *, begins: bool, ends: bool) -> int | None:
    """The position at or after which these lines stand together: at the beginning, at the end, or anywhere."""
    while got and not got[-1]:
        got = got[:-1]
    places = range(position, len(got) - len(wanted) + 1)
    if begins and wanted:
        places = [next((place for place, line in enumerate(got) if line), 0)]
    if ends:
        places = [place for place in places if place + len(wanted) == len(got)]
    return next((place for place in places if got[place : place + len(wanted)] == wanted), None)


def plain(line: str) -> str:
    """
    A line without what differs from run to run, version to version and processor to processor: times, versions,
    numbers of cases, and how large an error that passes is, since processors add in different orders.
    """
    line = re.sub(r"\b\d+\.\d+\.\d+[\w.+-]*", "VERSION", line)
    line = re.sub(r"\b[\d,]+(\.\d+)? (s|ms|min|seconds|minutes)\b", "TIME", line)
    line = re.sub(r"\b[\d,]+ cases?\b", "CASES", line)
    line = re.sub(r"✓ [\d.]+(e-\d+)?", "✓ ERROR", line)
    return re.sub(r"\s+", " ", line).strip()
