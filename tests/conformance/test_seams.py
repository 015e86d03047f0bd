"""A layer with a sublayer of its own is judged at the seams: each record by the requirement about it, and no other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from normspec.adapters.binding import Binding
from normspec.adapters.numpy import BRIDGE
from normspec.adapters.target import Target
from normspec.conformance.cases.case import Case
from normspec.conformance.checks.catalogue import checks_of
from normspec.conformance.checks.seams import at_the_seams
from normspec.conformance.judging.subject import Subject
from normspec.spec.parts import Part

#: (0, 6) less its mean is (-3, 3), its variance is 9, and with an eps of 16 it becomes (-0.6, 0.6). For the cotangent
#: (1, 0) the gradient is ((0.5, -0.5) + 0.3 (-0.6, 0.6)) / 5; that of gamma is (-0.6, 0), and that of beta (1, 0).
EPS = 16.0
NORMAL, DX = [-0.6, 0.6], [0.064, -0.064]
PARAMETERS = {"gamma": [1, 1], "beta": [0, 0], "dgamma": [-0.6, 0], "dbeta": [1, 0]}
BLOCKS: dict[str, dict[str, list[float]]] = {
    # x is (0, 6), so the sublayer gets (-0.6, 0.6); it is handed the cotangent (1, 0) back.
    "pre_norm": {
        "x": [0, 6], "received": NORMAL, "returned": [2, 4], "y": [2, 10],
        "g": [7, -2], "g_returned": [7, -2], "g_received": [1, 0], "dx": [7.064, -2.064], **PARAMETERS,
    },
    # x and what the sublayer returns add up to (0, 6).
    "post_norm": {
        "x": [1, 2], "received": [1, 2], "returned": [-1, 4], "y": NORMAL,
        "g": [1, 0], "g_returned": DX, "g_received": [3, 5], "dx": [3.064, 4.936], **PARAMETERS,
    },
}  # fmt: skip
#: What is judged of each record.
JUDGED = {"y": "F1", "dx": "G1", "dgamma": "G2", "dbeta": "G3", "g_returned": "G4", "received": "CM-C2"}


@pytest.mark.parametrize("operator", BLOCKS)
@pytest.mark.parametrize("wrong", [None, *JUDGED])
@pytest.mark.parametrize("place", [0, 1])
def test_each_record_is_judged_by_its_own_requirement(operator: str, wrong: str | None, place: int) -> None:
    """One of the twelve records of the first or of the second block is off by an eighth, or none is."""
    right = {name: np.array([values], np.float32) for name, values in BLOCKS[operator].items()}
    right |= {name: right[name][0] for name in PARAMETERS}
    blocks = [right, right]
    if wrong is not None:
        blocks[place] = {**right, wrong: right[wrong] * np.float32(1.125)}

    def no_call(*_: Any, **__: Any) -> Any:
        raise AssertionError("its own records are enough")

    layer = Binding(operator, "own", no_call, seams=lambda *_, **__: blocks)
    subject = Subject(Target("own", "numpy", np.__version__, BRIDGE, (layer,)), layer, "float32")
    inputs = {name: right[name] for name in ("x", "gamma", "beta")}
    case = Case(operator, inputs, {"eps": EPS}, right["g"], parts={"sublayer": Part("identity")})
    page = {"pre_norm": "PR", "post_norm": "PO"}[operator]
    own = {name: of if "-" in of else f"{page}-{of}" for name, of in JUDGED.items()}
    violated = {
        check.requirement
        for check in map(at_the_seams, checks_of(operator))
        if check.requirement in own.values() and any(one.violated for one in check.body(subject, case))
    }
    assert violated == ({own[wrong]} if wrong is not None else set())
