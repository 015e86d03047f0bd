"""Values and gradients of the composed operators: the formula on the cases and parts that show one of its terms."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs
import numpy as np

from ...adapters.binding import differentiable
from ...spec.errors import MissingGradient
from ..cases.case import Case
from ..cases.recipes import RECIPES
from ..judging.findings import Finding
from ..judging.subject import Subject
from .part_calls import judge_handed, recorded
from .registry import Body, When, check, ordinary, recipes
from .relations import equal_to
from .values import y_of

#: Recipes of residual with a shortcut or an activation, and highway recipes with a separate carry gate.
_SHORTCUT = ("shortcut", "projected", "shared")
_ACTIVATED = ("activation", "post_activation", "projected")
_CARRY = ("leaf_carry", "chain_carry")
_DROPOUT = ("dropout", "dropped_leaf")
_FUSED = tuple(name for name in RECIPES["mhc"] if name.startswith("fuse"))


def _plain(operator: str, *without: str) -> When:
    return recipes(*(name for name in RECIPES[operator] if name not in without))


def _both(*conditions: When) -> When:
    return lambda case: all(condition(case) for condition in conditions)


def _not(condition: When) -> When:
    return lambda case: not condition(case)


def _saturated(case: Case) -> bool:
    """Cases of extreme logits, which HW-F4 and MH-F3 are about."""
    return not case.requirements.isdisjoint(("HW-F4", "MH-F3"))


#: Requirement -> the cases whose y it is judged on; None means the cases that name it.
_VALUES: dict[str, When | None] = {
    "RS-F1": _plain("residual", *_SHORTCUT, *_ACTIVATED, *_DROPOUT),
    "RS-F2": recipes(*_SHORTCUT),
    "RS-F3": recipes(*_ACTIVATED),
    "PR-F2": recipes("leaf", "zero"),
    "PR-F3": None,
    "PR-F4": None,
    "PR-F5": None,
    "PR-F6": None,
    "PR-F7": None,
    "PO-F1": ordinary,
    "PO-F2": recipes("leaf", "tanh_linear", "square"),
    "PO-F3": None,
    "PO-F4": None,
    "PO-F5": None,
    "PO-F6": None,
    "PO-F7": None,
    "HW-F1": _both(_plain("highway", *_CARRY), _not(_saturated)),
    "HW-F2": recipes(*_CARRY),
    "HW-F3": None,
    "MH-F1": _both(_plain("mhc", *_FUSED), _not(_saturated)),
    "MH-F5": recipes("fuse_sum", "fuse_product", "fuse_weighted"),
    "MH-F6": recipes("fuse_coupled", "fuse_shared"),
}


def _y_in_each_mode(subject: Subject, case: Case) -> Iterator[Finding]:
    """Compare y with its exact value, in inference mode too: a fused path is often taken there alone."""
    yield from y_of(subject, case)
    if case.description is not None and case.description.recipe in _DROPOUT:
        return  # nothing is dropped in inference: RS-F4 is about it
    for where_called, outputs in subject.outputs_in_modes(case, but_training=True):
        yield subject.judge_output(case, "y", outputs["y"], note=where_called.strip())


for _requirement, _every in _VALUES.items():
    check(_requirement, every=_every)(_y_in_each_mode)


@check("PR-F1", every=ordinary)
def pre_norm(subject: Subject, case: Case) -> Iterator[Finding]:
    """y, and on wide data, where x hides the term added to it, the input of the sublayer too."""
    yield from _y_in_each_mode(subject, case)
    if "PR-F1" in case.requirements:
        yield from judge_handed(subject, case, "sublayer", recorded(subject, case)["sublayer"][0])


def _gradients(wanted: Callable[[str], bool]) -> Body:
    """Return the check of the gradients of some inputs."""

    def judged(subject: Subject, case: Case) -> Iterator[Finding]:
        if case.description is not None and case.description.recipe == "counted":
            return  # a target may call the part again in the backward pass, and then gets another value
        _ = subject.observe(case).outputs
        missing: MissingGradient | None = None
        for name in (f"d{given}" for given in differentiable(case.operator, case.inputs)):
            if wanted(name):
                try:
                    gradient = subject.observe(case).gradient(name)
                except MissingGradient as failure:  # the others are judged first
                    missing = failure
                else:
                    yield subject.judge_gradient(case, name, gradient)
        if missing is not None:
            raise missing

    return judged


def _of_parts(name: str) -> bool:
    return "." in name


def _leaves_of(role: str) -> Callable[[str], bool]:
    return lambda name: name.startswith(f"d{role}.")


def _any(name: str) -> bool:
    return True


#: Requirement -> the gradients it is about, and the cases they are judged on.
_GRADIENTS: dict[str, tuple[Callable[[str], bool], When]] = {
    "RS-G1": ("dx".__eq__, _plain("residual", *_SHORTCUT, *_ACTIVATED)),
    "RS-G2": (_of_parts, _plain("residual", *_SHORTCUT, *_ACTIVATED)),
    "RS-G3": (_any, recipes(*_SHORTCUT, *_ACTIVATED)),
    **dict.fromkeys(("PR-G1", "PO-G1"), ("dx".__eq__, ordinary)),
    **dict.fromkeys(("PR-G2", "PO-G2"), ("dgamma".__eq__, ordinary)),
    **dict.fromkeys(("PR-G3", "PO-G3"), ("dbeta".__eq__, ordinary)),
    **dict.fromkeys(("PR-G4", "PO-G4"), (_of_parts, ordinary)),
    "HW-G1": ("dx".__eq__, _both(recipes("leaf"), _not(_saturated))),
    # A shared leaf is moved by both parts.
    "HW-G2": (_leaves_of("transform"), _both(_plain("highway", *_CARRY, "shared"), _not(_saturated))),
    "HW-G3": (_leaves_of("gate"), _both(_plain("highway", *_CARRY, "shared"), _not(_saturated))),
    "HW-G4": (_any, _both(_plain("highway", "leaf", *_CARRY), _not(_saturated))),
    "HW-G5": (_any, _both(recipes(*_CARRY), _not(_saturated))),
    "MH-G1": ("dx".__eq__, _both(_plain("mhc", *_FUSED), _not(_saturated))),
    "MH-G2": (lambda name: name.endswith(".h"), _both(recipes("leaf", "equal"), _not(_saturated))),
    "MH-G3": ("dlogits".__eq__, _both(_plain("mhc", *_FUSED), _not(_saturated))),
    "MH-G5": (_any, recipes(*_FUSED)),
    "MH-G7": (_of_parts, _both(_plain("mhc", "leaf", "equal", "counted", *_FUSED), _not(_saturated))),
}
for _requirement, (_wanted, _every) in _GRADIENTS.items():
    check(_requirement, every=_every, gradient=True)(_gradients(_wanted))


def _and_all_but_one_closed(case: Case) -> Iterator[Case]:
    """The case, and with all logits but the last -inf: code that takes branches in blocks finds a block without any."""
    yield case
    logits = case.inputs.get("logits")
    if logits is not None and logits.size > 2 and np.isfinite(logits[-1]):
        yield case.replace(
            logits=np.where(np.arange(logits.size) < logits.size - 1, -np.inf, logits).astype(logits.dtype)
        )


@check("HW-F4", "MH-F3")
def extreme_logits(subject: Subject, case: Case) -> Iterator[Finding]:
    """Logits of any size, infinite ones among them, leave y within the envelope; a NaN is outside it."""
    for one in _and_all_but_one_closed(case):
        yield _naming_nan(subject.judge_output(one, "y", subject.observe(one).outputs["y"]))
        for where_called, outputs in subject.outputs_in_modes(one, but_training=True):
            yield _naming_nan(subject.judge_output(one, "y", outputs["y"], note=where_called.strip()), where_called)


@check("HW-G6", "MH-G6", gradient=True)
def extreme_gradients(subject: Subject, case: Case) -> Iterator[Finding]:
    """The gradients at extreme logits are within the envelope too."""
    for one in _and_all_but_one_closed(case):
        _ = subject.observe(one).outputs
        for name, value in subject.observe(one).gradients.items():
            yield _naming_nan(subject.judge_gradient(one, name, value))


def _naming_nan(finding: Finding, where_called: str = "") -> Finding:
    """The finding, which says so if the violation is a NaN; a logit may be infinite."""
    nan = finding.violated and finding.got is not None and np.isnan(finding.got)
    given = (value for value in finding.case.inputs.values() if value is not None)
    finite = nan and all(np.isfinite(value.astype(np.float64)).all() for value in given)
    return attrs.evolve(finding, note=f"NaN from finite data{where_called}") if finite else finding


@check("RS-F4", every=recipes(*_DROPOUT))
def dropout(subject: Subject, case: Case) -> Iterator[Finding]:
    """Dropout belongs to the branch: where it drops, y is x; in inference y is x + F(x)."""
    y = subject.observe(case).outputs["y"]
    yield subject.judge_output(case, "y", y, note="in training, the branch with dropout")
    dropped = case.inputs["branch.mask"] == 0
    yield equal_to(subject, case, "y", y, case.x, "where the branch dropped its value", where=dropped)
    branch = case.parts["branch"]
    assert branch is not None and not isinstance(branch, tuple)
    whole = case.replace(parts={**case.parts, "branch": branch.inner[0]})
    y = subject.outputs(whole, mode="inference")["y"]
    finding = subject.judge_output(whole, "y", y, note="in inference, the branch without dropout")
    yield attrs.evolve(finding, case=whole)
