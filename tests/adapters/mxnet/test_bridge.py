"""MXNet's arrays in the bridge, run in MXNet's own interpreter, which NORMSPEC_MXNET_PYTHON names."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

import normspec

SCRIPT = """
import json
import numpy as np
import mxnet as mx
from mxnet import autograd
from normspec.spec.errors import BadOutput, DeviceUnavailable, LayoutNotApplicable, Unsupported
from normspec.adapters.mxnet import BRIDGE, target

found = {}

def raised(call):
    try:
        call()
    except (BadOutput, DeviceUnavailable, LayoutNotApplicable, Unsupported) as error:
        return str(error)
    return ""

bits = {}
for name in BRIDGE.dtypes:
    dtype = np.dtype(name)
    patterns = np.arange(1 << 16, dtype=f"u{dtype.itemsize}") << (8 * (dtype.itemsize - 2))
    for layout in BRIDGE.layouts:
        got = BRIDGE.array(BRIDGE.tensor(patterns.view(dtype), layout, "cpu"), "y")
        bits[f"{name} {layout}"] = bool((got.view(patterns.dtype) == patterns).all())
found["bits"] = bits
found["layouts"] = list(BRIDGE.layouts)
found["strided"] = raised(lambda: BRIDGE.tensor(np.zeros(3), "strided", "cpu"))
found["devices"] = {name: raised(lambda: BRIDGE.check_device(name)) for name in ("cpu", "cuda", "gpu:99")}
found["outputs"] = [
    raised(lambda: BRIDGE.array(value, "y"))
    for value in (None, np.zeros(3), mx.nd.zeros(3, dtype="int32"), mx.nd.zeros((2, 3)).tostype("csr"))
]

def vjp(call, *arrays, keep=False, times=1):
    inputs = [BRIDGE.tensor(np.array(a), "contiguous", "cpu", tracked=True) for a in arrays]
    with BRIDGE.guarded(3, gradients=True):
        y = call(*inputs)
    results = []
    for _ in range(times):
        g = BRIDGE.tensor(np.array([1.0, 10.0, 100.0]), "contiguous", "cpu")
        with BRIDGE.guarded(3, gradients=True):
            results.append(BRIDGE.vjp(y, inputs, g, keep=keep))
    return [[None if one is None else one.asnumpy().tolist() for one in result] for result in results]

found["vjp"] = vjp(lambda x, w: x * x, [1.0, 2.0, 3.0], [1.0, 1.0, 1.0])
found["twice"] = vjp(lambda x: x * x, [1.0, 2.0, 3.0], keep=True, times=2)
found["untracked"] = vjp(lambda x: mx.nd.zeros(3), [1.0, 2.0, 3.0])
found["inplace"] = vjp(lambda x: x + x + x, [1.0, 2.0, 3.0])

x = BRIDGE.tensor(np.array([1.0, 2.0, 4.0]), "contiguous", "cpu", tracked=True)
g = BRIDGE.tensor(np.array([1.0, 10.0, 100.0]), "contiguous", "cpu", tracked=True)
a = BRIDGE.tensor(np.array([1.0, 1.0, 2.0]), "contiguous", "cpu")
with BRIDGE.guarded(3, gradients=True):
    y = mx.nd.log(x)
    (dx,) = autograd.grad([y], [x], head_grads=[g], create_graph=True, retain_graph=True)
g._fresh_grad = False
autograd.backward([dx], [a])
found["second"] = [x.grad.asnumpy().tolist(), bool(g._fresh_grad), raised(lambda: BRIDGE.vjp_vjp(None, [x], g, [a]))]
found["jvp"] = raised(lambda: BRIDGE.jvp(lambda x: x, [x], [a]))

given = mx.nd.array([5, 6, 7], dtype="float64")
found["replay"] = vjp(lambda x, value: BRIDGE.functions.replay(x, value, given), [1.0, 2.0, 3.0], [4.0, 4.0, 4.0])
with BRIDGE.guarded(1, gradients=True):
    found["modes"] = [autograd.is_recording(), autograd.is_training()]
for training in (True, False):
    with BRIDGE.guarded(1, gradients=False, training=training):
        found["modes"] += [autograd.is_recording(), autograd.is_training()]
found["modes"] += [autograd.is_recording(), autograd.is_training(), mx.util.is_np_shape()]
held = BRIDGE.tensor(np.arange(6.0).reshape(2, 3), "contiguous", "cpu")
found["shifts"] = [BRIDGE.functions.shift(held, k, 0).asnumpy().tolist() for k in (1, -1, 5, 0)]
buffer = BRIDGE.buffer(held)
BRIDGE.write(held, buffer)
found["written"] = buffer.asnumpy().tolist()
print("|" + json.dumps(found))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict:
    """The script's findings, from an environment with only MXNet and NumPy."""
    paths = tmp_path_factory.mktemp("path")
    (paths / "normspec").symlink_to(Path(normspec.__file__).parent, target_is_directory=True)
    done = subprocess.run(
        [os.environ["NORMSPEC_MXNET_PYTHON"], "-B", "-c", SCRIPT],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": str(paths)},
        cwd=paths,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.rpartition("|")[2])


def test_every_bit_survives(found):
    """All patterns of 16 bits, and as many of the wider ones, go there and back, at an odd offset too."""
    assert set(found["bits"]) == {f"{d} {y}" for d in ("float16", "float32", "float64") for y in found["layouts"]}
    assert all(found["bits"].values())


def test_what_mxnet_has_not_is_refused(found):
    """A layout, a device, a result of another kind, and forward mode: each with its reason."""
    assert found["strided"] == "mxnet has no layout 'strided'"
    assert found["devices"]["cpu"] == ""
    assert found["devices"]["cuda"] == "mxnet knows no device 'cuda': use cpu, gpu or gpu:N"
    assert "finds" in found["devices"]["gpu:99"]
    assert found["outputs"] == [
        "y is None, not a mxnet.nd.NDArray",
        "y is ndarray, not a mxnet.nd.NDArray",
        "y has dtype int32",
        "y is not a dense array, but of storage type csr",
    ]
    assert found["jvp"] == "mxnet has no forward-mode derivatives"


def test_gradients(found):
    """None where none reaches an input; the same again where the graph is kept; sums over several uses."""
    assert found["vjp"] == [[[2.0, 40.0, 600.0], None]]
    assert found["twice"] == [[[2.0, 40.0, 600.0]]] * 2
    assert found["untracked"] == [[None]]
    assert found["inplace"] == [[[3.0, 30.0, 300.0]]]


def test_second_order(found):
    """MXNet has the gradient of log's gradient in x, and none in the cotangent: no vjp of a vjp can be made of it."""
    in_x, in_cotangent, said = found["second"]
    assert in_x == [-1.0, -2.5, -12.5]
    assert in_cotangent is False
    assert said == "mxnet does not differentiate a gradient with respect to its cotangent"


def test_replay(found):
    """The cotangent of x is the given one, that of the value is the one that comes back."""
    assert found["replay"] == [[[5.0, 6.0, 7.0], [1.0, 10.0, 100.0]]]


def test_the_modes_are_put_back(found):
    """Recording where gradients are tracked, training as it is requested, and neither afterwards."""
    assert found["modes"] == [True, True, False, True, False, False, False, False, False]


def test_what_parts_are_made_of(found):
    """Shifts fill with zeros, also beyond the whole length, and writes reach the buffer."""
    rows = [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    none = [0.0] * 3
    assert found["shifts"] == [[rows[1], none], [none, rows[0]], [none, none], rows]
    assert found["written"] == rows
