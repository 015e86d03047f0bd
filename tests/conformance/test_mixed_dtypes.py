"""16-bit data with float32 parameters: a wrong dtype fails the requirement about it, and no other that is met."""

from __future__ import annotations

import numpy as np
import pytest

from normspec import Verdict

from .runs import FAULT, VARIANT, function, result, run, specimen, verdicts

pytestmark = pytest.mark.exhaustive  # it does not depend on the Python version

IDS = {"CM-D1", "CM-D2", "CM-D3"}


@pytest.mark.parametrize(
    ("name", "failing"),
    [
        ("ln-mixed-parameters-narrowed", {"CM-D1"}),
        ("pr-mixed-parameters-narrowed", {"CM-D1"}),
        ("bn-mixed-output-as-parameters", {"CM-D2"}),
        ("mh-mixed-output-as-parameters", {"CM-D2"}),
        ("ln-mixed-dx-as-parameters", {"CM-D2"}),
        ("po-mixed-gradient-as-x", {"CM-D1", "CM-D3"}),  # a gradient rounded to 16 bits fails as a float32 number too
        ("bn-mixed-statistics-as-x", {"CM-D1", "CM-D3"}),
    ],
)
def test_each_is_judged_by_itself(name: str, failing: set[str]) -> None:
    """Numbers, the dtype of the data's results, and the dtype of the parameters' results are judged separately."""
    report = run(specimen(FAULT[name]), dtypes=("bfloat16",), requirements=IDS)
    assert {found.requirement for found in report.failures()} == failing
    assert {found.verdict for found in report.results} == {Verdict.PASS, Verdict.FAIL}


def test_a_float32_gradient_of_parameters_is_all_that_a_sound_dtype_takes() -> None:
    """A gradient with float32's digits that is returned as float64 fails only the dtype."""
    made = VARIANT["ln-two-pass"].build()

    def vjp(*arguments, **settings):
        dx, *rest = made.vjp(*arguments, **settings)
        return dx, *(None if one is None else one.astype(np.float64) for one in rest)

    report = run(function("layer_norm", made.call, vjp=vjp), dtypes=("float16",), requirements=IDS)
    assert verdicts(report) == {"CM-D1": "pass", "CM-D2": "pass", "CM-D3": "fail"}


def test_without_gradients_the_rest_is_judged() -> None:
    """Declared forward-only, layer_norm has no result for CM-D3; batch_norm has its running statistics."""
    for name, of_parameters in (("ln-two-pass", Verdict.UNSUPPORTED), ("bn-two-pass", Verdict.PASS)):
        report = run(specimen(VARIANT[name]), dtypes=("float16",), requirements=IDS, forward_only=True)
        assert [found.verdict for found in report.results] == [Verdict.PASS, Verdict.PASS, of_parameters]


@pytest.mark.parametrize("raised", [TypeError, NotImplementedError])
def test_who_takes_no_such_mixture_lacks_all_three(raised: type[Exception]) -> None:
    """A target that raises for float32 parameters with 16-bit data, or declines them, is unsupported."""
    made = VARIANT["ln-two-pass"].build()

    def call(x, gamma, beta, **settings):
        if any(one is not None and one.dtype != x.dtype for one in (gamma, beta)):
            raise raised("one dtype")
        return made.call(x, gamma, beta, **settings)

    report = run(function("layer_norm", call, vjp=made.vjp), dtypes=("float16",), requirements={*IDS, "LN-F1"})
    assert verdicts(report) == {**dict.fromkeys(sorted(IDS), "unsupported"), "LN-F1": "pass"}
    assert report.conforms
    assert "one dtype" in result(report, "CM-D3", "float16").reason
