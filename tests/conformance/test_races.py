"""Races: a write that is lost once in sixty calls is met, in small calls and large ones, and so is a real race."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from dataclasses import replace

import attrs
import numpy as np
import pytest

from normspec.adapters.numpy.operators import IMPLEMENTATIONS as BASES
from normspec.conformance.cases.case import build
from normspec.conformance.cases.sizes import repeated_deck
from normspec.conformance.checks.purity import repeats_agree
from normspec.conformance.judging.subject import Subject
from normspec.conformance.requests.implementation_targets import implementation_target
from normspec.conformance.requests.profiles import PROFILES, profile_of
from normspec.spec.operators import OPERATORS

from .runs import function, result, run

pytestmark = pytest.mark.exhaustive  # it does not depend on the Python version

of_every_operator = pytest.mark.parametrize("operator", OPERATORS)


def losing(operator: str, above: int, stage: str, seed: int | None):
    """A sound function that loses the last write of a large call: once in sixty at random, or every sixtieth time."""
    sound = BASES[operator]().implementation()
    random, calls = np.random.default_rng(seed), 0

    def lossy(stage_call):
        def call(*arguments, **settings):
            nonlocal calls
            found = stage_call(*arguments, **settings)
            results = found if isinstance(found, tuple) else (found,)
            if arguments[0].size > above:
                calls += 1
                if random.integers(60) == 0 if seed is not None else calls % 60 == 0:
                    results[0].reshape(-1)[-1] = 0
            return found

        return call

    return implementation_target("losing", operator, replace(sound, **{stage: lossy(getattr(sound, stage))}))


def met(operator: str, above: int, stage: str, seed: int, *, periodic: bool) -> bool:
    """Whether the repeated calls of `standard` meet it."""
    target = losing(operator, above, stage, None if periodic else seed)
    repeats = profile_of("standard").repeats
    subject = Subject(target, target.bindings[0], "float32", repeats=repeats, large_repeats=repeats)
    cases = (build(attrs.evolve(one, seed=seed), "float32") for one in repeated_deck(operator, "standard"))
    return any(finding.violated for case in cases if case.x.size > above for finding in repeats_agree(subject, case))


@pytest.mark.parametrize("periodic", [False, True], ids=["at random", "every sixtieth"])
@pytest.mark.parametrize("stage", ["call", "vjp"])
@pytest.mark.parametrize("above", [64, 1000, 100_000])
def test_lost_writes_are_met(above: int, stage: str, periodic: bool) -> None:
    """One in sixty calls with more than this many values, in outputs or in gradients."""
    assert met("layer_norm", above, stage, 0, periodic=periodic)


@pytest.mark.campaign
@pytest.mark.parametrize("stage", ["call", "vjp"])
@pytest.mark.parametrize("above", [64, 1000, 100_000])
@of_every_operator
def test_lost_writes_are_met_at_twenty_seeds(operator: str, above: int, stage: str) -> None:
    """At random, at each of twenty seeds; for the largest calls of an operator at five."""
    for seed in range(20 if above < 100_000 or operator == "layer_norm" else 5):
        assert met(operator, above, stage, seed, periodic=False), seed


def test_twenty_runs_of_standard_meet_them_nearly_always() -> None:
    """The chance that one of twenty misses a write that is lost once in sixty calls is below one in a hundred."""
    assert 20 * (59 / 60) ** PROFILES["standard"].repeats < 0.01


#: A forward pass whose rows two threads share if there are enough values to be worth it. On busy cores two threads
#: often run one after the other; where one yields, the other gets its turn.
C = """
#include <math.h>
#include <sched.h>
void layer_norm(const float *x, float *y, long rows, long n, double eps) {
    double sum, squares;
    #pragma omp parallel for num_threads(2) if (rows * n > 65536) %s
    for (long r = 0; r < rows; r++) {
        const float *row = x + r * n;
        sum = squares = 0;
        for (long i = 0; i < n; i++) sum += row[i];
        if (r %% 32 == 0) sched_yield();
        double mean = sum / n;
        for (long i = 0; i < n; i++) squares += (row[i] - mean) * (row[i] - mean);
        double rstd = 1 / sqrt(squares / n + eps);
        for (long i = 0; i < n; i++) y[r * n + i] = (row[i] - mean) * rstd;
    }
}
"""


@pytest.fixture(params=[False, True], ids=["shared sums", "private sums"])
def compiled(request, tmp_path, monkeypatch):
    """The kernel as a function on NumPy arrays, and whether it is sound."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    source, library = tmp_path / "kernel.c", tmp_path / "kernel.so"
    source.write_text(C % ("private(sum, squares)" if request.param else ""))
    build = subprocess.run(
        [compiler, "-O1", "-fopenmp", "-shared", "-fPIC", str(source), "-o", str(library), "-lm"],
        capture_output=True,
        text=True,
    )
    if build.returncode:
        pytest.skip(f"the C compiler has no OpenMP: {build.stderr.splitlines()[-1]}")
    # Read when OpenMP's library is loaded. On busy cores, threads that spin while they wait take minutes.
    monkeypatch.setenv("OMP_WAIT_POLICY", "passive")
    kernel = ctypes.CDLL(str(library)).layer_norm
    floats = np.ctypeslib.ndpointer(np.float32, flags="C_CONTIGUOUS")
    kernel.argtypes = [floats, floats, ctypes.c_long, ctypes.c_long, ctypes.c_double]
    kernel.restype = None

    def layer_norm(x, gamma, beta, *, eps, axes):
        n = int(np.prod(x.shape[len(x.shape) - len(axes) :], dtype=int))
        plain = np.ascontiguousarray(x)
        y = np.empty_like(plain)
        kernel(plain, y, x.size // n if n else 0, n, eps)
        y = y if gamma is None else y * gamma
        return y if beta is None else y + beta

    return layer_norm, request.param


def test_a_real_race_is_met(compiled) -> None:
    """An OpenMP kernel whose threads share their sums fails in repeated calls; one with private sums is sound."""
    layer_norm, sound = compiled
    report = run(
        function("layer_norm", layer_norm), profile="standard", forward_only=True, requirements={"CM-P2", "LN-F1"}
    )
    assert result(report, "LN-F1").verdict.value == "pass"
    assert result(report, "CM-P2").verdict.value == ("pass" if sound else "fail")
