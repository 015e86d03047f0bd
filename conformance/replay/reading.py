"""
The failed cases of a report's JSON, read back.

A report may come from anywhere, and may be damaged. Nothing in it is evaluated, imported or unpickled. Every field is
checked against its form, and every array against the shape and dtype that it states.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs
import numpy as np

from ...reference.formats import FORMATS
from ...spec.layout import Layout
from ...spec.operators import OPERATORS, Groups
from ...spec.parts import every_part
from ..cases.case import Case
from ..cases.description import Description
from ..cases.regimes import REGIMES
from ..checks.catalogue import checks_of
from ..judging.verdicts import Verdict
from ..requests.choosing import ids_of
from .forms import (
    Damage,
    among,
    array_of,
    document,
    each,
    flag,
    hexadecimal,
    items,
    mapping,
    naming,
    part_of,
    perhaps,
    text,
    whole,
)
from .writing import AS_ABOVE


@attrs.frozen
class FailedCase:
    """A case on which a requirement was violated."""

    target: str
    binding: str
    requirement: str
    dtype: str
    case: Case
    #: Whether it violated a SHOULD, which is advice and no failure.
    advice: bool = False


@attrs.frozen
class KeptCases:
    """The failed cases that a report keeps."""

    cases: tuple[FailedCase, ...]
    #: The number of violations without a case.
    without: int
    #: The profile and the seed that the cases are of.
    profile: str
    seed: int
    #: What that run required beyond the specification, as far as a case of it failed, in the words of its caller.
    require: tuple[str, ...] = ()

    @property
    def operators(self) -> tuple[str, ...]:
        """The operators of the cases, each once."""
        return tuple(dict.fromkeys(one.case.operator for one in self.cases))


def failed_cases(file: str) -> KeptCases:
    """
    The failed cases that a report keeps, and the number of violations without one.

    Raises DamagedReport if the file cannot be read, is not a report, or describes an impossible case.
    """
    with naming(file):
        return _kept(document(file))


def _kept(found: Mapping[str, Any]) -> KeptCases:
    cases, without = [], 0
    for number, result in enumerate(items(found.get("results"), "results")):
        place = f"results[{number}]"
        one = mapping(result, place)
        if one.get("verdict") not in (Verdict.FAIL.value, Verdict.ADVICE.value):
            continue
        counterexample = one.get("counterexample")
        if counterexample is None or mapping(counterexample, f"{place}.counterexample").get("case") is None:
            without += 1
            continue
        cases.append(_failed(one, place))
    profile, seed = text(found.get("profile"), "profile"), whole(found.get("seed"), "seed")
    return KeptCases(tuple(cases), without, profile, seed, _require(found, cases))


def _require(found: Mapping[str, Any], cases: Iterable[FailedCase]) -> tuple[str, ...]:
    """The words of the report's --require that select the requirement of a failed case."""
    failed = {one.requirement for one in cases if not one.advice}
    words = each(text)(found.get("require", []), "require")
    return tuple(one for one in words if not failed.isdisjoint(ids_of(one)))


def _failed(result: Mapping[str, Any], place: str) -> FailedCase:
    operator = among(result.get("op"), tuple(OPERATORS), f"{place}.op")
    known = tuple(check.requirement for check in checks_of(operator))
    return FailedCase(
        text(result.get("target"), f"{place}.target"),
        text(result.get("binding"), f"{place}.binding"),
        among(result.get("requirement"), known, f"{place}.requirement"),
        among(result.get("dtype"), tuple(FORMATS), f"{place}.dtype"),
        case_of(operator, result["counterexample"], f"{place}.counterexample"),
        advice=result["verdict"] == Verdict.ADVICE.value,
    )


# A case ----------------------------------------------------------------------------------------------------------


def case_of(operator: str, counterexample: Mapping[str, Any], place: str) -> Case:
    """The case that a counterexample keeps, built again. Raises Damage if it is invalid."""
    record = OPERATORS[operator]
    above = mapping(counterexample.get("inputs"), f"{place}.inputs")
    place = f"{place}.case"
    kept = mapping(counterexample["case"], place)
    parts = {
        among(role, record.roles, f"{place}.parts"): part_of(part, f"{place}.parts.{role}")
        for role, part in mapping(kept.get("parts"), f"{place}.parts").items()
    }
    arrays: dict[str, np.ndarray | None] = {}
    for name, array in mapping(kept.get("inputs"), f"{place}.inputs").items():
        at, given = f"{place}.inputs.{name}", array
        if isinstance(array, str) and array == AS_ABOVE:
            at, given = f"inputs.{name} of the call", above.get(name)
        arrays[name] = array_of(given, at)
    _check_names(arrays, record.parameters, parts, place)
    g, settings = arrays.pop("g"), _settings(operator, kept.get("settings"), arrays["x"], f"{place}.settings")
    assert g is not None
    description = _description(operator, kept.get("description"), f"{place}.description")
    case = Case(operator, arrays, settings, g, description.requirements, description, parts)
    _check_shapes(case, place)
    return case


def _check_names(
    arrays: Mapping[str, np.ndarray | None], parameters: tuple[str, ...], parts: Mapping[str, Any], place: str
) -> None:
    leaves = [leaf for part in every_part(parts) for leaf in part.all_leaves()]
    needed = {"x", "g", *parameters, *leaves}
    if set(arrays) != needed:
        raise Damage(f"{place}.inputs has {', '.join(sorted(arrays))}, and the call takes {', '.join(sorted(needed))}")
    for name in ("x", "g", *leaves):
        if arrays[name] is None:
            raise Damage(f"{place}.inputs.{name} is null")


def _check_shapes(case: Case, place: str) -> None:
    """Raise Damage if the arrays do not fit a call; the target has to handle everything else."""
    shape = case.x.shape
    if case.g.shape != shape:
        raise Damage(f"{place}.inputs.g has shape {case.g.shape}, and x {shape}")
    if not shape:
        raise Damage(f"{place}.inputs.x has no axis")
    parameter = Layout.of(case.operator, shape, case.settings).parameter_shape
    owned = set(case.record.parameters) - {"logits"}
    for name in owned:
        value = case.inputs[name]
        if value is not None and value.shape != parameter:
            raise Damage(f"{place}.inputs.{name} has shape {value.shape} in place of {parameter}")


def _settings(operator: str, value: Any, x: np.ndarray | None, place: str) -> dict[str, Any]:
    record, found = OPERATORS[operator], mapping(value, place)
    if set(found) != set(record.settings):
        raise Damage(f"{place} has {', '.join(found) or 'nothing'}, and the call takes {', '.join(record.settings)}")
    assert x is not None
    settings: dict[str, Any] = {}
    for name in record.settings:
        given, at = found[name], f"{place}.{name}"
        if name in ("eps", "momentum"):
            settings[name] = hexadecimal(given, at)
        elif name == "training":
            settings[name] = flag(given, at)
        elif name == "axes":
            settings[name] = tuple(whole(one, at) for one in items(given, at))
            if settings[name] != tuple(range(-len(settings[name]), 0)) or not 0 < len(settings[name]) <= x.ndim:
                raise Damage(f"{at} is {given!r}, and has to name the last axes of x, as in [-2, -1]")
        else:
            settings[name] = whole(given, at)
    if "channel_axis" in settings and not -x.ndim <= settings["channel_axis"] < x.ndim:
        raise Damage(f"{place}.channel_axis is {settings['channel_axis']}, and x has {x.ndim} axes")
    if record.groups is Groups.SAMPLE_CHANNELS:
        if x.ndim < 2 or settings["channel_axis"] % x.ndim == 0:
            raise Damage(f"{place}: the channels have to lie along an axis of x after the first")
        groups, channels = settings.get("groups", 1), x.shape[settings["channel_axis"]]
        if groups < 1 or channels % groups:
            raise Damage(f"{place}.groups is {groups}, and x has {channels} channels")
    return settings


# The description -------------------------------------------------------------------------------------------------

#: Fields of a description that are a name, a number, or a flag; the others have forms of their own.
_NAMES = ("gamma", "beta", "cotangent", "recipe", "logits")
_INTEGERS = ("n", "seed", "rank", "channel_axis", "count")
_PERHAPS_INTEGERS = ("repeat", "samples", "width")
_FLAGS = ("only", "mixed", "far", "fast_only", "training")


def _description(operator: str, value: Any, place: str) -> Description:
    """The fields that a check reads of a case besides its values, such as requirements and the seed of more values."""
    found = mapping(value, place)
    forms: dict[str, Callable[[Any, str], Any]] = {
        **dict.fromkeys(_NAMES, text),
        **dict.fromkeys(_INTEGERS, whole),
        **dict.fromkeys(_PERHAPS_INTEGERS, perhaps(whole)),
        **dict.fromkeys(_FLAGS, flag),
        **dict.fromkeys(("eps", "momentum"), hexadecimal),
        **dict.fromkeys(("features", "leading", "positions"), perhaps(_sizes)),
        "operator": lambda one, at: among(one, (operator,), at),
        "groups": _groups,
        "requirements": lambda one, at: frozenset(text(name, at) for name in items(one, at)),
    }
    values: dict[str, Any] = {}
    for name, one in found.items():
        if name not in forms:
            raise Damage(f"{place} has a field {name[:40]!r} that this version of normspec does not know")
        values[name] = forms[name](one, f"{place}.{name}")
    if not {"operator", "n", "groups"} <= set(values):
        raise Damage(f"{place} lacks operator, n or groups")
    return Description(**values)


def _groups(value: Any, place: str) -> tuple[tuple[str, int], ...]:
    pairs = [items(one, place) for one in items(value, place)]
    if not pairs or any(len(pair) != 2 for pair in pairs):
        raise Damage(f"{place} is not a list of pairs")
    return tuple((among(name, tuple(REGIMES), place), whole(index, place)) for name, index in pairs)


def _sizes(value: Any, place: str) -> tuple[int, ...]:
    return tuple(whole(one, place) for one in items(value, place))
