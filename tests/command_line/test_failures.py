"""Below the table: what is wrong, where, on which numbers, and what follows."""

from __future__ import annotations

import attrs

from normspec import Verdict
from normspec.conformance.diagnosis.cause import Cause
from normspec.conformance.judging.verdicts import Upstream
from normspec.conformance.reproduce.reproducer import Reproducer
from normspec.spec import requirements


def words(text: str) -> str:
    """The text with its columns and line breaks undone."""
    return " ".join(text.split())


def test_a_failure_shows_the_sentence_of_its_requirement(a_result, a_report, printed, counterexample):
    """The requirement's own words are printed with the failure."""
    text = printed(a_report(a_result(requirement="LN-F3", verdict=Verdict.FAIL, counterexample=counterexample)))
    assert words(requirements()["LN-F3"].sentence) in words(text)


def test_a_failure_shows_the_case_in_exact_numbers(a_result, a_report, printed, counterexample):
    """Inputs, settings and the three numbers can be typed back exactly."""
    text = words(printed(a_report(a_result(verdict=Verdict.FAIL, ratio=9e5, counterexample=counterexample))))
    for part in (
        "float32 (1, 2) [[-0.5, 0.5]]",
        "beta None",
        "eps 0.25",
        "axes (-1,)",
        "y[0, 1]",
        "expected 0.707106769 0x1.6a09e6p-1",
        "got 0.5 0x1p-1",
        "envelope 2.38418579e-07 0x1p-22",
        "error 9e5 envelopes",
        "x strided",
    ):
        assert part in text


def test_without_a_case_the_reason_is_why(a_result, a_report, printed, counterexample):
    """With one, another reason is how the mistake showed at first."""
    for case, label in ((None, "why"), (counterexample, "first")):
        broken = a_result(verdict=Verdict.FAIL, counterexample=case, reason="raised ValueError: no kernel")
        assert f"{label} raised ValueError: no kernel" in words(printed(a_report(broken)))


def test_two_numbers_that_differ_never_read_the_same(a_result, a_report, printed, counterexample):
    """Nine digits of float64 may agree where the tenth is wrong."""
    near = attrs.evolve(counterexample, expected=0.7, got=0.7 + 1e-12, envelope=1e-16)
    text = words(printed(a_report(a_result(verdict=Verdict.FAIL, ratio=9e3, counterexample=near))))
    assert "expected 0.69999999999999996 0x" in text
    assert "got 0.70000000000099993 0x" in text
    assert "envelope 1e-16 0x" in text


def test_the_declaration_under_which_all_would_pass_is_named_once(a_result, a_report, printed):
    """A kernel that is only less accurate learns which convention describes it, once for all that it violates."""
    failures = [a_result(requirement=name, verdict=Verdict.FAIL) for name in ("LN-F1", "LN-F2")]
    subject = {"target": "torch", "binding": "mine.py:kernel", "passes_under": ("storage=H2", "float64=float32")}
    text = words(printed(a_report(*failures, subjects=(subject,))))
    assert text.count("storage=H2, float64=float32 mine.py:kernel") == 1
    assert "Would pass if it declared this" in text
    assert "Would pass" not in printed(a_report(*failures))


def test_a_report_begins_with_the_cause(a_result, a_report, printed):
    """A cause's sentence is printed above the only one of its violations shown in full; the others are ids."""
    follows = {"LN-F1": ("LN-F3",), "LN-F3": ()}
    failures = [
        a_result(verdict=Verdict.FAIL, requirement=id, diagnosis="ln-eps-on-std", follows_from=roots)
        for id, roots in follows.items()
    ]
    one = failures[0]
    cause = Cause(
        one.target, one.op, (one.binding,), (one.dtype,), ("ln-eps-on-std",), "Eps stands outside.", "Eps is inside.",
        "LN-F3", ("ERR-2",), ("LN-F3", "LN-F1"),
    )  # fmt: skip
    text = printed(attrs.evolve(a_report(*failures), causes=(cause,)))
    assert text.index("Eps stands outside.") < text.index("LN-F3  eps inside the root")
    assert "LN-F1  the formula" not in text
    assert "LN-F3, LN-F1" in words(text)
    assert "Cause" not in printed(a_report(*failures))


def test_a_layer_is_promised_no_script_and_told_once_why(a_result, a_report, printed):
    """Only functions get scripts; the reason that there is none is the same for each violation of a layer."""
    violated = ("LN-F2", "LN-F3")
    place = {"target": "mine.py:Norm", "binding": "mine.py:Norm"}
    failures = [a_result(verdict=Verdict.FAIL, requirement=id, diagnosis=f"ln-{id}", **place) for id in violated]
    causes = tuple(
        Cause(
            "mine.py:Norm", "layer_norm", ("mine.py:Norm",), ("float32",), (f"ln-{id}",), "No.", "Yes.", id, (), (id,)
        )
        for id in violated
    )
    subject = {**place, "op": "layer_norm", "framework": "torch", "version": "2.13.0"}
    function = attrs.evolve(a_report(*failures, subjects=(subject,)), causes=causes)
    assert words(printed(function)).count("script normspec check --reproduce DIR writes one") == 2
    layer = attrs.evolve(function, subjects=({**subject, "fixed": ["axes=-1"]},))
    assert "script" not in printed(layer)
    scripts = tuple(
        Reproducer("mine.py:Norm", "layer_norm", "mine.py:Norm", "float32", id, f"ln-{id}", "", "it is a layer")
        for id in violated
    )
    assert words(printed(attrs.evolve(layer, reproducers=scripts))).count("script none: it is a layer") == 1


def test_what_follows_without_a_cause_is_one_line(a_result, a_report, printed, counterexample):
    """Under a standing violation are the ids of those that follow from it; they are listed nowhere else."""
    stands = a_result(verdict=Verdict.FAIL, requirement="LN-F3", counterexample=counterexample)
    failures = [stands] + [
        a_result(verdict=Verdict.FAIL, requirement=id, follows_from=("LN-F3",), counterexample=counterexample)
        for id in ("LN-F1", "LN-G1")
    ]
    text = printed(a_report(*failures))
    assert "LN-F1, LN-G1 fail because of it" in words(text)
    assert "LN-F1  the formula" not in text


def test_the_smallest_case_is_shown_of_those_that_share_a_requirement(a_result, a_report, printed, counterexample):
    """A failure in three dtypes is reported once, on its smallest case, with every place where it shows."""
    large = attrs.evolve(counterexample, inputs={**counterexample.inputs, "gamma": None}, note="the smallest")
    results = [
        a_result(verdict=Verdict.FAIL, dtype="float16", counterexample=counterexample),
        a_result(verdict=Verdict.FAIL, dtype="float32", counterexample=large),
        a_result(verdict=Verdict.FAIL, dtype="float64", counterexample=counterexample, binding="F.layer_norm"),
    ]
    text = words(printed(a_report(*results)))
    assert "how the smallest" in text
    assert "torch.nn.LayerNorm: float16, float32; F.layer_norm: float64" in text


def test_a_broken_function_does_not_print_thirty_screens(a_result, a_report, printed, counterexample):
    """With every requirement violated, the first few are shown in full and the others get a line each."""
    results = [
        a_result(requirement=i, dtype=d, verdict=Verdict.FAIL, counterexample=counterexample)
        for i in requirements()
        if i.startswith(("CM-", "LN-"))
        for d in ("float16", "bfloat16", "float32", "float64")
    ]
    text = printed(a_report(*results))
    assert text.count("expected ") == 5
    assert text.count("the same as for CM-T1") == 4
    assert all(i in text.split("More violations")[1] for i in ("LN-F7", "LN-G11", "CM-S1"))
    assert len(text.splitlines()) < 360  # a screen has 24 lines; the table has one line per requirement


def test_the_most_telling_violations_come_first(a_result, a_report, printed):
    """The contract, then values, gradients and laws of the operator, then requirements common to all operators."""
    ids = ["CM-T2", "LN-F3", "LN-G1", "LN-L1", "CM-P5"]
    text = printed(a_report(*(a_result(requirement=i, verdict=Verdict.FAIL) for i in sorted(ids))))
    told = [line.split()[1] for line in text.splitlines() if line.startswith("✗ ")]
    assert told == ids


def test_a_violated_should_is_advice(a_result, a_report, printed, counts):
    """A violated SHOULD is printed after the failures and leaves the target conforming."""
    text = printed(a_report(a_result(), a_result(requirement="LN-L2", level="SHOULD", verdict=Verdict.ADVICE)))
    assert "Advice" in text
    assert (counts(text)["fail"], counts(text)["advice"]) == (0, 1)
    assert text.rstrip().endswith("CONFORMS")


def test_what_the_framework_itself_violates_comes_last(a_result, a_report, printed, counterexample):
    """The author of a function reads first what is theirs, in the list of violations and in the last line."""
    theirs = Upstream("torch.nn.functional.layer_norm", "its tangent is wrong", ())
    shown = {"verdict": Verdict.FAIL, "counterexample": counterexample}
    report = a_report(
        a_result(requirement="LN-F1", upstream=theirs, **shown),
        a_result(requirement="LN-F1", dtype="float64", upstream=theirs, **shown),
        a_result(requirement="LN-L2", same_case_as="LN-F1", upstream=theirs, **shown),
        a_result(requirement="CM-V1", **shown),
        a_result(requirement="LN-G13", **shown),
        a_result(requirement="LN-G13", dtype="float64", upstream=theirs, **shown),
    )
    text = printed(report)
    assert text.rstrip().splitlines()[-1].endswith("4 violated: LN-G13, CM-V1, LN-F1, LN-L2.")
    assert text.index("✗ LN-G13") < text.index("✗ CM-V1") < text.index("✗ LN-F1")
