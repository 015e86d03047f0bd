"""The pytest plugin, run by pytest as a user runs it."""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import pytest

import normspec
from normspec.spec.errors import UnknownOperator
from normspec.testing.plugin.target_run import TargetRun, request_for

from ..conftest import PLUGIN

MINE = """
import numpy as np


def layer_norm(x, gamma, beta, *, eps, axes):
    return normalised(x, gamma, beta, axes, lambda variance: np.sqrt(variance + eps))


def outside(x, gamma, beta, *, eps, axes):
    return normalised(x, gamma, beta, axes, lambda variance: np.sqrt(variance) + eps)


def normalised(x, gamma, beta, axes, root):
    d = x - x.mean(axes, keepdims=True)
    y = d / root(np.square(d).mean(axes, keepdims=True))
    y = y if gamma is None else y * gamma
    return (y if beta is None else y + beta).astype(x.dtype)
"""

FEW = ("--normspec-op", "layer_norm", "--normspec-dtype", "float32", "-k", "LN-F2 or LN-F3 or LN-G3 or LN-L2")


@pytest.fixture
def run(pytester):
    """Runs pytest in a folder with mine.py in it, in its own process."""
    pytester.makepyfile(mine=MINE)

    def run(*options):
        return pytester.runpytest_subprocess(*PLUGIN, *options)

    return run


def test_nothing_is_imported_before_something_is_asked_for():
    """pytest loads only the plugin's own file in every run: no NumPy, no rich, none of our rooms."""
    loaded = "*(m for m in sys.modules if m.startswith('normspec') or m == 'numpy')"
    script = f"import sys, normspec.testing.plugin\nprint({loaded})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) <= {"normspec", "normspec.testing", "normspec.testing.plugin"}


def test_targets_become_tests_with_ids_of_their_own(run, pytester):
    """One test for each requirement and dtype; a failure shows cause and case, and --lf and its id run it again."""
    found = run(
        "--normspec", "mine.py:layer_norm", "--normspec", "mine.py:outside", *FEW, "--junitxml", "out.xml", "-rfs"
    )
    found.assert_outcomes(passed=5, failed=1, skipped=2, warnings=1)
    found.stdout.fnmatch_lines([
        "collected * items / * deselected / 8 selected",
        "*_ mine.py:outside::layer_norm::LN-F3[[]float32] _*",
        "Cause: Divides by sqrt(var) + eps. (layer_norm; float32)",
        "* LN-F3  eps inside the root",
        "mine.py:8: violates LN-F3",
        "*LN-L2 the scale law, bitwise (float32)*",
        "FAILED mine.py:outside::layer_norm::LN-F3[[]float32] - Cause: Divides by*",
        "SKIPPED [[]1] mine.py:4: unsupported: mine.py:layer_norm has no gradients*",
    ])  # fmt: skip
    assert "Traceback" not in found.stdout.str()
    suite = ElementTree.parse(pytester.path / "out.xml").getroot()[0]
    assert (suite.get("failures"), suite.get("skipped"), suite.get("tests")) == ("1", "2", "8")
    case = next(one for one in suite if one.find("failure") is not None)
    assert case.get("name") == "LN-F3[float32]"
    assert "Divides by sqrt(var) + eps." in case.find("failure").get("message")
    named = ("--normspec", "mine.py:outside", *FEW[:4])
    run(*named, "--lf").assert_outcomes(failed=1)
    run(*named, "mine.py:outside::layer_norm::LN-F3[float32]").assert_outcomes(failed=1)
    run(*named, "mine.py:outside::layer_norm::LN-L1").assert_outcomes(failed=1)  # and not LN-L11


@pytest.mark.exhaustive
def test_workers_of_xdist_share_the_tests(run, pytester):
    """With -n 2 the tests are the same, and those of one operator and dtype run on one worker."""
    pytester.makeconftest("""
        import os
        def pytest_runtest_logreport(report):
            if report.when == "call" and hasattr(report, "node"):
                print("\\nran", report.node.gateway.id, report.nodeid)
    """)
    pytester.makepyfile("def test_of_ones_own(): pass")
    found = run(
        "--normspec",
        "mine.py:layer_norm",
        "--normspec",
        "mine.py:outside",
        *FEW[:5],
        f"{FEW[5]} or own",
        "-n",
        "2",
        "-s",
    )
    found.assert_outcomes(passed=6, failed=1, skipped=2, warnings=1)
    ran = [line.split()[1:] for line in found.stdout.lines if line.startswith("ran ")]
    for target in ("mine.py:layer_norm", "mine.py:outside"):
        assert len({worker for worker, name in ran if name.startswith(target)}) == 1


def test_markers_and_configuration_select(run, pytester):
    """Targets may be named in pyproject.toml; markers distinguish levels and operators, under --strict-markers too."""
    pytester.makepyprojecttoml("""
        [tool.pytest.ini_options]
        normspec_targets = ["mine.py:layer_norm"]
        normspec_dtypes = ["float32"]
        addopts = "--strict-markers"
    """)
    found = run("--collect-only", "-q", "-m", "normspec_must and normspec_layer_norm", "-k", "LN-L1 or LN-L2")
    assert "mine.py:layer_norm::layer_norm::LN-L1[float32]" in found.stdout.lines
    assert "mine.py:layer_norm::layer_norm::LN-L2[float32]" not in found.stdout.lines


def test_expected_failures_are_those_of_pytest(run, pytester):
    """A failure that normspec.toml expects is an xfail with its reason; if it passes nevertheless, it fails."""
    entry = '[[expected]]\nrequirement = "{}"\ntarget = "mine.py:{}"\nreason = "trained so"\n'
    pytester.makefile(".toml", normspec=entry.format("LN-F3", "outside") + entry.format("LN-F2", "outside"))
    pytester.makepyfile(
        test_mine="""
        import mine, normspec, pytest


        @normspec.conforms(op="layer_norm", dtypes=["float32"])
        @pytest.fixture
        def outside():
            return mine.outside
    """
    )
    found = run("--normspec", "mine.py:outside", *FEW[:4], "-k", "(LN-F2 or LN-F3) and float32", "-rxf")
    found.assert_outcomes(xfailed=2, failed=2)
    found.stdout.fnmatch_lines(["*it is expected to fail, and passes: remove it from the expected failures*"])
    found.stdout.fnmatch_lines(["XFAIL *LN-F3* - *trained so"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--normspec", "mine.py:nothing"), "*normspec: mine.py*nothing*"),
        (
            ("--normspec", "mine.py:layer_norm", "--normspec-profile", "fast"),
            "ERROR: normspec: unknown profile 'fast'*",
        ),
        (
            ("--normspec-op", "layer_norm"),
            "ERROR: --normspec-op is about the targets of --normspec, and there is none*",
        ),
    ],
)
def test_what_cannot_be_tested_is_one_clear_error(run, options, words):
    """A target that cannot be opened, or an impossible option, is reported in a line, without a traceback."""
    found = run(*options)
    assert found.ret != 0
    (found.stdout if "nothing" in words else found.stderr).fnmatch_lines([words])
    assert "Traceback" not in found.stdout.str() + found.stderr.str()


@pytest.mark.exhaustive
def test_the_decorator_makes_the_same_tests(run, pytester):
    """On a function and on a fixture with parameters; other tests of the file run as ever."""
    pytester.makepyfile(
        test_own="""
        import pytest, normspec
        from mine import layer_norm, outside

        @normspec.conforms(op="layer_norm", framework="numpy", dtypes=["float32"])
        def fused(*args, **settings):
            return outside(*args, **settings)

        @normspec.conforms(op="layer_norm", framework="numpy", dtypes=["float32"])
        @pytest.fixture(params=["sound", "wrong"])
        def norm(request):
            function = {"sound": layer_norm, "wrong": outside}[request.param]
            return lambda x, gamma, beta, *, eps, axes: function(x, gamma, beta, eps=eps, axes=axes)

        def test_LN_F3_of_ones_own():
            pass
    """
    )
    found = run("test_own.py", "-rfs", "-k", "LN-F3 or LN_F3 or test_norm and sound and LN-G9")
    found.stdout.fnmatch_lines_random([
        "FAILED test_own.py::fused::layer_norm::LN-F3[[]float32] - *",
        "FAILED test_own.py::test_norm_conforms[[]wrong-layer_norm-LN-F3-float32] - Caus*",
        "test_own.py:12: violates LN-F3",
        "SKIPPED [[]1] test_own.py:12: unsupported: *",
    ])  # fmt: skip
    assert "raceback" not in found.stdout.str()
    found.assert_outcomes(passed=2, failed=2, skipped=1)


def test_parameters_of_a_fixture_that_print_alike_are_told_apart(run, pytester):
    """Each is judged by itself; and an object of the module whose attributes raise harms nobody."""
    pytester.makepyfile(
        test_own="""
        import pytest, normspec
        from mine import layer_norm, outside

        class Norm:
            def __init__(self, function):
                self.function = function

            def __repr__(self):
                return "Norm()"

            def __call__(self, x, gamma, beta, *, eps, axes):
                return self.function(x, gamma, beta, eps=eps, axes=axes)

        @normspec.conforms(op="layer_norm", framework="numpy", dtypes=["float32"])
        @pytest.fixture(params=[Norm(layer_norm), Norm(outside)])
        def norm(request):
            return request.param

        class Proxy:
            def __getattr__(self, name):
                raise RuntimeError("there is no request here")

        proxy = Proxy()
    """
    )
    run("test_own.py", "-k", "LN-F3").assert_outcomes(passed=1, failed=1)


def test_a_decorator_that_cannot_be_used_is_one_clear_error(run, pytester):
    """A fixture has the tests that its options leave, and every mistake is told without a traceback."""
    head = """
        import pytest, normspec
        from mine import layer_norm

        asked = {"op": "layer_norm", "framework": "numpy", "dtypes": "float32", "only": "LN-F3"}
        """
    pytester.makepyfile(
        test_option=head + "normspec.conforms(**asked, jobs=2)(layer_norm)",
        test_fixture=head
        + """
        @normspec.conforms(**asked)
        @pytest.fixture
        def norm():
            return lambda x, gamma, beta, *, eps, axes: layer_norm(x, gamma, beta, eps=eps, axes=axes)

        @normspec.conforms(**asked)
        @pytest.fixture
        def nothing():
            return None
        """,
        test_fixture_option=head
        + """
        @normspec.conforms(**{**asked, "only": "LN-F99"})
        @pytest.fixture
        def norm():
            return layer_norm
        """,
    )
    found = run("--continue-on-collection-errors")
    found.assert_outcomes(passed=1, failed=1, errors=2)
    found.stdout.fnmatch_lines_random([
        "normspec: tests of a target take no argument 'jobs'; choose from op, framework, *",
        "normspec: only: no requirement, pattern, subject or bundle is 'LN-F99' *",
        "the fixture nothing: an object of type NoneType is not a target: *",
    ])  # fmt: skip
    assert "raceback" not in found.stdout.str()


def test_a_fixture_is_judged_on_its_own_tests_alone(run, pytester):
    """Another fixture of the file has an operator and dtypes of its own."""
    pytester.makepyfile(
        test_own="""
        import pytest, normspec
        from mine import layer_norm

        @normspec.conforms(op="layer_norm", framework="numpy", dtypes=["float32"])
        @pytest.fixture
        def norm():
            return lambda x, gamma, beta, *, eps, axes: layer_norm(x, gamma, beta, eps=eps, axes=axes)

        @normspec.conforms(op="layer_norm", framework="numpy", dtypes=["float64"])
        @pytest.fixture
        def wide():
            return lambda x, gamma, beta, *, eps, axes: layer_norm(x, gamma, beta, eps=eps, axes=axes)
        """,
        conftest="""
        from normspec.testing.plugin.target_run import TargetRun

        judged = TargetRun._judged

        def told(self, operator_dtype):
            print("expected", *(dtype for _, dtype in self._expected))
            return judged(self, operator_dtype)

        TargetRun._judged = told
        """,
    )
    found = run("test_own.py", "-s", "-k", "LN-F3")
    found.assert_outcomes(passed=2)
    found.stdout.fnmatch_lines_random(["*expected float32", "*expected float64"])


@pytest.mark.exhaustive
def test_what_did_not_change_is_not_judged_again(run, pytester, monkeypatch):
    """The second run takes its results from the first, and says so, until the file changes or an option forbids it."""
    monkeypatch.delenv("NORMSPEC_RESULTS")
    monkeypatch.setenv("NORMSPEC_CACHE", str(pytester.path / "kept"))
    kept = "normspec: 2 results kept from 20*; --normspec-no-cache judges them again"

    def outcomes(*options):
        found = run("--normspec", "mine.py:layer_norm", *FEW[:4], "-k", "LN-F2 or LN-F3", *options)
        told = [line for line in found.stdout.lines if line.startswith("normspec: ")]
        of_tests = {name: count for name, count in found.parseoutcomes().items() if name != "deselected"}
        return of_tests, bool(told) and found.stdout.fnmatch_lines([kept]) is None

    both = {"passed": 2}
    assert outcomes() == (both, False)
    assert outcomes() == (both, True)
    assert outcomes("--normspec-no-cache") == (both, False)
    file = pytester.path / "mine.py"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("np.sqrt(variance + eps)", "np.sqrt(variance) + eps"), encoding="utf-8")
    assert outcomes() == ({"passed": 1, "failed": 1}, False)


@pytest.fixture
def target_run(pytester):
    """The work on a sound function in float32."""
    pytester.makepyfile(mine=MINE)
    target_run = TargetRun(request_for("mine.py:layer_norm", {"op": "layer_norm", "dtypes": ["float32"]}))
    for requirement in ("LN-F1", "LN-F3"):
        target_run.expect(("layer_norm", "float32"), requirement)
    yield target_run
    target_run.close()


def test_work_is_done_once(target_run, monkeypatch):
    """However often a report is requested, its operator and dtype are judged once, on expected requirements only."""
    judged, judge = [], target_run.single_process.judge
    monkeypatch.setattr(target_run.single_process, "judge", lambda unit: judged.append(unit) or judge(unit))
    first = target_run.report(("layer_norm", "float32"))
    assert target_run.report(("layer_norm", "float32")) is first
    assert {one.requirement for one in first.results} == {"LN-F1", "LN-F3"}
    assert len(judged) == 1


def test_work_that_was_stopped_is_not_begun_again(target_run, monkeypatch):
    """Work that pytest's time limit stopped fails every test that reads it, and does not reach the limit again."""

    class Stopped(BaseException):
        pass

    judged = []

    def stopped(unit):
        judged.append(unit)
        raise Stopped

    monkeypatch.setattr(target_run.single_process, "judge", stopped)
    for _ in range(2):
        with pytest.raises(Stopped):
            target_run.report(("layer_norm", "float32"))
    assert len(judged) == 1


def test_the_decorator_without_its_operator_is_an_error():
    """Without brackets it would replace the function and make no test, and the run would pass."""
    with pytest.raises(UnknownOperator, match=r'write @normspec\.conforms\(op="layer_norm"\)$'):
        normspec.conforms(lambda x, gamma, beta, *, eps, axes: x)


def test_ctrl_c_comes_without_the_calls_on_its_way(monkeypatch):
    """pytest makes a text of all their arguments, which takes seconds for a library of cases."""

    def interrupted(*_):
        raise KeyboardInterrupt

    target_run = TargetRun(request_for("numpy", {}))
    monkeypatch.setattr(TargetRun, "_judged", interrupted)
    with pytest.raises(KeyboardInterrupt) as caught:
        target_run.report(("layer_norm", "float32"))
    assert caught.traceback[-1].name == "report" and caught.value.__suppress_context__
    assert len(repr(target_run)) < 200
