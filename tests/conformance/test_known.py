"""Known violations: a violation within an entry deviates, one outside fails, and one that did not show is reported."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from normspec import KnownViolation, Report, Result, Verdict
from normspec.adapters.binding import Binding
from normspec.adapters.known import Failure, checked_entries, without_limits
from normspec.adapters.numpy import BRIDGE
from normspec.adapters.numpy.bindings import BINDINGS
from normspec.adapters.target import Target
from normspec.conformance.reporting.render import print_report
from normspec.spec.errors import WrongEntry

from .runs import VARIANT, result, run, specimen

SOUND: Callable[..., Any] = next(b.call for b in BINDINGS if b.operator == "layer_norm")


def wrong_where(place: Callable[[np.ndarray], Any]) -> Callable[..., Any]:
    """A layer_norm whose y is off by one at the places that a function of x gives."""

    def layer_norm(x, gamma, beta, *, eps, axes):
        y = SOUND(x, gamma, beta, eps=eps, axes=axes)
        return np.where(place(x), y + np.ones((), y.dtype), y)

    return layer_norm


def judged(call: Callable[..., Any], *expected: KnownViolation, dtype: str = "float32", **more: Any) -> Report:
    """The report on LN-F1 of a layer_norm that is known to violate these."""
    target = of_numpy(call, *expected)
    return run(target, dtypes=(dtype,), requirements={"LN-F1"}, forward_only=True, **more)


def of_numpy(call: Callable[..., Any], *expected: KnownViolation) -> Target:
    """A layer_norm of NumPy arrays as a target."""
    return Target(
        "specimen", "numpy", "0", BRIDGE, (Binding("layer_norm", "specimen", call, known_violations=expected),)
    )


def of(report: Report) -> Result:
    """Its only result."""
    (result,) = report.results
    return result


def short(x: np.ndarray) -> np.ndarray:
    """Everywhere, in groups of four."""
    return np.full(x.shape, x.shape[-1] == 4)


IN_FOUR = KnownViolation(
    "LN-F1",
    "groups of four are off by one",
    links=("https://example.org/1",),
    failures=("value",),
    outputs=("y",),
    where="groups of four",
    cases=lambda inputs, settings: inputs["x"].shape[-1] == 4,
    predicts=lambda failure: np.abs(failure.got - failure.expected - 1) < 0.01,
)


def test_an_exception_in_a_derivative_that_is_known_deviates() -> None:
    """Without an entry it is unsupported, also where it is right; with one it is judged on the other calls."""
    (binding,) = specimen(VARIANT["ln-two-pass"]).bindings
    sound = binding.derivatives["vjp_vjp"]

    def limited(x, gamma, beta, *others, **settings):
        if gamma is None and beta is not None:
            raise RuntimeError("got None")
        return sound(x, gamma, beta, *others, **settings)

    entry = KnownViolation("LN-G9", "it needs a gamma", failures=("raises",))
    for known, verdict in (((), "unsupported"), ((entry,), "deviates")):
        own = replace(binding, derivatives={**binding.derivatives, "vjp_vjp": limited}, known_violations=known)
        target = replace(specimen(VARIANT["ln-two-pass"]), bindings=(own,))
        found = result(run(target, requirements={"LN-G9"}), "LN-G9")
        assert (found.verdict.value, bool(found.ratio)) == (verdict, True)


def test_what_is_known_deviates_with_its_scope_and_link() -> None:
    """A violation within the entry deviates; table, reasons and JSON give its reason, scope and link."""
    report = judged(wrong_where(short), IN_FOUR)
    result = of(report)
    assert (result.verdict, result.reason) == (Verdict.DEVIATES, "groups of four are off by one")
    assert report.conforms and result.counterexample is not None
    assert result.counterexample.inputs["x"].shape[-1] == 4
    assert result.ratio is not None and result.ratio <= 1
    out = io.StringIO()
    print_report(report, Console(file=out, width=400))
    assert (
        "groups of four are off by one [y; is a wrong number; groups of four]; https://example.org/1" in out.getvalue()
    )
    (known,) = json.loads(report.to_json())["results"][0]["known"]
    assert known["links"] == ["https://example.org/1"] and known["shown"] > 1 and "groups of four" in known["scope"]


@pytest.mark.parametrize(
    ("place", "change"),
    [
        (lambda x: np.full(x.shape, x.shape[-1] in (3, 4)), {}),
        (short, {"dtypes": ("float64",)}),
        (short, {"devices": ("cuda",)}),
        (short, {"modes": ("inference",)}),
        (short, {"ranks": (3,)}),
        (short, {"outputs": ("dx",)}),
        (short, {"notes": ("gamma strided",)}),
        (short, {"failures": ("nan",)}),
        (short, {"predicts": lambda failure: np.abs(failure.got - failure.expected - 2) < 0.01}),
    ],
    ids=["cases", "dtypes", "devices", "modes", "ranks", "outputs", "notes", "failures", "predicts"],
)
def test_whatever_lies_outside_a_limit_fails(place: Callable[..., Any], change: dict[str, Any]) -> None:
    """A violation outside any limit of the entry is a failure, though another within it came first."""
    assert of(judged(wrong_where(place), replace(IN_FOUR, **change))).verdict is Verdict.FAIL


def test_one_element_that_is_wrong_in_another_way_fails() -> None:
    """In an output with otherwise known errors, the one element with another error is the counterexample."""

    def layer_norm(x, gamma, beta, *, eps, axes):
        y = wrong_where(short)(x, gamma, beta, eps=eps, axes=axes)
        if x.shape[-1] == 4:
            y[..., 2] += 0.5
        return y

    result = of(judged(layer_norm, IN_FOUR))
    assert result.verdict is Verdict.FAIL and result.counterexample is not None
    assert result.counterexample.index[-1] == 2


@pytest.mark.parametrize("answer", [np.ones((7, 7, 7), bool), [True, [False]]])
def test_an_answer_of_another_shape_covers_nothing(answer: Any) -> None:
    """It is a mistake of the entry's author, as an exception in it is."""
    entry = replace(IN_FOUR, predicts=lambda failure: answer)
    assert of(judged(wrong_where(short), entry)).verdict is Verdict.FAIL


def test_an_entry_whose_function_raises_covers_nothing_and_is_reported() -> None:
    """Its author reads what it raised, beside the violation."""
    entry = replace(IN_FOUR, cases=lambda inputs, settings: inputs["weight"] is None)
    report = judged(wrong_where(short), entry)
    assert of(report).verdict is Verdict.FAIL
    (known,) = of(report).known
    assert not known.shown and known.reason.endswith("(a function of this entry raised KeyError: 'weight')")


def test_an_exception_is_covered_by_its_kind_alone() -> None:
    """An entry about a wrong number does not cover a call that raises."""
    for failures, verdict in (("raises",), Verdict.DEVIATES), (("value",), Verdict.FAIL):
        entry = KnownViolation("CM-S2", "no empty batches", failures=failures)
        assert of(run(of_numpy(_raising, entry), requirements={"CM-S2"}, forward_only=True)).verdict is verdict


def _raising(x, gamma, beta, *, eps, axes):
    if not x.size:
        raise ValueError("nothing to normalise")
    return SOUND(x, gamma, beta, eps=eps, axes=axes)


def test_a_call_that_is_known_to_raise_spoils_no_other_requirement() -> None:
    """A call that raises without beta is reported under CM-T1; the rest is judged on the calls that return."""
    entry = KnownViolation(
        "CM-T1",
        "beta has to be given",
        failures=("raises",),
        where="no beta",
        cases=lambda inputs, settings: inputs["beta"] is None,
    )

    def layer_norm(x, gamma, beta, *, eps, axes):
        if beta is None:
            raise TypeError("beta is None")
        return SOUND(x, gamma, beta, eps=eps, axes=axes)

    wanted = {"CM-T1", "LN-F1", "LN-F6", "CM-P1"}
    known = run(of_numpy(layer_norm, entry), requirements=wanted, forward_only=True)
    found = {one.requirement: one for one in known.results}
    assert found["CM-T1"].verdict is Verdict.DEVIATES and known.exit_status == 0
    assert {found[name].verdict for name in ("LN-F1", "CM-P1")} == {Verdict.PASS}
    assert any("beta has to be given (CM-T1)" in reason for reason in found["LN-F1"].declined)
    unknown = run(of_numpy(layer_norm), requirements=wanted, forward_only=True)
    found = {one.requirement: one for one in unknown.results}
    assert (found["CM-T1"].verdict, found["LN-F1"].verdict) == (Verdict.FAIL, Verdict.ERROR)


def test_what_was_put_to_the_test_and_did_not_show_is_told() -> None:
    """A corrected function passes, and the report says that the entry covered nothing, if cases for it ran."""
    report = judged(SOUND, IN_FOUR)
    assert of(report).verdict is Verdict.PASS and report.conforms
    assert [one.reason for _, one in report.unseen()] == ["groups of four are off by one"]
    out = io.StringIO()
    print_report(report, Console(file=out, width=200))
    assert "Known violations that did not show: fixed upstream?" in out.getvalue()
    elsewhere = replace(IN_FOUR, cases=lambda inputs, settings: inputs["x"].shape[-1] == 4444)
    assert judged(SOUND, elsewhere).unseen() == ()
    assert judged(SOUND, replace(IN_FOUR, always=False)).unseen() == ()


def test_an_entry_sees_the_directions_of_a_derivative() -> None:
    """A tangent of twice its size is predicted from the tangents of the call, and a second one where there are two."""
    layer_norm = next(b for b in BINDINGS if b.operator == "layer_norm")
    seen: list[Failure] = []

    def doubled(derivative: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *arguments, **settings: 2 * derivative(*arguments, **settings)

    def predicts(failure: Failure) -> bool:
        seen.append(failure)
        return True

    derivatives = {name: doubled(layer_norm.derivatives[name]) for name in ("jvp", "jvp_jvp")}
    known = tuple(KnownViolation(one, "twice its size", predicts=predicts) for one in ("LN-G10", "LN-G14"))
    binding = Binding("layer_norm", "specimen", SOUND, derivatives, known_violations=known)
    report = run(
        Target("specimen", "numpy", "0", BRIDGE, (binding,)), dtypes=("float32",), requirements={"LN-G10", "LN-G14"}
    )
    assert {one.verdict for one in report.results} == {Verdict.DEVIATES}
    for failure in seen:
        again = {"x", "gamma", "beta"} if failure.output == "forward over forward of y" else set()
        assert set(failure.tangents_again) == again
        assert np.shape(failure.tangents["x"]) == np.shape(failure.envelope) == np.shape(failure.inputs["x"])


def test_an_entry_that_makes_no_sense_is_refused() -> None:
    """An unknown dtype, mode or kind of failure is named, and so is anything that is not an entry."""
    for change in (
        {"dtypes": ("float23",)},
        {"modes": ("test",)},
        {"failures": ("nonsense",)},
        {"outputs": "y"},
        {"ranks": 2},
        {"reason": " "},
    ):
        with pytest.raises(WrongEntry, match="the known violation of LN-F1"):
            replace(IN_FOUR, **change)
    with pytest.raises(WrongEntry, match=r"mine: a known violation is a normspec\.KnownViolation, not str"):
        checked_entries(["LN-F1"], "mine")


def test_plain_reasons_cover_all_of_a_requirement() -> None:
    """The reasons of an older worker, one for each requirement, are entries without limits."""
    (entry,) = without_limits({"LN-F1": "known"})
    assert of(judged(wrong_where(short), entry)).verdict is Verdict.DEVIATES
    assert entry.covers(Failure("y", "", {}, {})) is True
