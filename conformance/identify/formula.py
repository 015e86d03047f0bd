"""The formula of y that follows from the lines of a card."""

from __future__ import annotations

import math
from collections.abc import Mapping

from ...spec.operators import OPERATORS
from ..compare.placement import PLACEMENTS
from ..compare.table import Cell, Kind

#: xhat by the place of eps (compare/placement.py); v is the variance, or the mean square.
_ROOTS = {
    "inside the root": "{d} / sqrt({v} + eps)",
    "on the deviation": "{d} / (sqrt({v}) + eps)",
    "not used": "{d} / sqrt({v})",
    "sqrt(std + eps)": "{d} / sqrt(sqrt({v}) + eps)",
    "max(var, eps)": "{d} / sqrt(max({v}, eps))",
    "max(std, eps)": "{d} / max(sqrt({v}), eps)",
    "std + sqrt(eps)": "{d} / (sqrt({v}) + sqrt(eps))",
    "var + eps^2": "{d} / sqrt({v} + eps^2)",
    "var + eps/n": "{d} / sqrt({v} + eps/n)",
    "after the root": "{d} (1 / sqrt({v}) + eps)",
}

#: The words after an eps that is the target's own.
_ALWAYS = "whatever is given"

#: Names of the variance in a formula, by the cells of its two rows.
_VARIANCES = {
    "biased (n)": "var",
    "unbiased (n - 1)": "var_unbiased",
    "divided by n": "mean(x^2)",
    "divided by n - 1": "sum(x^2)/(n - 1)",
    "not divided": "sum(x^2)",
}

#: The same where the mean is not subtracted, by y of the last of the values 0, 0, 16, 16 (compare/variance.py).
_NOT_CENTRED = {math.sqrt(2): "mean(x^2)", 2.0: "var"}

#: The variances and affine maps of the definitions: with these the accuracy of y tells whether a formula is right.
_AS_DEFINED = ("biased (n)", "unbiased (n - 1)", "divided by n")
_AFFINE = ("gamma xhat + beta", "gamma xhat")

#: Two numbers are the same if their quotient is as near to 1 as this: those of other formulas are not.
_NEAR_ONE = 2.0**-4


def formula(operator: str, cells: Mapping[str, Cell]) -> str:
    """y as a formula, in training; empty if a line that it needs has an unknown value."""
    record = OPERATORS[operator]
    if record.composed:
        return ""
    words = {key: cell.text for key, cell in cells.items() if cell.kind is Kind.MEASURED}
    names = {one.words(record): one.name for one in PLACEMENTS}
    effective = cells["eps_effective"].evidence.get("placement", "") if "eps_effective" in words else ""
    place = names.get(words.get("eps_placement", effective).partition(";")[0], "")
    found = words.get("variance" if record.centred else "mean_square", "")
    taken = record.centred and found != "mean not subtracted"
    variance = _not_centred(cells["variance"]) if record.centred and not taken else _VARIANCES.get(found, "")
    if place not in _ROOTS or not variance:
        return ""
    own, _, always = words.get("eps_effective", "").partition(" ")
    if place == "not used" and always == _ALWAYS:
        variance = f"{variance} + {own}"
    xhat = _ROOTS[place].format(d="(x - mean)" if taken else "x", v=variance)
    gain = words.get("gain", "gamma")
    alone = "xhat" if gain == "no gamma" else "gamma xhat"
    affine = words.get("affine", alone) if "beta" in record.arguments else alone
    if gain not in ("gamma", "1 + gamma", "no gamma") or not affine.startswith(("gamma", "xhat")):
        return ""
    is_as_defined = found in _AS_DEFINED and affine in _AFFINE
    if is_as_defined and words.get("accuracy") == "no class":  # the few values behind the lines fit by chance
        return ""
    y = affine.partition(",")[0].replace("xhat", xhat)
    return f"y = {y.replace('gamma', '(1 + gamma)', 1) if gain == '1 + gamma' else y}"


def _not_centred(cell: Cell) -> str:
    """What x is divided by the root of where the mean is not subtracted; empty if it is neither of these."""
    relative, moved = float(cell.evidence["relative"]), float(cell.evidence["moved"][-1])
    near = (words for y, words in _NOT_CENTRED.items() if abs(moved / y - 1) <= _NEAR_ONE)
    return next(near, "") if abs(relative - 1) <= _NEAR_ONE else ""
