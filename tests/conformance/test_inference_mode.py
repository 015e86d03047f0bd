"""What a layer does in inference mode alone is judged by the requirement that it is about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from normspec.adapters.binding import Binding
from normspec.adapters.numpy import BRIDGE
from normspec.adapters.target import Target
from normspec.conformance.faults.layouts import read_on

from .runs import VARIANT, run, verdicts

pytestmark = pytest.mark.exhaustive  # it does not depend on the Python version

Call = Callable[..., Any]


def layer(in_inference: Callable[..., Any], *, variant: str = "ln-two-pass", has_modes: bool = True) -> Target:
    """A sound function that calls ``in_inference(call, x, ...)`` in inference mode."""
    made = VARIANT[variant].build()

    def call(x: np.ndarray, *arguments: Any, mode: str = "training", **settings: Any) -> Any:
        if mode == "training":
            return made.call(x, *arguments, **settings)
        return in_inference(made.call, x, *arguments, **settings)

    binding = Binding(VARIANT[variant].operator, "own", call, {"vjp": made.vjp}, has_modes=has_modes)
    return Target("own", "numpy", np.__version__, BRIDGE, (binding,))


def sound(call: Call, x: np.ndarray, *arguments: Any, **settings: Any) -> np.ndarray:
    """The same as in training."""
    return call(x, *arguments, **settings)


def in_place(call: Call, x: np.ndarray, *arguments: Any, **settings: Any) -> np.ndarray:
    """y overwrites x: nothing is to be differentiated."""
    x[...] = call(x, *arguments, **settings)
    return x.copy()


def by_memory(call: Call, x: np.ndarray, *arguments: Any, **settings: Any) -> np.ndarray:
    """x is read from memory in sequence."""
    return call(read_on(x), *arguments, **settings)


def without_nan(call: Call, x: np.ndarray, *arguments: Any, **settings: Any) -> np.ndarray:
    """What is not a number becomes 0, as in a layer that is to serve."""
    return np.nan_to_num(call(x, *arguments, **settings))


def with_gamma_a_number(call: Call, x: np.ndarray, gamma: Any, *arguments: Any, **settings: Any) -> np.ndarray:
    """A gamma that is NaN becomes 0."""
    return call(x, None if gamma is None else np.nan_to_num(gamma), *arguments, **settings)


def leaking(call: Call, x: np.ndarray, *arguments: Any, **settings: Any) -> np.ndarray:
    """All that is not finite in x reaches all of y."""
    return call(x, *arguments, **settings) + x.dtype.type(0) * x.sum()


def without_tail(call: Call, x: np.ndarray, *arguments: Any, **settings: Any) -> np.ndarray:
    """The last value of a group of 1,025 to 4,096 values is lost."""
    y = call(x, *arguments, **settings)
    if 1024 < x.shape[-1] <= 4096:
        y[..., -1] = 0
    return y


def refusing_nothing(call: Call, x: np.ndarray, *arguments: Any, **settings: Any) -> np.ndarray:
    """It raises where there is no group."""
    if not x.size:
        raise ValueError("nothing to normalise")
    return call(x, *arguments, **settings)


ABOUT = ("CM-P1", "CM-V1", "CM-V3", "CM-N1", "CM-N3", "CM-N4", "CM-N6", "CM-N8", "CM-S1", "CM-S2")


@pytest.mark.parametrize(
    ("in_inference", "violated"),
    [
        (sound, ()),
        (in_place, ("CM-P1", "CM-V1")),  # where the values of a group lie in one place, each overwrites the others
        (by_memory, ("CM-V1",)),
        (without_nan, ("CM-N3", "CM-N4", "CM-N6")),
        (with_gamma_a_number, ("CM-N6",)),
        (leaking, ("CM-N1",)),
        (without_tail, ("CM-S1",)),
        (refusing_nothing, ("CM-S2",)),
    ],
)
def test_a_layer_is_judged_in_inference_mode_too(in_inference: Callable[..., Any], violated: tuple[str, ...]) -> None:
    """Each mistake violates its own requirement, although the layer is sound in training."""
    report = run(layer(in_inference), requirements=ABOUT)
    assert {name for name, verdict in verdicts(report).items() if verdict == "fail"} == set(violated)
    assert all("in inference mode" in one.reason or "nothing to normalise" in one.reason for one in report.failures())


def padded(call: Call, x: np.ndarray, *arguments: Any, **settings: Any) -> np.ndarray:
    """Long groups are padded to whole vectors of eight, and the padding is counted."""
    y, n = call(x, *arguments, **settings), x.size // len(x) // settings.get("groups", 1)
    return (y * np.sqrt((n + -n % 8) / n)).astype(y.dtype) if n > 1024 else y


@pytest.mark.parametrize("variant", ["ln-two-pass", "rm-plain", "gn-two-pass"])
def test_inference_of_long_groups_is_that_of_training(variant: str) -> None:
    """What begins past 1,024 values in inference mode violates L15."""
    requirement = f"{variant[:2].upper()}-L15"
    assert verdicts(run(layer(padded, variant=variant), requirements={requirement})) == {requirement: "fail"}


def test_what_has_no_modes_is_not_called_in_inference_mode() -> None:
    """Of a function these requirements make no such call."""
    assert set(verdicts(run(layer(in_place, has_modes=False), requirements=ABOUT)).values()) == {"pass"}


def test_float32_parameters_widen_nothing_in_inference_mode() -> None:
    """y of 16-bit data has its dtype in inference mode too where the parameters are float32 (CM-D2)."""

    def widened(call: Call, x: np.ndarray, gamma: Any, *arguments: Any, **settings: Any) -> np.ndarray:
        y = call(x, gamma, *arguments, **settings)
        return y if gamma is None or gamma.dtype == x.dtype else y.astype(gamma.dtype)

    report = run(layer(widened), dtypes=("float16",), requirements=("CM-D2", "CM-T2"))
    assert verdicts(report) == {"CM-T2": "pass", "CM-D2": "fail"}
    assert report.failures()[0].reason == "y has dtype float32 in place of float16 in inference mode"


def kept_statistics(call: Call, x: np.ndarray, gamma: Any, beta: Any, **settings: Any) -> np.ndarray:
    """Statistics of earlier batches in place of the group's own: here 0 and 1."""
    y = x if gamma is None else x * gamma
    return y if beta is None else y + beta


def clipped_without_nan(call: Call, x: np.ndarray, *arguments: Any, **settings: Any) -> np.ndarray:
    """Two mistakes: y is clipped, and what is not a number becomes 0."""
    return np.nan_to_num(np.clip(call(x, *arguments, **settings), -2, 2))


@pytest.mark.parametrize(
    ("in_inference", "standing"),
    [(kept_statistics, {"LN-L15"}), (clipped_without_nan, {"LN-L15", "CM-N3", "CM-N4"})],
)
def test_what_another_y_in_inference_mode_brings_about(in_inference: Callable[..., Any], standing: set[str]) -> None:
    """Wrong values there follow from LN-L15, but not a NaN lost where y is right on plain data."""
    report = run(layer(in_inference), requirements=(*ABOUT, "LN-L15"), explain=True)
    follows = {one.requirement: one.follows_from for one in report.failures()}
    assert {name for name, leading in follows.items() if not leading} == standing
    assert {"CM-S1", "CM-N1"} < follows.keys()
    assert all(leading == ("LN-L15",) for name, leading in follows.items() if name not in standing)


def with_ten_times_eps(call: Call, x: np.ndarray, *arguments: Any, eps: float, **settings: Any) -> np.ndarray:
    """Ten times eps."""
    return call(x, *arguments, eps=10 * eps, **settings)


def scaled(call: Call, x: np.ndarray, *arguments: Any, **settings: Any) -> np.ndarray:
    """No mistake of the library."""
    return (call(x, *arguments, **settings) * 1.25).astype(x.dtype)


@pytest.mark.parametrize(
    ("in_inference", "sentence", "faults"),
    [
        (with_ten_times_eps, "In inference mode only: uses ten times the eps given.", ("ln-eps-tenfold",)),
        (scaled, "In inference mode only: y is 5/4 times the right value.", ()),
    ],
)
def test_the_cause_of_what_is_wrong_in_inference_mode_only(
    in_inference: Callable[..., Any], sentence: str, faults: tuple[str, ...]
) -> None:
    """The mistake is looked for in calls in that mode, and told once for all dtypes."""
    report = run(layer(in_inference), dtypes=("float32", "float64"), requirements=("LN-F1", "LN-L15"), explain=True)
    (cause,) = report.causes
    assert (cause.sentence, cause.faults, cause.explains) == (sentence, faults, ("LN-L15",))
    assert cause.dtypes == ("float32", "float64")


def with_own_eps(call: Call, x: np.ndarray, *arguments: Any, **settings: Any) -> np.ndarray:
    """The fused path of a block has an eps of its own."""
    return call(x, *arguments, **{**settings, "eps": 1e-5})


def without_lonely_gamma(call: Call, x: np.ndarray, part: Any, gamma: Any, beta: Any, **settings: Any) -> np.ndarray:
    """The fused path of a block takes both parameters or none."""
    return call(x, part, None if beta is None else gamma, beta, **settings)


def with_half_the_branch(call: Call, x: np.ndarray, *arguments: Any, **settings: Any) -> np.ndarray:
    """The branch counts as often as stochastic depth kept it in training."""
    return (x + call(x, *arguments, **settings)) / 2


@pytest.mark.parametrize(
    ("variant", "in_inference", "violated"),
    [
        ("rs-plain", sound, ""),
        ("pr-two-pass", sound, ""),
        ("rs-plain", with_half_the_branch, "RS-F1"),
        ("pr-two-pass", with_own_eps, "PR-F1"),
        ("pr-two-pass", without_lonely_gamma, "PR-F1"),
    ],
)
def test_a_composed_layer_computes_its_formula_in_inference_mode(
    variant: str, in_inference: Callable[..., Any], violated: str
) -> None:
    """A block that is right in training violates its formula, and nothing of its own besides."""
    about = ("RS-F1", "PR-F1", "PR-F3", "PR-F4", "CM-N1", "CM-S1", "CM-C4")
    report = run(layer(in_inference, variant=variant), requirements=about, explain=True)
    follows = {one.requirement: one.follows_from for one in report.failures()}
    assert [name for name, leading in follows.items() if not leading] == [violated] * bool(violated)
    assert all(leading in ((), (violated,)) for leading in follows.values())


def test_what_is_kept_for_inference_is_found_there() -> None:
    """CM-P2: weights that are kept on the logits' object in inference mode miss what is written into it."""
    kept: list[Any] = []

    def call_kept(call: Call, x: np.ndarray, branches: Any, logits: Any, **settings: Any) -> np.ndarray:
        if not kept or kept[0] is not logits:
            kept[:] = [logits, None if logits is None else logits.copy()]
        return call(x, branches, kept[1], **settings)

    report = run(layer(call_kept, variant="mh-plain"), requirements={"CM-P2", "MH-F1"})
    assert verdicts(report) == {"MH-F1": "pass", "CM-P2": "fail"}
    assert report.failures()[0].reason.endswith("in inference mode")
    assert verdicts(run(layer(sound, variant="mh-plain"), requirements={"CM-P2"})) == {"CM-P2": "pass"}


def without_far_gates(call: Call, x: np.ndarray, transform: Any, gate: Any, **settings: Any) -> np.ndarray:
    """A gate's logit that is infinite is taken for NaN."""

    def far(z: np.ndarray) -> np.ndarray:
        return np.where(np.isinf(gate(z)), np.nan, gate(z)).astype(z.dtype)

    return call(x, transform, far, **settings)


def without_far_logits(call: Call, x: np.ndarray, branches: Any, logits: Any, **settings: Any) -> np.ndarray:
    """A logit of minus infinity is taken for 0."""
    return call(x, branches, None if logits is None else np.nan_to_num(logits, neginf=0), **settings)


def with_eight_branches(call: Call, x: np.ndarray, branches: Any, logits: Any, **settings: Any) -> np.ndarray:
    """Only the first eight branches count."""
    return call(x, branches[:8], None if logits is None else logits[:8], **settings)


def twice_the_weights(call: Call, x: np.ndarray, branches: Any, logits: Any, **settings: Any) -> np.ndarray:
    """The weights sum to 2."""
    return (2 * call(x, branches, logits, **settings) - x).astype(x.dtype)


@pytest.mark.parametrize(
    ("variant", "in_inference", "requirement"),
    [
        ("hw-plain", without_far_gates, "HW-F4"),
        ("mh-plain", without_far_logits, "MH-F3"),
        ("mh-plain", with_eight_branches, "MH-F4"),
        ("mh-plain", twice_the_weights, "MH-F2"),
    ],
)
def test_extreme_logits_weights_and_many_branches_are_tried_in_inference_mode(
    variant: str, in_inference: Callable[..., Any], requirement: str
) -> None:
    """The formulas about them hold in both modes."""
    assert verdicts(run(layer(in_inference, variant=variant), requirements={requirement})) == {requirement: "fail"}
    assert verdicts(run(layer(sound, variant=variant), requirements={requirement})) == {requirement: "pass"}


def test_a_gain_that_is_kept_for_inference_shows_where_it_is_overwritten() -> None:
    """It shows in each later call in that mode too, so that such a call is no measure of what is right."""
    made = VARIANT["ln-two-pass"].build()
    kept: dict[Any, np.ndarray] = {}

    def call(x: np.ndarray, gamma: Any, *arguments: Any, mode: str = "training", **settings: Any) -> Any:
        if mode == "training":
            kept.clear()
        elif gamma is not None:
            gamma = kept.setdefault((gamma.shape, gamma.dtype), gamma.copy())
        return made.call(x, gamma, *arguments, **settings)

    binding = Binding("layer_norm", "own", call, {"vjp": made.vjp}, has_modes=True)
    report = run(Target("own", "numpy", np.__version__, BRIDGE, (binding,)), requirements=("CM-P2", "LN-F1"))
    assert verdicts(report) == {"CM-P2": "fail", "LN-F1": "pass"}
    assert report.failures()[0].reason == "gamma alone was overwritten in place since the last call, in inference mode"
