"""Sound variants pass in every dtype and on generated cases; `normspec selftest` runs all of them in float32."""

from __future__ import annotations

import signal
from multiprocessing import resource_tracker
from typing import NoReturn

import pytest

from normspec.conformance.selftest import selftest
from normspec.conformance.selftest.selftest import judge_fault, judge_sound

from .runs import DTYPES, FAULT, VARIANT, others_at_night, run, specimen

pytestmark = pytest.mark.exhaustive

#: `normspec selftest` puts every variant to the same cases in float32.
OTHERS = tuple(dtype for dtype in DTYPES if dtype != "float32")

#: A few of the most different ways to compute, for the dtypes that the others are not run in.
EVERYWHERE = (
    "ln-welford",
    "ln-fused-backward",
    "bn-folded-affine",
    "bn-bessel",
    "rm-cast-before-gain",
    "gn-sums-of-channels",
)


@pytest.mark.parametrize("name", others_at_night(EVERYWHERE, ["ln-welford", "bn-folded-affine"]))
def test_a_sound_variant_conforms_in_every_dtype(name: str) -> None:
    """The report of a sound variant over the dtypes other than float32 conforms, and has a result in each."""
    report = run(specimen(VARIANT[name]), dtypes=OTHERS)
    assert report.conforms, [(r.requirement, r.dtype, r.reason) for r in (*report.failures(), *report.errors())]
    assert {r.dtype for r in report.results} == set(OTHERS)


@pytest.mark.parametrize("name", others_at_night(["ln-two-pass", "bn-two-pass", "gn-two-pass"], ["ln-two-pass"]))
def test_a_sound_variant_conforms_over_generated_cases(name: str) -> None:
    """Generated cases of `standard` and its large shapes accuse a plain two-pass implementation of nothing."""
    row = judge_sound(name, ("float32",), "standard", 1)
    assert (row.name, row.accused_by) == (name, ())


@pytest.mark.parametrize("asked", [["residual"], ["residual", "highway"]])
def test_a_selftest_judges_all_of_the_operators_asked_for(asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each sound variant and each fault of these operators once, and no others."""
    found: list[str] = []

    def noted(work: list[tuple[object, tuple[str, ...]]], *_: object) -> tuple[tuple[()], bool]:
        for judge, (name, *_) in work:
            assert judge is (judge_sound if name in VARIANT else judge_fault)
            found.append(name)
        return (), False

    monkeypatch.setattr(selftest, "_in_parallel", noted)
    selftest.selftest(op=asked)
    assert sorted(found) == sorted(one.name for one in (*VARIANT.values(), *FAULT.values()) if one.operator in asked)


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="Windows has no mask of signals")
def test_ctrl_c_leaves_no_traceback_of_a_process_that_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C waits in the processes from their start on, and reaches the parent alone."""
    masks: list[set[int]] = []

    class Context:
        """Processes that are interrupted while they start."""

        def Pool(self, *_: object) -> NoReturn:
            """The mask that they would have, once the process that comes with the first of them runs."""
            resource_tracker.ensure_running()
            masks.append(signal.pthread_sigmask(signal.SIG_BLOCK, ()))
            raise KeyboardInterrupt

    monkeypatch.setattr(selftest, "get_context", lambda _: Context())
    with pytest.raises(KeyboardInterrupt):
        selftest.selftest(op="residual")
    masks.append(signal.pthread_sigmask(signal.SIG_BLOCK, ()))
    assert [signal.SIGINT in mask for mask in masks] == [True, False]
