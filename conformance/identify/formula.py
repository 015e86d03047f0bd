"""The formula of y that follows from the lines of a card."""

from __future__ import annotations

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

#: Names of the variance in a formula, by the cells of its two rows.
_VARIANCES = {
    "biased (n)": "var",
    "unbiased (n - 1)": "var_unbiased",
    "divided by n": "mean(x^2)",
    "divided by n - 1": "sum(x^2)/(n - 1)",
    "not divided": "sum(x^2)",
    "mean not subtracted": "mean(x^2)",
}

#: The variances and affine maps of the definitions: with these the accuracy of y tells whether a formula is right.
_AS_DEFINED = ("biased (n)", "unbiased (n - 1)", "divided by n")
_AFFINE = ("gamma xhat + beta", "gamma xhat")

#: A mean square, over that of a division by n, is 1 if it is as near to 1 as this: one of other values is not.
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
    variance = words.get("variance" if record.centred else "mean_square", "")
    if place not in _ROOTS or variance not in _VARIANCES:
        return ""
    taken = record.centred and variance != "mean not subtracted"
    relative = cells["variance"].evidence.get("relative") if record.centred and not taken else None
    if relative is not None and abs(float(relative) - 1) > _NEAR_ONE:
        return ""  # of what is not centred, only a mean has a name here
    xhat = _ROOTS[place].format(d="(x - mean)" if taken else "x", v=_VARIANCES[variance])
    gain = words.get("gain", "gamma")
    alone = "xhat" if gain == "no gamma" else "gamma xhat"
    affine = words.get("affine", alone) if "beta" in record.arguments else alone
    if gain not in ("gamma", "1 + gamma", "no gamma") or not affine.startswith(("gamma", "xhat")):
        return ""
    is_as_defined = words.get("variance" if record.centred else "mean_square") in _AS_DEFINED and affine in _AFFINE
    if is_as_defined and words.get("accuracy") == "no class":  # the few values behind the lines fit by chance
        return ""
    y = affine.partition(",")[0].replace("xhat", xhat)
    return f"y = {y.replace('gamma', '(1 + gamma)', 1) if gain == '1 + gamma' else y}"
