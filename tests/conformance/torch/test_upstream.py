"""A function around PyTorch's layer_norm is told what is PyTorch's own; a function of its own is not."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

import normspec


def layer_norm(x, gamma, beta, *, eps, axes):
    """PyTorch's own function."""
    return functional.layer_norm(x, x.shape[x.ndim - len(axes) :], gamma, beta, eps)


def detached(x, gamma, beta, *, eps, axes):
    """The same formula; 1/sqrt(var + eps) is a constant of the derivative."""
    d = x - x.mean(axes, keepdim=True)
    xhat = d * torch.rsqrt(d.square().mean(axes, keepdim=True) + eps).detach()
    y = xhat if gamma is None else xhat * gamma
    return y if beta is None else y + beta


@pytest.mark.parametrize(("function", "expected"), [(layer_norm, "torch.nn.functional.layer_norm"), (detached, None)])
def test_a_violation_of_a_layer_of_the_framework_is_told_as_that(function, expected):
    """LN-G13 fails in both; only the first returns PyTorch's wrong number."""
    report = normspec.check(function, op="layer_norm", dtypes=["float64"], profile="quick", only="LN-G13")
    (found,) = report.failures()
    assert (found.upstream and found.upstream.binding) == expected


def test_a_worker_tells_it_too(tmp_path):
    """As on the command line; the report that is read back has it."""
    (tmp_path / "around.py").write_text(
        "import torch\n\n\ndef layer_norm(x, gamma, beta, *, eps, axes):\n"
        "    return torch.nn.functional.layer_norm(x, x.shape[x.ndim - len(axes) :], gamma, beta, eps)\n"
    )
    report = normspec.check(
        f"{tmp_path / 'around.py'}:layer_norm", dtypes=["float64"], profile="quick", only="LN-G13", jobs=2
    )
    (tmp_path / "report.json").write_text(report.to_json())
    for one in (report, normspec.load_report(tmp_path / "report.json")):
        (found,) = one.failures()
        assert found.upstream is not None
        assert found.upstream.binding == "torch.nn.functional.layer_norm"


def instance_norm(x, gamma, beta, *, eps, channel_axis):
    """PyTorch's own function, which refuses one value a group."""
    return functional.instance_norm(x.movedim(channel_axis, 1), weight=gamma, bias=beta, eps=eps).movedim(
        1, channel_axis
    )


def test_a_declaration_is_found_beside_what_is_violated_upstream():
    """No declaration allows the framework's mistakes; the one that allows all else is named, with what is left."""
    report = normspec.check(
        instance_norm, op="instance_norm", dtypes=["float32"], profile="quick", only=["IN-E1", "IN-F*", "IN-G13"]
    )
    found = {one.requirement: one.upstream is not None for one in report.failures()}
    assert found == {"IN-E1": False, "IN-G13": True}
    assert report.subjects[0]["passes_under"] == ("single_value=error",)
    assert "instance_norm, but for IN-G13, as upstream" in " ".join(str(report).split())


@pytest.mark.nightly
def test_what_killed_the_process_is_left_out_of_a_declaration(tmp_path):
    """
    GN-G11 is lost: PyTorch ends the process where x is frozen and has its channels last.

    The declaration that allows PyTorch's variance is found, with what it does not cover.
    """
    (tmp_path / "around.py").write_text(
        "from torch.nn import functional\n\n\ndef group_norm(x, gamma, beta, *, eps, groups, channel_axis):\n"
        "    y = functional.group_norm(x.movedim(channel_axis, 1), groups, gamma, beta, eps)\n"
        "    return y.movedim(1, channel_axis)\n"
    )
    report = normspec.check(
        f"{tmp_path / 'around.py'}:group_norm", dtypes=["float32"], profile="quick", only=["GN-F*", "GN-G11", "CM-T3"]
    )
    assert [one.requirement for one in report.results if one.verdict == "error"] == ["GN-G11"]
    assert not any("CM-T3" in cause.explains for cause in report.causes)
    assert report.subjects[0]["passes_under"] == ("variance_algorithm=one-pass",)
    told = " ".join(str(report).split())
    assert "group_norm, but for CM-T3, as upstream; GN-G11 could not be judged" in told
