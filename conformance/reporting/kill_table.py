"""The table of kills as Markdown and JSON: which requirement kills which fault, where, and how it is diagnosed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence

import attrs

from ...reference.formats import ALL_DTYPES
from ..selftest.matrix import DiagnosisInDtype, FaultRow, KillInDtype, Matrix, SoundRow
from .markdown import table

#: The diagnosis of a mistake that is told apart from all others.
_OWN = "its own name"

#: The head of the page.
_HEAD = """\
# The kill table{of}

`normspec selftest {asked}--table FILE` writes this page: each mistake of the library with the requirement that kills
it, after how many cases in each dtype, and how the diagnosis names it. `normspec explain NAME` describes a mistake.
Mistakes are diagnosed in a run over all dtypes in which they show. Where the dtypes differ, the most frequent answer
stands first. For the diagnosis, a SHOULD that a mistake violates counts as a MUST. If the cases of the profile do not
show a mistake, those of `standard` are used. A letter instead of a number means that the mistake is not looked for in
that dtype; the reasons are listed below the table.
"""


def in_markdown(matrix: Matrix) -> str:
    """The page, with a section for each operator."""
    operators = list(dict.fromkeys([row.op for row in matrix.faults] + [row.op for row in matrix.sound]))
    alone = operators[0] if len(operators) == 1 else ""
    head = _HEAD.format(of=f" of {alone}", asked=f"--op {alone} ") if alone else _HEAD.format(of="", asked="")
    parts = [head, *_summary(matrix)]
    for op in operators:
        faults = [row for row in matrix.faults if row.op == op]
        sound = [row for row in matrix.sound if row.op == op]
        parts += [] if alone else [f"## {op}\n"]
        parts += [*_faults(faults), *_sound(sound)]
    return "\n".join(parts)


def in_json(matrix: Matrix) -> str:
    """The same as strict JSON: all rows, including what the page leaves out."""
    document = {
        "profile": matrix.profile,
        "seed": matrix.seed,
        "partial": matrix.partial,
        "faults": [attrs.asdict(row) for row in matrix.faults],
        "sound": [attrs.asdict(row) for row in matrix.sound],
    }
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def _summary(matrix: Matrix) -> Iterator[str]:
    kills = sum(bool(one.cases) for row in matrix.faults for one in row.seen)
    figures = (
        ("mistakes killed, of all", f"{len(matrix.faults) - len(matrix.survivors())} of {len(matrix.faults)}"),
        ("pairs of a mistake and a dtype in which it is killed", str(kills)),
        ("sound functions accused", f"{len(matrix.accused())} of {len(matrix.sound)}"),
    )
    yield from table(("what", "how many"), figures)
    if matrix.partial:
        yield "\nThe run was stopped before the end."
    yield ""
    dtypes = [dtype for dtype in ALL_DTYPES if any(one.dtype == dtype for row in matrix.faults for one in row.named)]
    columns = [_diagnoses([(row, one) for row in matrix.faults for one in row.named if one.dtype == d]) for d in dtypes]
    if columns:
        rows = ([name, *(column[name] for column in columns)] for name in columns[0])
        yield from (*table(("of the mistakes diagnosed in", *dtypes), rows), "")


def _diagnoses(named: Sequence[tuple[FaultRow, DiagnosisInDtype]]) -> dict[str, str]:
    """The figures of one dtype, by what they count."""
    by = Counter(_diagnosis(row, one)[0] for row, one in named)
    standing = sum(len(one.standing) for _, one in named) / len(named)
    return {
        "all": str(len(named)),
        "by its own name alone": f"{by[_OWN]} ({100 * by[_OWN] / len(named):.1f} %)",
        "in a group that no case tells apart": str(by["in a group"]),
        "described, without a name": str(by["described"]),
        "left to its requirements": str(by["none"]),
        "by another's name": str(by["another"]),
        "requirements that stand as causes, for one mistake on average": f"{standing:.2f}",
        "the requirement that kills it is among them": str(sum(row.requirement in one.standing for row, one in named)),
    }


def _faults(rows: Sequence[FaultRow]) -> Iterator[str]:
    if not rows:
        return
    dtypes = tuple(dict.fromkeys(one.dtype for row in rows for one in row.seen))
    reasons: dict[str, str] = {}
    lines = []
    for row in rows:
        seen = {one.dtype: one for one in row.seen}
        cells = [_cell(seen.get(dtype), reasons) for dtype in dtypes]
        words = _by_dtype([(one.dtype, ": ".join(filter(None, _diagnosis(row, one)))) for one in row.named])
        stand = _by_dtype([(one.dtype, ", ".join(one.standing)) for one in row.named])
        lines.append((row.fault, row.requirement, *cells, words, stand))
    yield from table(("mistake", "killed by", *dtypes, "diagnosed as", "stand"), lines)
    yield from ("", *(f"- {letter}: {reason}" for reason, letter in reasons.items()), "")


def _cell(seen: KillInDtype | None, reasons: dict[str, str]) -> str:
    if seen is None:
        return ""
    if seen.unseen:
        return reasons.setdefault(seen.unseen, _letter(len(reasons)))
    return str(seen.cases) if seen.cases else "**survived**"


def _by_dtype(told: Sequence[tuple[str, str]]) -> str:
    """The words for most dtypes, then the words for the others."""
    most = Counter(words for _, words in told).most_common()
    others = (f"{words or 'nothing'} in {', '.join(d for d, one in told if one == words)}" for words, _ in most[1:])
    return "; ".join((most[0][0] if most else "", *others))


def _letter(place: int) -> str:
    """a, b, ... z, aa, ab, ..."""
    rest, last = divmod(place, 26)
    return (_letter(rest - 1) if rest else "") + chr(ord("a") + last)


def _diagnosis(row: FaultRow, named: DiagnosisInDtype) -> tuple[str, str]:
    """How a mistake is diagnosed, and the other names in the diagnosis."""
    if named.own(row.fault):
        return _OWN, ""
    group = named.grouped(row.fault)
    if group:
        return "in a group", ", ".join(name for name in group if name != row.fault)
    others = [name for names in named.names for name in names if name != row.fault]
    if others:
        return "another", ", ".join(others)
    return ("described", "") if named.names else ("none", "")


def _sound(rows: Sequence[SoundRow]) -> Iterator[str]:
    if not rows:
        return
    lines = (
        (
            row.name,
            "" if row.ratio is None else f"{row.ratio:.2g}",
            " in ".join(filter(None, row.largest_in)),
            ", ".join(row.accused_by),
        )
        for row in rows
    )
    yield from (*table(("sound function", "largest error, in envelopes", "in", "accused by"), lines), "")
