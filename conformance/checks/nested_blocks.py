"""Parts that are the operator itself, as where blocks are nested."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import attrs
import numpy as np

from ...spec.errors import TargetRaised
from ...spec.itself import nests
from ...spec.parts import Part
from ..cases.case import Case
from ..judging.findings import Finding
from ..judging.subject import Subject
from .registry import check, recipes
from .strange_parts import before_y

#: Numbers for each parameter of the inner call, in turn. They are none of the outer call's, are exact in every dtype,
#: and gamma - 1 is too.
_PARAMETERS: dict[str, Sequence[float]] = {
    "gamma": (2.0, -1.5, 0.5),
    "beta": (-1.0, 0.25, 3.0),
    "logits": (0.5, -1.0),
}

#: eps of the inner call, which shows where the variance is about 1.
_EPS = 0.5

#: The other parts of the inner call.
_OTHERS = Part("scaled", number=0.5)


def with_itself(case: Case, role: str) -> Case:
    """
    The case with the operator itself in one role; the part that was there is the first part inside.

    Of several branches, the last has as many as the outer call: where the outputs lie in a list for their number, it
    overwrites those before it. Each other one has two.
    """
    name, _, place = role.partition(".")
    record, given = case.record, case.parts[name]
    assert given is not None
    several = given if isinstance(given, tuple) else (given,)
    part = several[int(place or 0)]
    count = len(record.roles) - len(record.optional)
    if record.has_branches:
        count = len(several) if int(place) == len(several) - 1 else 2
    leaves: dict[str, np.ndarray] = {}
    for one in record.parameters:
        size = count if one == "logits" else case.x.shape[-1]
        leaves[f"{role}.{one}"] = np.resize(_PARAMETERS[one], size).astype(case.x.dtype)
    eps = _EPS if record.settings else 0.0
    itself = Part("itself", tuple(leaves), eps, (part, *[_OTHERS] * (count - 1)))
    chosen = tuple(itself if i == int(place) else one for i, one in enumerate(several)) if place else itself
    return attrs.evolve(case, inputs={**case.inputs, **leaves}, parts={**case.parts, name: chosen})


def _nesting(case: Case) -> bool:
    """Cases whose parts depend on what they are handed, smoothly: the inner call then has gradients of every input."""
    return nests(case.record) and recipes("tanh_linear", "projected", "chain", "chain_carry", "mixed")(case)


@check("CM-C12", when=_nesting, raising="violates")
def part_is_the_operator(subject: Subject, case: Case) -> Iterator[Finding]:
    """With the operator itself as a part, values and gradients are those of the block inside the block."""
    gradients = subject.has_gradients(case)
    # A fusion is handed several tensors, which the operator does not take.
    nested = [(role, with_itself(case, role)) for role in before_y(case) if role != "fuse"]
    subject.prefetch(case, _calls(subject, [one for _, one in nested], gradients=gradients))
    for role, one in nested:
        note = f"{role} is the operator itself"
        try:
            yield subject.judge_output(one, "y", subject.outputs(one)["y"], note=note)
            in_inference = subject.outputs(one, "inference")["y"]
            yield subject.judge_output(one, "y", in_inference, note=f"{note}, in inference mode")
            if gradients:
                yield from _gradients(subject, one, note)
        except TargetRaised as raised:
            yield Finding(one, violated=True, output="y", note=f"{note}, and it raised {raised}", failure="raises")


def _calls(subject: Subject, nested: Iterable[Case], *, gradients: bool) -> Iterator[Callable[[], object]]:
    for one in nested:
        yield partial(subject.outputs, one)
        yield partial(subject.outputs, one, "inference")
        if gradients:
            yield partial(subject.tracked, one)


def _gradients(subject: Subject, nested: Case, note: str) -> Iterator[Finding]:
    outputs, gradients = subject.tracked(nested)
    yield subject.judge_output(nested, "y", outputs["y"], note=f"{note}, with gradients tracked")
    for name, value in gradients.items():
        yield subject.judge_gradient(nested, name, value, note=note)
