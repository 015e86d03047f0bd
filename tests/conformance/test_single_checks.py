"""Single steps of checks: what they compare, with which bound, how often, and what the finding says."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import cycle, permutations
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from normspec.conformance.cases.case import Case, build
from normspec.conformance.cases.description import Description
from normspec.conformance.checks.aspects import _near_and_near, _same_y
from normspec.conformance.checks.blocks import scaled_input, shifted_input
from normspec.conformance.checks.catalogue import checks_of
from normspec.conformance.checks.exactly import finite_bound
from normspec.conformance.checks.gradient_laws import any_subset, linear
from normspec.conformance.checks.later_calls import memory_used_again, other_settings
from normspec.conformance.checks.laws_groups import _mixing, _shifted
from normspec.conformance.checks.nan_in_parameters import _dependent
from normspec.conformance.checks.non_finite import contained
from normspec.conformance.checks.part_calls import called_once, left_alone
from normspec.conformance.checks.received import RelatedCall
from normspec.conformance.checks.refusal import judge_refusals
from normspec.conformance.checks.relations import changed, same
from normspec.conformance.checks.repetitions import _different_gradients
from normspec.conformance.checks.residual import linear_blocks, odd_branch
from normspec.conformance.checks.showing import judge_shown
from normspec.conformance.checks.sizes import all_zero
from normspec.conformance.checks.statistics import samples_independent, several_steps
from normspec.conformance.checks.strange_parts import with_wrapped
from normspec.conformance.checks.undefined import undefined_group
from normspec.conformance.checks.views import cotangent_layouts, input_layouts, parameter_layouts
from normspec.conformance.engine import tally
from normspec.conformance.engine.declaration_evidence import Evidence
from normspec.conformance.judging.findings import Finding
from normspec.conformance.judging.subject import Subject
from normspec.conformance.requests.plan import Plan
from normspec.conformance.requests.profiles import profile_of
from normspec.reference.double_double import DD
from normspec.reference.formats import FORMATS
from normspec.spec.errors import Unsupported

from .runs import FAULT, VARIANT, function, run, specimen, subject_of, variant_function, verdicts

TWO = (("normal", 0), ("normal", 1))
ROW = build(Description("layer_norm", 3, TWO), "float32")


def test_three_steps_are_judged_and_named() -> None:
    """BN-S3 judges both statistics after each of three steps, and says after which one."""
    case = build(Description("batch_norm", 4, TWO, requirements=frozenset({"BN-S3"})), "float32")
    found = [(one.output, one.note) for one in several_steps(subject_of("bn-two-pass"), case)]
    names = ("new_running_mean", "new_running_var")
    assert found == [(name, f"step {step}") for step in (1, 2, 3) for name in names]


def test_an_input_is_scaled_up_and_down() -> None:
    """PR-L2 compares what the sublayer gets for 4 x, and for x / 4."""
    case = build(Description("pre_norm", 4, TWO, recipe="leaf"), "float32")
    assert [one.note for one in scaled_input(subject_of("pr-two-pass"), case)] == ["x times 4", "x times 0.25"]


def test_an_input_is_moved_where_that_is_exact() -> None:
    """PR-L3 compares what the sublayer gets for x + 16, and y; 16 is no whole number of the ulps of 2^30."""
    case = build(Description("pre_norm", 4, TWO, recipe="leaf"), "float32")
    case = case.replace(x=np.array([[1.0, 2.0, 4.0, -3.0], [0.0, 0.0, 3.0, 0.0]], np.float32))
    subject = subject_of("pr-two-pass")
    assert [one.note for one in shifted_input(subject, case)] == ["x plus 16", "x plus 16: y moves by as much"]
    assert list(shifted_input(subject, case.replace(x=np.full((2, 4), 2.0**30, np.float32)))) == []


def test_the_shift_is_the_largest_that_is_exact() -> None:
    """Next to 1 + 2^-6 in float16, which has 11 digits, 16 is exact and 64 is not."""
    for value, constant in ((1.0, 64.0), (1 + 2.0**-6, 16.0), (1 + 2.0**-8, 4.0)):
        found = _shifted(ROW.replace(x=np.full((2, 3), value, np.float16)))
        assert found is not None and found[1] == constant
        np.testing.assert_array_equal(found[0].x, value + constant)


def test_a_sum_is_not_judged_where_a_term_reaches_the_edge() -> None:
    """The edge is largest (1 - u): half of it in error by the other half is out, and by less is in."""
    stored = FORMATS["float32"]
    half = stored.largest * (1 - stored.unit_roundoff) / 2
    envelope = np.array([half, half * (1 - 2.0**-50)])
    exact = DD(np.full(2, half), np.zeros(2))
    subject = SimpleNamespace(
        truth=lambda case: SimpleNamespace(gradients=lambda: {"dx": exact}),
        bound=lambda case, name: lambda normative: envelope,
    )
    assert np.isinf(finite_bound(cast(Subject, subject), ROW, "dx")(False)).tolist() == [True, False]


def test_what_changed_is_told() -> None:
    """The first value that differs with its place, or the other shape."""
    before = np.array([1.0, 2.0, 3.0], np.float32)
    found = changed(before, np.array([1.0, 5.0, 4.0], np.float32), ROW, "x", "it")
    assert (found.violated, found.index, found.expected, found.got, found.note) == (True, (1,), 2.0, 5.0, "it")
    assert found.failure != "shape"
    found = changed(before, before[:2], ROW, "x", "it")
    assert (found.violated, found.note, found.failure) == (True, "it: shape (2,)", "shape")
    assert not changed(before, before.copy(), ROW, "x", "it").violated


def test_the_sign_of_a_zero_is_no_change() -> None:
    """Nor is which NaN it is: [=] examines neither. Another dtype is one."""
    before, after = np.array([-0.0, np.nan], np.float32), np.array([0.0, np.nan], np.float32)
    after[1:].view(np.uint32)[:] += 1
    assert before.tobytes() != after.tobytes()
    assert not changed(before, after, ROW, "x", "it").violated
    assert not changed(np.array(-0.0), np.array(0.0), ROW, "x", "it").violated
    assert changed(np.array(1.0), np.array(2.0), ROW, "x", "it").violated
    found = changed(before, before.astype(np.float64), ROW, "x", "it")
    assert (found.violated, found.note, found.failure) == (True, "it: dtype float64", "dtype")


def test_repetitions_may_differ_in_the_sign_of_a_zero() -> None:
    """CM-P3 holds of a function whose results are zeros of another sign each time."""
    signs = cycle([0.0, -0.0, -0.0])

    def change(call: Callable[..., Any], *arguments: Any, **settings: Any) -> Any:
        return np.full_like(call(*arguments, **settings), next(signs))

    assert verdicts(run(variant_function("rs-plain", change), requirements={"CM-P3"})) == {"CM-P3": "pass"}


def test_the_bound_of_a_slope() -> None:
    """A33 with x 3 apart, y 1 apart and a sixteenth off at each end: t = 1/8, q = 9, 9 (1/8) (15/8) / (7/8)^2."""
    case = ROW.replace(x=np.array([[0.0, 3.0, 0.0]], np.float32))
    y = np.array([[0.0, 1.0, 0.0]])
    first, second = np.array([0]), np.array([1])
    found = RelatedCall(case, y, y, np.full((1, 3), 1 / 16), 2.0**-24, 0.5).slope(np.array([0]), first, second)
    assert found.value.to_dd().hi == 9
    np.testing.assert_allclose(found.error, 135 / 49, rtol=1e-15)


def test_an_odd_branch_whose_bits_vary_is_judged_by_both_envelopes() -> None:
    """RS-L4: where a call gives other bits every time, each of the two sides may be an envelope off."""
    case = build(Description("residual", 3, TWO, recipe="negated"), "float32").replace(
        x=np.array([[1.0, 2.0, 4.0]], np.float32), g=np.ones((1, 3), np.float32)
    )
    offsets = iter(range(10**6))
    bound = np.full((1, 3), 2.0**-20)

    class Unsteady(Subject):
        def outputs(self, case: Case, **options: Any) -> dict[str, np.ndarray]:
            moved = (0.0, 1.5)[next(offsets) % 2] * 2.0**-20
            return {"y": (case.x * 0 + 1 + moved).astype(np.float32) * np.sign(case.x[0, 0])}

        def observe(self, case: Case) -> Any:
            return SimpleNamespace(outputs={"y": np.ones((1, 3), np.float32)})

        def bound(self, *arguments: Any, **options: Any) -> Any:
            return lambda normative: bound

        def repeats_itself(self, *arguments: Any, **options: Any) -> bool:
            return False

    target = specimen(VARIANT["rs-plain"])
    subject = Unsteady(target, target.bindings[0], "float32")
    next(offsets)
    (found,) = odd_branch(subject, case)
    assert (found.ratio, found.violated) == (0.75, False)


def test_what_is_cut_off_is_seen_beside_calls_that_raise() -> None:
    """A function that raises on the violated case is recognised as cutting off by its results on the others."""
    made = VARIANT["ln-two-pass"].build()

    def cut(x, *arguments, **settings):
        if x.shape[-1] == 5:
            raise ValueError("five")
        y = made.call(x.astype(np.float64), *(a if a is None else a.astype(np.float64) for a in arguments), **settings)
        return (y.astype(np.float32).view(np.uint32) & 0xFFFF0000).view(np.float32).astype(x.dtype)

    target = function("layer_norm", cut)
    plan = Plan((target,), ("bfloat16",), "cpu", {}, profile_of("quick"), 0)
    violation: Any = SimpleNamespace(
        dtype="bfloat16", requirement="LN-F1", violated_on=Description("layer_norm", 5, TWO)
    )
    judged = partial(Subject, target, target.bindings[0])
    assert Evidence(plan, target, target.bindings[0], [violation], judged).is_truncated()


def test_what_differs_is_found_among_repeated_gradients() -> None:
    """A gradient equal to the first one to the last bit is not reported; another one is, next to the first."""
    first, other = np.array([1.0], np.float32), np.array([2.0], np.float32)
    subject: Any = SimpleNamespace(
        observe=lambda case: SimpleNamespace(gradients={"dx": first}),
        repeated_gradients=lambda case, count, alone: [{"dx": first.copy()}, {"dx": other}],
    )
    assert list(_different_gradients(subject, ROW, 1, alone=False)) == [("dx", first, other)]


def test_layouts_of_parameters_without_gradients() -> None:
    """CM-V3 judges y, and then says that there are no gradients."""
    target = function("layer_norm", VARIANT["ln-two-pass"].build().call)
    judged = parameter_layouts(Subject(target, target.bindings[0], "float32"), ROW)
    assert not next(judged).violated
    with pytest.raises(Unsupported):
        list(judged)


def test_one_group_is_alone_but_in_inference() -> None:
    """A value that is not finite leaves nothing to look at in its own group; in inference all else of the channel."""
    one = TWO[:1]
    for groups, training, findings in ((one, True, 0), (one, False, 6), (TWO, True, 12)):
        case = build(Description("batch_norm", 4, groups, training=training), "float32")
        assert len(list(contained(subject_of("bn-two-pass"), case))) == findings


def test_parameters_have_layouts_beside_those_of_x() -> None:
    """
    CM-V3 takes each layout of gamma and beta with x as it is, and with x transposed; each alone only in one.

    Expanded ones are tried with x as it is. With x as it is, a second call is in the framework's inference mode.
    """
    found = {one.note for one in parameter_layouts(subject_of("ln-two-pass"), ROW)}
    together = {f"gamma, beta {one}" for one in ("offset", "strided", "with negative strides")}
    in_place = together | {"gamma strided", "beta strided", "gamma, beta zero_stride"}
    untracked = {f"{one}, in inference mode" for one in in_place}
    assert found == in_place | untracked | {f"{one}, x transposed" for one in together}


@pytest.mark.parametrize("lost", [np.nan, np.inf])
@pytest.mark.parametrize("first", [False, True])
def test_either_of_two_equal_calls_may_be_the_one_that_lost_a_value(lost: float, first: bool) -> None:
    """A NaN or an infinity on one side of a relation violates it, on whichever side it is."""
    whole = subject_of("ln-two-pass").outputs(ROW)["y"]
    broken = whole.copy()
    broken[0, 0] = lost
    pair = (broken, whole) if first else (whole, broken)
    assert same(subject_of("ln-two-pass"), ROW, "y", *pair, "").violated
    assert not same(subject_of("ln-two-pass"), ROW, "y", broken, broken, "").violated


def test_a_group_is_moved_to_begin_or_to_end_at_zero() -> None:
    """LN-L10 takes a group less its last value, and the same less its first."""
    found = _near_and_near(ROW.replace(x=np.array([[5.0, 7.0, 4.0]], np.float32), g=ROW.g[:1]))
    assert {name: one.x.tolist() for name, one in found.items()} == {"far": [[1, 3, 0]], "near": [[0, 2, -1]]}


def test_only_a_group_that_was_moved_is_compared() -> None:
    """A group that stays, since a difference would be rounded, has the y that it had."""
    x = {"far": [[1.0, 2.0, 4.0], [0.0, 3.0, 5.0]], "near": [[0.0, 1.0, 3.0], [0.0, 3.0, 5.0]]}
    runs = {name: SimpleNamespace(case=ROW.replace(x=np.array(one, np.float32)), y=None) for name, one in x.items()}
    (claim,) = _same_y(cast(Any, runs))
    assert claim.where is not None
    assert claim.where.tolist() == [[True] * 3, [False] * 3]


def test_multiples_of_a_cotangent_are_judged_by_both_envelopes() -> None:
    """LN-G8: 4 a gives 4 times the gradients of a, with 4 envelopes of 2 and one of 3, and so for 2^20 a."""
    found: dict[str, float] = {}

    class Noted(Subject):
        def bound(self, case: Case, name: str, g: np.ndarray | None = None, **options: Any) -> Any:
            return lambda normative: np.array(3.0 if g is None else 2.0)

        def judge(self, case: Case, name: str, got: Any, exact: DD, bounds: Any, note: str = "") -> Finding:
            found[note] = float(bounds(False))
            return super().judge(case, name, got, exact, bounds, note)

    target = specimen(VARIANT["ln-two-pass"])
    list(linear(Noted(target, target.bindings[0], "float32"), ROW))
    assert {note: bound for note, bound in found.items() if note.endswith(" a")} == {
        "the cotangent 4 a": 4 * 2 + 3,
        "the cotangent 1.04858e+06 a": 2.0**20 * 2 + 3,
    }


def test_every_subset_of_the_gradients_is_asked_for() -> None:
    """LN-G11 judges each gradient by itself, and each two without the third."""
    found = [(one.output, one.note) for one in any_subset(subject_of("ln-two-pass"), ROW)]
    subsets = [("x",), ("gamma",), ("beta",), ("x", "gamma"), ("x", "beta"), ("gamma", "beta")]
    assert found == [(f"d{name}", f"asked for {', '.join(one)} alone") for one in subsets for name in one]


@pytest.mark.parametrize("n", range(2, 9))
def test_a_permutation_mixes_the_halves(n: int) -> None:
    """Where the drawn order keeps every place, another is taken, which maps no half to itself."""
    order = _mixing(cast(Any, SimpleNamespace(permutation=np.arange)), n)
    assert sorted(order) == list(range(n))
    assert all(set(order[:half]) != set(range(half)) for half in (n // 2, (n + 1) // 2))


def test_a_change_within_the_declared_envelope_need_not_show() -> None:
    """CM-N6: what a declared class may lose counts, and not only what the normative one may."""
    moved = ROW.replace(g=2 * ROW.g)
    values = {id(ROW): np.zeros(2), id(moved): np.array([0.5, 2.0])}
    subject = SimpleNamespace(
        truth=lambda case: SimpleNamespace(outputs=lambda: {"y": DD(values[id(case)], np.zeros(2))}),
        bound=lambda case, name: lambda normative: np.array(0.25 if normative else 1.0),
    )
    found = _dependent(cast(Subject, subject), ROW, moved, gradients=False)
    assert {name: mask.tolist() for name, mask in found.items()} == {"y": [False, True]}


def test_what_a_part_saved_is_looked_at_after_another_call() -> None:
    """CM-C3 makes a call with other values after the one whose gradients are taken."""
    case = build(Description("residual", 3, TWO, recipe="linear"), "float32")
    done: list[str] = []

    class Noted(Subject):
        def start(self, case: Case, **options: Any) -> Any:
            done.append("untracked" if options.get("wrt") == () else "tracked")
            return super().start(case, **options)

        def outputs(self, case: Case, **options: Any) -> Any:
            done.append("another call")
            return {}

    target = specimen(VARIANT["rs-plain"])
    assert not any(one.violated for one in left_alone(Noted(target, target.bindings[0], "float32"), case))
    assert done == ["untracked", "tracked", "another call"]


@pytest.mark.parametrize("in_place", [False, True])
def test_what_a_part_returned_may_not_be_written_to(in_place: bool) -> None:
    """CM-C3: a residual connection that adds x to the branch's own result is told."""

    def residual(x: Any, branch: Any, *, shortcut: Any = None, activation: Any = None) -> Any:
        h = branch(x)
        return np.add(h, x, out=h if in_place else None)

    target = function("residual", residual)
    case = build(Description("residual", 3, TWO, recipe="linear"), "float32")
    found = left_alone(Subject(target, target.bindings[0], "float32", forward_only=True), case)
    violated = [one.note for one in found if one.violated]
    assert bool(violated) is in_place and all("what branch returned was changed by" in note for note in violated)


def test_two_linear_blocks_get_small_integers_of_either_sign() -> None:
    """RS-L3: x is drawn from -2 to 2, for which the product is exact in every dtype."""
    case = build(Description("residual", 4, TWO * 8, recipe="linear"), "float32")
    taken: list[np.ndarray] = []

    class Noted(Subject):
        def outputs(self, case: Case, **options: Any) -> Any:
            taken.append(case.x)
            return super().outputs(case, **options)

    target = specimen(VARIANT["rs-plain"])
    assert not any(one.violated for one in linear_blocks(Noted(target, target.bindings[0], "float32"), case))
    assert np.unique(taken[0]).tolist() == [-2, -1, 0, 1, 2]


def test_the_gradient_that_is_not_zero_is_told() -> None:
    """One value of a gradient is wrong where there are no groups."""
    (found,) = all_zero(ROW, {"dgamma": np.array([0.0, 3.0, 0.0], np.float32)}, "no groups at all")
    assert (found.violated, found.output, found.expected, found.got) == (True, "dgamma", 0.0, 3.0)


def test_a_strange_part_stands_in_one_place() -> None:
    """Of three branches the one that is named is wrapped."""
    case = build(Description("mhc", 3, TWO, recipe="leaf", count=3), "float32")
    branches = with_wrapped(case, "branches.1", "buffered").parts["branches"]
    assert isinstance(branches, tuple)
    assert [one.kind == "buffered" for one in branches] == [False, True, False]


def test_an_undefined_channel_in_inference_has_a_variance_of_zero() -> None:
    """CM-N8 sets eps to 0 and the running variance of the middle channel too."""
    case = build(Description("batch_norm", 4, (*TWO, ("normal", 2)), training=False), "float32")
    bad = next(iter(undefined_group(subject_of("bn-two-pass"), case))).case
    running = bad.inputs["running_var"]
    assert running is not None
    assert (bad.settings["eps"], (running == 0).tolist()) == (0, [False, True, False])


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6])
def test_no_half_of_the_samples_stays_by_itself(n: int) -> None:
    """Whatever order is drawn, a decision made by halves shows; of three samples one order escaped that."""
    for drawn in permutations(range(n)):
        stream: Any = SimpleNamespace(permutation=lambda _, drawn=drawn: np.array(drawn))
        order = _mixing(stream, n)
        assert sorted(order) == [*range(n)]
        for half in (n // 2, (n + 1) // 2):
            assert {*order[:half]} != {*range(half)}


@pytest.mark.parametrize(("groups", "other"), [(1, 2), (2, 1)])
def test_another_number_of_groups_is_tried_whatever_is_given(groups: int, other: int) -> None:
    """Of two channels, one group follows two groups, as two follow one."""
    drawn = tuple(("normal", index) for index in range(groups))
    case = build(Description("group_norm", 2 // groups, drawn, samples=1), "float32")
    assert case.settings["groups"] == groups
    later = [one.settings["groups"] for one in other_settings(subject_of("gn-two-pass"), case)]
    assert [one for one in later if one != groups] == [other]


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_single_value_that_hides_a_nan_is_told(place: int) -> None:
    """CM-N3, CM-N6 and the like name the first place where NaN is missing, which may be the only one."""
    y = np.full(3, np.nan)
    y[place] = 8.0
    (found,) = judge_shown(ROW, {"y": y}, {"y": np.array([True, True, True])}, "swallowed")
    assert (found.violated, found.index, found.got, found.note) == (True, (place,), 8.0, "swallowed")
    others = np.arange(3) != place
    (found,) = judge_shown(ROW, {"y": y}, {"y": others}, "swallowed")
    assert found.judged and not found.violated


@pytest.mark.parametrize(("calls", "violated"), [(1, True), (2, False), (3, True)])
def test_one_callable_in_two_roles_is_called_once_for_each(calls: int, violated: bool) -> None:
    """CM-C1: a residual connection that calls what is both its branch and its shortcut once or three times is told."""

    def residual(x: Any, branch: Any, *, shortcut: Any = None, activation: Any = None) -> Any:
        if shortcut is branch:
            first, *others = [branch(x) for _ in range(calls)]
            y = first + (others or [first])[0]
        else:
            y = (x if shortcut is None else shortcut(x)) + branch(x)
        return y if activation is None else activation(y)

    target = function("residual", residual)
    case = build(Description("residual", 3, TWO, recipe="linear"), "float32")
    found = called_once(Subject(target, target.bindings[0], "float32"), case)
    assert {one.note: one.violated for one in found if "as branch and as shortcut, and was called" in one.note} == {
        f"one callable was passed as branch and as shortcut, and was called {calls} times in one forward pass": violated
    }


@pytest.mark.parametrize(("axis", "last"), [(1, 3), (0, 3), (-2, 3)])
def test_a_sample_alone_is_one_along_the_axis_of_samples(axis: int, last: int) -> None:
    """BN-I3: the first axis without the channels."""
    case = build(Description("batch_norm", 4, TWO, training=False, rank=2, channel_axis=axis), "float32")
    found = list(samples_independent(subject_of("bn-two-pass"), case))
    assert [(one.note, one.violated) for one in found] == [("sample 0 alone", False), (f"sample {last} alone", False)]
    assert {one.case.x.shape for one in found} == {(1, 2) if axis == 1 else (2, 1)}


def test_gradients_of_values_that_are_gone_are_told() -> None:
    """CM-P1: a vjp that remembers x by where it lies returns gradients of what lay there before."""
    made, seen = VARIANT["ln-two-pass"].build(), {}

    def vjp(x: Any, *others: Any, **settings: Any) -> Any:
        return made.vjp(seen.setdefault(x.ctypes.data, x.copy()), *others, **settings)

    target = function("layer_norm", made.call, vjp=vjp)
    found = [*memory_used_again(Subject(target, target.bindings[0], "float32"), ROW)]
    assert {one.output for one in found if one.violated} == {"dx", "dgamma"}
    assert {one.output for one in found if not one.violated} >= {"y", "dbeta"}


def test_a_size_at_which_a_call_raises_is_a_violation() -> None:
    """CM-S1 is about the call itself; of a law, a call that raises without its doing says nothing."""

    def short(call: Callable[..., Any], x: Any, *others: Any, **settings: Any) -> Any:
        if x.shape[-1] > 8:
            raise MemoryError
        return call(x, *others, **settings)

    target = variant_function("ln-two-pass", short)
    subject, case = Subject(target, target.bindings[0], "float32"), build(Description("layer_norm", 9, TWO), "float32")
    told = {
        check.requirement: [one.failure for one in tally.findings(check, subject, case)]
        for check in checks_of("layer_norm")
        if check.requirement in ("CM-S1", "LN-L1")
    }
    assert told == {"CM-S1": ["raises"], "LN-L1": []}


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ("raises", None),
        ("returns", "eps is -1, and the call returned without raising"),
        ("cut off", "eps is -1, and the call returned without raising: y has shape (1, 3) in place of (2, 3)"),
    ],
)
def test_a_call_that_has_to_raise_may_not_return(answer: str, told: str | None) -> None:
    """Whatever it returns: what is no y either is told too."""

    def change(call: Callable[..., Any], *arguments: Any, **settings: Any) -> Any:
        if answer == "raises":
            raise ValueError("eps is negative")
        return call(*arguments, **settings)[: 1 if answer == "cut off" else None]

    target = variant_function("ln-two-pass", change)
    (found,) = judge_refusals(Subject(target, target.bindings[0], "float32"), [("eps is -1", ROW)])
    assert found.failure == "accepts" and (found.note if found.violated else None) == told


@pytest.mark.parametrize(
    ("body", "forward_only"),
    [
        (input_layouts, False),
        (input_layouts, True),
        (parameter_layouts, False),
        (parameter_layouts, True),
        (cotangent_layouts, False),
    ],
)
def test_the_calls_on_views_are_the_calls_sent_ahead(body: Any, forward_only: bool) -> None:
    """In the same order: a worker that is asked for others answers them for nothing, and these one by one."""
    ahead: list[tuple[Any, ...]] = []
    made: list[tuple[Any, ...]] = []
    now = [made]

    class Noted(Subject):
        def prefetch(self, case: Case, calls: Any) -> None:
            now[0] = ahead
            for call in calls:
                call()
            now[0] = made

        def start(self, case: Case, **options: Any) -> Any:
            now[0].append((case.x.tolist(), options))
            return super().start(case, **options)

    target = specimen(VARIANT["ln-two-pass"])
    list(body(Noted(target, target.bindings[0], "float32", forward_only=forward_only), ROW))
    assert len(ahead) > 2 and ahead == made


@pytest.mark.parametrize("forward_only", [False, True])
def test_what_was_observed_is_not_asked_for_again(forward_only: bool) -> None:
    """Nor is any gradient of a function that is declared to have none."""
    target = specimen(VARIANT["ln-two-pass"])
    subject = Subject(target, target.bindings[0], "float32", forward_only=forward_only)

    def missing() -> list[str]:
        return [cast(Any, call).func.__name__ for call in subject.missing_calls(ROW)]

    assert missing() == ["outputs"] + ["tracked"] * (not forward_only)
    _ = subject.observe(ROW).outputs
    assert missing() == ["tracked"] * (not forward_only)
    if not forward_only:
        _ = subject.observe(ROW).gradients
        assert missing() == []


def test_branches_that_are_called_in_another_order_keep_their_numbers() -> None:
    """CM-C1 says that the order is wrong; fuse is handed each branch's own output all the same, as CM-C2 asks."""
    report = run(specimen(FAULT["mh-branches-called-backwards"]), requirements={"CM-C1", "CM-C2"})
    assert verdicts(report) == {"CM-C1": "fail", "CM-C2": "pass"}
