"""
Judges layers with sublayers of their own at the seams between layer and sublayer.

Recordings around a sublayer make a case of their own: the block's input, gamma and beta, and a part that returns the
recorded output and passes back the recorded cotangent of the sublayer. The formulas of pre_norm and post_norm are
judged on it as on any other case.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import numpy as np

from ...spec.errors import Unsupported
from ...spec.parts import Part
from ..cases.case import Case
from ..judging.findings import Finding
from ..judging.subject import Subject
from .part_calls import judge_handed, misfit
from .registry import Body, Check, ordinary
from .relations import changed

Block = dict[str, np.ndarray]


def _blocks(subject: Subject, case: Case) -> list[tuple[Case, Block]]:
    """The blocks of the layer, each with the case made from its recordings; kept for the next checks of the case."""
    subject.require_gradients()
    if case not in subject.recorded:
        subject.recorded.clear()  # the checks of one case run in sequence
        subject.recorded[case] = [(_case(case, block), block) for block in subject.seams(case)]
    return subject.recorded[case]


def _case(case: Case, block: Block) -> Case:
    inputs = {
        "x": block["x"],
        "gamma": block["gamma"],
        "beta": block["beta"],
        "sublayer.h": block["returned"],
        "sublayer.replayed": block["g_received"],
    }
    parts = {"sublayer": Part("replayed", ("sublayer.h", "sublayer.replayed"))}
    return Case(case.operator, inputs, case.settings, block["g"], case.requirements, case.description, parts)


def _judged(name: str) -> Body:
    """Return the body that judges y, or one gradient, of every block."""

    def body(subject: Subject, case: Case) -> Iterator[Finding]:
        for place, (recorded, block) in enumerate(_blocks(subject, case)):
            note = f"block {place + 1} of the layer, at its seams"
            if name == "y":
                yield subject.judge_output(recorded, "y", block["y"], note=note)
            else:
                got = block["g_returned"] if name == "dsublayer.h" else block[name]
                yield subject.judge_gradient(recorded, name, got, note=note)

    return body


def _handed(subject: Subject, case: Case) -> Iterator[Finding]:
    """The sublayer gets LN(x), or x itself."""
    for place, (recorded, block) in enumerate(_blocks(subject, case)):
        note = f"block {place + 1} of the layer, at its seams"
        if case.record.normalises_sum:
            yield changed(block["x"], block["received"], recorded, "x", f"{note}: the sublayer is handed x itself")
            continue
        yield from judge_handed(subject, recorded, "sublayer", block["received"], note)


def _handed_as(subject: Subject, case: Case) -> Iterator[Finding]:
    """The input of the sublayer has the shape and dtype of x."""
    for place, (recorded, block) in enumerate(_blocks(subject, case)):
        words = misfit(block["received"], recorded)
        note = f"block {place + 1} of the layer, at its seams: the sublayer was handed {words}"
        yield Finding(recorded, violated=bool(words), output="y", note=note)


def _lacking(subject: Subject, case: Case) -> Iterator[Finding]:
    raise Unsupported("the layer has its own sublayers, so only what happens around them is judged")


#: The requirements that can be judged at the seams: about y, the sublayer's input, and the gradients.
_AT_THE_SEAMS: dict[str, Body] = {
    "CM-C2": _handed,
    "CM-C10": _handed_as,
    **dict.fromkeys(("PR-F1", "PO-F1", "PR-F3", "PO-F3", "PR-F6", "PO-F6"), _judged("y")),
    **dict.fromkeys(("PR-G1", "PO-G1"), _judged("dx")),
    **dict.fromkeys(("PR-G2", "PO-G2"), _judged("dgamma")),
    **dict.fromkeys(("PR-G3", "PO-G3"), _judged("dbeta")),
    **dict.fromkeys(("PR-G4", "PO-G4"), _judged("dsublayer.h")),
}


def at_the_seams(check: Check) -> Check:
    """The check in the form that suits a layer with sublayers of its own."""
    body = _AT_THE_SEAMS.get(check.requirement, _lacking)
    # Its sublayers are the same in every case, so one case tells as much about them as another.
    anywhere = body is _lacking or check.requirement in ("CM-C2", "CM-C10")
    when = ordinary if anywhere else check.when
    return attrs.evolve(check, body=body, when=when, gradient=False)
