"""Laws of changes that are exact: scaling by powers of two, the sign, and permutation of groups."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...reference.formats import format_of
from ..cases.case import Case
from ..judging.findings import Finding
from ..judging.subject import Bound, Subject
from .derived import affine_names
from .registry import BOTH, check, in_training
from .relations import Call, close, equal, same_bits_of_y, same_y, scaled_exactly, sum_of

#: x is scaled by 2^3 and eps by 2^6: enough to move a misplaced eps, and little enough to stay exact.
SCALE = 8.0


def rescaled(case: Case) -> Case | None:
    """The case with x scaled by SCALE and eps by its square, or None if that is not exact."""
    factor = scaling(case)
    if factor is None:
        return None
    return case.replace(x=scaled_exactly(case.x, factor), eps=case.settings["eps"] * factor * factor)


def scaling(case: Case) -> float | None:
    """The factor by which `rescaled` scales x; None if no scaling is exact."""
    return next((factor for factor in (SCALE, 1 / SCALE) if scaled_exactly(case.x, factor) is not None), None)


def stored_exactly(subject: Subject, case: Case) -> bool:
    """Whether statistics stored in 16 bits keep their digits under scaling: none of them is near subnormal."""
    if not subject.narrow or subject.conventions.get("storage", "H0") == "H0":
        return True
    rows = subject.truth(case).envelope(subject.arithmetic(case)).statistics
    # 2^6 leaves room for SCALE and for its square, up and down.
    least = 2.0**6 * format_of(case.x.dtype).smallest_normal
    sizes = np.abs(np.concatenate([rows.mu, rows.v]))
    return bool(np.all((sizes == 0) | (sizes >= least)))


@check("LN-L1", "BN-L1", "RM-L1", "GN-L1", "IN-L1", when=in_training, raising="violates", of="formula")
def scale(subject: Subject, case: Case) -> Iterator[Finding]:
    """With 2^k x and 4^k eps, y stays within the envelope."""
    moved = rescaled(case)
    if moved is not None:
        yield same_y(subject, case, moved, "x scaled, eps with it")


@check("LN-L2", "BN-L2", "RM-L2", "GN-L2", "IN-L2", when=in_training, of="formula")
def scale_bits(subject: Subject, case: Case) -> Iterator[Finding]:
    """With 2^k x and 4^k eps, y keeps its bits."""
    moved = rescaled(case)
    if moved is not None and stored_exactly(subject, case):
        yield same_bits_of_y(subject, case, moved, "x scaled, eps with it")


@check("LN-L3", "BN-L3", "RM-L3", "GN-L3", "IN-L3", when=in_training, raising="violates", of="formula")
def sign(subject: Subject, case: Case) -> Iterator[Finding]:
    """Without beta, -x gives -y, within the envelope."""
    (negative, got), (_, y), both = _negated(subject, case)
    yield close(subject, negative, "y", got, -y.astype(np.float64), both, "-x")


def _of_the_sign_law(case: Case) -> bool:
    return "LN-L3" in case.requirements


@check(
    "LN-L18", "BN-L14", "RM-L18", "GN-L18", "IN-L18",
    every=_of_the_sign_law, when=in_training, of="formula",
)  # fmt: skip
def sign_bits(subject: Subject, case: Case) -> Iterator[Finding]:
    """Without beta, -x gives -y, to the bit."""
    (negative, got), (plain, y), both = _negated(subject, case)
    yield equal(subject, negative, "y", got, -y, "-x", calls=((negative, got), (plain, y)), bound=both)


def _negated(subject: Subject, case: Case) -> tuple[Call, Call, Bound]:
    """The calls with -x and with x, neither with a beta, each with its y; and the sum of their envelopes."""
    plain = without_beta(case)
    negative = plain.replace(x=-plain.x)
    bound = subject.bound(plain, "y")
    y, got = subject.outputs(plain)["y"], subject.outputs(negative)["y"]
    return (negative, got), (plain, y), sum_of(bound, bound)


def without_beta(case: Case) -> Case:
    """The case with a beta of zero, which equals no beta by LN-F6 and BN-F6."""
    beta = case.inputs.get("beta")
    return case if beta is None else case.replace(beta=np.zeros_like(beta))


@check("LN-L4", "BN-L4", "RM-L4", "GN-L4", "IN-L4", raising="violates", modes=BOTH, of="formula")
def gamma_power(subject: Subject, case: Case) -> Iterator[Finding]:
    """gamma and beta times a power of two give y times that power."""
    gamma, beta = case.inputs["gamma"], case.inputs.get("beta")
    if gamma is None:
        return
    bigger = scaled_exactly(gamma, 4.0)
    shifted = None if beta is None else scaled_exactly(beta, 4.0)
    if bigger is None or (beta is not None and shifted is None):
        return
    y = subject.observe(case).outputs["y"]
    want = scaled_exactly(y, 4.0)
    moved = case.replace(gamma=bigger, **({} if beta is None else {"beta": shifted}))
    got = subject.outputs(moved)["y"]
    both = sum_of(subject.bound(case, "y"), subject.bound(moved, "y"), first=4.0)
    note = "gamma and beta times 4"
    if want is None:
        yield close(subject, moved, "y", got, 4 * y.astype(np.float64), both, note)
    else:
        yield equal(subject, moved, "y", got, want, note, calls=((moved, got), (case, y)), bound=both)


def _permuted_groups(case: Case) -> tuple[Case, np.ndarray]:
    """The case with its groups in another order, each with its own part of gamma and beta; and the order."""
    layout, random = case.layout, case.random("groups")
    blocks, samples = layout.blocks, random.permutation(layout.repeats)
    parts = np.arange(blocks)
    if blocks > 1:
        parts = random.permutation(blocks)
    order = (samples[:, None] * blocks + parts).reshape(-1)
    moved: dict[str, np.ndarray | None] = {}
    moved |= {name: layout.back(layout.rows(values)[order]) for name, values in (("x", case.x), ("g", case.g))}
    for name in affine_names(case) if blocks > 1 else ():
        value = case.inputs[name]
        moved[name] = None if value is None else value.reshape(blocks, -1)[parts].reshape(value.shape)
    return case.replace(**moved), order


@check("LN-L5", "RM-L5", "GN-L5", "IN-L5", raising="violates")
def group_permutation(subject: Subject, case: Case) -> Iterator[Finding]:
    """Permuting groups permutes y, within the envelope."""
    moved, order = _permuted_groups(case)
    y = case.layout.rows(subject.observe(case).outputs["y"])[order]
    got = subject.outputs(moved)["y"]
    bound = subject.bound(moved, "y")
    want = case.layout.back(y).astype(np.float64)
    yield close(subject, moved, "y", got, want, sum_of(bound, bound), "groups permuted")


@check("LN-L6", "RM-L6", "GN-L6", "IN-L6")
def group_permutation_bits(subject: Subject, case: Case) -> Iterator[Finding]:
    """Permuting groups permutes the bits of y."""
    moved, order = _permuted_groups(case)
    y = subject.observe(case).outputs["y"]
    want, got = case.layout.back(case.layout.rows(y)[order]), subject.outputs(moved)["y"]
    bound = subject.bound(moved, "y")
    yield equal(
        subject, moved, "y", got, want, "groups permuted",
        calls=((moved, got), (case, y)), bound=sum_of(bound, bound),
    )  # fmt: skip
