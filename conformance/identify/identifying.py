"""``identify``: the card of a target, from the probes of the comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..api import DEFAULT_LIMITS, requested
from ..compare.catalogue import probes_of
from ..compare.comparison import Comparison
from ..compare.run import OneTarget, measured_table
from ..compare.table import Cell, Kind
from ..engine.progress import Listener
from ..reporting.numbers import ratio_text
from .card import Card, Line
from .formula import formula
from .identification import Identification

#: The rows that say how near the results come to the envelope of their class.
_WITH_MARGIN = ("accuracy", "accuracy_gradients")


def identify(
    target: OneTarget | Sequence[OneTarget],
    *,
    op: str | Sequence[str] | None = None,
    dtype: str = "float32",
    device: str = "cpu",
    framework: str | None = None,
    all_bindings: bool = False,
    python: str | Mapping[str, str] | None = None,
    time_limit: float | None = DEFAULT_LIMITS.seconds,
    memory_limit: int | None = DEFAULT_LIMITS.memory,
    parameters: Mapping[str, str] | None = None,
    layout: str | None = None,
    fixed: Mapping[str, object] | None = None,
    progress: Listener | None = None,
) -> Identification:
    """
    Find out which normalisation a target is, sound or not, and return its card.

    ``target``: one target, as `check` takes it; several have a card each. ``op``: the operators; by default those of a
    function or layer, and layer_norm and batch_norm of a framework. ``dtype``: the dtype of every line that is not
    about another one. The other arguments are those of `compare`; the lines are its rows.

    Raises a NormspecError, before anything is measured, if the request cannot be carried out.
    """
    targets = target if isinstance(target, (list, tuple)) else [target]
    request = requested(
        targets, op=op, device=device, framework=framework, python=python, time_limit=time_limit,
        memory_limit=memory_limit, parameters=parameters, layout=layout, fixed=fixed, cache=False,
    )  # fmt: skip
    found = measured_table(targets, request, dtype, all_bindings=all_bindings, progress=progress, every_operator=True)
    cards = tuple(_cards(found))
    failing = [bool(card.failing) for card in cards]
    status = 2 if failing and all(failing) else found.exit_status or (3 if any(failing) else 0)
    return Identification(cards, found.partial, found.seconds, status)


def _cards(found: Comparison) -> list[Card]:
    cards = []
    for section in found.sections:
        probes = {one.key: one for one in probes_of(section.op)}
        for place, column in enumerate(section.columns):
            cells = {row.key: row.cells[place] for row in section.rows}
            lines = tuple(
                Line(
                    key=row.key,
                    subject=probes[row.key].subject,
                    title=row.title,
                    dtype=row.dtype,
                    text=_cell_in_words(row.key, cells[row.key]),
                    kind=cells[row.key].kind,
                    how=probes[row.key].how,
                    evidence=cells[row.key].evidence,
                )
                for row in section.rows
            )
            cards.append(
                Card(
                    target=column.target,
                    binding=column.binding,
                    op=section.op,
                    framework=column.framework,
                    version=column.version,
                    dtype=found.dtype,
                    device=found.device,
                    formula=formula(section.op, cells),
                    lines=lines,
                )
            )
    return cards


def _cell_in_words(key: str, cell: Cell) -> str:
    """The words of a cell; for an accuracy class also how much of its envelope the worst result takes."""
    ratios = cell.evidence.get("ratios") or {}
    if key not in _WITH_MARGIN or cell.kind is not Kind.MEASURED or not ratios:
        return cell.text
    name, ratio = list(ratios.items())[-1]
    if cell.text == name:
        return f"{cell.text}, at {ratio_text(ratio)} of its envelope"
    return f"{cell.text}: {ratio_text(ratio)} envelopes of the widest"
