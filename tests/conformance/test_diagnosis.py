"""The cause of a failure: named where the library has the mistake, and never named wrongly."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import normspec
from normspec import Report
from normspec.adapters.binding import DERIVATIVES
from normspec.adapters.target import Target
from normspec.conformance.diagnosis.candidates import Candidate, paired
from normspec.conformance.diagnosis.causes import diagnosed
from normspec.conformance.diagnosis.search import Search
from normspec.conformance.engine.engine import Run
from normspec.conformance.judging.subject import Subject
from normspec.conformance.judging.verdicts import Verdict
from normspec.conformance.requests.implementation_targets import implementation_target
from normspec.conformance.requests.plan import Plan
from normspec.conformance.requests.profiles import profile_of
from normspec.conformance.selftest.selftest import judge_fault

from .runs import FAULT, VARIANT, function, others_at_night, run

Function = Callable[..., Any]


def _moments(x: np.ndarray, axes: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    mean = x.mean(axis=axes, keepdims=True)
    return mean, ((x - mean) ** 2).mean(axis=axes, keepdims=True)


def written_plainly(change: Callable[..., np.ndarray]) -> Function:
    """A LayerNorm as anyone writes it in NumPy, with one mistake."""

    def layer_norm(x, gamma, beta, *, eps, axes):
        wide = x.astype(np.float64 if x.dtype == np.float64 else np.float32)
        mean, variance = _moments(wide, axes)
        return change(wide, mean, variance, gamma, beta, wide.dtype.type(eps), axes).astype(x.dtype)

    return layer_norm


def _affine(xhat: np.ndarray, gamma: np.ndarray | None, beta: np.ndarray | None) -> np.ndarray:
    y = xhat if gamma is None else xhat * gamma
    return y if beta is None else y + beta


def _eps_on_the_deviation(x, mean, variance, gamma, beta, eps, axes):
    return _affine((x - mean) / (np.sqrt(variance) + eps), gamma, beta)


def _no_eps(x, mean, variance, gamma, beta, eps, axes):
    return _affine((x - mean) / np.sqrt(variance), gamma, beta)


def _unbiased(x, mean, variance, gamma, beta, eps, axes):
    n = np.prod([x.shape[axis] for axis in axes])
    squares = ((x - mean) ** 2).sum(axis=axes, keepdims=True)
    return _affine((x - mean) / np.sqrt(squares / (n - 1) + eps), gamma, beta)


def _beta_before_gamma(x, mean, variance, gamma, beta, eps, axes):
    xhat = (x - mean) / np.sqrt(variance + eps)
    y = xhat if beta is None else xhat + beta
    return y if gamma is None else y * gamma


def _unbiased_and_beta_before_gamma(x, mean, variance, gamma, beta, eps, axes):
    y = _unbiased(x, mean, variance, None, beta, eps, axes)
    return y if gamma is None else y * gamma


def _a_hundredth_too_large(x, mean, variance, gamma, beta, eps, axes):
    return _affine((x - mean) / np.sqrt(variance + eps), gamma, beta) * x.dtype.type(1.01)


def _a_third_of_eps(x, mean, variance, gamma, beta, eps, axes):
    return _affine((x - mean) / np.sqrt(variance + eps / 3), gamma, beta)


def _ninth_root(x, mean, variance, gamma, beta, eps, axes):
    return _affine((x - mean) / (variance + eps) ** 0.45, gamma, beta)


def _one_eps_for_all(x, mean, variance, gamma, beta, eps, axes):
    return _affine((x - mean) / np.sqrt(variance + np.float32(1e-6)), gamma, beta)  # the library has 1e-5


def _padded_to_eight(x, mean, variance, gamma, beta, eps, axes):
    n = np.prod([x.shape[axis] for axis in axes])  # the library has multiples of 4
    return _affine((x - mean) / np.sqrt(variance * x.dtype.type(n / (-(-n // 8) * 8)) + eps), gamma, beta)


def _eleven_bits(x, mean, variance, gamma, beta, eps, axes):
    y = (x - mean) / np.sqrt(variance + eps) * x.dtype.type(1 + 2**-11)  # the library has twelve
    return _affine(y, gamma, beta)


def _y(x, gamma, beta, *, eps, axes):
    return written_plainly(lambda *given: _right(*given))(x, gamma, beta, eps=eps, axes=axes)


def _right(x, mean, variance, gamma, beta, eps, axes):
    return _affine((x - mean) / np.sqrt(variance + eps), gamma, beta)


def _in_place(x, gamma, beta, *, eps, axes):
    y = _y(x, gamma, beta, eps=eps, axes=axes)
    x[...] = y
    return y


def _centred_in_place(x, gamma, beta, *, eps, axes):
    y = _y(x, gamma, beta, eps=eps, axes=axes)
    x -= x.mean(axes, keepdims=True)
    return y


def _nan_is_zero(x, gamma, beta, *, eps, axes):
    return _y(np.where(np.isnan(x), x.dtype.type(0), x), gamma, beta, eps=eps, axes=axes)


def _nan_is_one(x, gamma, beta, *, eps, axes):
    return _y(np.where(np.isnan(x), x.dtype.type(1), x), gamma, beta, eps=eps, axes=axes)


def _refuses_what_has_four_axes(x, gamma, beta, *, eps, axes):
    if x.ndim >= 4:
        raise ValueError("at most (batch, time, features)")
    return _y(x, gamma, beta, eps=eps, axes=axes)


def _refuses_what_has_three_axes(x, gamma, beta, *, eps, axes):
    if x.ndim >= 3:
        raise ValueError("at most (batch, features)")
    return _y(x, gamma, beta, eps=eps, axes=axes)


def _of_the_first(count: int) -> Function:
    def layer_norm(x, gamma, beta, *, eps, axes):
        rows = x.reshape(-1, int(np.prod([x.shape[axis] for axis in axes])))
        mean, variance = _moments(rows[:, :count], (-1,))
        xhat = ((rows - mean) / np.sqrt(variance + np.float32(eps))).reshape(x.shape)
        return _affine(xhat, gamma, beta).astype(x.dtype)

    return layer_norm


def _beta_needs_gamma_from(count: int) -> Function:
    def layer_norm(x, gamma, beta, *, eps, axes):
        n = np.prod([x.shape[axis] for axis in axes])
        return _y(x, gamma, None if gamma is None and n >= count else beta, eps=eps, axes=axes)

    return layer_norm


def _least_eps_from(count: int) -> Function:
    def layer_norm(x, gamma, beta, *, eps, axes):
        n = np.prod([x.shape[axis] for axis in axes])
        return _y(x, gamma, beta, eps=max(eps, 1e-12) if n >= count else eps, axes=axes)

    return layer_norm


def _with_a_wrong_bit_each(number: int) -> Function:
    calls = [0]

    def layer_norm(x, gamma, beta, *, eps, axes):
        calls[0] += 1
        y = _y(x, gamma, beta, eps=eps, axes=axes)
        return y if calls[0] % number else np.where(np.isfinite(y), np.nextafter(y, np.inf, dtype=y.dtype), y)

    return layer_norm


def _results_kept_by_first(count: int) -> Function:
    kept: dict[object, np.ndarray] = {}

    def layer_norm(x, gamma, beta, *, eps, axes):
        rest = [None if value is None else value.tobytes() for value in (gamma, beta)]
        key = (x.shape, x.dtype, x.reshape(-1)[:count].tobytes(), *rest)
        return kept.setdefault(key, _y(x, gamma, beta, eps=eps, axes=axes)).copy()

    return layer_norm


def _eps_of_first_call() -> Function:
    kept: dict[object, float] = {}

    def layer_norm(x, gamma, beta, *, eps, axes):
        return _y(x, gamma, beta, eps=kept.setdefault((x.shape, x.dtype), eps), axes=axes)

    return layer_norm


def _eps_of_last_call() -> Function:
    last: list[float] = []

    def layer_norm(x, gamma, beta, *, eps, axes):
        last.append(eps)
        return _y(x, gamma, beta, eps=last[-2:][0], axes=axes)

    return layer_norm


def judged(call: Function, dtypes: tuple[str, ...] = ("float32",)) -> Report:
    """The report on a function that returns only values."""
    return run(function("layer_norm", call), dtypes=dtypes, explain=True, forward_only=True)


def of_values(call: Function, requirements: tuple[str, ...]) -> Report:
    """The report on a function that returns only values, by these requirements, all of them required."""
    target = function("layer_norm", call)
    return run(target, requirements=requirements, required=requirements, explain=True, forward_only=True)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (_eps_on_the_deviation, "ln-eps-on-std"),
        (_beta_before_gamma, "ln-affine-order"),
        *others_at_night([(_no_eps, "ln-eps-missing"), (_unbiased, "ln-unbiased-variance")], ()),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_a_known_mistake_is_named_however_it_is_written(change, fault):
    """A function of somebody else's with a mistake of the library is given that mistake's name."""
    report = judged(written_plainly(change))
    (cause,) = report.causes
    assert cause.faults == (fault,)
    assert cause.explains[0] == cause.requirement == FAULT[fault].requirement
    assert cause.sentence == FAULT[fault].summary


@pytest.mark.parametrize(
    ("call", "requirements", "fault"),
    [
        (_in_place, ("CM-P1", "LN-F1"), "ln-x-overwritten"),
        (_nan_is_zero, ("CM-N1", "CM-N3", "LN-F1"), "ln-nan-to-zero"),
        (_refuses_what_has_four_axes, ("CM-T1", "CM-T2", "LN-F1"), "ln-four-axes-refused"),
        (_of_the_first(1024), ("CM-S1", "LN-F1", "LN-F7"), "ln-first-1024-values"),
        (_with_a_wrong_bit_each(60), ("CM-P2", "CM-P3", "LN-F1"), "ln-last-bit-once-in-sixty"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_what_no_ordinary_value_shows_is_named_too(call, requirements, fault):
    """A mistake that overwrites, swallows, refuses, or is wrong from some size or call on is named too."""
    (cause,) = of_values(call, requirements).causes
    assert cause.faults == (fault,)


@pytest.mark.parametrize(
    ("call", "requirements"),
    [
        (_centred_in_place, ("CM-P1", "LN-F1")),  # the library has what x holds y afterwards
        (_nan_is_one, ("CM-N1", "CM-N3", "LN-F1")),
        (_refuses_what_has_three_axes, ("CM-T1", "CM-T2", "LN-F1")),
        (_of_the_first(1000), ("CM-S1", "LN-F1", "LN-F7")),
        (_with_a_wrong_bit_each(59), ("CM-P2", "CM-P3", "LN-F1")),
        (_results_kept_by_first(4), ("CM-P2", "LN-F1", "LN-F4")),
        *others_at_night(
            [
                (_beta_needs_gamma_from(1024), ("CM-S1", "LN-F1", "LN-F6")),  # the library has 513
                (_least_eps_from(1500), ("CM-S1", "LN-F1", "LN-F4")),  # the library has 1024
                (_results_kept_by_first(9), ("CM-P2", "LN-F1", "LN-F4")),
                (_eps_of_last_call(), ("CM-P2", "LN-F1", "LN-F4")),
            ],
            (),
        ),
    ],
)
def test_what_is_nearly_one_of_the_library_has_no_name(call, requirements):
    """Other values in x afterwards, another size, count of calls or key: no name of the library is true of it."""
    assert not any(cause.faults for cause in of_values(call, requirements).causes)


def _where(condition: Callable[..., bool], fault: str, sound: str) -> Target:
    """A sound function that has a mistake of the library under a condition on its arguments."""
    right, wrong = VARIANT[sound].build(), FAULT[fault].build()

    def chosen(name: str) -> Function:
        return lambda *given, **settings: getattr(wrong if condition(*given, **settings) else right, name)(
            *given, **settings
        )

    derivatives = {name: chosen(name) for name in DERIVATIVES if getattr(right, name) is not None}
    return function(FAULT[fault].operator, chosen("call"), **derivatives)


def _of_a_new_layer(x, gamma, beta, mean, variance, *rest, **settings):
    return bool((mean == 0).all() and (variance == 1).all())


NEW = "where every running mean is 0 and every running variance is 1"


@pytest.mark.parametrize(
    ("fault", "condition", "sound", "requirements", "words"),
    [
        *others_at_night(
            [
                ("bn-inference-of-new-layer", _of_a_new_layer, "bn-two-pass", ("BN-I1",), f" in inference {NEW}"),
                ("bn-first-step-replaces", _of_a_new_layer, "bn-two-pass", ("BN-S1",), f" in training {NEW}"),
                (
                    "rm-double-backward-detached",
                    lambda *given, axes, **settings: len(axes) > 1,
                    "rm-two-pass",
                    ("RM-G9", "RM-F1"),
                    "",
                ),
            ],
            (),
        ),
        (
            "ln-small-cotangents-skipped",
            lambda *given, **settings: len(given) > 3 and np.abs(given[3]).max(initial=0) < 2.0**-21,
            "ln-two-pass",
            ("LN-G1", "LN-F1"),
            "is zero where the largest |g| is below about",
        ),
    ],
    ids=lambda one: one if isinstance(one, str) and " " not in one else "",
)
def test_a_condition_beside_that_of_a_known_mistake_is_told_apart(fault, condition, sound, requirements, words):
    """The simplest case satisfies both. Other cases, with one of the two alone, show which it is."""
    causes = run(_where(condition, fault, sound), requirements=requirements, explain=True).causes
    assert not any(cause.faults for cause in causes)
    assert all(words in cause.sentence for cause in causes) and (causes or not words)


def test_it_is_named_in_each_dtype_that_shows_it():
    """One mistake is one cause, which says in which dtypes it shows."""
    dtypes = ("float16", "bfloat16", "float32", "float64")
    (cause,) = judged(written_plainly(_eps_on_the_deviation), dtypes).causes
    assert cause.dtypes == dtypes


@pytest.mark.parametrize(
    ("change", "fault"), [(_eps_on_the_deviation, "ln-eps-on-std"), (_unbiased, "ln-unbiased-variance")]
)
def test_it_is_named_where_there_are_no_gradients(change, fault):
    """A function that nothing differentiates, and that does not say so, is diagnosed by its values."""
    (cause,) = run(function("layer_norm", written_plainly(change)), explain=True).causes
    assert cause.faults == (fault,)


def calls_of_the_search(operator: str, call: Function, **derivatives: Function) -> tuple[Report, int]:
    """The report on a function that is slow, and how often it was called to find the cause."""
    calls = 0

    def counted(one: Function) -> Function:
        def counting(*given: Any, **settings: Any) -> Any:
            nonlocal calls
            calls += 1
            return one(*given, **settings)

        return counting

    own = function(operator, counted(call), **derivatives)
    plan = Plan(
        (own,), ("float32",), "cpu", {}, profile_of("quick"), 0, explain=True, slow=True, forward_only=not derivatives
    )
    made = Run(plan)
    report, before = made.report(), calls
    return diagnosed(made, report), calls - before


@pytest.mark.parametrize("change", [_eps_on_the_deviation, _ninth_root, _unbiased_and_beta_before_gamma])
def test_a_slow_function_is_called_thirty_times_for_its_cause(change):
    """At most thirty more calls, whether its mistake is named or described."""
    report, calls = calls_of_the_search("layer_norm", written_plainly(change))
    assert report.causes
    assert 0 < calls <= 30


@pytest.mark.parametrize("fault", ["ln-unbiased-variance", "ln-dx-one-plus-gamma", "bn-eps-squared", "hw-tanh-gate"])
def test_a_slow_function_with_derivatives_is_called_thirty_times_too(fault):
    """A gradient belongs to a call; it does not count as a call itself."""
    made = FAULT[fault].build()
    derivatives = {name: getattr(made, name) for name in DERIVATIVES if getattr(made, name) is not None}
    report, calls = calls_of_the_search(FAULT[fault].operator, made.call, **derivatives)
    assert [cause.faults for cause in report.causes] == [(fault,)]
    assert 0 < calls <= 30


def test_two_mistakes_are_both_named():
    """A divisor n - 1 and a beta that gamma multiplies are two causes, and each explains what it breaks."""
    causes = {cause.faults: cause for cause in judged(written_plainly(_unbiased_and_beta_before_gamma)).causes}
    assert set(causes) == {("ln-unbiased-variance",), ("ln-affine-order",)}
    assert "LN-F2" in causes["ln-unbiased-variance",].explains
    assert "LN-F5" in causes["ln-affine-order",].explains
    assert "LN-F5" not in causes["ln-unbiased-variance",].explains


@pytest.mark.parametrize(
    "change",
    others_at_night(
        [_a_hundredth_too_large, _a_third_of_eps, _ninth_root, _one_eps_for_all, _padded_to_eight, _eleven_bits],
        [_a_third_of_eps, _one_eps_for_all, _eleven_bits],
    ),
)
def test_what_is_not_in_the_library_has_no_name(change):
    """A mistake that no fault makes is given no other's name."""
    report = judged(written_plainly(change))
    (cause,) = report.causes
    assert cause.faults == ()
    assert "normspec explain" not in str(report)  # only a name is explained further


#: Faults of several themes and operators; the tests marked `campaign` use all faults.
SAMPLE = (
    "ln-eps-max", "ln-dx-one-plus-gamma", "ln-jvp-detached", "ln-pair-shares-rstd", "bn-running-var-with-eps",
    "rm-eps-missing", "gn-rms-norm", "hw-tanh-gate", "mh-dlogits-divided-by-weights", "ln-width-4096-misread",
    "bn-dgamma-accumulates", "rm-results-kept-by-first-values", "gn-dbeta-not-reduced", "bn-eps-missing-where-tracked",
    "in-one-pass-variance-clamped",
)  # fmt: skip
#: Faults that show only slightly in a dtype.
FAINT = (
    ("bn-dbeta-narrow", "float16"),
    ("in-mixed-gradients-narrowed", "bfloat16"),
    ("rs-rounded-where-tracked", "float16"),
)


def diagnosed_as(fault: str, dtype: str = "float32") -> list[tuple[str, ...]]:
    """Under which names a fault of the library is diagnosed in a dtype, or in the first that shows it."""
    one = FAULT[fault]
    dtype = dtype if dtype in one.dtypes else one.dtypes[0]
    target = implementation_target("it", one.operator, one.build())
    report = run(target, dtypes=(dtype,), explain=True)
    return [cause.faults for cause in report.causes if cause.faults]


@pytest.mark.parametrize(
    "fault", others_at_night(SAMPLE, ["ln-eps-max", "ln-jvp-detached", "gn-rms-norm", "hw-tanh-gate"])
)
def test_a_fault_is_diagnosed_by_its_own_name(fault):
    """A fault of the library is named as itself."""
    assert any(fault in names for names in diagnosed_as(fault)), diagnosed_as(fault)


@pytest.mark.parametrize(("fault", "dtype"), others_at_night(FAINT, FAINT[:1]))
def test_what_shows_by_little_is_named_by_the_many_values_that_are_wrong_alike(fault, dtype):
    """A mistake that is off by a few units in the last place of 16 bits is named, and no other is."""
    assert diagnosed_as(fault, dtype) == [(fault,)]


@pytest.mark.parametrize(
    ("fault", "dtype"),
    others_at_night(
        [
            ("ln-eps-of-first-call", "float64"),
            ("bn-mode-of-first-call", "float16"),
            ("rm-axes-of-first-call", "float32"),
            ("in-results-kept-by-first-values", "bfloat16"),
        ],
        [("bn-mode-of-first-call", "float16"), ("rm-axes-of-first-call", "float32")],
    ),
)
def test_what_is_kept_of_the_first_call_of_a_shape_is_named_and_explains_all(fault, dtype):
    """A kept setting or result breaks many requirements; one name explains them, and CM-P2 alone stands."""
    one = FAULT[fault]
    report = run(implementation_target("it", one.operator, one.build()), dtypes=(dtype,), explain=True)
    assert [cause.faults for cause in report.causes] == [(fault,)]
    standing = [one for one in report.results if one.verdict is Verdict.FAIL and not one.follows_from]
    assert [one.requirement for one in standing] == ["CM-P2"]


def test_it_is_named_without_gradients_too():
    """A function of somebody else's that nothing differentiates, and that does not say so."""
    (cause,) = run(function("layer_norm", _eps_of_first_call()), explain=True).causes
    assert cause.faults == ("ln-eps-of-first-call",)


@pytest.mark.campaign
@pytest.mark.parametrize("fault", FAULT)
def test_no_fault_has_anothers_name(fault):
    """The names given include the fault's own, among those that cannot be told apart."""
    assert all(fault in names for names in diagnosed_as(fault))


def test_the_table_of_kills_has_what_a_mistake_against_advice_is_diagnosed_as():
    """A mistake that violates only a SHOULD is named in the table, where the SHOULD is treated as a MUST."""
    (row,) = [judge_fault("ln-eps-unchecked", ("float32",), "quick", 0, table=True)]
    (named,) = row.named
    assert named.own(row.fault)
    assert named.standing == ("CM-A2",)


def test_each_violation_refers_to_its_cause():
    """The results and the JSON name the cause of each violation, and the text begins with it."""
    report = judged(written_plainly(_eps_on_the_deviation))
    explained = [result for result in report.failures() if result.diagnosis == "ln-eps-on-std"]
    assert {"LN-F1", "LN-F3"} <= {result.requirement for result in explained}
    document = json.loads(report.to_json())
    assert document["causes"][0]["faults"] == ["ln-eps-on-std"]
    assert document["causes"][0]["errata"]
    text = str(report)
    assert text.index("Cause:") < text.index("\n✗ LN-F3")
    assert "\n✗ LN-F1" not in text, "what follows from the cause is one line"


def test_who_conforms_loads_no_fault():
    """A function that conforms does not wait for the library of faults."""
    code = (
        "import sys, normspec\n"
        "normspec.check('numpy', op='residual', dtypes=['float32'], profile='quick', jobs=1)\n"
        "print('normspec.conformance.faults' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"]


def test_a_defect_of_the_diagnosis_changes_no_verdict(monkeypatch):
    """If the search itself breaks, the report says so and its verdicts remain."""

    def broken(self: Search) -> None:
        raise RuntimeError("lost")

    monkeypatch.setattr(Search, "alone", property(broken))
    report = judged(written_plainly(_no_eps))
    assert report.exit_status == 1
    assert any("lost" in note for note in report.notes)


def test_two_faults_of_one_step_are_not_put_together():
    """Where one would undo the other there is no function with both."""
    target = implementation_target("it", "layer_norm", FAULT["ln-eps-missing"].build())
    like = Subject(target, target.bindings[0], "float32")
    first, second = (Candidate((FAULT[name],), like) for name in ("ln-eps-missing", "ln-eps-on-std"))
    assert paired(first, second) is None


def test_ctrl_c_in_the_search_loses_no_verdict(monkeypatch):
    """If the user stops the search for a cause, the verdicts remain, and the report says that none is explained."""

    def interrupted(self: Search) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Search, "alone", property(interrupted))
    call = written_plainly(_no_eps)
    report = normspec.check(call, op="layer_norm", dtypes=["float32"], profile="quick", only="LN-F*", jobs=1)
    assert report.exit_status == 1
    assert any("interrupted" in note for note in report.notes)


def test_a_declared_bessel_correction_hides_no_mistake():
    """A batch_norm that declares Bessel's correction of its running variance is diagnosed all the same."""

    def batch_norm(x, gamma, beta, running_mean, running_var, *, eps, momentum, training, channel_axis):
        wide = x.astype(np.float32)
        along = tuple(axis for axis in range(x.ndim) if axis != channel_axis % x.ndim)
        n, shape = x.size // x.shape[channel_axis], [1] * x.ndim
        shape[channel_axis] = -1
        mean, variance = wide.mean(along), wide.var(along)
        used = (mean, variance) if training else (running_mean, running_var)
        y = (wide - used[0].reshape(shape)) / (np.sqrt(used[1].reshape(shape)) + np.float32(eps))
        y = y if gamma is None else y * gamma.reshape(shape)
        y = y if beta is None else y + beta.reshape(shape)
        if not training:
            return y, running_mean, running_var
        kept = 1 - np.float32(momentum)
        unbiased = variance * (n / max(n - 1, 1))
        return (
            y.astype(np.float32),
            (kept * running_mean + np.float32(momentum) * mean).astype(np.float32),
            (kept * running_var + np.float32(momentum) * unbiased).astype(np.float32),
        )

    conventions = {"running_variance": "bessel"}
    report = run(function("batch_norm", batch_norm), explain=True, forward_only=True, conventions=conventions)
    assert any(cause.faults == ("bn-eps-on-std",) for cause in report.causes), report


def test_a_function_that_always_raises_has_no_named_mistake():
    """No mistake of which some calls would succeed is named, nor one that explains no violation."""

    def layer_norm(x, gamma, beta, *, eps, axes):
        raise TypeError("no such thing")

    causes = run(function("layer_norm", layer_norm), explain=True).causes
    assert not [cause.faults for cause in causes if cause.faults]
    assert all(cause.explains for cause in causes)
