"""The pytest plugin on a framework, which has no file and line of one's own."""

from __future__ import annotations

from ...conftest import PLUGIN


def test_a_framework_is_tested(pytester):
    """What holds passes, advice is a warning, and what is known is no failure."""
    some = ("--normspec-op", "layer_norm", "--normspec-dtype", "float32", "-k", "LN-F3 or LN-R1 or LN-G13 or CM-A2")
    found = pytester.runpytest_subprocess(*PLUGIN, "--normspec", "torch", *some)
    found.assert_outcomes(passed=4, deselected=found.parseoutcomes()["deselected"])
    found.stdout.fnmatch_lines(["*NormspecAdvice: LN-R1 squares that overflow (torch.nn.LayerNorm: float32)*"])
