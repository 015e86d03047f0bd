"""Shared by all tests: the frameworks that this environment must have, and the place of the checkout."""

from __future__ import annotations

import ast
import functools
import importlib.util
import os
import re
import shutil
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from normspec.adapters.remote.launching import environment_of_a_worker

#: Runs pytest inside a test, which the tests of our own plugin do.
pytest_plugins = ["pytester"]

#: Set by tox to the frameworks of an environment. If it is not set, whatever is installed counts.
FRAMEWORKS = os.environ.get("NORMSPEC_FRAMEWORKS")

#: Names of test folders whose tests need a package that not every environment has.
FOLDERS = ("torch", "transformers", "tensorflow", "keras", "jax", "flax", "equinox", "onnx", "mxnet", "cluster", "page")

#: The interpreter under which MXNet runs.
MXNET_PYTHON = os.environ.get("NORMSPEC_MXNET_PYTHON")

#: Makes pytest load our plugin. Without an installed wheel there is no entry point, so the plugin is named.
PLUGIN = (
    []
    if any(one.value == "normspec.testing.plugin" for one in metadata.entry_points(group="pytest11"))
    else ["-p", "normspec.testing.plugin"]
)

#: The browser that the page of a report is tested in.
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def _installed(framework: str) -> bool:
    if framework == "mxnet":
        return MXNET_PYTHON is not None and Path(MXNET_PYTHON).exists()
    if framework == "page" and CHROMIUM is None:
        return False
    several = {
        "onnx": ("onnx", "onnxruntime"),
        "cluster": ("distributed",),
        "page": ("jinja2", "playwright", "axe_core_python"),
    }
    packages = several.get(framework, (framework,))
    return all(importlib.util.find_spec(package) is not None for package in packages)


def _wanted(framework: str) -> bool:
    if FRAMEWORKS is not None:
        return framework in FRAMEWORKS.split()
    return _installed(framework)


def pytest_configure(config: pytest.Config) -> None:
    """Stop at once where a framework that this environment is about is not installed: no test is skipped for that."""
    if "NORMSPEC_CACHE" not in os.environ:  # the processes of xdist share it
        kept = tempfile.TemporaryDirectory(prefix="normspec-cache-", ignore_cleanup_errors=True)
        config.add_cleanup(kept.cleanup)
        os.environ["NORMSPEC_CACHE"] = kept.name
    os.environ["NORMSPEC_RESULTS"] = "none"  # so that tests judge and do not reuse results
    for name, value in environment_of_a_worker().items():
        if name.startswith("JAX_"):  # a test compiles nothing that another test, or a worker, has compiled before
            os.environ.setdefault(name, value)
    config.addinivalue_line("markers", "torch: needs PyTorch, and runs only where the environment has it")
    config.addinivalue_line("markers", "exhaustive: long, and what it shows does not depend on the Python version")
    config.addinivalue_line("markers", "campaign: takes many minutes, and is run by hand: pytest -m campaign")
    config.addinivalue_line("markers", "nightly: one more of a kind that each run has one of: tox -e nightly runs it")
    for framework in (FRAMEWORKS or "").split():
        if not _installed(framework):
            raise pytest.UsageError(f"NORMSPEC_FRAMEWORKS names {framework}, which cannot be imported")


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out folders of frameworks that are not this environment's: `tests/<room>/torch/` and so on."""
    inside = collection_path.relative_to(Path(__file__).parent).parts
    return True if any(name in inside and not _wanted(name) for name in FOLDERS) else None


@pytest.hookimpl(optionalhook=True)  # pytest-xdist may not be there
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """
    Send the tests of a file that share an expensive object to one process of `-n`: each process would make it again.

    (With pytest 9.2 and pytest-xdist 3.8 the marks for `--dist loadgroup` have no effect.)
    """
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file, _, test = nodeid.partition("::")
            return file if test.partition("[")[0] in _sharing(config.rootpath / file) else nodeid

    return Scheduling(config, log) if config.getoption("dist") == "load" else None


@functools.cache
def _sharing(file: Path) -> frozenset[str]:
    """The tests of a file that take a fixture of it that is made once for all of them."""
    functions = [one for one in ast.parse(file.read_text(encoding="utf-8")).body if isinstance(one, ast.FunctionDef)]
    made_once = {one.name for one in functions if any("scope='module'" in ast.unparse(d) for d in one.decorator_list)}
    return frozenset(one.name for one in functions if made_once & {argument.arg for argument in one.args.args})


@pytest.hookimpl(tryfirst=True)  # before -m looks at the marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests about PyTorch, skip them without PyTorch, and leave out tests that only `-m` selects."""
    for item in items:
        if {"torch", "transformers"} & set(item.path.relative_to(Path(__file__).parent).parts):
            item.add_marker(pytest.mark.torch)
        if item.get_closest_marker("torch") and not _wanted("torch"):
            item.add_marker(pytest.mark.skip(reason="this environment is not about PyTorch"))
    # Not by `-m "not campaign"` in the settings: any other `-m` would take its place, and let the campaigns in.
    for mark in {"campaign", "nightly"} - set(re.findall(r"\w+", config.getoption("markexpr"))):
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker(mark)])
        items[:] = [item for item in items if not item.get_closest_marker(mark)]


@pytest.fixture(scope="session")
def checkout() -> Path:
    """The folder of the checkout: the source that the tests belong to, not the package that they import."""
    return Path(__file__).parent.parent
