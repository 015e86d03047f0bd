"""Single steps besides the checks: what a case has, how a result is judged, and what an engine and a diagnosis do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from normspec.conformance.cases.case import build
from normspec.conformance.cases.deck import deck
from normspec.conformance.cases.description import Description
from normspec.conformance.cases.regimes import REGIMES
from normspec.conformance.cases.shapes import shape_of
from normspec.conformance.diagnosis.patterns.overwritten import _contents_in_words
from normspec.conformance.diagnosis.patterns.special import misread_special_values
from normspec.conformance.engine.declaration_search import _Search
from normspec.conformance.engine.engine import Run
from normspec.conformance.engine.folding import priority
from normspec.conformance.engine.selection import select_cases
from normspec.conformance.engine.shrink import _readable
from normspec.conformance.engine.subject_run import SubjectRun, failed_plain_call
from normspec.conformance.judging.findings import Finding, compare
from normspec.conformance.judging.library import _as_sequences
from normspec.conformance.judging.subject import Subject
from normspec.conformance.judging.truth import Truth
from normspec.conformance.requests.mode import checked_mode
from normspec.conformance.requests.plan import Plan
from normspec.conformance.requests.profiles import profile_of
from normspec.conformance.selftest import selftest
from normspec.reference.accuracy import AccuracyClass, Arithmetic
from normspec.reference.double_double import DD
from normspec.reference.formats import FORMATS

from .runs import VARIANT, specimen, subject_of

TWO = (("normal", 0), ("normal", 1))
ROW = build(Description("layer_norm", 3, TWO), "float32")


def test_four_steps_below_the_largest_number_is_an_ordinary_number() -> None:
    """Only a number within 4 u of the largest one may stand for overflow: this one is four envelopes off, 3 u is in."""
    step = 2.0**104
    top = FORMATS["float32"].largest
    for steps, ratio in ((4, 4), (3, 0)):
        got = np.array([top - steps * step], np.float32)
        assert compare(got, DD(np.array([top]), np.zeros(1)), np.array([step])).ratio == ratio


def test_what_reaches_the_edge_within_its_envelope_may_be_infinite() -> None:
    """The edge is largest (1 - u): 2^104 below it a value may overflow with an error of 2^104, and with less not."""
    stored, step = FORMATS["float32"], 2.0**104
    exact = DD(np.array([stored.largest * (1 - stored.unit_roundoff) - step]), np.zeros(1))
    for envelope, ratio in ((step, 0), (0.75 * step, np.inf)):
        assert compare(np.array([np.inf], np.float32), exact, np.array([envelope])).ratio == ratio


def _tally(requirement: str, *, violated: bool = False, error: str = "", judged: int = 0) -> Any:
    check = SimpleNamespace(requirement=requirement)
    return SimpleNamespace(check=check, violation=True if violated else None, error=error, judged=judged)


def test_a_run_is_given_up_where_the_plain_call_fails_and_four_checks_raise() -> None:
    """Three errors may be those of three checks; nothing is given up where anything could be judged."""
    wrong, error = _tally("CM-T1", violated=True), _tally("LN-F1", error="raised")
    given_up = failed_plain_call
    assert [given_up([wrong, *[error] * count]) for count in (3, 4)] == ["", "CM-T1"]
    assert not given_up([wrong, *[error] * 4, _tally("LN-F2", judged=1)])
    assert not given_up([_tally("CM-T3", violated=True), *[error] * 4])


def test_a_declaration_that_helps_beside_another_alone_is_found() -> None:
    """A excuses one violation, and with B the other, for which B alone does nothing: A and B are named."""

    class Search(_Search):
        def _single_changes(self) -> Any:
            return iter([{"A": "1"}, {"B": "1"}, {"C": "1"}])

        def _violated(self, change: Any, result: Any) -> bool:
            return not result.needs <= set(change)

    target = specimen(VARIANT["ln-two-pass"])
    run = Run(Plan((target,), ("float32",), "cpu", {}, profile_of("quick"), 0))
    violations: Any = [
        SimpleNamespace(dtype="float32", requirement="LN-F1", needs=needs, counterexample=None)
        for needs in ({"A"}, {"A", "B"})
    ]
    search = Search(run, target, target.bindings[0], violations, float("inf"))
    assert next(search._surviving(violations)) == {"A": "1", "B": "1"}


def test_dx_is_not_judged_where_gamma_r_is_beyond_the_format() -> None:
    """R6 in float16: r is 6.4, and 4 gamma r is 104,858 of at most 65,504 for gamma = 4096; half of that is judged."""
    case = build(Description("layer_norm", 3, TWO[:1]), "float16")
    case = case.replace(x=np.array([[1.0, -1.0, 2.0]], np.float16) / 8, g=np.zeros((1, 3), np.float16), beta=None)
    arithmetic = Arithmetic.of("float16", None, AccuracyClass(storage="native"))
    for gamma, judged in ((4096.0, False), (2048.0, True)):
        truth = Truth(case.replace(gamma=np.full(3, gamma, np.float16), eps=0.0))
        assert np.isfinite(truth.bound("dx", arithmetic)).all() == judged


def test_x_lies_beside_float32_numbers_where_no_part_is_handed_it() -> None:
    """A part is to see the bits of x. Where float32 is passed, x stays as it is."""
    for name, dtype, conventions, beside in (
        ("ln-two-pass", "float64", {"float64": "float32"}, True),
        ("rs-plain", "float64", {"float64": "float32"}, False),
        ("ln-two-pass", "float32", {"gain": "one-plus-gamma"}, False),
    ):
        target = specimen(VARIANT[name])
        subject = Subject(target, target.bindings[0], dtype, conventions=conventions)
        assert subject._translation.beside == beside


def test_a_mode_is_itself() -> None:
    """The mode is the one requested, and empty for both."""
    assert [checked_mode(mode) for mode in ("training", "inference", None)] == ["training", "inference", ""]


def test_regimes_refuse_what_is_not_theirs() -> None:
    """A normal number is not subnormal, and of seven values most have to be small between edges."""
    stored = FORMATS["float32"]
    small = stored.smallest_subnormal
    subnormal, edges = REGIMES["subnormal"].reached, REGIMES["edges"].reached
    assert subnormal(np.array([small, 0.0]), 0.0, stored)
    for group in ([0.0, 0.0], [small, 1.0]):
        assert not subnormal(np.array(group), 0.0, stored)
    for count, reached in ((7, True), (8, False)):
        assert edges(np.ones(count), 0.0, stored) == reached


def test_regimes_begin_and_end_where_they_say() -> None:
    """Rounded to a dtype, a variance may be half and twice as far from eps; an offset is more than 8 deviations."""
    stored = FORMATS["float32"]
    near = [0.03, 0.04, 31.0, 33.0]  # their squares: 2^-10 to 2^10, without the first and the last
    assert [REGIMES["near_eps"].reached(np.array([-a, a]), 1.0, stored) for a in near] == [False, True, True, False]
    means = [7.5, 8.5]
    assert [REGIMES["offset"].reached(np.array([a - 1, a + 1]), 0.0, stored) for a in means] == [False, True]


def test_samples_of_two_dimensions() -> None:
    """x of rank 2 has samples and channels, and no third axis of size 1."""
    assert shape_of(Description("batch_norm", 4, TWO, rank=2, samples=4)) == (4, 2)
    assert shape_of(Description("batch_norm", 4, TWO, rank=3, samples=2)) == (2, 2, 2)


def test_groups_become_positions_of_one_sequence() -> None:
    """As many as there are groups, or as a group is repeated."""
    for repeat, positions in ((None, 2), (5, 5)):
        described = Description("pre_norm", 4, TWO, repeat=repeat)
        assert _as_sequences(described).leading == (1, positions)


def test_two_cases_show_a_trait() -> None:
    """Each trait is covered by two of the cases where there are more, and by no third for its own sake."""
    cases = [Description("layer_norm", 3, (("normal", index),)) for index in range(5)]
    assert select_cases(cases, [], 1, varied=True) == cases[:2]


def test_optional_parts_are_traits() -> None:
    """A function that gets few cases gets some with each optional part of residual, with both and with none."""
    cases = deck("residual", "quick", 0)
    chosen = [build(one, "float32").parts for one in select_cases(cases, [], 1, varied=True)]
    found = {(parts.get("shortcut") is not None, parts.get("activation") is not None) for parts in chosen}
    assert found == {(False, False), (False, True), (True, False), (True, True)}


@pytest.mark.parametrize("told", [True, False])
def test_a_self_test_is_told_of_or_not(told: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A listener hears of each function that was judged, and of how many failed; there need be none."""

    class Pool:
        def __enter__(self) -> Pool:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def imap_unordered(self, work: Any, jobs: Any) -> Any:
            return map(work, jobs)

    monkeypatch.setattr(selftest, "get_context", lambda way: SimpleNamespace(Pool=lambda *_: Pool()))
    rows: list[Any] = [SimpleNamespace(name=name, accused_by=by) for name, by in (("a", ()), ("b", ("LN-F1",)))]
    heard: list[Any] = []
    jobs: list[Any] = [(lambda row: row, (row,)) for row in rows]
    assert selftest._in_parallel(jobs, (), 1, heard.append if told else None) == (rows, False)
    assert [(one.done, one.total) for one in heard] == ([(1, 2), (2, 2)] if told else [])
    assert ["; 1 not as they should be" in one.text for one in heard] == ([False, True] if told else [])


def test_an_interrupted_self_test_has_what_was_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C leaves the finished rows in their order, and says that they are not all."""

    def judged(work: Any, jobs: Any) -> Iterator[Any]:
        first, second, _ = jobs
        yield work(second)
        yield work(first)
        raise KeyboardInterrupt

    pool = nullcontext(SimpleNamespace(imap_unordered=judged))
    monkeypatch.setattr(selftest, "get_context", lambda way: SimpleNamespace(Pool=lambda *_: pool))
    rows: list[Any] = [SimpleNamespace(name=name, accused_by=()) for name in "abc"]
    jobs: list[Any] = [(lambda row: row, (row,)) for row in rows]
    assert selftest._in_parallel(jobs, (), 1, None) == (rows[:2], True)


def test_a_check_runs_while_it_may_call_and_gradients_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """A check of all operators stops once it has called on two cases; one of gradients needs some that are taken."""
    monkeypatch.setattr("normspec.conformance.engine.subject_run.plain_call", lambda *_, **options: None)
    ran: list[str] = []

    def tally(name: str, calling: int, **traits: Any) -> Any:
        usual = {"requirement": "CM-A1", "gradient": False, "is_of_16_bits": False}
        usual |= {"calls_rarely": False, "calls_often": False}
        return SimpleNamespace(
            check=SimpleNamespace(when=lambda case: True, **{**usual, **traits}),
            cases_with_calls=calling,
            calls_by_rank={2: calling},
            violation=None,
            lost=False,
            run=lambda *_: ran.append(name),
        )

    tallies = [
        tally("runs", 1),
        tally("has called", 2),
        tally("of gradients", 1, gradient=True),
        tally("calls rarely", 2, calls_rarely=True),
        tally("of 16 bits", 2, is_of_16_bits=True),
        tally("of one operator", 2, requirement="LN-L1"),
        tally("calls often", 1, calls_often=True),
    ]
    library: Any = SimpleNamespace(case=lambda description: ROW)
    for slow, of_a_rank, expected in (
        (False, None, ["runs", "calls rarely", "of 16 bits", "of one operator", "calls often"]),
        (False, 1, ["runs", "calls rarely", "of 16 bits", "of one operator"]),
        (True, None, ["runs", "calls rarely", "calls often"]),
    ):
        ran.clear()
        subject: Any = SimpleNamespace(declines=lambda case: "", slow=slow)
        made = SubjectRun(subject, tallies, library, most=2, most_of_a_rank=of_a_rank)
        made.on(Description("layer_norm", 3, TWO), tallies, gradients=False)
        assert ran == expected


def test_x_minus_mean_is_told_only_where_it_is() -> None:
    """What an overwritten x holds is compared within the roundings of its dtype."""
    case = build(Description("layer_norm", 130, TWO), "float64")
    centred = case.x - case.x.mean(-1, keepdims=True)
    assert [*_contents_in_words(case, "x", case.x, centred, {})] == ["it holds x - mean afterwards"]
    assert [*_contents_in_words(case, "x", case.x, 0.93 * centred, {})] == []


def test_a_sound_batch_norm_misreads_no_special_value() -> None:
    """In training y depends on no running statistic, and in inference an infinite variance leaves beta."""
    subject = subject_of("bn-two-pass")
    cases = [
        build(Description("batch_norm", n, TWO, gamma="mixed", beta="mixed", training=training), "float32")
        for n, training in ((4, True), (5, True), (6, False))
    ]
    assert misread_special_values(subject, cases) == ""


def test_numbers_of_ordinary_size_are_readable() -> None:
    """From 2^-10 to 2^10, both included, and an error of at least 2^-10 of them."""
    for size, readable in ((2.0**-10, True), (2.0**10, True), (2.0**-11, False), (2.0**10 + 1, False)):
        assert _readable(Finding(ROW, violated=True, expected=0.0, got=size)) == readable
    for got, readable in ((1024.0, True), (1023.5, False)):
        assert _readable(Finding(ROW, violated=True, expected=1023.0, got=got)) == readable


def test_the_contract_and_then_the_formula_say_most() -> None:
    """Shapes and the treatment of parts come first, then values, gradients and laws, and the common page last."""
    order = ["CM-T1", "CM-C3", "LN-F1", "BN-S1", "BN-I1", "BN-E1", "LN-G1", "LN-R1", "LN-L1", "CM-C4", "CM-P1"]
    assert [priority(one) for one in order] == [0, 0, 1, 2, 3, 4, 5, 6, 7, 9, 9]
