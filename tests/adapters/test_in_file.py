"""Definitions named after operators are found in a file without running it."""

from __future__ import annotations

import pytest

from normspec.adapters.in_file import names_a_file, targets_in
from normspec.spec.errors import NotImportable, UnknownOperator, UnknownTarget

FILE = """
raise SystemExit("it is read, and not run")
from somewhere import rms_norm
group_norm = 3

def helper(x): return x

def layer_norm(x, gamma, beta, *, eps, axes): return x

layer_norm_conventions = {"storage": "H2"}

try:
    import fast
    batch_norm = fast.compiled(helper)
except ImportError:
    def batch_norm(*arguments, **settings): return arguments
else:
    class instance_norm: pass

def outer():
    def residual(x): return x
"""


@pytest.fixture
def file(tmp_path):
    """The path of that file."""
    path = tmp_path / "mine.py"
    path.write_text(FILE, encoding="utf-8")
    return path


def test_what_a_file_defines_under_the_name_of_an_operator_is_found(file):
    """Functions, classes and made objects, also in branches; but no imports, numbers, or functions of functions."""
    assert targets_in(str(file)) == tuple(f"{file}:{name}" for name in ("layer_norm", "batch_norm", "instance_norm"))


LAYERS = """
import torch
import keras as k
from torch import nn
from torch.nn import BatchNorm2d as BN, Module
import flax.linen
from flax import nnx
import equinox as eqx

class FusedLayerNorm(torch.nn.Module): pass
class WithAct(BN): pass
class Frozen(WithAct): pass
class _RMSNorm(Module): pass
class T5_RMSNorm(_RMSNorm): pass
class RMSNormalization2d(k.layers.Layer): pass
class Group_Norm(nnx.Module): pass
if torch:
    class InstanceNorm(flax.linen.Module): pass
class LayerNorm(eqx.Module): pass

class Block(Module): pass
class LayerNormGRU(nn.Module): pass
class LayerNormFunction(torch.autograd.Function): pass
class BatchNorm: pass
class Model(nn.Module): pass
layer_norm = FusedLayerNorm(3)
"""


def test_classes_of_layers_are_found_by_what_they_derive_from(tmp_path):
    """Classes that clearly show their operator, by themselves or by a base class."""
    path = tmp_path / "layers.py"
    path.write_text(LAYERS, encoding="utf-8")
    found = [one.rpartition(":")[2] for one in targets_in(str(path))]
    names = ["FusedLayerNorm", "WithAct", "Frozen", "T5_RMSNorm", "RMSNormalization2d", "Group_Norm", "InstanceNorm"]
    assert found == [*names, "LayerNorm", "layer_norm"]
    assert [one.rpartition(":")[2] for one in targets_in(str(path), ("batch_norm",))] == ["WithAct", "Frozen"]


def test_in_the_manner_of_kernelbench_the_file_tells_the_operator(tmp_path):
    """The file is named after what its Model and ModelNew are."""
    path = tmp_path / "40_LayerNorm.py"
    path.write_text("from torch import nn\nclass Model(nn.Module): pass\nclass ModelNew(nn.Module): pass\n", "utf-8")
    assert targets_in(str(path)) == (f"{path}:Model", f"{path}:ModelNew")


def test_operators_narrow_it_down(file):
    """Only the named operators, whatever else the file has."""
    assert targets_in(str(file), ("batch_norm",)) == (f"{file}:batch_norm",)


def test_where_none_is_found_the_functions_are_listed(file):
    """And it says how one is named."""
    with pytest.raises(UnknownTarget) as caught:
        targets_in(str(file), ("mhc",))
    assert "helper, layer_norm" in str(caught.value)
    assert f"{file}:helper --op mhc" in str(caught.value)


def test_an_operator_that_does_not_exist_is_told_as_that(file):
    """The word after --op is wrong, and not the file."""
    with pytest.raises(UnknownOperator, match="unknown operator 'layer_nrom'; did you mean 'layer_norm'"):
        targets_in(str(file), ("layer_nrom",))


@pytest.mark.parametrize(
    ("text", "words"), [("def f(:\n", "line 1: SyntaxError"), ("x = '\0'", "mine.py"), (None, "does not exist")]
)
def test_a_file_that_cannot_be_read_is_told(file, text, words):
    """One line, as where a function in it is named."""
    file.unlink()
    if text is not None:
        file.write_text(text, encoding="utf-8")
    with pytest.raises(NotImportable, match=words):
        targets_in(str(file))


@pytest.mark.parametrize(
    ("target", "is_one"),
    [
        ("mine.py", True),
        ("a/mine.py:", True),
        (r"C:\mine.py", True),
        ("mine.py:f", False),
        ("torch", False),
        ("a.b:f", False),
    ],
)
def test_a_file_is_told_from_a_function_in_it(target, is_one):
    """By the text after the last colon, except for a drive."""
    assert names_a_file(target) is is_one


def test_a_file_that_only_imports_the_function_is_told_where_to_look(tmp_path):
    """The message speaks of the import, and says how the imported function is named."""
    path = tmp_path / "imports.py"
    path.write_text("from elsewhere import plain as layer_norm")
    with pytest.raises(UnknownTarget) as raised:
        targets_in(str(path))
    assert "defines no layer_norm, and imports it" in str(raised.value)
    assert f"{path}:layer_norm" in str(raised.value)
