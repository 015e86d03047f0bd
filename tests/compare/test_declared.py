"""`compare` and `identify` take the declarations of `check`, and what a binding cannot vary is not held against it."""

from __future__ import annotations

import numpy as np
import pytest

import normspec
from normspec.conformance.command_line.root import main
from normspec.spec.errors import WrongDeclaration

#: Functions that lack arguments of the canonical call, each with its own way to be declared.
FUNCTIONS = """
import numpy as np

def built_in(x, gamma, beta):
    wide = x.astype(np.float64)
    d = wide - wide.mean(-1, keepdims=True)
    y = d / np.sqrt(np.square(d).mean(-1, keepdims=True) + 1e-3)
    y = y if gamma is None else y * gamma
    return (y if beta is None else y + beta).astype(x.dtype)

def bare(x, epsilon):
    wide = x.astype(np.float64)
    return (wide / np.sqrt(np.square(wide).mean(-1, keepdims=True) + epsilon)).astype(x.dtype)

def channels_first(x, gamma, beta, eps):
    wide = x.astype(np.float64)
    d = wide - wide.mean(1, keepdims=True)
    shape = (-1, *(1,) * (x.ndim - 2))
    y = d / np.sqrt(np.square(d).mean(1, keepdims=True) + eps) * gamma.reshape(shape) + beta.reshape(shape)
    return y.astype(x.dtype)
"""


@pytest.fixture
def file(tmp_path):
    """The path of a file with these functions."""
    path = tmp_path / "mine.py"
    path.write_text(FUNCTIONS, encoding="utf-8")
    return path


def test_a_function_with_a_built_in_eps_is_identified(file, capsys):
    """Its eps is found; the lines about other values of eps say that there are none, and the rest is measured."""
    command = ["identify", f"{file}:built_in", "--op", "layer_norm", "--fixed", "eps=1e-3,axes=-1", "--brief"]
    assert main(command) == 0
    text = capsys.readouterr().out
    assert "y = gamma (x - mean) / sqrt(var + eps) + beta" in text
    found = normspec.identify(f"{file}:built_in", op="layer_norm", fixed={"eps": 1e-3, "axes": -1}).cards[0]
    lines = {line.key: line for line in found.lines}
    assert lines["eps_effective"].text == "0.001 whatever is given"
    assert lines["default_eps"].text == "0.001"
    for key in ("eps_placement", "eps_zero", "subnormal_inputs", "subnormal_outputs"):
        assert (lines[key].text, lines[key].evidence["reason"]) == ("unsupported", "its eps is 0.001"), key
    assert lines["axes"].text == "(-2, -1) unsupported"
    assert lines["accuracy"].text.startswith("centred / centred") and lines["constant"].text == "beta, exactly"


def test_a_function_without_gamma_is_identified(file):
    """Its formula has no gamma, and all that does not need one is measured."""
    found = normspec.identify(f"{file}:bare", op="rms_norm", fixed={"axes": -1, "gamma": None}).cards[0]
    assert found.formula == "y = x / sqrt(mean(x^2) + eps)"
    assert found.line("gain").text == "no gamma"
    assert found.line("accuracy").text.startswith("within rounding")


def test_a_layout_is_compared(file, capsys):
    """The function is called in its own layout, and the known target as ever: nothing that is measured differs."""
    targets = ["numpy", f"{file}:channels_first", "--op", "layer_norm"]
    declared = ["--layout", "channels-first", "--fixed", "axes=-1,gamma=given,beta=given"]
    assert main(["compare", *targets, *declared]) == 0
    text = capsys.readouterr().out
    assert "≠ variance" not in text and "≠ accuracy of y" not in text and "≠ layouts of x" not in text


def test_declarations_are_about_the_functions(file):
    """A known target takes none, whether or not a framework is named; one that fits no target is an error."""
    both = ["numpy", f"{file}:built_in"]
    fixed = {"eps": 1e-3, "axes": -1}
    for framework in (None, "numpy"):
        table = normspec.compare(both, op="layer_norm", fixed=fixed, framework=framework)
        assert table.cell("layer_norm", "eps_effective", "numpy").text == "as given"
        with pytest.raises(WrongDeclaration, match="layer_norm has no momentum"):
            normspec.compare(both, op="layer_norm", fixed={**fixed, "momentum": 0.1}, framework=framework)


def test_the_momentum_of_a_function_is_the_one_it_has():
    """A fixed momentum is what the weight of the new mean is compared with."""

    def batch_norm(x, gamma, beta, running_mean, running_var, *, eps, training, channel_axis):
        axes = tuple(axis for axis in range(x.ndim) if axis != channel_axis % x.ndim)
        shape = [-1 if axis == channel_axis % x.ndim else 1 for axis in range(x.ndim)]
        mean, var = (x.mean(axes), x.var(axes)) if training else (running_mean, running_var)
        xhat = (x - mean.reshape(shape)) / np.sqrt(var.reshape(shape) + x.dtype.type(eps))
        y = xhat * gamma.reshape(shape) + beta.reshape(shape)
        if not training:
            return y, running_mean, running_var
        new = [old + x.dtype.type(0.375) * (now - old) for old, now in ((running_mean, mean), (running_var, var))]
        return y, *new

    found = normspec.identify(batch_norm, framework="numpy", fixed={"momentum": 0.375}).cards[0]
    assert found.line("momentum").text == "the new"
    assert found.line("running_variance").text == "biased"
