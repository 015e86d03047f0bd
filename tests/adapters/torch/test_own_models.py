"""The normalisation layers of a model: found by their classes, one of each kind, named by their paths."""

from __future__ import annotations

import attrs
import pytest
import torch
from torch import nn

import normspec
from normspec.adapters.declarations import Declarations
from normspec.adapters.targets import resolve
from normspec.spec.errors import WrongDeclaration, WrongSignature

LAYERS = Declarations(layers=True)


class LayerNormOfTwo(nn.LayerNorm):
    """A layer that takes more than x."""

    def forward(self, input, other):
        return super().forward(input + other)


class Wrapped(nn.Module):
    """A layer whose class is named after the layer inside it."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(6)


def test_one_layer_of_each_kind_is_found():
    """A layer of another size or eps, or without a bias, is another kind; each kind lists its layers."""
    model = nn.Sequential(
        nn.LayerNorm(8), nn.Linear(8, 6), nn.LayerNorm(6), nn.LayerNorm(6, eps=1e-6), nn.LayerNorm(6, bias=False),
        nn.Sequential(nn.BatchNorm1d(6)), nn.LayerNorm(6),
    )  # fmt: skip
    found = resolve(model, declared=LAYERS).bindings
    assert [(one.operator, one.name) for one in found] == [
        ("layer_norm", "0"), ("layer_norm", "2 and 6"), ("layer_norm", "3"), ("layer_norm", "4"),
        ("batch_norm", "5.0"),
    ]  # fmt: skip
    assert [one.fixed.eps for one in found] == [1e-5, 1e-5, 1e-6, 1e-5, 1e-5]
    assert [one.layers for one in found] == [("0",), ("2", "6"), ("3",), ("4",), ("5.0",)]


def test_operators_choose_among_them():
    """--op leaves the others out."""
    model = nn.Sequential(nn.LayerNorm(8), nn.BatchNorm1d(8))
    assert [one.name for one in resolve(model, op="batch_norm", declared=LAYERS).bindings] == ["1"]


def test_of_a_layer_within_another_the_inner_one_counts():
    """The one that normalises."""
    model = nn.Sequential(Wrapped())
    assert [one.name for one in resolve(model, declared=LAYERS).bindings] == ["0.norm"]


def test_a_layer_that_takes_more_than_x_is_told():
    """It declines every call, and says why; no layer of a model is passed over."""
    (binding,) = resolve(nn.Sequential(LayerNormOfTwo(6)), declared=LAYERS).bindings
    assert "has to take only x" in (binding.accepts((3, 6), {}) or "")


class Norm(nn.LayerNorm):
    """Normalises, and does not say what, but for its base."""


class SomeNorm(nn.Module):
    """Normalises, and does not say what."""

    def forward(self, x):
        return (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-5)


class Alpha(nn.Module):
    """A LayerNorm whose gamma has an unusual name."""

    def __init__(self):
        super().__init__()
        self.alpha = nn.Parameter(torch.ones(6))

    def forward(self, x):
        return nn.functional.layer_norm(x, (6,), self.alpha)


def test_a_norm_of_unknown_kind_is_told():
    """It stands in the report as a layer that could not be called; its base may say which it is."""
    known, unknown = resolve(nn.Sequential(Norm(6), SomeNorm()), declared=LAYERS).bindings
    assert (known.operator, known.name, unknown.name) == ("layer_norm", "0", "1")
    assert "its class SomeNorm does not say which operator it is" in (unknown.accepts((3, 6), {}) or "")


def test_a_model_with_a_layer_that_was_not_judged_does_not_conform():
    """Status 3, however well the others do."""
    report = normspec.check(nn.Sequential(nn.LayerNorm(6), SomeNorm()), layers=True, profile="quick", only="LN-F1")
    assert (report.conforms, report.exit_status, report.unjudged_layers) == (False, 3, ("1",))
    assert "Nothing was checked of 1." in str(report)


def test_a_layer_of_one_model_is_not_judged_by_its_namesake_in_another():
    """Both are called 1; status 3 for the first."""
    models = [nn.Sequential(nn.LayerNorm(6), one) for one in (SomeNorm(), nn.LayerNorm(8))]
    found = [normspec.check(one, layers=True, profile="quick", only="LN-F1") for one in models]
    both = attrs.evolve(
        found[0],
        subjects=(*found[0].subjects, *({**one, "target": "other"} for one in found[1].subjects)),
        taken=(*found[0].taken, *(attrs.evolve(one, target="other") for one in found[1].taken)),
    )
    assert both.unjudged_layers == ("1",)


class WrapperNorm(nn.Module):
    """Contains the layer that normalises."""

    def __init__(self):
        super().__init__()
        self.inner = nn.LayerNorm(6)


def test_a_wrapper_is_told_by_the_layer_inside_it():
    """Nor is a layer told that does not say what it is, where operators are chosen."""
    assert [one.name for one in resolve(nn.Sequential(WrapperNorm()), declared=LAYERS).bindings] == ["0.inner"]
    model = nn.Sequential(nn.LayerNorm(6), SomeNorm())
    assert [one.name for one in resolve(model, op="layer_norm", declared=LAYERS).bindings] == ["0"]


class LayerNormOfAlpha(Alpha):
    """Its name says what it is."""


def test_a_declared_name_is_about_the_layers_that_have_it():
    """The others have the usual one. If none has it, one line says so."""
    model = nn.Sequential(nn.LayerNorm(6), LayerNormOfAlpha())
    usual, unusual = resolve(model, declared=Declarations(layers=True, parameters={"gamma": "alpha"})).bindings
    assert (usual.accepts((3, 6), {}), unusual.accepts((3, 6), {})) == (None, None)
    with pytest.raises(WrongDeclaration, match=r"no layer of .* has a parameter alfa"):
        resolve(model, declared=Declarations(layers=True, parameters={"gamma": "alfa"}))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (nn.Sequential(nn.Linear(3, 3)), "has no layer whose class is named after one of layer_norm, batch_norm"),
        (nn.Linear, "name a model, or a function without arguments that makes one"),
        (lambda: 3, "--layers is for a model"),
    ],
)
def test_what_has_no_layers_is_told(model, message):
    """One line says what to name."""
    with pytest.raises(WrongSignature, match=message):
        resolve(model, declared=LAYERS)
