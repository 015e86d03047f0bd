"""
A whole report, read back from its JSON into the value that was written.

Like the cases of `--replay`, a report may come from anywhere: nothing in it is evaluated, and a value of the wrong form
is reported with its place. What the JSON derives from the results (counts, verdicts on targets) is derived again.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np

from ...reference.formats import FORMATS
from ...spec.errors import SourceLine
from ...spec.operators import OPERATORS
from ..diagnosis.cause import Cause
from ..judging.call_log import LoggedCall, Raised
from ..judging.verdicts import WHY, CaseCount, Counterexample, Deviation, Result, Upstream, Verdict
from ..reproduce.reproducer import Reproducer
from ..results.expectation import Expectation, UnexpectedPass
from ..results.left_out import LeftOut
from ..results.report import Report
from .forms import (
    Damage,
    Form,
    among,
    array_of,
    built,
    by_name,
    document,
    each,
    flag,
    hexadecimal,
    items,
    mapping,
    naming,
    object_of,
    part_of,
    perhaps,
    real,
    text,
    whole,
)
from .reading import case_of
from .writing import AS_ABOVE

_DTYPE: Form[str] = lambda value, place: among(value, tuple(FORMATS), place)  # noqa: E731
_TEXTS = each(text)


def load_report(path: str | os.PathLike[str]) -> Report:
    """
    Read a report that `--json` or `Report.to_json` wrote.

    ``path``: the file. Return a Report as `check` does, with its results, causes and counterexamples. It prints, and is
    written, like the original, with the original's versions. Raises DamagedReport, a NormspecError with a message of
    one line, if the file cannot be read, is not a report, is damaged, or was written by a newer version of normspec.
    """
    found = document(path)
    with naming(path):
        return _report(found)


def _report(found: Mapping[str, Any]) -> Report:
    report = built(
        Report, {**found, "reproducers": found.get("scripts", [])}, "the report",
        {
            "results": each(_result), "profile": text, "seed": whole, "subjects": each(_subject),
            "causes": each(_cause), "partial": flag, "seconds": real, "defects": _TEXTS, "notes": _TEXTS,
            "taken": each(_CASE_COUNT), "reproducers": each(_REPRODUCER),
            "expected": each(_EXPECTATION),
            "only": _TEXTS, "binding": _TEXTS, "require": _TEXTS, "replayed": text,
            "not_replayed": each(_LEFT_OUT),
            "versions": by_name(text), "platform": text,
        },
    )  # fmt: skip
    stopped = [
        text(one.get("name"), f"targets[{place}].name")
        for place, one in enumerate(each(mapping)(found.get("targets", []), "targets"))
        if flag(one.get("partial", False), f"targets[{place}].partial")
    ]
    if report.partial and len(stopped) < len(report.targets):
        report = attrs.evolve(report, lost=tuple(stopped))
    counts = by_name(whole)(found.get("counts", {}), "counts")
    for verdict, count in report.counts().items():  # results that were cut out would go unnoticed otherwise
        if counts.get(verdict, count) != count:
            raise Damage(f"counts.{verdict} is {counts[verdict]}, and {count} of its results are that")
    return report


# The elements of a report ----------------------------------------------------------------------------------------

_PLACE: Mapping[str, Form[Any]] = {"target": text, "binding": text, "op": text, "dtype": _DTYPE}

_SUBJECT: Mapping[str, Form[Any]] = {
    **dict.fromkeys(("target", "binding", "op", "framework", "version", "device", "slow", "file"), text),
    "conventions": by_name(text),
    "reasons": by_name(text),
    "fixed": _TEXTS,
    "layers": _TEXTS,
    "measured": each(mapping),
    "line": perhaps(whole),
    "passes_under": _TEXTS,
}


def _subject(value: Any, place: str) -> Mapping[str, Any]:
    found = mapping(value, place)
    for name in ("target", "binding", "op"):
        text(found.get(name), f"{place}.{name}")
    known = {name: form(found[name], f"{place}.{name}") for name, form in _SUBJECT.items() if name in found}
    for at, trait in enumerate(known.get("measured", ())):
        for name, form in (("convention", text), ("dtypes", _TEXTS), ("evidence", text)):
            form(trait.get(name), f"{place}.measured[{at}].{name}")
    return {**found, **known}


def _cause(value: Any, place: str) -> Cause:
    names = ("target", "op", "sentence", "remedy", "requirement", "begins", "convention")
    forms: dict[str, Form[Any]] = dict.fromkeys(names, text)
    forms |= dict.fromkeys(("bindings", "dtypes", "faults", "errata", "explains"), _TEXTS)
    cause = built(Cause, value, place, forms)
    if not cause.explains:
        raise Damage(f"{place} explains nothing")
    return cause


_UNEXPECTED_PASS = object_of(UnexpectedPass, dict.fromkeys(("op", "binding", "requirement", "dtype"), text))

_EXPECTATION_TEXTS = ("target", "requirement", "reason", "operator", "binding", "link", "until", "wrong")
_EXPECTATION = object_of(
    Expectation,
    {
        **dict.fromkeys(_EXPECTATION_TEXTS, text), "dtypes": _TEXTS, "shown": whole,
        "passes": each(_UNEXPECTED_PASS),
    },
)  # fmt: skip

_REPRODUCER_TEXTS = ("target", "op", "binding", "dtype", "requirement", "fault", "file", "why_not")
_REPRODUCER = object_of(Reproducer, dict.fromkeys(_REPRODUCER_TEXTS, text))

_LEFT_OUT = object_of(LeftOut, {"target": text, "cases": whole, "of": whole, "why": text})

_CASE_COUNT = object_of(
    CaseCount, {**_PLACE, "cases": whole, "declined": by_name(whole), "mode": text, "mode_reason": text}
)

_DEVIATION = object_of(Deviation, {"reason": text, "scope": text, "links": _TEXTS, "shown": whole})
_UPSTREAM = object_of(Upstream, {"binding": text, "reason": text, "links": _TEXTS})


def _result(value: Any, place: str) -> Result:
    found = mapping(value, place)
    op, counterexample = found.get("op"), found.get("counterexample")
    shown = None
    if counterexample is not None:
        operator = among(op, tuple(OPERATORS), f"{place}.op")
        shown = _counterexample(operator, mapping(counterexample, f"{place}.counterexample"), f"{place}.counterexample")
    return built(
        Result, found, place,
        {
            **_PLACE, "requirement": text, "level": lambda value, at: among(value, ("MUST", "SHOULD"), at),
            "device": text, "mode": text, "verdict": _verdict, "ratio": perhaps(real),
            "kinds": by_name(real), "cases": whole, "declined": by_name(whole), "reason": text, "same_case_as": text,
            "diagnosis": perhaps(text), "follows_from": _TEXTS, "traceback": text, "known": each(_DEVIATION),
            "upstream": perhaps(_UPSTREAM), "kept": text,
        },
        counterexample=shown,
        violated_on=None if shown is None or shown.case is None else shown.case.description,
    )  # fmt: skip


def _verdict(value: Any, place: str) -> Verdict:
    return Verdict(among(value, tuple(one.value for one in Verdict), place))


# A counterexample ------------------------------------------------------------------------------------------------

#: The kind of a failure without numbers, by the sentence that tells why it is one.
_FAILURES = {words: failure for failure, words in WHY.items()}


def _counterexample(operator: str, found: Mapping[str, Any], place: str) -> Counterexample:
    """
    The counterexample, which is shown and written like the original.

    A kind of failure without a sentence of its own (a shape, a dtype) is told by the note, and is read without a kind.
    """
    above = Counterexample(
        inputs=by_name(array_of)(found.get("inputs"), f"{place}.inputs"),
        settings=_settings(found.get("settings"), f"{place}.settings"),
        output=text(found.get("output"), f"{place}.output"),
        index=each(whole)(found.get("index"), f"{place}.index"),
        expected=perhaps(hexadecimal)(found.get("expected"), f"{place}.expected"),
        got=perhaps(hexadecimal)(found.get("got"), f"{place}.got"),
        envelope=perhaps(hexadecimal)(found.get("envelope"), f"{place}.envelope"),
        exact=perhaps(hexadecimal)(found.get("exact"), f"{place}.exact"),
        note=text(found.get("note"), f"{place}.note"),
        failure=_FAILURES.get(text(found.get("why"), f"{place}.why"), ""),
        parts=by_name(part_of)(found.get("parts"), f"{place}.parts"),
        shown_by=perhaps(whole)(found.get("shown_by"), f"{place}.shown_by"),
    )
    calls = items(found.get("calls"), f"{place}.calls")
    if above.shown_by is not None and not 0 <= above.shown_by < len(calls):
        raise Damage(f"{place}.shown_by is {above.shown_by}, and there are {len(calls)} calls")
    logged: list[LoggedCall] = []
    for at, one in enumerate(calls):
        logged.append(_logged_call(mapping(one, f"{place}.calls[{at}]"), f"{place}.calls[{at}]", above, logged))
    case = None if found.get("case") is None else case_of(operator, found, place)
    return attrs.evolve(above, calls=tuple(logged), case=case)


def _logged_call(found: Mapping[str, Any], place: str, above: Counterexample, earlier: list[LoggedCall]) -> LoggedCall:
    """One call. Its input comes from the call above or from an earlier one where the file says that it is the same."""
    does = text(found.get("does"), f"{place}.does")
    inputs, settings, parts = above.inputs, above.settings, above.parts
    same = found.get("of_call", found.get("inputs_of_call"))
    if same is not None:
        number = whole(same, f"{place}.inputs_of_call")
        if not 0 <= number < len(earlier):
            raise Damage(f"{place} refers to the call {number}, which does not come before it")
        inputs, settings, parts = earlier[number].inputs, earlier[number].settings, earlier[number].parts
    if "inputs" in found:
        inputs = {**inputs, **by_name(array_of)(found["inputs"], f"{place}.inputs")}
    if "settings" in found:
        settings = {**settings, **_settings(found["settings"], f"{place}.settings")}
    if "parts" in found:
        parts = by_name(part_of)(found["parts"], f"{place}.parts")
    laid = by_name(mapping)(found.get("layouts", {}), f"{place}.layouts")
    return LoggedCall(
        does, inputs, settings, parts,
        g=_cotangent(found, does, above, place),
        layouts={name: text(one.get("layout"), f"{place}.layouts.{name}.layout") for name, one in laid.items()},
        mode=text(found.get("mode", "training"), f"{place}.mode"),
        times=whole(found.get("times", 1), f"{place}.times"),
        wrt=perhaps(_TEXTS)(found.get("wrt"), f"{place}.wrt"),
        of=perhaps(whole)(found.get("of_call"), f"{place}.of_call"),
        raised=perhaps(_raised)(found.get("raised"), f"{place}.raised"),
        **{
            name: by_name(array_of)(found[name], f"{place}.{name}")
            for name in ("tangents", "tangents_again", "cotangents")
            if name in found
        },
    )  # fmt: skip


def _cotangent(found: Mapping[str, Any], does: str, above: Counterexample, place: str) -> np.ndarray | None:
    """The cotangent of a call: its own, that of the call above, or None if it takes no gradients."""
    if found.get("g", AS_ABOVE) != AS_ABOVE:
        return array_of(found["g"], f"{place}.g")
    return above.inputs.get("g") if "g" in found or "vjp" in does else None


def _raised(value: Any, place: str) -> Raised:
    found = mapping(value, place)
    where = None
    if found.get("file") is not None:
        line, source = whole(found.get("line"), f"{place}.line"), text(found.get("source"), f"{place}.source")
        where = SourceLine(text(found["file"], f"{place}.file"), line, source)
    return Raised(text(found.get("message"), f"{place}.message"), where)


def _settings(value: Any, place: str) -> dict[str, Any]:
    """Keyword arguments: floats in hexadecimal, tuples as lists, and other values as they are."""
    return {name: _setting(one, f"{place}.{name}") for name, one in mapping(value, place).items()}


def _setting(value: Any, place: str) -> Any:
    if isinstance(value, list):
        return tuple(_setting(one, place) for one in value)
    if value is None or isinstance(value, (bool, int)):
        return value
    return hexadecimal(value, place)
