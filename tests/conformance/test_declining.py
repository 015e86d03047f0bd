"""Functions that decline calls: declined calls are unsupported, counted, and no pass; accepted calls are judged."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import normspec
from normspec import Report, Verdict
from normspec.adapters.fixed import FixedSettings
from normspec.adapters.remote.launching import opened_target, start_host
from normspec.adapters.target import Target
from normspec.adapters.targets import resolve
from normspec.conformance.reporting.conclusion import conclusion
from normspec.spec.errors import BadSibling

from .runs import VARIANT, function, others_at_night, result, run, specimen, verdicts

pytestmark = pytest.mark.exhaustive  # it does not depend on the Python version

LAYER_NORM = VARIANT["ln-two-pass"].build()
BATCH_NORM = VARIANT["bn-two-pass"].build()

#: Ways to decline a call without an eps, each an exception to raise.
RAISED = (normspec.Unsupported, NotImplementedError, type("Later", (NotImplementedError,), {}))


def batch_norm(
    declines: Callable[..., None], accepts: Callable[[tuple[int, ...], Mapping[str, Any]], str | None] | None = None
) -> Target:
    """A sound batch_norm that runs a check first, which may raise."""

    def call(x: np.ndarray, *arguments: Any, **settings: Any) -> Any:
        declines(x, settings)
        return BATCH_NORM.call(x, *arguments, **settings)

    target = function("batch_norm", call, vjp=BATCH_NORM.vjp, jvp=BATCH_NORM.jvp, vjp_vjp=BATCH_NORM.vjp_vjp)
    binding = target.bindings[0] if accepts is None else dataclasses.replace(target.bindings[0], accepts=accepts)
    return dataclasses.replace(target, bindings=(binding,))


def without_eps(x: np.ndarray, settings: Mapping[str, Any]) -> str | None:
    """The reason to decline eps = 0."""
    return "eps has to be above 0" if settings["eps"] == 0 else None


def partly(report: Report, reason: str) -> None:
    """Assert that a report conforms on the accepted part, and says how large it is, and why."""
    assert (report.conforms, report.exit_status) == (True, 0)
    (taken,) = report.taken
    assert list(taken.declined) == [reason]
    assert 0 < taken.declined[reason] < taken.cases
    assert report.share == 1 - taken.declined[reason] / taken.cases
    declined = result(report, "BN-F1").declined  # in training alone
    assert list(declined) == [reason] and 0 < declined[reason] < taken.declined[reason]
    assert result(report, "BN-F1").verdict is Verdict.PASS
    words = conclusion(report)[0]
    assert words == f"CONFORMS where it takes the call: {int(100 * report.share)} % of the cases"
    assert json.loads(report.to_json())["taken"][0]["declined"] == dict(taken.declined)
    assert json.loads(report.to_json())["share"] == report.share


@pytest.mark.parametrize("kind", others_at_night(RAISED, RAISED[:1]))
def test_a_call_that_raises_so_is_declined(kind: type[Exception]) -> None:
    """Unsupported of ours and NotImplementedError decline a call, which is unsupported and counted."""

    def declines(x: np.ndarray, settings: Mapping[str, Any]) -> None:
        if without_eps(x, settings):
            raise kind("eps has to be above 0")

    words = "eps has to be above 0"
    partly(run(batch_norm(declines)), words if kind is normspec.Unsupported else f"{kind.__name__}: {words}")


def test_accepts_declines_before_anything_is_called() -> None:
    """A binding is not called with what it does not accept."""

    def never(x: np.ndarray, settings: Mapping[str, Any]) -> None:
        assert not without_eps(x, settings)

    report = run(batch_norm(never, accepts=lambda shape, settings: without_eps(np.empty(0), settings)))
    partly(report, "eps has to be above 0")


def test_a_rank_that_is_not_taken_is_no_declined_case() -> None:
    """Cases use an accepted rank; a case about another rank counts for nothing."""
    report = run(
        batch_norm(lambda x, settings: None, accepts=lambda shape, _: None if len(shape) == 4 else "rank 4 alone")
    )
    assert report.conforms and report.share == 1
    assert conclusion(report)[0] == "CONFORMS"


@pytest.mark.nightly
def test_a_channel_axis_that_is_not_taken_is_declined() -> None:
    """The operator allows any channel axis: accepting only the first one declines cases."""

    def accepts(shape: tuple[int, ...], settings: Mapping[str, Any]) -> str | None:
        return None if settings["channel_axis"] == 1 else "channels first alone"

    report = run(batch_norm(lambda x, settings: None, accepts=accepts))
    assert report.conforms and 0.8 < report.share < 1
    assert "channels first alone" in report.taken[0].declined


@pytest.mark.parametrize("stage", ["call", "accepts"])
def test_who_declines_everything_does_not_conform(stage: str) -> None:
    """A function that takes no call is unsupported throughout, with exit status 2."""

    def declines(*_: Any) -> None:
        raise NotImplementedError("later")

    target = batch_norm(declines if stage == "call" else lambda *_: None, declines if stage == "accepts" else None)
    if stage == "accepts":
        target = batch_norm(lambda *_: None, lambda *_: "later")
    report = run(target)
    assert {r.verdict for r in report.results} == {Verdict.UNSUPPORTED}
    assert (report.conforms, report.exit_status, report.share) == (False, 2, 0)
    assert conclusion(report)[0] == "NOTHING WAS CHECKED: every call was declined."


def test_a_derivative_that_is_declined_in_part() -> None:
    """If gradients are declined on some cases, the result on others passes, and the report counts the declined ones."""

    def vjp(x: np.ndarray, *arguments: Any, **settings: Any) -> Any:
        if x.size > 60:
            raise NotImplementedError("at most 60 elements")
        return LAYER_NORM.vjp(x, *arguments, **settings)

    report = run(function("layer_norm", LAYER_NORM.call, vjp=vjp), requirements={"LN-G1", "CM-S1", "LN-F1"})
    reason = "no gradients: NotImplementedError: at most 60 elements"
    assert verdicts(report) == {"LN-G1": "pass", "CM-S1": "pass", "LN-F1": "pass"}
    assert result(report, "LN-G1").declined[reason] > 5
    assert result(report, "CM-S1").declined[reason] > 0
    assert result(report, "LN-F1").declined == {}
    assert report.share == 1


def test_to_decline_a_bad_call_is_to_refuse_it() -> None:
    """CM-A1 asks that bad arguments raise, and takes Unsupported for that."""

    def call(x: np.ndarray, gamma: Any, beta: Any, *, eps: float, axes: tuple[int, ...]) -> Any:
        if any(p is not None and p.shape != tuple(x.shape[a] for a in axes) for p in (gamma, beta)):
            raise normspec.Unsupported("gamma and beta have the shape of the axes")
        return LAYER_NORM.call(x, gamma, beta, eps=eps, axes=axes)

    report = run(function("layer_norm", call), requirements={"CM-A1"})
    assert verdicts(report) == {"CM-A1": "pass"}


def test_a_channel_axis_that_does_not_exist_is_put_to_a_target_with_fixed_channels() -> None:
    """It has no number of channels that could be another than the target's."""
    (binding,) = (target := specimen(VARIANT["bn-two-pass"])).bindings
    fixed = dataclasses.replace(binding, fixed=FixedSettings(channels=4))
    report = run(dataclasses.replace(target, bindings=(fixed,)), requirements={"CM-A1"})
    assert verdicts(report) == {"CM-A1": "pass"}


@pytest.mark.parametrize(
    ("raised", "verdict"),
    [("raise NotImplementedError('no') from None", "fail"), ("raise NotImplementedError('no') from error", "pass")],
)
def test_a_declined_call_does_not_stand_for_what_a_part_raised(tmp_path: Any, raised: str, verdict: str) -> None:
    """CM-C7: NotImplementedError instead of a part's exception swallows that, unless it carries it."""
    file = tmp_path / "layers.py"
    file.write_text(
        "import numpy\n"
        "def residual(x, branch, *, shortcut=None, activation=None):\n"
        "    try:\n"
        "        y = (x if shortcut is None else shortcut(x)) + branch(x)\n"
        f"    except Exception as error:\n        {raised}\n"
        "    return y if activation is None else activation(y)\n"
    )
    report = run(resolve(f"{file}:residual"), requirements={"CM-C7"})
    assert verdicts(report) == {"CM-C7": verdict}


def test_a_call_after_one_that_was_broken_off() -> None:
    """CM-C7: it may not raise, as by a lock for another x that an exception leaves locked."""
    locked: list[bytes] = []
    made = VARIANT["hw-plain"].build()

    def highway(x: Any, *arguments: Any, **settings: Any) -> Any:
        if locked and locked != [x.tobytes()]:
            raise RuntimeError("a call is under way")
        locked[:] = [x.tobytes()]
        y = made.call(x, *arguments, **settings)
        locked.clear()
        return y

    def unlocking(*arguments: Any, **settings: Any) -> Any:
        try:
            return made.call(*arguments, **settings)
        finally:
            locked.clear()

    about = {"requirements": {"CM-C7"}}
    report = run(function("highway", highway), **about)
    assert verdicts(report) == {"CM-C7": "fail"}
    assert "in the last call, and this one raised RuntimeError: a call is under way" in report.failures()[0].reason
    locked.clear()
    assert verdicts(run(function("highway", unlocking), **about)) == {"CM-C7": "pass"}


def test_what_is_wrong_before_a_part_raises_is_not_left_by_it() -> None:
    """CM-C7: a wrong formula is judged by its own requirement. One that an exception leaves wrong is judged here."""
    made, broken = VARIANT["hw-plain"].build(), []

    def wrong(*arguments: Any, **settings: Any) -> Any:
        return -made.call(*arguments, **settings)

    def wrong_from_then_on(*arguments: Any, **settings: Any) -> Any:
        try:
            y = made.call(*arguments, **settings)
        except Exception:
            broken.append(True)
            raise
        return -y if broken else y

    about = {"requirements": {"CM-C7"}}
    assert verdicts(run(function("highway", wrong), **about)) == {"CM-C7": "pass"}
    assert verdicts(run(function("highway", wrong_from_then_on), **about)) == {"CM-C7": "fail"}


SIBLINGS = """
import numpy
from normspec.adapters.numpy.operators.layer_norm import LayerNorm


def layer_norm(x, gamma, beta, *, eps, axes):
    assert eps
    return LayerNorm().call(x, gamma, beta, eps=eps, axes=axes)

def layer_norm_accepts(shape, settings):
    {accepts}
"""


@pytest.mark.parametrize(
    ("accepts", "message"),
    [
        ("return shape[9]", r"layer_norm_accepts raises IndexError: .* return None where"),
        ("return False", r"layer_norm_accepts returned False: return None where"),
        ("return ''", r"layer_norm_accepts returned '': return None where"),
    ],
)
def test_accepts_that_makes_no_sense_is_one_clear_error(tmp_path: Any, accepts: str, message: str) -> None:
    """A sibling that raises, or answers something else than None or a reason, ends the run with one line."""
    file = tmp_path / "layers.py"
    file.write_text(SIBLINGS.format(accepts=accepts))
    with pytest.raises(BadSibling, match=message):
        normspec.check(f"{file}:layer_norm", dtypes=["float32"], profile="quick")


def test_accepts_that_makes_no_sense_for_a_checks_own_call_is_the_same_error() -> None:
    """A sibling that answers False only for one group alone, of which a law makes a call, is no defect of normspec."""

    def layer_norm(*arguments: Any, **settings: Any) -> Any:
        return LAYER_NORM.call(*arguments, **settings)

    layer_norm.accepts = lambda shape, settings: False if shape[0] == 1 else None  # type: ignore[attr-defined]
    with pytest.raises(BadSibling, match="returned False"):
        normspec.check(layer_norm, framework="numpy", only=["LN-L7"], dtypes=["float32"], profile="quick")


def test_accepts_is_asked_in_the_worker(tmp_path: Any) -> None:
    """NAME_accepts is next to the function, in the worker, and its answers reach the judge."""
    file = tmp_path / "layers.py"
    file.write_text(SIBLINGS.format(accepts="return None if settings['eps'] else 'eps of\\n0'"))
    target = opened_target(start_host(f"{file}:layer_norm"))
    try:
        accepts = target.bindings[0].accepts
        assert accepts((2, 3), {"eps": 0.0, "axes": (-1,)}) == "eps of 0"
        assert accepts((2, 3), {"eps": 0.5, "axes": (-1,)}) is None
    finally:
        target.close()
    report = normspec.check(f"{file}:layer_norm", dtypes=["float32"], profile="quick")
    assert report.conforms and report.share < 1


@pytest.mark.parametrize("accepts", ["'no'", "3"])
def test_accepts_has_to_be_a_function(tmp_path: Any, accepts: str) -> None:
    """A sibling of that name that cannot be called is reported before anything runs."""
    file = tmp_path / "layers.py"
    function = "def layer_norm(x, gamma, beta, *, eps, axes): pass"
    file.write_text(f"import numpy\n{function}\nlayer_norm_accepts = {accepts}\n")
    with pytest.raises(BadSibling, match=r"layer_norm_accepts is .*: make it a function"):
        resolve(f"{file}:layer_norm")


def test_siblings_as_attributes() -> None:
    """A callable brings accepts and expected as attributes."""

    def layer_norm(x: Any, gamma: Any, beta: Any, *, eps: float, axes: tuple[int, ...]) -> Any:
        return x

    vars(layer_norm).update(accepts=lambda shape, settings: "no", expected={"CM-V3": "strided weights are misread"})
    (binding,) = resolve(layer_norm, framework="numpy").bindings
    assert binding.accepts((2, 3), {}) == "no"
    entry = normspec.KnownViolation("CM-V3", "strided weights are misread")
    assert binding.known_violations == (entry,)
    for given in (entry, [entry]):
        vars(layer_norm).update(expected=given)
        assert resolve(layer_norm, framework="numpy").bindings[0].known_violations == (entry,)
    vars(layer_norm).update(expected={"LN-F99": "a slip of the pen"})
    with pytest.raises(BadSibling, match="layer_norm_expected: no requirement is called 'LN-F99'; `normspec explain`"):
        resolve(layer_norm, framework="numpy")
    vars(layer_norm).update(expected="CM-V3")
    with pytest.raises(BadSibling, match=r"layer_norm_expected is str: make it a tuple of normspec\.KnownViolation"):
        resolve(layer_norm, framework="numpy")


def test_a_dtype_is_asked_of_each_binding() -> None:
    """A further binding that lacks a dtype is unsupported there, whatever the first one has."""

    def narrow(x: np.ndarray, *arguments: Any, **settings: Any) -> Any:
        if x.dtype == np.float64:
            raise TypeError("float32 alone")
        return LAYER_NORM.call(x, *arguments, **settings)

    first = function("layer_norm", LAYER_NORM.call)
    second = dataclasses.replace(first.bindings[0], name="second", call=narrow)
    both = dataclasses.replace(first, bindings=(*first.bindings, second))
    report = run(both, dtypes=("float32", "float64"), requirements={"CM-T1", "LN-F1"})
    found = {(r.binding, r.dtype): r.verdict for r in report.results if r.requirement == "LN-F1"}
    assert found.pop(("second", "float64")) is Verdict.UNSUPPORTED
    assert set(found.values()) == {Verdict.PASS}
    assert report.conforms


@pytest.mark.parametrize("kind", [ValueError, None])
def test_gradients_that_fail_beside_a_nan_are_no_pass(kind: type[Exception] | None) -> None:
    """CM-N1 judges gradients too: a backward pass that raises, or gives none, where x has a NaN violates it."""

    def vjp(x: np.ndarray, *arguments: Any, **settings: Any) -> Any:
        if np.isfinite(x.astype(np.float64)).all():
            return LAYER_NORM.vjp(x, *arguments, **settings)
        if kind is not None:
            raise kind("not finite")
        return None, None, None

    report = run(function("layer_norm", LAYER_NORM.call, vjp=vjp), requirements={"CM-N1", "LN-G1"})
    assert verdicts(report) == {"CM-N1": "fail", "LN-G1": "pass"}


def test_what_needs_gradients_that_raise_is_an_error() -> None:
    """If the plain gradient raises, requirements about values and gradients do not pass on one of them alone."""

    def vjp(*arguments: Any, **settings: Any) -> Any:
        raise ZeroDivisionError("by zero")

    wanted = {"CM-P1", "CM-P4", "CM-V1", "CM-N1", "CM-T3", "LN-F1"}
    report = run(function("layer_norm", LAYER_NORM.call, vjp=vjp), requirements=wanted)
    found = verdicts(report)
    assert (found.pop("CM-T3"), found.pop("LN-F1")) == ("fail", "pass")
    assert set(found.values()) == {"error"}


def test_an_error_is_told_before_what_is_declined() -> None:
    """Where some calls are declined and another one raises, the error's reason is what that raised, and its line."""

    def call(x: np.ndarray, *arguments: Any, eps: float, axes: tuple[int, ...]) -> Any:
        if eps == 0:
            raise NotImplementedError("later")
        if len(axes) > 1:
            raise IndexError("one axis")
        return LAYER_NORM.call(x, *arguments, eps=eps, axes=axes)

    found = result(run(function("layer_norm", call), requirements={"CM-T1", "LN-F1"}), "LN-F1")
    assert found.verdict is Verdict.ERROR
    raised, _, line = found.reason.partition(", at ")
    assert raised == "the call raised IndexError: one axis"
    place, _, source = line.partition(": ")
    assert "test_declining.py:" in place and source == 'raise IndexError("one axis")'


def test_a_result_of_another_kind_is_not_told_as_an_exception() -> None:
    """If y comes in a tuple nothing is judged, and the reason says so, not that there was an exception."""

    def call(*arguments: Any, **settings: Any) -> Any:
        return (LAYER_NORM.call(*arguments, **settings),)

    found = result(run(function("layer_norm", call), requirements={"CM-T1", "LN-F1"}), "LN-F1")
    assert (found.verdict, found.reason) == (Verdict.ERROR, "layer_norm returned a tuple of one value in place of y")
