"""The same bits: in repeated calls, for a sample alone, and in another order."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from ...spec.errors import CALL_FAILED, LayoutNotApplicable
from ...spec.operators import OPERATORS
from ..cases.case import Case
from .bench import Bench
from .failing import cell_of
from .plain import SHAPE, plain_case
from .probe import probe
from .table import Cell

#: Number of calls. They catch a race that shows once in a hundred calls with a probability of 63%.
CALLS = 100
#: How many of these are differentiated too.
PULLS = 20

#: A second shape, longer than several vectors.
_LONG = (SHAPE[0], 130)


@probe("determinism", f"{CALLS} repeated calls", OPERATORS)
def determinism(bench: Bench) -> Cell:
    """Compares the bits of y over many calls, and those of the gradients over some."""
    case = plain_case(bench)
    first = bench.outputs(case)["y"].tobytes()
    for number in range(2, CALLS + 1):
        if bench.outputs(case)["y"].tobytes() != first:
            return Cell("other bits", evidence={"calls": number})
    pulled: list[dict[str, bytes]] = []
    with contextlib.suppress(*CALL_FAILED):  # another row says whether there are gradients
        for number in range(1, PULLS + 1):
            pulled.append({name: value.tobytes() for name, value in bench.pull(case).items()})
            if pulled[-1] != pulled[0]:
                return Cell("other bits of gradients", evidence={"calls": CALLS, "pulls": number})
    return Cell("same bits", evidence={"calls": CALLS, "pulls": len(pulled)})


def _equal_once(bench: Bench, whole: Case, pick: Any) -> bool:
    """
    Whether some samples alone agree with the batch in at least one of a few calls.

    Bits that change from call to call are another row.
    """
    part = whole.replace(x=np.take(whole.x, pick, axis=0), g=np.take(whole.g, pick, axis=0))
    for _ in range(4):
        ys = bench.outputs(whole)["y"], bench.outputs(part)["y"]
        if np.take(ys[0], pick, axis=0).tobytes() == ys[1].tobytes():
            return True
    return False


def _invariance(bench: Bench, cases: list[Case]) -> Cell:
    """Compares samples alone, and in another order, with the batch."""
    alone: list[str] = []
    permuted: list[str] = []
    for case in cases:
        count = len(case.x)
        shape = "x".join(map(str, case.x.shape))
        if not all(_equal_once(bench, case, [sample]) for sample in (0, count // 2, count - 1)):
            alone.append(shape)
        order = np.random.Generator(np.random.Philox(count)).permutation(count)
        if not _equal_once(bench, case, order):
            permuted.append(shape)
    evidence = {"alone_differs": alone, "permuted_differs": permuted}
    words = [name for name, found in (("alone", alone), ("permuted", permuted)) if found]
    return Cell(f"other bits {' and '.join(words)}" if words else "same bits", evidence=evidence)


@probe("layouts", "layouts of x")
def layouts(bench: Bench) -> Cell:
    """Compares y for the same x in other memory layouts: strided, transposed, behind an offset, backwards."""
    case = plain_case(bench)
    y = bench.outputs(case)["y"]
    told: dict[str, list[str]] = {}
    for layout in bench.target.layouts:
        if layout == "contiguous":
            continue
        try:
            found = bench.outputs(case, layouts={"x": layout})["y"]
        except LayoutNotApplicable:
            continue
        except CALL_FAILED as failure:
            told.setdefault(cell_of(failure).text, []).append(layout)
            continue
        near = np.allclose(found.astype(np.float64), y.astype(np.float64), rtol=2.0**-6, atol=2.0**-6)
        words = "same bits" if found.tobytes() == y.tobytes() else "other bits" if near else "other values"
        told.setdefault(words, []).append(layout)
    evidence = {"layouts": told}
    if set(told) <= {"same bits"}:
        return Cell("same bits" if told else "only one layout", evidence=evidence)
    others = [f"{words}: {', '.join(which)}" for words, which in told.items() if words != "same bits"]
    return Cell("; ".join(others), evidence=evidence)


@probe("batch_invariance", "batch invariance")
def batch_invariance(bench: Bench) -> Cell:
    """Compares the bits of a sample alone, in a batch and in another order; for batch_norm in inference."""
    cases = [plain_case(bench, shape) for shape in (SHAPE, _LONG)]
    if bench.record.has_modes:
        cases = [case.replace(training=False) for case in cases]
    return _invariance(bench, cases)
