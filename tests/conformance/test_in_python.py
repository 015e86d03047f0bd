"""Errors in Python name arguments, and errors of the command name options."""

from __future__ import annotations

import inspect

import pytest

import normspec
from normspec.conformance import api
from normspec.conformance.command_line.root import main
from normspec.conformance.in_python import in_python
from normspec.spec.errors import NormspecError


def scaled(x, gamma, beta, *, eps, axes):
    """A function whose name is that of no operator."""
    return x


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("--fixed axis=-1: no such name", 'fixed={"axis": -1}: no such name'),
        ("say so: --fixed gamma=none,eps=1e-5", 'say so: fixed={"gamma": "none", "eps": 1e-5}'),
        ("say which it is, --parameters gamma=g", 'say which it is, parameters={"gamma": "g"}'),
        ("if they have other names, say --parameters", "if they have other names, say parameters="),
        ("--layout nchw: no such layout", 'layout="nchw": no such layout'),
        ("--layout: residual has no channels", "layout: residual has no channels"),
        ("(if it is written for numpy, add --framework numpy)", '(if it is written for numpy, add framework="numpy")'),
        ("leave --device out, or use --device cpu", 'leave device= out, or use device="cpu"'),
        ("say so with --op, one of a, b", "say so with op=, one of a, b"),
        ("--layers is for a model", "layers=True is for a model"),
        ("--operator and --opt are no options", "--operator and --opt are no options"),
    ],
)
def test_an_option_is_told_as_the_argument(message, told):
    """With its value as Python writes it."""
    assert in_python(message) == told


@pytest.mark.parametrize(
    ("arguments", "options", "told"),
    [
        ({"fixed": {"axis": -1}}, ["--fixed", "axis=-1"], ('fixed={"axis": -1}: no such name', "--fixed axis=-1: no")),
        ({"layout": "nchw"}, ["--layout", "nchw"], ('layout="nchw": no such', "--layout nchw: no such")),
        ({"device": "cuda"}, ["--device", "cuda"], ("leave device= out", "leave --device out")),
    ],
)
def test_each_caller_is_told_in_its_own_words(arguments, options, told, capsys):
    """`normspec.check` and `normspec check` say the same about the same mistake."""
    with pytest.raises(NormspecError) as caught:
        normspec.check("numpy", **arguments)
    assert told[0] in str(caught.value) and "--" not in str(caught.value)
    assert main(["check", "numpy", *options]) == 2
    assert told[1] in capsys.readouterr().err


def test_the_functions_keep_their_names_and_signatures():
    """Whoever looks at them sees those of the room that they are from."""
    assert normspec.check is normspec.check
    assert inspect.signature(normspec.check) == inspect.signature(api.check)
    assert normspec.check.__doc__ == api.check.__doc__
    with pytest.raises(NormspecError, match="Say so with op=, one of layer_norm"):
        normspec.check(scaled)
