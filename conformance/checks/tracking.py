"""Tracking: what is tracked for gradients, and as what kind of tensor, makes no difference to the results."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from ...adapters.binding import differentiable
from ...spec.errors import MissingGradient, TargetRaised
from ..cases.case import Case
from ..judging.findings import Finding
from ..judging.known import failure_shown
from ..judging.subject import Subject
from .derived import affine_names, some_tracked
from .registry import check, of_any_size
from .relations import same, same_gradients
from .repetitions import is_by_tracking, repetitions, same_when_tracked


@check("CM-P6", every=of_any_size, gradient=True)
def tracking_makes_no_difference(subject: Subject, case: Case) -> Iterator[Finding]:
    """
    A call whose gradients are taken returns the same as one where nothing is tracked.

    If the calls do not repeat themselves, tracking is not the reason: then CM-P2 says so.
    """
    observed = subject.observe(case)
    for found in same_when_tracked(subject, case, observed.outputs, observed.tracked, "gradients are tracked"):
        if not found.violated or is_by_tracking(subject, case):
            yield found
    others = [_same_in_inference_mode] if subject.has_inference_path else []
    if "CM-P4" in case.requirements:
        others = [_same_whatever_is_tracked, _same_in_inference_mode, _same_in_a_network]
    for compared in others:
        for found in compared(subject, case, observed.outputs):
            if not found.violated or not repetitions(subject, case).violated:
                yield found


def _same_whatever_is_tracked(subject: Subject, case: Case, known: dict[str, np.ndarray]) -> Iterator[Finding]:
    """The outputs where only some inputs need a gradient, or none does though gradients are enabled."""
    frozen = partial(subject.start, case, wrt=(), frozen=True)
    chosen = some_tracked(case)
    subject.prefetch(case, [lambda: frozen().outputs(), *(partial(subject.tracked, case, wrt) for wrt in chosen)])
    for name, value in frozen().outputs().items():
        yield same(subject, case, name, value, known[name], "gradients are enabled, and no input needs one")
    for wrt in chosen:
        note = f"only {', '.join(wrt)} {'needs' if len(wrt) == 1 else 'need'} a gradient"
        with contextlib.suppress(MissingGradient, TargetRaised):  # CM-T3, or LN-G11, judges it
            tracked, _ = subject.tracked(case, wrt)
            yield from same_when_tracked(subject, case, known, tracked, note)


def _same_in_inference_mode(subject: Subject, case: Case, known: dict[str, np.ndarray]) -> Iterator[Finding]:
    """The outputs in the framework's inference mode, such as PyTorch's, which code can tell from its no_grad."""
    if not subject.binding.has_modes:
        for name, value in subject.outputs(case, "inference").items():
            yield same(subject, case, name, value, known[name], "in the framework's inference mode")


def _same_in_a_network(subject: Subject, case: Case, known: dict[str, np.ndarray]) -> Iterator[Finding]:
    """The outputs and gradients where tensors are what they are inside a network: no leaves, or parameters."""
    affine = [name for name in affine_names(case) if case.inputs[name] is not None]
    inputs = differentiable(case.operator, case.inputs)
    kinds = {"each input passed as the result of another operation": inputs}
    if affine:
        rest = tuple(name for name in inputs if name not in affine)
        kinds[f"{' and '.join(affine)} passed as parameters of the framework, x as another operation's result"] = rest

    def asked() -> Iterator[Callable[[], object]]:
        for intermediate in kinds.values():
            evaluation = subject.start(case, intermediate=intermediate)
            yield partial(evaluation.pull, case.g)

    subject.prefetch(case, asked())
    together = subject.observe(case).gradients
    for note, intermediate in kinds.items():
        try:
            evaluation = subject.start(case, intermediate=intermediate)
            outputs = evaluation.outputs()
            gradients = subject.named_gradients(evaluation.pull(case.g).gradients(), case)
        except (TargetRaised, MissingGradient) as failed:
            words = f"raised {failed}" if isinstance(failed, TargetRaised) else str(failed)
            yield Finding(case, violated=True, output="y", note=f"{words}, {note}", failure=failure_shown(failed))
            return
        for name, value in outputs.items():
            yield same(subject, case, name, value, known[name], note)
        yield from same_gradients(subject, case, gradients, together, note)
