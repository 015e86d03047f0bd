"""Laws about groups: each alone, beside others, permuted within, shifted, in either mode."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from ...reference.formats import format_of
from ...reference.scaled import Scaled
from ..cases.case import Case
from ..cases.stream import Stream
from ..judging.findings import Finding
from ..judging.subject import Subject
from .exactly import exact, shifted_exactly
from .groups import of_samples, only_group, some_groups
from .later_calls import different_values
from .registry import BOTH, check, in_training
from .relations import close, close_to_sum, equal, same, same_y, sum_of


@check("LN-L7", "BN-L6", "RM-L7", "GN-L7", "IN-L7", raising="violates", modes=BOTH)
def alone(subject: Subject, case: Case) -> Iterator[Finding]:
    """A group computed alone equals the group in a batch, within the envelope."""
    whole = subject.observe(case).outputs
    rows = case.layout.rows(whole["y"])
    for group, single in _singles(subject, case):
        got, note = subject.outputs(single), f"group {group} alone"
        want = {"y": single.layout.back(rows[group : group + 1])}
        want |= {name: whole[name][group : group + 1] for name in _new_statistics(case)}
        for name, value in want.items():
            bound = subject.bound(single, name)
            yield close(subject, single, name, got[name], value.astype(np.float64), sum_of(bound, bound), note)


def _new_statistics(case: Case) -> tuple[str, ...]:
    """The statistics that a call computes, one a group; none in inference."""
    return tuple(f"new_{name}" for name in case.record.statistics if case.settings["training"])


def _singles(subject: Subject, case: Case) -> list[tuple[int, Case]]:
    """Some groups, each with a case of that group alone. Their outputs are asked for next."""
    singles = [(group, only_group(case, group)) for group in some_groups(case)]
    subject.prefetch(case, (partial(subject.outputs, single) for _, single in singles))
    return singles


@check("LN-L8", "RM-L8", "GN-L8", "IN-L8")
def alone_bits(subject: Subject, case: Case) -> Iterator[Finding]:
    """A group computed alone has the same bits as in a batch."""
    y = subject.observe(case).outputs["y"]
    for group, single in _singles(subject, case):
        got = subject.outputs(single)["y"]
        want, bound = single.layout.back(case.layout.rows(y)[group : group + 1]), subject.bound(single, "y")
        yield equal(
            subject, single, "y", got, want, f"group {group} alone",
            calls=((single, got), (case, y)), bound=sum_of(bound, bound),
        )  # fmt: skip


@check("LN-L9", "RM-L9", "GN-L9", "IN-L9", raising="violates", of="formula")
def feature_permutation(subject: Subject, case: Case) -> Iterator[Finding]:
    """Permuting the features of a group, with gamma and beta, permutes y; so does permuting positions."""
    layout, random = case.layout, case.random("features")
    if len(layout.parameter) > 1:
        return
    features, places = _mixing(random, layout.width), np.arange(layout.positions)
    if layout.positions > 1:
        places = _mixing(random, layout.positions)
    order = (features[:, None] * layout.positions + places).reshape(-1)

    def permute(values: np.ndarray) -> np.ndarray:
        return layout.back(layout.rows(values)[:, order])

    affine = {
        name: None if value is None else value.reshape(layout.blocks, layout.width)[:, features].reshape(value.shape)
        for name, value in case.inputs.items()
        if name in ("gamma", "beta")
    }
    moved = case.replace(x=permute(case.x), g=permute(case.g), **affine)
    yield from _permuted(subject, case, moved, permute, "features permuted")


@check("BN-L5", raising="violates", modes=BOTH, of="formula")
def value_permutation(subject: Subject, case: Case) -> Iterator[Finding]:
    """Permuting the values of every channel in the same way permutes y, and leaves the new running statistics."""
    order = _mixing(case.random("samples"), case.layout.size)

    def permute(values: np.ndarray) -> np.ndarray:
        return case.layout.back(case.layout.rows(values)[:, order])

    moved = case.replace(x=permute(case.x), g=permute(case.g))
    yield from _permuted(subject, case, moved, permute, "values permuted")


def _mixing(random: Stream, n: int) -> np.ndarray:
    """A permutation of n places that maps neither half to itself: a decision made by halves has to show."""
    order = random.permutation(n)
    kept = any(set(order[:half]) == set(range(half)) for half in (n // 2, (n + 1) // 2))
    return order[::-1] if kept else order


def _permuted(subject: Subject, case: Case, moved: Case, permute, note: str) -> Iterator[Finding]:
    before, got = subject.observe(case).outputs, subject.outputs(moved)
    want = permute(before["y"].astype(np.float64))
    a, b = subject.bound(case, "y"), subject.bound(moved, "y")
    yield close(subject, moved, "y", got["y"], want, lambda normative: permute(a(normative)) + b(normative), note)
    for name in _new_statistics(case):
        bound = sum_of(subject.bound(case, name), subject.bound(moved, name))
        yield close(subject, moved, name, got[name], before[name].astype(np.float64), bound, note)


def _shifted(case: Case) -> tuple[Case, float] | None:
    """The case with a constant added to x, and the constant; None if a sum would be rounded."""
    for constant in (64.0, 16.0, 4.0):
        moved = shifted_exactly(case.x, constant)
        if moved is not None:
            return case.replace(x=moved), constant
    return None


@check("LN-L10", "BN-L7", "GN-L10", "IN-L10", when=in_training, raising="violates", of="formula")
def shift(subject: Subject, case: Case) -> Iterator[Finding]:
    """A constant added to a group leaves y as it is."""
    found = _shifted(case)
    if found is not None:
        there, constant = found
        yield same_y(subject, case, there, f"x + {constant:g}")


@check("BN-L13", when=in_training, raising="violates", of="statistics")
def shifted_mean(subject: Subject, case: Case) -> Iterator[Finding]:
    """A constant added to a channel moves its new running mean by momentum times it."""
    found = _shifted(case)
    if found is None:
        return
    (there, constant), name = found, "new_running_mean"
    before, got = subject.observe(case).outputs[name], subject.outputs(there)[name]
    moved = Scaled.of(np.full(before.shape, case.settings["momentum"])) * Scaled.of(np.full(before.shape, constant))
    both = sum_of(subject.bound(case, name), subject.bound(there, name))
    want = (exact(before) + moved).to_dd()
    yield close_to_sum(subject, there, name, got, want, [before], both, f"x + {constant:g}")


@check("LN-L15", "RM-L15", "GN-L15", "IN-L15", raising="violates")
def either_mode(subject: Subject, case: Case) -> Iterator[Finding]:
    """Inference mode gives the same y as training mode."""
    training = subject.observe(case).outputs["y"]
    subject.outputs(
        different_values(case)
    )  # values that the target remembers from its last training call must not show
    got = subject.outputs(case, mode="inference")["y"]
    yield same(subject, case, "y", got, training, "in inference mode")


@check("LN-L16", "RM-L16", "GN-L16", "IN-L16", raising="violates")
def extreme_neighbours(subject: Subject, case: Case) -> Iterator[Finding]:
    """Extreme groups beside a group do not change it."""
    top = min(format_of(case.x.dtype).largest / 8, 2.0**20)
    extreme = np.full_like(_samples(case)[:1], top)
    extreme[:, ::2] = -top
    yield from _beside(subject, case, [extreme], [extreme], "extreme groups")


@check("LN-L17", "RM-L17", "GN-L17", "IN-L17", raising="violates")
def padding(subject: Subject, case: Case) -> Iterator[Finding]:
    """Padding beside a group does not change it."""
    zeros = np.zeros_like(_samples(case)[:1])
    yield from _beside(subject, case, [zeros, zeros], [zeros, zeros + 1, zeros], "padding")


def _samples(case: Case, values: np.ndarray | None = None) -> np.ndarray:
    """The values, one sample a row. A sample has all of gamma; in layer_norm it is one group."""
    return case.layout.rows(case.x if values is None else values).reshape(case.layout.repeats, -1)


def _beside(
    subject: Subject, case: Case, before: list[np.ndarray], after: list[np.ndarray], words: str
) -> Iterator[Finding]:
    """Judge some samples, each between other samples. The batch is at least as large as the case's."""
    whole, samples = _samples(case, subject.observe(case).outputs["y"]), _samples(case)
    fewer = len(samples) - len(before) - 1 - len(after)
    after = [*after, *(after[place % len(after)] for place in range(fewer))]  # x then has its own shape
    asked = {
        sample: of_samples(case, np.concatenate([*before, samples[sample : sample + 1], *after]))
        for sample in sorted({0, len(samples) // 2, len(samples) - 1})
    }
    subject.prefetch(case, (partial(subject.outputs, beside) for beside in asked.values()))
    for sample, beside in asked.items():
        got = _samples(beside, subject.outputs(beside)["y"])[len(before)]
        single = of_samples(case, samples[sample : sample + 1])  # the envelope of the sample alone
        want = single.layout.back(whole[sample].reshape(single.layout.count, -1))
        y = single.layout.back(got.reshape(single.layout.count, -1))
        what = "group" if single.layout.count == 1 else "sample"
        yield same(subject, single, "y", y, want, f"{what} {sample} between {words}")
