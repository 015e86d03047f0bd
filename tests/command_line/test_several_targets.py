"""A report on several targets: each has its own section and verdict, and everything is named."""

from __future__ import annotations

import json

import attrs
import pytest

from normspec import Report, Verdict
from normspec.conformance.reporting.conclusion import conclusion
from normspec.spec.errors import UnknownTarget

SOUND, OUTSIDE, UNBIASED = "mine.py:layer_norm", "mine.py:eps_outside", "mine.py:unbiased"


@pytest.fixture
def three(a_result, a_report, counterexample) -> Report:
    """Three functions; the first is sound, the others violate LN-R1 too, as all of them do."""

    def result(name: str, requirement: str, verdict: Verdict, **more: object):
        case = counterexample if verdict.is_violation else None
        same = {"target": name, "binding": name, "counterexample": case}
        return a_result(requirement=requirement, verdict=verdict, **same, **more)

    results = []
    for name, failing in ((SOUND, ()), (OUTSIDE, ("LN-F3", "LN-L1")), (UNBIASED, ("LN-F2",))):
        for requirement in ("LN-F1", "LN-F2", "LN-F3", "LN-L1"):
            results.append(result(name, requirement, Verdict.FAIL if requirement in failing else Verdict.PASS))
        results.append(result(name, "LN-R1", Verdict.ADVICE, level="SHOULD", ratio=3e5, reason="too wide"))
    subjects = tuple(
        {"target": name, "binding": name, "op": "layer_norm", "framework": "numpy", "version": "2.4.6"}
        for name in (SOUND, OUTSIDE, UNBIASED)
    )
    return a_report(*results, subjects=subjects)


def sections(text: str) -> list[str]:
    """The sections of the targets, and the text after the last."""
    *first, last = text.split("\n" + "═" * 80 + "\n")[1:]
    verdict, end = last.split("\n\n  pass fail")
    return [*first, verdict, end]


def test_each_target_has_a_section_with_its_violations_and_its_verdict(three, printed):
    """A section is about one target: its name, its tables, its violations with cases, its verdict."""
    sound, outside, unbiased, _ = sections(printed(three))
    for text, name in ((sound, SOUND), (outside, OUTSIDE), (unbiased, UNBIASED)):
        assert [one for one in (SOUND, OUTSIDE, UNBIASED) if f"{one}   target" in text] == [name]
    assert sound.rstrip().endswith(f"{SOUND}: CONFORMS")
    assert outside.rstrip().endswith(f"{OUTSIDE}: DOES NOT CONFORM: 2 violated: LN-F3, LN-L1.")
    assert unbiased.rstrip().endswith(f"{UNBIASED}: DOES NOT CONFORM: 1 violated: LN-F2.")
    assert "✗ LN-F3  eps inside the root" in outside and "expected" in outside
    assert "✗ LN-F2  biased variance" in unbiased and "expected" in unbiased
    assert "expected" not in sound


def test_the_targets_and_their_verdicts_stand_at_the_end(three, printed):
    """The last thing read: each target with its sign and verdict, and how many of them do not conform."""
    end = sections(printed(three))[-1]
    assert f"✓ {SOUND}   CONFORMS" in end
    assert f"✗ {OUTSIDE}  DOES NOT CONFORM: 2 violated: LN-F3, LN-L1." in end
    assert f"✗ {UNBIASED}     DOES NOT CONFORM: 1 violated: LN-F2." in end
    assert end.rstrip().endswith(f"DOES NOT CONFORM: 2 of 3 targets: {OUTSIDE}, {UNBIASED}.")


def test_advice_that_a_target_before_it_had_is_one_line(three, printed):
    """Advice to several targets is printed in full once; later sections name the target that has it."""
    sound, outside, unbiased, _ = sections(printed(three))
    assert "△ LN-R1   squares that overflow" in sound
    for text in (outside, unbiased):
        assert "squares that overflow (" not in text
        assert f"Advice    LN-R1, as of {SOUND}" in text


def test_one_target_is_printed_without_a_heading(three, printed):
    """A report on one target has its name in its tables, and one verdict at its end."""
    text = printed(three.target(OUTSIDE))
    assert "═" not in text
    assert "Targets" not in text
    assert text.count("DOES NOT CONFORM") == 1


def test_the_report_on_one_target_is_one_on_that_alone(three):
    """`report.target` has that target's results, advice and verdict, and nothing of the others."""
    assert three.targets == (SOUND, OUTSIDE, UNBIASED)
    assert not three.conforms
    alone = three.target(OUTSIDE)
    assert isinstance(alone, Report)
    assert (alone.conforms, alone.exit_status) == (False, 1)
    assert [one.requirement for one in alone.failures()] == ["LN-F3", "LN-L1"]
    assert {one.target for one in (*alone.results, *alone.advice())} == {OUTSIDE}
    assert three.target(SOUND).conforms
    assert three.target(SOUND).target(SOUND) == three.target(SOUND)


def test_an_unknown_target_is_an_error_that_lists_the_names(three):
    """A name that is not in the report is answered with those that are."""
    with pytest.raises(UnknownTarget, match=r"no target 'mine.py:eps_outsid'; did you mean '.*'\?.*mine.py:unbiased"):
        three.target("mine.py:eps_outsid")


def test_a_target_that_died_leaves_the_others_their_verdicts(three):
    """Where one target ended its process, that one is partial; where the run was interrupted, all are."""
    died = attrs.evolve(three, partial=True, lost=(OUTSIDE,))
    assert [died.target(name).exit_status for name in died.targets] == [0, 3, 1]
    stopped = attrs.evolve(three, partial=True)
    assert [stopped.target(name).exit_status for name in stopped.targets] == [3, 3, 3]


def test_the_json_has_what_each_target_amounts_to(three):
    """`targets` has a name, a verdict and the ids of each target."""
    found = json.loads(three.to_json())["targets"]
    assert [(one["name"], one["conforms"], one["violated"]) for one in found] == [
        (SOUND, True, []),
        (OUTSIDE, False, ["LN-F3", "LN-L1"]),
        (UNBIASED, False, ["LN-F2"]),
    ]
    assert all(one["advice"] == ["LN-R1"] and one["operators"] == ["layer_norm"] for one in found)


def test_a_target_of_several_bindings_says_which_is_violated(a_result, a_report, printed):
    """Where a framework has several spellings, the table of targets names those that violate something."""
    subjects = tuple(
        {"target": target, "binding": binding, "op": "layer_norm"}
        for target, binding in (("torch", "nn.LayerNorm"), ("torch", "F.layer_norm"), ("numpy", "numpy"))
    )
    report = a_report(
        a_result(binding="nn.LayerNorm"),
        a_result(binding="F.layer_norm", verdict=Verdict.FAIL),
        a_result(target="numpy", binding="numpy"),
        subjects=subjects,
    )
    assert "LN-F1. (in F.layer_norm; 1 of 2 bindings)" in " ".join(printed(report).split())


def test_a_target_of_which_nothing_was_checked_is_named(three):
    """The run was done in part: it does not count as conforming, and ends with 3, or with 1 at a violation."""
    subjects = (*three.subjects[:1], {"target": "mxnet", "binding": "mxnet", "op": "layer_norm"})
    report = attrs.evolve(three.target(SOUND), subjects=subjects)
    assert conclusion(report)[0] == "PARTIAL: no violation. Nothing was checked of mxnet."
    assert (report.conforms, report.exit_status) == (False, 3)
    assert [report.target(name).exit_status for name in report.targets] == [0, 2]
    with_violations = attrs.evolve(three, subjects=(*three.subjects, subjects[-1]))
    assert conclusion(with_violations)[0].endswith(f"{UNBIASED}. Nothing was checked of mxnet.")
    assert with_violations.exit_status == 1
