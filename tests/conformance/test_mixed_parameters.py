"""16-bit data beside float32 parameters: a target need not take such calls."""

from __future__ import annotations

from normspec.conformance.judging.verdicts import Verdict

from .runs import VARIANT, function, result, run


def test_a_target_that_raises_for_float32_parameters_is_judged_without_them():
    """CM-D1 says that such calls are unsupported; NaN and infinity are judged on the other cases."""
    sound = VARIANT["ln-two-pass"].build()

    def call(x, gamma, beta, **settings):
        if any(one is not None and one.dtype != x.dtype for one in (gamma, beta)):
            raise ValueError("one dtype for all")
        return sound.call(x, gamma, beta, **settings)

    report = run(function("layer_norm", call, vjp=sound.vjp), dtypes=("float16",))
    assert report.conforms and report.errors() == ()
    assert result(report, "CM-D1", "float16").verdict is Verdict.UNSUPPORTED
    for requirement in ("CM-N3", "CM-N4", "CM-N6", "CM-N7"):
        assert result(report, requirement, "float16").verdict is Verdict.PASS
