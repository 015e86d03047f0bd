"""The kernel conforms, but for what normspec.toml expects of it."""

from __future__ import annotations

from pathlib import Path

import normspec

HERE = Path(__file__).parent


def test_the_kernel_conforms():
    """Values, gradients and laws of layer normalisation, in all dtypes; the error says what is wrong, and where."""
    report = normspec.check(f"{HERE / 'kernel.py'}:layer_norm", profile="quick", expected=HERE / "normspec.toml")
    report.raise_if_failed()
