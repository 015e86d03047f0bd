"""NaN and infinity: they stay in their group, and they are not swallowed."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import numpy as np

from ...adapters.binding import COMPOSED
from ...adapters.errors import Unsupported
from ..cases.case import Case
from ..findings import Finding
from ..subject import Subject, checked_shapes
from .groups import as_rows, from_rows, group_count, group_size
from .registry import check, ordinary, recipes
from .relations import same

_POISONS = (np.nan, np.inf, -np.inf)


def _poisonable(case: Case) -> bool:
    return "law" in case.tags and (ordinary(case) or "inference" in case.tags)


def _inference(case: Case) -> bool:
    return case.operator == "batch_norm" and not case.settings["training"]


#: Operators that do nothing across the features of x: what their parts do is the parts' own.
_ELEMENTWISE = ("residual", "highway", "mhc")


def _poisoned(case: Case, poison: float) -> tuple[Case, np.ndarray]:
    """The case with one non-finite value in a middle group, and where its group is."""
    rows = as_rows(case, case.x).copy()
    group, place = group_count(case) // 2, group_size(case) // 2
    rows[group, place] = poison
    hit = np.zeros(rows.shape, bool)
    if _inference(case):
        hit[group, place] = True
    else:
        hit[group] = True
    return case.replace(x=from_rows(case, rows)), from_rows(case, hit)


def _spoilt(case: Case, bad: Case, hit: np.ndarray) -> np.ndarray:
    """Where y cannot be finite: in the whole group, or where x itself is not, if nothing else need know of it."""
    lone = case.operator in _ELEMENTWISE or (case.operator == "pre_norm" and _leaf_alone(case))
    return ~np.isfinite(bad.x.astype(np.float64)) if lone else hit


def _leaf_alone(case: Case) -> bool:
    """Whether the sublayer's result has nothing to do with what it is handed."""
    return case.description is not None and case.description.recipe in ("leaf", "zero", "counted", "dropped_leaf")


@check("CM-N1", when=_poisonable, raising="violates")
def contained(subject: Subject, case: Case) -> Iterator[Finding]:
    """A non-finite value in one group leaves every other group as it is."""
    if group_count(case) < 2 and not _inference(case):
        return
    clean, lacking = subject.observe(case), None
    y = clean.outputs["y"]
    for poison in _POISONS:
        bad, hit = _poisoned(case, poison)
        note = f"{poison} in another group"
        evaluation = subject.start(bad)
        got = checked_shapes(evaluation.outputs(), bad)["y"]
        finding = same(subject, case, "y", np.where(hit, y, got), y, note)
        yield attrs.evolve(finding, case=bad)
        if subject.forward_only or _inference(case):
            continue
        try:
            before = clean.gradients["dx"]
            dx = subject.named_gradients(evaluation.pull(bad.g).gradients(), bad)["dx"]
        except Unsupported as found:
            lacking = found
            continue
        finding = same(subject, case, "dx", np.where(hit, before, dx), before, note)
        yield attrs.evolve(finding, case=bad)
    if lacking is not None:
        raise lacking


@check("CM-N2", when=_poisonable, raising="violates")
def not_swallowed(subject: Subject, case: Case) -> Iterator[Finding]:
    """A NaN makes every y of its group NaN; an infinity leaves none of them finite; a NaN in a leaf is seen too."""
    if (group_size(case) < 2 and not _inference(case)) or case.parts.get("activation"):
        return  # tanh makes 1 of an infinity, by right
    _ = subject.observe(case).outputs
    spoilt = []
    for poison in _POISONS:
        bad, hit = _poisoned(case, poison)
        spoilt.append((bad, _spoilt(case, bad, hit), poison))
    if case.operator in COMPOSED and recipes("leaf", "leaf_carry")(case):
        spoilt += [(*_nan_in_leaf(case, name), np.nan) for name in _shown(case) if case.inputs[name] is not None]
    for bad, hit, poison in spoilt:
        y = subject.outputs(bad)["y"].astype(np.float64)
        wrong = hit & (~np.isnan(y) if np.isnan(poison) else np.isfinite(y))
        if not wrong.any():
            yield Finding(bad, violated=False)
            continue
        index = tuple(int(i) for i in np.argwhere(wrong)[0])
        yield Finding(
            bad,
            violated=True,
            output="y",
            index=index,
            expected=float("nan"),
            got=float(y[index]),
            note=f"{poison} in the group was swallowed",
        )
        return


def _shown(case: Case) -> list[str]:
    """The leaves that y cannot do without, and the logits: not the branch that a logit of -inf switches off."""
    if case.description is None or case.description.logits not in ("mixed", "moderate"):
        return []
    return [name for name in case.inputs if name.endswith((".h", ".z")) or name == "logits"]


def _nan_in_leaf(case: Case, name: str) -> tuple[Case, np.ndarray]:
    """The case with a NaN in one element of a leaf, and where y cannot be finite."""
    leaf = case.inputs[name]
    assert leaf is not None
    bad = leaf.copy()
    bad.reshape(-1)[bad.size // 2] = np.nan
    hit = np.isnan(bad.astype(np.float64)) if bad.shape == case.x.shape else np.ones(case.x.shape, bool)
    if case.operator == "post_norm":
        hit = np.broadcast_to(hit.any(axis=-1, keepdims=True), hit.shape)
    return case.replace(**{name: bad}), hit
