"""
The aspects of the formula, F2 to F8 of every normalisation. Each is judged by a relation that the others leave alone.

A relation evaluates a case more than once and claims that two expressions in the results are equal. Its bound follows
from the envelopes of the calls (A32 to A34 of spec/accuracy.md). A function that is wrong in one aspect breaks the
relation of that aspect, and the whole formula (LN-F1 or BN-F1), and no other.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping

import numpy as np

from ...spec.errors import Unsupported
from ..cases.case import Case
from ..judging.findings import Finding
from ..judging.subject import Subject
from ..judging.translated import between
from .derived import affine_names, at_unit_eps, doubled, filled, less_value, perturbed, twice, with_eps, with_parameters
from .exactly import exact
from .received import Claim, Received, RelatedCall
from .registry import BOTH, check, laws_in_inference
from .relating import Relation

RelatedCalls = Mapping[str, RelatedCall]


def _near(case: Case) -> Case:
    """The case with its groups moved near zero, where that is exact: large means are left to LN-F8 and BN-F8."""
    return case.derived("less its first value", lambda one: less_value(one, 0))


# LN-F2, BN-F2: the divisor of the variance ----------------------------------------------------------------------


def _once_and_twice(case: Case) -> dict[str, Case] | None:
    if case.layout.blocks > 1 and not case.layout.after:
        return None  # with twice the channels a target that groups differently has other groups: GN-F7 is about that
    return {"once": _near(case), "twice": _near(case).derived("doubled", doubled)}


def _same_values(runs: RelatedCalls) -> Iterator[Claim]:
    once, both = runs["once"], runs["twice"]
    want = once.y.placed(lambda values: twice(once.case, values))
    yield Claim(both.case, both.y, want, "y", "a group (x, x), which is y of x twice")


DIVISOR = Relation("the divisor of the variance", _once_and_twice, _same_values)


# LN-F3, BN-F3 and LN-F4, BN-F4: where eps stands, and which value it has ----------------------------------------

#: The factor by which eps is grown: it then grows by three times its value, with a variance of about eps. That shows
#: even in bfloat16, where var + eps is known to a few parts in a hundred.
GROWTH = 4.0
_NAME = "growth of ((x_i - x_j) / (y_i - y_j))^2"


def _two_eps(case: Case) -> dict[str, Case] | None:
    if case.settings["eps"] <= 0:
        return None
    return {"before": case, "after": case.derived("eps grown", lambda one: with_eps(one, GROWTH))}


def _grown(runs: RelatedCalls) -> Received:
    """
    By how much var + eps grows with eps: one number a group, computed from its two values that are farthest apart.

    If a third value gives another number, the bound is infinite: then y is not affine in x within the group.
    """
    before, after = runs["before"], runs["after"]
    order = before.case.layout.rows(before.case.x).astype(np.float64).argsort(axis=1)
    count, n = order.shape
    least, middle, most = order[:, 0], order[:, n // 2], order[:, -1]
    twice_each = np.tile(np.arange(count), 2), np.append(most, middle), np.append(least, least)
    found = [run.slope(*twice_each) for run in (after, before)]
    grown = (found[0] - found[1]).placed(lambda values: values[:count])
    if all(_halves_agree(one) for one in found):
        return grown
    return Received(grown.value, np.full(count, np.inf))


def _halves_agree(found: Received) -> bool:
    values, half = found.value.to_dd().hi, len(found.error) // 2
    apart, bound = np.abs(values[:half] - values[half:]), found.error[:half] + found.error[half:]
    return not (apart > bound).any()


def _in_every_group_alike(runs: RelatedCalls) -> Iterator[Claim]:
    grown = _grown(runs)
    best = int(np.argmin(grown.error))  # the group where it is known best
    alike = grown.placed(lambda values: np.full(values.shape, values[best]))
    others = np.arange(len(grown.error)) != best
    note = f"eps times {GROWTH:g}: the growth of var + eps, compared with that in group {best}"
    exactly = np.full(grown.error.shape, runs["after"].eps - runs["before"].eps)
    yield Claim(runs["after"].case, grown, alike, _NAME, note, others, exactly)


def _by_what_eps_grows(runs: RelatedCalls) -> Iterator[Claim]:
    grown = _grown(runs)
    before, after = (exact(np.full(len(grown.error), runs[name].eps)) for name in ("before", "after"))
    note = f"eps times {GROWTH:g}: the growth of var + eps, compared with that of eps"
    yield Claim(runs["after"].case, grown, Received.given(after - before), _NAME, note)


INSIDE = Relation(
    "where eps stands", _two_eps, _in_every_group_alike, requirements=("LN-F3", "BN-F3", "RM-F3", "GN-F3", "IN-F3")
)
AS_GIVEN = Relation("which eps it is", _two_eps, _by_what_eps_grows, precondition=(INSIDE, at_unit_eps))


# LN-F5, BN-F5 and LN-F6, BN-F6: gamma and beta, given and absent --------------------------------------------------


def _neutral_and_full(case: Case) -> dict[str, Case] | None:
    if any(case.inputs[name] is None for name in affine_names(case)):
        return None
    # The call with its own beta comes last: a target that keeps that beta must not use it where beta is None.
    return {"neutral": case.derived("ones and zeros", lambda one: with_parameters(one, 1, 0)), "full": case}


def _affine(runs: RelatedCalls) -> Iterator[Claim]:
    neutral, full = runs["neutral"], runs["full"]

    def of_each(name: str) -> np.ndarray:
        values = np.asarray(full.case.inputs[name]).astype(np.float64)
        return np.broadcast_to(full.case.layout.spread(values), full.got.shape)

    want, note = neutral.y.times(of_each("gamma")), "gamma y(1)"
    if "beta" in full.case.inputs:
        want, note = want + Received.given(exact(of_each("beta"))), "gamma y(1, 0) + beta"
    yield Claim(full.case, full.y, want, "y", note)


def _affine_and_its_one(subject: Subject, case: Case) -> Iterator[Finding]:
    """The affine map. A target that takes gamma - 1 must also not round 1 + (gamma - 1) to 16 bits."""
    yield from AFFINE.judged(subject, case)
    gamma, stored = case.inputs["gamma"], subject.conventions.get("storage", "H0")
    if not subject.one_plus or not subject.narrow or stored == "native" or gamma is None or gamma.dtype != case.x.dtype:
        return
    gains = between(gamma)
    if gains is None:
        return
    others = {name: case.inputs[name] for name in case.record.parameters if name != "gamma"}
    wide = {name: None if value is None else value.astype(np.float32) for name, value in others.items()}
    one = case.replace(gamma=gains, **wide)
    note = f"gamma - 1 passed in {case.x.dtype.name}, which cannot hold gamma itself"
    yield subject.judge_output(one, "y", subject.outputs(one)["y"], note=note)


def _absent_and_filled(case: Case) -> dict[str, Case] | None:
    if all(case.inputs[name] is not None for name in affine_names(case)):
        return None
    return {"absent": case, "filled": case.derived("filled", filled)}


def _as_if_filled(runs: RelatedCalls) -> Iterator[Claim]:
    absent = runs["absent"]
    note = " and ".join(
        f"{name} None for {value}"
        for name, value in (("gamma", "ones"), ("beta", "zeros"))
        if name in absent.case.inputs and absent.case.inputs[name] is None
    )
    yield Claim(absent.case, absent.y, runs["filled"].y, "y", note)


AFFINE = Relation(
    "the affine map",
    _neutral_and_full,
    _affine,
    without_parameters=False,
    requirements=("LN-F5", "BN-F5", "RM-F5", "GN-F5", "IN-F5"),
)
#: Ones and zeros say what None must do if gamma multiplies and beta is added; that is first checked with 2 and 3.
ABSENT = Relation(
    "absent parameters",
    _absent_and_filled,
    _as_if_filled,
    without_parameters=False,
    called_anew=frozenset({"absent"}),
    precondition=(AFFINE, lambda case: with_parameters(case, 2, 3)),
)


# LN-F7, BN-F7: what is normalised together ------------------------------------------------------------------------


def _one_moved(case: Case) -> dict[str, Case]:
    return {"before": case, "after": case.derived("perturbed", perturbed)[0]}


def _its_group_alone(runs: RelatedCalls) -> Iterator[Claim]:
    before, after = runs["before"], runs["after"]
    inside = before.case.derived("perturbed", perturbed)[1]
    if before.case.settings.get("training", True):  # in inference each value is normalised by itself
        rows = before.case.layout.rows(inside)
        inside = before.case.layout.back(np.broadcast_to(rows.any(axis=1, keepdims=True), rows.shape))
    yield Claim(after.case, after.y, before.y, "y", "one value of x moved: y outside its group", ~inside)
    truly, stayed = after.truly - before.truly, after.got == before.got
    rows = before.case.layout.rows(stayed & inside)
    # No part that is normalised apart is larger than half a group. With few digits, a single value may stay by chance.
    many = before.case.layout.back(np.broadcast_to(2 * rows.sum(axis=1, keepdims=True) >= rows.shape[1], rows.shape))
    change = truly.placed(lambda values: np.where(stayed & many, 0.0, values))
    known = ~(np.isnan(before.got) | np.isnan(after.got))  # a NaN does not show whether the value moved
    # Elsewhere the change may be too small to show.
    surely = inside & known & (np.abs(truly.value.to_dd().hi) > truly.error)
    note = "one value of x moved, and at least half of its group did not change"
    yield Claim(after.case, Received.given(change.value), truly, "change of y", note, surely)


TOGETHER = Relation("what is normalised together", _one_moved, _its_group_alone)


#: From this many axes of x on there are places for the channels that are neither second nor last: some of them.
_MANY_AXES, _BETWEEN = 5, (2, -2)


def _channels_between(case: Case) -> Iterator[Case]:
    """The case with its channels between the positions, counted from either end."""
    given = case.settings.get("channel_axis")
    if given is None or case.x.ndim < _MANY_AXES:
        return
    for axis in _BETWEEN:
        moved = {name: np.moveaxis(value, given, axis) for name, value in (("x", case.x), ("g", case.g))}
        yield case.replace(channel_axis=axis, **moved)


def _normalised_together(subject: Subject, case: Case) -> Iterator[Finding]:
    """Judge what is normalised together, with the channels in other places too: code may take another path there."""
    yield from TOGETHER.judged(subject, case)
    for one in () if subject.slow else _channels_between(case):
        with contextlib.suppress(Unsupported):  # it may decline channels there
            yield from TOGETHER.judged(subject, one)


# LN-F8, BN-F8: a large mean ---------------------------------------------------------------------------------------


def _far_and_near(case: Case) -> dict[str, Case]:
    return {"far": case, "near": _near(case)}


def _near_and_near(case: Case) -> dict[str, Case]:
    return {"far": case.derived("less its last value", lambda one: less_value(one, -1)), "near": _near(case)}


def _same_y(runs: RelatedCalls) -> Iterator[Claim]:
    far, near = runs["far"], runs["near"]
    differ = (far.case.layout.rows(far.case.x) != near.case.layout.rows(near.case.x)).any(axis=1, keepdims=True)
    moved = far.case.layout.back(np.broadcast_to(differ, far.case.layout.rows(far.case.x).shape))
    yield Claim(far.case, far.y, near.y, "y", "a group far from zero, compared with the same group near zero", moved)


#: A mean that is small compared with the deviation. That it makes no difference is a law.
SHIFTED = Relation("a small shift", _near_and_near, _same_y, requirements=("LN-L10", "BN-L7", "GN-L10", "IN-L10"))
ACCURATE = Relation("accurate under a large mean", _far_and_near, _same_y, precondition=(SHIFTED, lambda case: case))


# The check of each requirement. Apart from their own aspect, the cases that name it are plain ----------------

check("LN-F2", "BN-F2", "RM-F2", "GN-F2", "IN-F2", raising="violates")(DIVISOR.judged)
check(*INSIDE.requirements, raising="violates", modes=BOTH)(INSIDE.judged)
check("LN-F4", "BN-F4", "RM-F4", "GN-F4", "IN-F4", raising="violates", modes=BOTH)(AS_GIVEN.judged)
check(*AFFINE.requirements, raising="violates", modes=BOTH)(_affine_and_its_one)
check("LN-F6", "BN-F6", "RM-F6", "GN-F6", "IN-F6", raising="violates", modes=BOTH)(ABSENT.judged)
# In inference no axes are normalised together, so any case shows that each value is normalised by itself.
check(
    "LN-F7", "BN-F7", "RM-F7", "GN-F7", "IN-F7", every=laws_in_inference, raising="violates", modes=BOTH
)(_normalised_together)  # fmt: skip
check("LN-F8", "BN-F8", "GN-F8", "IN-F8", raising="violates")(ACCURATE.judged)
