"""BatchNorm's running statistics and its inference mode."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np

from ...reference.double_double import DD
from ...reference.layer_norm import layer_norm_exact
from ...spec.errors import TargetRaised, Unsupported
from ..cases.case import Case
from ..judging.findings import Finding
from ..judging.subject import Subject
from .exactly import added
from .later_calls import different_values
from .laws_moments import plain
from .refusal import outputs_unless_refused
from .registry import INFERENCE, check, in_inference, in_training, laws_in_inference, ordinary
from .relations import changed, close, close_to_sum, equal, same_gradients, same_y, sum_of
from .sizes import all_zero, emptied, present_gradients
from .values import y_of

STATISTICS = ("new_running_mean", "new_running_var")


def _judge_statistics(
    subject: Subject, case: Case, outputs: dict[str, np.ndarray], note: str = ""
) -> Iterator[Finding]:
    for name in STATISTICS:
        yield subject.judge_output(case, name, outputs[name], note=note)


@check("BN-S1", every=ordinary)
def running_mean(subject: Subject, case: Case) -> Iterator[Finding]:
    """The new running mean is (1 - m) old + m mean."""
    name = "new_running_mean"
    yield subject.judge_output(case, name, subject.observe(case).outputs[name])
    yield from _fresh(subject, case, name)


def _with_statistics(case: Case, mean: float, var: float) -> Case:
    """The case with the same running mean, and the same running variance, in every channel."""
    had = case.given("running_mean"), case.given("running_var")
    return case.replace(running_mean=np.full_like(had[0], mean), running_var=np.full_like(had[1], var))


def _fresh(subject: Subject, case: Case, name: str) -> Iterator[Finding]:
    """Judge the same from the statistics of a new layer, zeros and ones, which are values like any other."""
    if "BN-S3" not in case.requirements:  # the small cases of laws are enough
        return
    fresh = _with_statistics(case, 0, 1)
    outputs = subject.outputs(fresh)
    yield subject.judge_output(fresh, name, outputs[name], note="fresh running statistics")


@check("BN-S2", every=ordinary)
def running_var(subject: Subject, case: Case) -> Iterator[Finding]:
    """The new running variance is (1 - m) old + m variance."""
    name = "new_running_var"
    yield subject.judge_output(case, name, subject.observe(case).outputs[name])
    yield from _fresh(subject, case, name)


@check("BN-S3", when=in_training, raising="violates", of="statistics")
def several_steps(subject: Subject, case: Case) -> Iterator[Finding]:
    """Three steps, each from the statistics that the previous one returned."""
    for step in range(3):
        outputs = subject.outputs(case)
        yield from _judge_statistics(subject, case, outputs, f"step {step + 1}")
        following = different_values(case)
        given = {name.removeprefix("new_"): outputs[name] for name in STATISTICS}
        if not all(np.isfinite(v.astype(np.float64)).all() for v in given.values()):
            return
        case = following.replace(**given)


@check("BN-S4", when=in_training, raising="violates", of="statistics")
def momentum_ends(subject: Subject, case: Case) -> Iterator[Finding]:
    """Momentum 0 keeps the running statistics, momentum 1 replaces them."""
    for momentum in (0.0, 1.0):
        moved = case.replace(momentum=momentum)
        outputs = subject.outputs(moved)
        yield from _judge_statistics(subject, moved, outputs, f"momentum {momentum:g}")


@check("BN-S5", when=in_training, raising="violates")
def training_ignores_running(subject: Subject, case: Case) -> Iterator[Finding]:
    """In training neither y nor a gradient depends on the running statistics."""
    other, note = _with_statistics(case, 3, 5), "other running statistics"
    yield same_y(subject, case, other, note)
    if not subject.forward_only:
        yield from same_gradients(subject, case, subject.pull(other), subject.observe(case).gradients, note)


check("BN-I1", every=in_inference, modes=INFERENCE)(y_of)


@check("BN-I2", every=in_inference, modes=INFERENCE)
def inference_keeps(subject: Subject, case: Case) -> Iterator[Finding]:
    """Inference returns the given running statistics, to the last bit."""
    outputs = subject.observe(case).outputs
    for name in STATISTICS:
        given = case.given(name.removeprefix("new_"))
        yield changed(given, outputs[name], case, name, f"{name} in inference")


def _batch_axis(case: Case) -> int:
    return 1 if case.settings["channel_axis"] % case.x.ndim == 0 else 0


@check("BN-I3", every=in_inference, raising="violates", modes=INFERENCE)
def samples_independent(subject: Subject, case: Case) -> Iterator[Finding]:
    """In inference a sample alone gives the same y as in a batch."""
    for alone, got, want, note in _samples_alone(subject, case):
        bound = subject.bound(alone, "y")
        yield close(subject, alone, "y", got, want.astype(np.float64), sum_of(bound, bound), note)


@check("BN-I6", every=laws_in_inference, modes=INFERENCE)
def samples_independent_bits(subject: Subject, case: Case) -> Iterator[Finding]:
    """In inference a sample alone gives the same bits as in a batch."""
    y = subject.observe(case).outputs["y"]
    for alone, got, want, note in _samples_alone(subject, case):
        bound = subject.bound(alone, "y")
        yield equal(
            subject, alone, "y", got, want, note,
            calls=((alone, got), (case, y)), bound=sum_of(bound, bound),
        )  # fmt: skip


def _samples_alone(subject: Subject, case: Case) -> Iterator[tuple[Case, np.ndarray, np.ndarray, str]]:
    """The first and last sample of a batch, each with its y alone and in the batch, and a note."""
    axis = _batch_axis(case)
    if case.x.shape[axis] < 2:
        return
    whole = subject.observe(case).outputs["y"]
    for sample in (0, case.x.shape[axis] - 1):
        alone = case.replace(x=np.take(case.x, [sample], axis=axis), g=np.take(case.g, [sample], axis=axis))
        got = subject.outputs(alone)["y"]
        yield alone, got, np.take(whole, [sample], axis=axis), f"sample {sample} alone"


@check("BN-I4", every=in_inference, raising="violates", modes=INFERENCE)
def affine_in_x(subject: Subject, case: Case) -> Iterator[Finding]:
    """In inference y is affine in x: y(a) + y(b) = y(a + b) + y(0)."""
    random = case.random("affine")
    shape, dtype = case.x.shape, case.x.dtype
    a = random.integers(-8, 9, shape).astype(dtype)  # small integers: their sums are exact
    b = random.integers(-8, 9, shape).astype(dtype)
    cases = [case.replace(x=v) for v in (a, b, (a + b).astype(dtype), np.zeros_like(a))]
    ys = [subject.outputs(c)["y"] for c in cases]
    bounds = [subject.bound(c, "y") for c in cases]
    terms = ys[0], ys[1], -ys[3]
    yield close_to_sum(
        subject, cases[2], "y", ys[2], added(*terms), terms,
        sum_of(*bounds), "y(a) + y(b) - y(0)",
    )  # fmt: skip


def _single(subject: Subject, case: Case) -> Iterator[Finding | dict[str, np.ndarray]]:
    """The outputs of a training call with one value per channel; or a finding, if it raises or is declared to."""
    declared = subject.conventions.get("single_value", "beta")
    try:
        outputs = subject.observe(case).outputs
    except TargetRaised as raised:
        if declared == "error":
            yield Finding(case, violated=False, deviates=("single_value",))
        else:
            yield Finding(case, violated=True, output="y", note=f"raised {raised}", failure="raises")
        return
    if declared == "error":
        note = "single_value=error is declared, and the call returned"
        yield Finding(case, violated=True, output="y", note=note, failure="accepts")
        return
    yield outputs


def _of_one_value(case: Case) -> bool:
    """Cases with one value in each group, so that a smaller case has one too."""
    return case.layout.size == 1


@check("BN-E1", "IN-E1", when=_of_one_value, raising="violates", plain=True)
def single_value(subject: Subject, case: Case) -> Iterator[Finding]:
    """With one value a group, y is beta and dx and dgamma are 0, or the call raises as declared."""
    for found in _single(subject, case):
        if isinstance(found, Finding):
            yield found
            continue
        yield subject.judge_output(case, "y", found["y"])
        with contextlib.suppress(Unsupported):  # y can be judged all the same
            if not subject.forward_only:
                for name, value in subject.observe(case).gradients.items():
                    yield subject.judge_gradient(case, name, value)


@check("BN-E5", when=_of_one_value, raising="violates", of="statistics")
def statistics_of_a_single_value(subject: Subject, case: Case) -> Iterator[Finding]:
    """One value per channel in training: new running statistics follow the formula, or the call raises as declared."""
    for found in _single(subject, case):
        if isinstance(found, Finding):
            yield found
        else:
            yield from _judge_statistics(subject, case, found)


@check("BN-E2", when=in_training, raising="violates")
def no_samples(subject: Subject, case: Case) -> Iterator[Finding]:
    """In training a batch without samples raises, or gives an empty y and leaves the statistics alone."""
    _ = subject.observe(case).outputs
    empty = emptied(case)
    outputs = outputs_unless_refused(subject, empty)  # with their shapes checked
    if outputs is None:
        yield Finding(empty, violated=False)
    else:
        yield from _kept(empty, outputs)


def _kept(empty: Case, outputs: dict[str, np.ndarray]) -> Iterator[Finding]:
    """Judge whether a batch without samples leaves the running statistics as given."""
    for name in STATISTICS:
        given = empty.given(name.removeprefix("new_"))
        yield changed(given, outputs[name], empty, name, f"{name} after a batch without samples")


@check("BN-E3", when=in_inference, raising="violates", modes=INFERENCE)
def no_samples_in_inference(subject: Subject, case: Case) -> Iterator[Finding]:
    """In inference a batch without samples gives an empty y, and leaves the statistics alone."""
    _ = subject.observe(case).outputs
    empty = emptied(case)
    yield from _kept(empty, subject.outputs(empty))  # `outputs` checks the shapes


@check("BN-E4", when=in_inference, raising="violates", gradient=True, modes=INFERENCE)
def no_samples_no_gradient(subject: Subject, case: Case) -> Iterator[Finding]:
    """In inference a batch without samples adds nothing to the gradients of gamma and beta."""
    _ = subject.observe(case).outputs
    empty = emptied(case)
    yield from all_zero(empty, present_gradients(subject, empty), "no samples at all")


@check("BN-L12", when=in_training, raising="violates", of="formula")
def dual_of_layer_norm(subject: Subject, case: Case) -> Iterator[Finding]:
    """In training y is layer_norm of the transposed array, channel by channel."""
    if case.layout.size == 0:
        return
    bare, y = plain(subject, case)

    def want(normative: bool) -> DD:
        eps = subject.truth(bare, normative=normative).settings["eps"]
        exact = layer_norm_exact(bare.layout.rows(bare.x), None, None, eps=eps, axes=(-1,))
        return DD(bare.layout.back(exact.hi), bare.layout.back(exact.lo))

    yield subject.judge(bare, "y", y, want, subject.bound(bare, "y"), "layer_norm of the transposed array")
