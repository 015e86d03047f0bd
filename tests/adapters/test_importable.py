"""Callables by name: only what another process would import as the very same has one."""

from __future__ import annotations

import functools
import importlib
import subprocess
import sys
import textwrap

import pytest

from normspec.adapters.importable import importable_name


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Write modules into a folder on the import path, and import one of them."""
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)

    def package(name: str = "importable_layers", source: str = "def layer_norm(x): return x", **more: str):
        for module, text in {name: source, **more}.items():
            path = tmp_path.joinpath(*module.split(".")).with_suffix(".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text), encoding="utf-8")
        importlib.invalidate_caches()
        return importlib.import_module(name)

    yield package
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_a_function_of_a_module(package):
    """It is named by its module and its name."""
    assert importable_name(package().layer_norm) == "importable_layers:layer_norm"


def test_functions_of_packages(package, tmp_path):
    """With or without an __init__.py, at any depth; and an alias is named by where it is defined."""
    (tmp_path / "whole").mkdir()
    (tmp_path / "whole" / "__init__.py").write_text("from .inner import layer_norm as exported\n")
    module = package("whole.inner")
    assert importable_name(module.layer_norm) == "whole.inner:layer_norm"
    assert importable_name(sys.modules["whole"].exported) == "whole.inner:layer_norm"
    assert importable_name(package("spaces.deep.inner").layer_norm) == "spaces.deep.inner:layer_norm"


def test_what_has_no_name(package):
    """Closures, lambdas, partials, methods, objects, builtins and decorated copies have none."""
    module = package(
        source="""
        import functools

        def layer_norm(x): return x

        def made():
            def layer_norm(x): return x
            return layer_norm

        unnamed = lambda x: x
        partial = functools.partial(layer_norm)

        class Layer:
            def __call__(self, x): return x
            def method(self, x): return x
            @staticmethod
            def static(x): return x

        layer = Layer()
        """
    )
    for thing in (
        module.made(), module.unnamed, module.partial, module.layer, module.layer.method, module.Layer.static,
        module.Layer, len, functools.lru_cache(module.layer_norm), 3, None,
    ):  # fmt: skip
        assert importable_name(thing) is None
    wrapper = functools.wraps(module.layer_norm)(lambda x: -x)
    assert importable_name(wrapper) is None


def test_what_was_changed_since_it_was_imported(package):
    """A function that was replaced, or was given attributes such as a gradient, exists only in this process."""
    module = package()
    before = module.layer_norm
    module.layer_norm = lambda x: -x
    assert importable_name(before) is None
    module.layer_norm = before
    assert importable_name(before) == "importable_layers:layer_norm"
    before.vjp = lambda *_: None
    assert importable_name(before) is None


def test_a_gradient_that_was_put_beside_it_later(package):
    """So does one whose module was given NAME_vjp from elsewhere."""
    module = package()
    module.layer_norm_vjp = lambda *_: None
    assert importable_name(module.layer_norm) is None
    other = package("with_gradient", "def layer_norm(x): return x\ndef layer_norm_vjp(x): return x")
    assert importable_name(other.layer_norm) == "with_gradient:layer_norm"


def test_a_module_that_is_found_elsewhere(package, tmp_path, monkeypatch):
    """If the import path has another file of this name first, or none any more, another process would find that."""
    module = package()
    other = tmp_path / "other"
    other.mkdir()
    (other / "importable_layers.py").write_text("def layer_norm(x): return -x")
    monkeypatch.syspath_prepend(str(other))
    assert importable_name(module.layer_norm) is None
    monkeypatch.setattr(sys, "path", [str(other / "nowhere")])
    assert importable_name(module.layer_norm) is None


def test_modules_that_are_no_files(package):
    """A function made by exec, or of a module that no longer exists, has no name."""
    space = {"__name__": "made_by_exec"}
    exec("def layer_norm(x): return x", space)
    assert importable_name(space["layer_norm"]) is None
    module = package()
    function = module.layer_norm
    del sys.modules["importable_layers"]
    assert importable_name(function) is None
    function.__module__ = None
    assert importable_name(function) is None


def test_a_script_has_none(tmp_path):
    """A function of __main__ would be another __main__'s in another process."""
    script = tmp_path / "script.py"
    script.write_text(
        "from normspec.adapters.importable import importable_name\n"
        "def layer_norm(x): return x\n"
        "assert importable_name(layer_norm) is None\n"
    )
    assert subprocess.run([sys.executable, str(script)], check=False).returncode == 0


def test_a_name_leads_to_the_very_same_function(package, tmp_path):
    """Another process with this import path finds the function by the name that the judge's `resolve` takes."""
    name = importable_name(package().layer_norm)
    module, _, function = name.partition(":")
    code = f"import sys; sys.path[:] = sys.argv[1:]; import {module} as m; print(m.__file__, m.{function}.__name__)"
    done = subprocess.run([sys.executable, "-c", code, *sys.path], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(tmp_path / "importable_layers.py"), "layer_norm"]
