"""Options for one target only, and conventions that apply to no operator of a run."""

from __future__ import annotations

import pytest

import normspec
from normspec import Verdict
from normspec.conformance.checks.registry import is_about
from normspec.conformance.requests.per_target import EVERY_TARGET, WrongPerTarget
from normspec.spec.conventions import CONVENTIONS, ensure_about, operators_about
from normspec.spec.errors import UnknownConvention, UnknownFramework, UnknownMode, UnknownOperator, WrongDeclaration
from normspec.spec.operators import OPERATORS

pytestmark = pytest.mark.exhaustive  # it does not depend on the Python version

#: A batch_norm, under another name, whose momentum weighs the old statistics; and a layer_norm without imports.
FUSED = """
def fused(x, gamma, beta, running_mean, running_var, *, eps, momentum, training, channel_axis):
    axes = tuple(axis for axis in range(x.ndim) if axis != channel_axis % x.ndim)
    shape = [1] * x.ndim
    shape[channel_axis] = -1
    mean, var = x.mean(axis=axes, dtype="f8"), x.var(axis=axes, dtype="f8")
    if not training:
        mean, var = running_mean, running_var
    y = (x - mean.reshape(shape)) / (var.reshape(shape) + eps) ** 0.5
    y = y if gamma is None else y * gamma.reshape(shape)
    y = y if beta is None else y + beta.reshape(shape)
    if training:
        running_mean = (momentum * running_mean + (1 - momentum) * mean).astype(running_mean.dtype)
        running_var = (momentum * running_var + (1 - momentum) * var).astype(running_var.dtype)
    return y.astype(x.dtype), running_mean, running_var


def layer_norm(x, gamma, beta, *, eps, axes):
    wide = x.astype("f8")
    y = (wide - wide.mean(axis=axes, keepdims=True)) / (wide.var(axis=axes, keepdims=True) + eps) ** 0.5
    y = y if gamma is None else y * gamma
    return (y if beta is None else y + beta).astype(x.dtype)


def declaring(x, gamma, beta, *, eps, axes):
    return layer_norm(x, gamma, beta, eps=eps, axes=axes)


def bare(x):
    return layer_norm(x, None, None, eps=1e-5, axes=(-1,))


declaring_conventions = {"momentum": "old"}
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """The path of that file."""
    path = tmp_path_factory.mktemp("own") / "mine.py"
    path.write_text(FUSED, encoding="utf-8")
    return path


def check(target, **options):
    """A short run in float32."""
    plain = {"profile": "quick", "dtypes": ("float32",), "cache": False, "only": "[LB]N-[FS]1"}
    return normspec.check(target, **{**plain, **options})


def test_each_target_is_what_is_said_of_it(file):
    """Two functions of a file, of two operators, in one run; the declaration of one is not about the other."""
    fused, plain = f"{file}:fused", f"{file}:layer_norm"
    own = {
        fused: {"op": "batch_norm", "framework": "numpy", "conventions": {"momentum": "old"}, "forward_only": True},
        plain: {"framework": "numpy", "forward_only": True},
    }
    report = check([fused, plain], per_target=own)
    assert report.conforms
    assert {(r.target, r.op) for r in report.results} == {(fused, "batch_norm"), (plain, "layer_norm")}
    assert {s["target"]: dict(s["conventions"]) for s in report.subjects} == {fused: {"momentum": "old"}, plain: {}}
    own[fused] = {**own[fused], "conventions": {}}
    assert {r.target for r in check([fused, plain], per_target=own).failures()} == {fused}


def test_a_mode_is_said_of_one_target(file):
    """If that target is judged only in inference, its running statistics are not requested."""
    own = {f"{file}:fused": {"op": "batch_norm", "framework": "numpy", "mode": "inference"}}
    report = check(f"{file}:fused", per_target=own, only="BN-S*,BN-I1", forward_only=True)
    assert [(r.requirement, r.verdict) for r in report.results] == [("BN-I1", Verdict.PASS)]


def test_what_a_function_has_written_in_is_said_of_it_alone(file):
    """A function with a fixed eps is judged at that eps, in the same run as one that takes any."""
    fixed = {"eps": 1e-5, "axes": -1, "gamma": "none", "beta": "none"}
    own = {f"{file}:bare": {"op": "layer_norm", "fixed": fixed}}
    report = check([f"{file}:bare", f"{file}:layer_norm"], per_target=own, framework="numpy", forward_only=True)
    assert report.conforms
    assert len({r.target for r in report.results}) == 2
    own[f"{file}:bare"]["fixed"] = {**fixed, "eps": 1e-3}
    assert {r.target for r in check(f"{file}:bare", per_target=own, framework="numpy").failures()} == {f"{file}:bare"}


def test_what_is_said_of_the_run_outranks_it(file):
    """The caller's convention overrides the target's own."""
    own = {f"{file}:fused": {"op": "batch_norm", "framework": "numpy", "conventions": {"momentum": "new"}}}
    report = check(f"{file}:fused", per_target=own, conventions={"momentum": "old"}, forward_only=True)
    assert report.conforms


def test_what_is_said_of_every_target_counts_where_it_is_about_it(file):
    """A momentum is no mistake of a layer_norm that it was not said of."""
    own = {EVERY_TARGET: {"conventions": {"momentum": "old"}}}
    report = check(f"{file}:layer_norm", per_target=own, framework="numpy", forward_only=True)
    assert report.conforms
    assert not report.subjects[0]["conventions"]


@pytest.mark.parametrize(
    ("own", "error", "words"),
    [
        ({"numpy": {"ops": "mhc"}}, WrongPerTarget, "did you mean 'op'"),
        ({"numpy": 3}, WrongPerTarget, "give a dict"),
        ({3: {}}, WrongPerTarget, "the name of a target"),
        ("numpy", WrongPerTarget, "give a dict"),
        ({"numpy": {"op": "layernorm"}}, UnknownOperator, "layer_norm"),
        ({"numpy": {"framework": "toch"}}, UnknownFramework, "torch"),
        ({"numpy": {"mode": "train"}}, UnknownMode, "training"),
        ({"numpy": {"conventions": {"momentun": "old"}}}, UnknownConvention, "momentum"),
    ],
)
def test_a_mistake_is_told_before_anything_runs(own, error, words):
    """One error that says what to give."""
    with pytest.raises(error, match=words):
        check("numpy", per_target=own)


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"parameters": {"gamma": "g"}}, WrongDeclaration, r"parameters of .*:layer_norm is about layers"),
        ({"fixed": {"momentum": 0.1}}, WrongDeclaration, r"fixed momentum=0\.1 of .*: layer_norm has no momentum"),
        ({"mode": "inference"}, UnknownMode, r"mode of .*:layer_norm: layer_norm has no modes: leave it out"),
    ],
)
def test_what_is_about_nothing_of_the_target_is_an_error(file, settings, error, words):
    """A setting that its operator lacks is told, as it is where it is an option of the run."""
    with pytest.raises(error, match=words):
        check(f"{file}:layer_norm", per_target={f"{file}:layer_norm": settings}, framework="numpy")


def test_a_mode_of_nothing_that_is_checked_is_an_error(file):
    """One target of several with modes is enough."""
    with pytest.raises(UnknownMode, match=r'^mode="inference": layer_norm has no modes: leave it out'):
        check("numpy", op="layer_norm", mode="inference")
    assert check("numpy", op=("layer_norm", "batch_norm"), mode="inference", only="BN-I1,LN-F1").conforms


# Conventions ----------------------------------------------------------------------------------------------


def test_a_convention_about_no_operator_of_the_run_is_an_error(file):
    """The error names the operators to which it applies; if the run has one of these, there is no error."""
    with pytest.raises(UnknownConvention, match="momentum is about batch_norm, and what is checked is layer_norm"):
        check("numpy", op="layer_norm", conventions={"momentum": "old"}, only="LN-F1")
    own = {f"{file}:layer_norm": {"conventions": {"cast": "last"}}}
    with pytest.raises(UnknownConvention, match=r"cast is about rms_norm, and .*:layer_norm is layer_norm"):
        check(f"{file}:layer_norm", per_target=own, framework="numpy")
    both = ("layer_norm", "batch_norm")
    assert check("numpy", op=both, conventions={"momentum": "new"}, only="LN-F1,BN-S4").conforms


def test_a_function_that_declares_such_a_convention_is_told(file):
    """Declarations next to a function must apply to its operator."""
    with pytest.raises(UnknownConvention, match=r"momentum is about batch_norm, and .*:declaring is layer_norm"):
        check(f"{file}:declaring", op="layer_norm", framework="numpy", only="LN-F1")


@pytest.mark.parametrize("key", CONVENTIONS)
def test_every_convention_is_about_some_operator(key):
    """A convention that applies to one operator is reported for any other."""
    about = operators_about(key)
    assert about
    ensure_about((key,), about, "")
    for name in set(OPERATORS) - set(about):
        with pytest.raises(UnknownConvention):
            ensure_about((key,), (name,), "it is")


def test_what_is_about_float32_parameters_is_about_operators_that_have_some():
    """The convention and the requirement that it is about hold for the same operators."""
    assert operators_about("mixed_dtypes") == tuple(name for name in OPERATORS if is_about("CM-D2", name))
    assert operators_about("single_value") == ("batch_norm", "instance_norm")
