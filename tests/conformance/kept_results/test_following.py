"""A target's files are found by reading it, and anything that cannot be followed is reported."""

from __future__ import annotations

import importlib.machinery
import os
import re
import sys
from pathlib import Path

import pytest

from normspec.conformance.kept_results.following import sources_of_target
from normspec.conformance.kept_results.installed import Installed
from normspec.conformance.kept_results.runtime_environment import runtime_environment

PLAIN = "import numpy as np\n\n\ndef layer_norm(x, gamma, beta, *, eps, axes):\n    return x\n"


def written(folder: Path, **sources: str) -> str:
    """Files of a folder, by their names without the ending; the target in `mine`."""
    for name, source in sources.items():
        path = folder / f"{name.replace('__of__', '/')}.py"
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(source)
    return f"{folder / 'mine.py'}:layer_norm"


def names(target: str) -> set[str]:
    """The files that a target is followed to, by name."""
    return {file.name for file in sources_of_target(target).files}


def test_modules_of_its_own_folder_are_followed(tmp_path):
    """Imports at the top, within functions, of and within packages, are followed; NumPy is reported as a package."""
    mine = written(
        tmp_path,
        mine=PLAIN + "    from helping import helper\n    import package.inner\n",
        helping="from further import *\n".replace("*", "thing"),
        further="thing = 1\n",
        package__of____init__="",
        package__of__inner="from .beside import one\nfrom . import other\n",
        package__of__beside="one = 1\n",
        package__of__other="import math\n",
        unrelated="1 / 0\n",
    )
    assert sources_of_target(mine).obstacle == ""
    assert names(mine) == {"mine.py", "helping.py", "further.py", "__init__.py", "inner.py", "beside.py", "other.py"}
    assert list(sources_of_target(mine).packages) == ["numpy"]


def test_a_module_is_followed_by_its_name(tmp_path, monkeypatch):
    """package.module:NAME is found from the working directory, as a worker finds it; the package's own file counts."""
    written(tmp_path, kernels__of____init__="", kernels__of__norm=PLAIN)
    monkeypatch.chdir(tmp_path)
    assert names("kernels.norm:layer_norm") == {"__init__.py", "norm.py"}
    assert sources_of_target("nowhere.at_all:layer_norm").obstacle == "nowhere.at_all is not found"


def test_a_module_that_hides_one_of_the_standard_library_is_followed(tmp_path, monkeypatch):
    """Not only next to the target: whatever comes before the standard library on the import path hides its modules."""
    mine = written(tmp_path, mine=f"import statistics\n{PLAIN}")
    assert names(mine) == {"mine.py"}
    written(tmp_path / "before", statistics="def mean(x): return 0\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "before"), *sys.path])
    assert names(mine) == {"mine.py", "statistics.py"}


#: Sources that cannot be followed, and the words that say why.
OBSTACLES = [
    ("import os\n", "imports os"),
    ("import torch.utils.cpp_extension\n", "imports torch.utils.cpp_extension"),
    ("from torch.utils import cpp_extension\n", "imports cpp_extension of torch.utils"),
    ("import torch\nw = torch.utils.cpp_extension\n", "uses cpp_extension"),
    ("w = np.load('weights.npy')\n", "uses load"),
    ("w = open('weights')\n", "uses open"),
    ("w = input()\n", "uses input"),
    ("w = hash('a')\n", "uses hash"),  # another number in each process
    ("w = np.fromfile('w')\n", "uses fromfile"),
    ("w = np.DataSource()\n", "uses DataSource"),
    ("w = np.datetime64('now')\n", "uses datetime64"),
    ("w = np.testing.runstring('w', {})\n", "uses runstring"),
    ("w = np.__dict__['lo' 'ad']\n", "uses __dict__"),
    ("w = __builtins__['op' 'en']\n", "uses __builtins__"),
    ("w = ().__class__.__base__.__subclasses__()\n", "uses __subclasses__"),
    ("import operator\nw = operator.methodcaller('load', 'w')(np)\n", "uses methodcaller"),
    ("import torch\nw = torch.ops.load_library('w')\n", "uses load_library"),
    ("import torch\nw = torch.ops.mine.norm\n", "uses norm|uses mine|uses ops"),
    ("import torch\nw = torch.cuda.is_available()\n", "uses is_available"),
    ("import torch\nw = torch.compile(abs)\n", "uses compile"),
    ("import torch\ntorch.distributed.init_process_group()\n", "uses init_process_group"),
    ("import triton\nw = triton.autotune([], [])\n", "uses autotune"),
    ("w = exec('w')\n", "uses exec"),
    ("def own(open=open):\n    return open('weights')\n", "uses open"),
    ("class A:\n    def eval(self): ...\n\n\nw = eval('w')\n", "uses eval"),
    ("def own(getattr=getattr):\n    return getattr(np, 'load')\n", "uses getattr of a name that is not known"),
    ("w = getattr(np, 'load')\n", "uses getattr of a name that is not known"),
    ("name = 'load'\nw = getattr(np, name)\n", "uses getattr of a name that is not known"),
    ("w = map(getattr, [np], ['load'])\n", "uses getattr of a name that is not known"),
    ("match np:\n    case object(load=w):\n        w('w')\n", "uses load"),
    ("class A:\n    def load(self): ...\n\n\nn = np\nw = n.load('w')\n", "uses load"),
    ("def mine(): ...\n\n\nw = np.mine()\n", "uses mine"),
    ("from transformers import AutoModel\n", "imports AutoModel of transformers"),
    ("w = __file__\n", "uses __file__"),
    ("w = __import__('x')\n", "uses __import__"),
    ("from numpy import *\n", r"imports \* of numpy"),
    ("this is no Python\n", "cannot be read"),
    ("import native\n", "is compiled"),
    ("import click\n", "imports click, and what that reaches is not known"),
    ("from importlib import import_module\n", "imports importlib"),
]


@pytest.mark.parametrize(("source", "why"), OBSTACLES)
def test_what_cannot_be_followed_is_told(tmp_path, source, why):
    """A name that may reach files, variables, clocks, compilers or the network, in whatever way, is an obstacle."""
    (tmp_path / f"native{importlib.machinery.EXTENSION_SUFFIXES[0]}").write_bytes(b"")
    for mine in (
        written(tmp_path, mine=f"import numpy as np\n{source}{PLAIN}"),
        written(tmp_path, mine=f"import helping\n{PLAIN}", helping=f"import numpy as np\n{source}"),
    ):
        assert re.search(why, sources_of_target(mine).obstacle), sources_of_target(mine).obstacle


def test_a_file_in_the_home_of_nobody_cannot_be_read():
    """`~USER` stays as it is where there is no such user."""
    assert sources_of_target("~nosuchuser/mine.py:layer_norm").obstacle == "mine.py cannot be read"


def test_ordinary_sources_are_followed(tmp_path):
    """Texts, a file's own names, those of a module next to it, and loads of a kernel's memory reach nothing."""
    source = '''"""See a/b and c.py."""
import math
import helping
import triton
import triton.language as tl
import torch
from collections.abc import Sequence
from dataclasses import dataclass
from torch import nn
from torch.nn import functional as F


@triton.jit
def kernel(spread, broadcast, BLOCK: tl.constexpr):
    """Of kernels/norm.cu."""
    tl.store(spread, tl.load(broadcast + tl.arange(0, BLOCK)))


class Norm(nn.Module):
    def __init__(self, width, eps=1e-5):
        super().__init__()
        self.width, self.eps, self.own_scale = width, eps, nn.Parameter(torch.ones(width))

    def forward(self, x):
        path_length = getattr(x, "shape", None)[-1]
        if path_length != self.width:
            raise ValueError("x must have 2 axes, not 1.5: see norm.cu")
        return self.normed(x) * helping.factor(x)

    def normed(self, x):
        return F.layer_norm(x, (self.width,), self.own_scale, None, self.eps) + math.fsum([0.0])
'''
    mine = written(tmp_path, mine=source + PLAIN, helping="def factor(x):\n    return 1\n")
    assert sources_of_target(mine).obstacle == ""


@pytest.mark.parametrize(
    "file", ["repository/kernel.py", "layer_norm_view.py", "manual_layer_norm.py", "group_norm_interleaved.py"]
)
def test_examples_are_followed(checkout, file):
    """Kernels as people write them, in NumPy and in PyTorch."""
    assert sources_of_target(f"{checkout / 'examples' / file}:layer_norm").obstacle == ""


def test_an_edit_within_an_installed_package_is_noticed(tmp_path, monkeypatch):
    """A file that is changed, added or taken away after the installation counts; one that is as recorded does not."""
    site, package = tmp_path / "site-packages", tmp_path / "site-packages" / "kernels"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("a = 1\n")
    (package / "norm.py").write_text("b = 1\n")
    record = site / "kernels-1.0.dist-info" / "RECORD"
    record.parent.mkdir()
    record.write_text("kernels/__init__.py,,6\nkernels/norm.py,,6\n")
    other = site / "before-1.0.dist-info" / "RECORD"  # it has a folder of that name too, further below
    other.parent.mkdir()
    other.write_text("before/kernels/__init__.py,,6\n")
    monkeypatch.syspath_prepend(site)

    def now() -> list[str]:
        told, obstacle = Installed.now().for_key(["kernels"])
        assert obstacle == ""
        return told

    first = now()
    (package / "norm.py").write_text("b = 22\n")
    changed = now()
    (package / "more.py").write_text("")
    more = now()
    (package / "more.py").unlink()
    (package / "norm.py").unlink()
    assert len({*map(tuple, (first, changed, more, now()))}) == 4
    (package / "norm.py").write_text("b = 1\n")
    installed = record.stat().st_mtime
    os.utime(package / "norm.py", (installed, installed))
    assert now() == first
    record.write_text(record.read_text() + "kernels/other.py,,1\n")
    assert now() != first
    (package / ".#norm.py").symlink_to("somebody@somewhere")  # as Emacs marks a file that is open
    assert now()
    assert Installed.now().for_key(["no_such_package"])[1] == "no_such_package is used where it was built"


def test_a_link_to_itself_is_a_file_that_cannot_be_read(tmp_path):
    """It ends nothing: the run itself says what is wrong with the target."""
    (tmp_path / "mine.py").symlink_to("mine.py")
    assert sources_of_target(f"{tmp_path / 'mine.py'}:layer_norm").obstacle == "mine.py cannot be read"


@pytest.mark.parametrize("package", ["keras", "tensorflow"])
def test_the_configuration_of_keras_counts(tmp_path, monkeypatch, package):
    """It holds the default eps and dtype of layers; TensorFlow's tf.keras reads it too."""
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    before = runtime_environment(["numpy", package], "cpu")
    (tmp_path / "keras.json").write_text('{"epsilon": 0.001}')
    assert runtime_environment(["numpy", package], "cpu") != before


def test_variables_of_what_is_imported_count(monkeypatch):
    """OMP_NUM_THREADS always, TORCH_... where torch is imported, and the terminal's width never."""
    before = runtime_environment(["torch"], "cpu")
    monkeypatch.setenv("COLUMNS", "31")
    assert runtime_environment(["torch"], "cpu") == before
    for name in ("TORCH_SOMETHING", "OMP_SOMETHING"):
        with monkeypatch.context() as patch:
            patch.setenv(name, "1")
            assert runtime_environment(["torch"], "cpu") != before
    with monkeypatch.context() as patch:
        patch.setenv("TORCH_SOMETHING", "1")
        assert runtime_environment(["numpy"], "cpu") == runtime_environment(["numpy"], "cpu")
        assert f"{sys.version}" in runtime_environment(["numpy"], "cpu")[0]
