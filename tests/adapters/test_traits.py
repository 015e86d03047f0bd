"""Traits of a platform: what becomes of subnormal numbers there, measured by operations on a few of them."""

from __future__ import annotations

import operator
import sys
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

from normspec.adapters.dtypes import DTYPES
from normspec.adapters.numpy.bridge import NumpyBridge
from normspec.adapters.targets import resolve
from normspec.adapters.trait import Trait
from normspec.adapters.traits import measured
from normspec.adapters.traits_before_import import traits_before_import

SMALLEST = {name: ml_dtypes.finfo(dtype).smallest_normal for name, dtype in DTYPES.items()}


class Lossy(np.ndarray):
    """An array whose subnormal numbers some operations lose, as operands and in results."""

    #: The ufuncs that do, and in which dtypes.
    ufuncs: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        """Flush the inputs, compute, and flush the outputs."""
        plain = [np.asarray(z) for z in inputs]
        if ufunc.__name__ not in self.ufuncs:
            return getattr(ufunc, method)(*plain, **options).view(type(self))
        result = getattr(ufunc, method)(*map(self.flushed, plain), **options)
        return self.flushed(np.asarray(result)).view(type(self))

    @classmethod
    def flushed(cls, z):
        """The array with zeros for its subnormal numbers."""
        name = z.dtype.name
        return np.where(np.abs(z) < SMALLEST[name], np.zeros((), z.dtype), z) if name in cls.formats else z


def lossy(ufuncs, formats):
    """A bridge of arrays that lose their subnormal numbers in these ufuncs and formats."""
    kind = type("Lossy", (Lossy,), {"ufuncs": ufuncs, "formats": formats})

    class LossyBridge(NumpyBridge):
        functions = SimpleNamespace(matmul=operator.matmul)

        def tensor(self, array, layout, device, *, tracked=False):
            return np.array(array).view(kind)

    return LossyBridge()


def test_numpy_keeps_them():
    """In NumPy a subnormal number is a number, in every dtype."""
    assert measured(NumpyBridge(), "cpu") == ()


@pytest.mark.parametrize(
    ("ufuncs", "words"),
    [
        (("multiply", "add", "matmul"), "products, factors, sums, differences, matrix products"),
        (("multiply",), "products, factors"),
        (("add",), "sums, differences"),
        (("matmul",), "matrix products"),
    ],
)
@pytest.mark.parametrize("formats", [("float32", "bfloat16"), ("float16",), ("float64",)])
def test_a_platform_that_loses_them_is_measured_so(ufuncs, words, formats):
    """In the formats in which it does, and with the operations that do."""
    found = {trait.dtype: trait for trait in measured(lossy(ufuncs, formats), "cpu")}
    assert found.keys() == set(formats)
    for trait in found.values():
        assert (trait.key, trait.value) == ("subnormals", "flushed")
        assert trait.evidence == f"{words} below the smallest normal number become 0"


def test_what_raises_is_not_measured():
    """A dtype that the framework cannot multiply has no trait, and is held to the norm; the others are measured."""
    bridge = lossy(("multiply",), ("float32", "float64"))
    plain = bridge.tensor

    def tensor(array, layout, device, *, tracked=False):
        if array.dtype == np.float64:
            raise RuntimeError("no such dtype")
        return plain(array, layout, device)

    bridge.tensor = tensor
    assert [trait.dtype for trait in measured(bridge, "cpu")] == ["float32"]


def test_it_is_measured_once(monkeypatch):
    """A target measures its platform at the first question, and remembers the answer."""
    target, asked = resolve("numpy"), []
    monkeypatch.setattr(NumpyBridge, "own_traits", lambda self, device: asked.append(device) or ())
    assert target.traits("cpu") == target.traits("cpu") == ()
    assert asked == ["cpu"]


FLUSHES = """
from pathlib import Path

import numpy as np

Path(__file__).with_suffix(".imported").touch()


def layer_norm(x, gamma, beta, *, eps, axes):
    return x
"""


def test_what_a_file_does_to_its_process_is_no_trait(monkeypatch, tmp_path):
    """The platform is measured before the file is imported."""
    file = tmp_path / "flushes.py"
    file.write_text(FLUSHES)
    imported = file.with_suffix(".imported")
    lossy = (Trait("float32", "subnormals", "flushed", "lost"),)
    monkeypatch.setattr(NumpyBridge, "own_traits", lambda self, device: lossy if imported.exists() else ())
    target = resolve(f"{file}:layer_norm")
    assert imported.exists()
    assert target.traits("cpu") == target.on("cpu").traits("cpu") == ()


def test_a_module_is_read_without_importing_it(monkeypatch, tmp_path):
    """A module of dotted name is found, and its framework told, before the packages around it are imported."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "__init__.py").write_text("raise RuntimeError")
    (tmp_path / "outside" / "inside.py").write_text("import numpy")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert traits_before_import("outside.inside", None) == {"numpy": ()}
    assert traits_before_import("outside.nowhere", None) == {}
    assert "outside" not in sys.modules
