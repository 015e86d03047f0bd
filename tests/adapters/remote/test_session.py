"""Sessions in a worker return the same as sessions in this process."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from normspec.adapters.remote.replies import answers
from normspec.adapters.targets import resolve
from normspec.adapters.trait import Trait
from normspec.adapters.worker.server import Server
from normspec.spec.errors import (
    BadOutput,
    DeviceUnavailable,
    LayoutNotApplicable,
    MissingGradient,
    TargetLost,
    TargetRaised,
    Unsupported,
)
from normspec.spec.operators import OPERATORS
from normspec.spec.parts import Part

LAYER_NORM = {"eps": 0.1, "axes": (-1,)}


@pytest.fixture
def here():
    """The NumPy target in this process."""
    return resolve("numpy")


@pytest.fixture
def there(opened):
    """The same session, in a worker."""
    return opened("numpy")


def _session(target, operator):
    binding = next(binding for binding in target.bindings if binding.operator == operator)
    return target.session(binding)


def _same(here, there):
    assert here.keys() == there.keys()
    for name, value in here.items():
        assert (value is None) == (there[name] is None)
        if value is not None:
            assert value.dtype == there[name].dtype
            np.testing.assert_array_equal(value, there[name])


def test_the_target_is_described_alike(here, there):
    """Name, version, dtypes, layouts, devices and every binding are those of the target itself."""
    for name in ("name", "framework", "version", "dtypes", "layouts"):
        assert getattr(there, name) == getattr(here, name)
    assert there.devices() == here.devices()
    for mine, other in zip(here.bindings, there.bindings, strict=True):
        for name in ("operator", "name", "conventions", "reasons", "known_violations", "unsupported_keywords"):
            assert getattr(mine, name) == getattr(other, name)
        assert (mine.seams is None, mine.defaults is None) == (other.seams is None, other.defaults is None)
        shape, settings = (4, 7), {"eps": 0.1, "axes": (0,)}
        assert mine.accepts(shape, settings) == other.accepts(shape, settings)


def test_whether_there_are_modes_crosses_over(function):
    """A worker tells that its target has modes of training and inference."""
    plain = "def layer_norm(x, gamma, beta, *, eps, axes):\n    return x\n"
    layer = """
        class Layer:
            def __call__(self, x, gamma, beta, *, eps, axes):
                return x
            train = eval = forward = __call__
        layer_norm = Layer()
    """
    assert not function(plain).bindings[0].has_modes
    assert function(layer).bindings[0].has_modes


def test_traits_cross_over(there, monkeypatch):
    """The traits that a worker measures of its platform arrive here, and are measured once."""
    said = [{"dtype": "float32", "key": "subnormals", "value": "flushed", "evidence": "products become 0"}]
    asked = []
    monkeypatch.setattr(there.host, "aside", lambda message: asked.append(message) or {"traits": said})
    assert (
        there.traits("cpu") == there.traits("cpu") == (Trait("float32", "subnormals", "flushed", "products become 0"),)
    )
    assert asked == [{"do": "traits", "device": "cpu"}]
    assert answers(asked[0], {"traits": said})
    assert not answers(asked[0], {"traits": [{**said[0], "value": "sometimes"}]})


def test_traits_are_those_of_the_target(here, there):
    """The worker measures what this process does."""
    assert there.traits("cpu") == here.traits("cpu")


def test_devices_that_there_are_not(there):
    """The error of the worker is that of the target."""
    there.check_device("cpu")
    with pytest.raises(DeviceUnavailable, match="cuda"):
        there.check_device("cuda:7")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_first_order(here, there, inputs, dtype):
    """Outputs, gradients, inputs and cotangent, bit for bit."""
    inputs = {name: value.astype(dtype) for name, value in inputs.items()}
    g = inputs["x"][::-1].copy()
    found = []
    for target in (here, there):
        evaluation = _session(target, "layer_norm").start({**inputs, "beta": None}, LAYER_NORM)
        pulled = evaluation.pull(g)
        found.append([evaluation.outputs(), pulled.gradients(), evaluation.inputs(), {"g": pulled.cotangent()}])
    for one, other in zip(*found, strict=True):
        _same(one, other)


def test_calls_of_which_nothing_is_kept(here, there, inputs):
    """call and vjp give, for each of so many calls, what a start and a pull give; vjp, if asked, the outputs too."""
    for target in (here, there):
        session = _session(target, "layer_norm")
        evaluation = session.start(inputs, LAYER_NORM)
        outputs = session.call(inputs, LAYER_NORM, times=3)
        tracked, gradients = session.vjp(inputs, LAYER_NORM, inputs["x"], times=3, outputs=True)
        assert len(outputs) == len(gradients) == 3
        _same(tracked, evaluation.outputs())
        assert session.vjp(inputs, LAYER_NORM, inputs["x"])[0] == {}
        for one, other in zip(outputs, gradients, strict=True):
            _same(one, evaluation.outputs())
            _same(other, evaluation.pull(inputs["x"]).gradients())
    _, (alone,) = _session(there, "layer_norm").vjp(inputs, LAYER_NORM, inputs["x"], wrt=("beta",))
    assert [name for name, value in alone.items() if value is not None] == ["beta"]


def test_each_of_so_many_calls_is_made(function, inputs):
    """A function that changes from call to call shows that within one request, too."""
    target = function("""
        calls = [0]

        def layer_norm(x, gamma, beta, *, eps, axes):
            calls[0] += 1
            return x + calls[0]
    """)
    session = target.session(target.bindings[0])
    found = [outputs["y"][0, 0] - inputs["x"][0, 0] for outputs in session.call(inputs, LAYER_NORM, times=3)]
    assert np.allclose(np.diff(found), 1.0)


@pytest.mark.parametrize("count", [0, 2, 4])
def test_another_number_of_results_is_no_answer(count):
    """The number of results must be the number of calls requested."""
    request = {"do": "call", "times": 3}
    reply = {"outputs": [{"y": np.zeros(2)}] * count}
    assert not answers(request, reply, ("y",))
    assert answers(request, {"outputs": [{"y": np.zeros(2)}] * 3}, ("y",))


def test_values_of_another_kind_are_no_answer():
    """An array in place of a mapping, or a list in place of a dtype, is wrong and nothing worse."""
    assert not answers({"do": "call", "times": 1}, {"outputs": [np.zeros(2)]}, ("y",))
    trait = {"dtype": "float32", "key": "subnormals", "value": "flushed", "evidence": "measured"}
    assert answers({"do": "traits"}, {"traits": [trait]})
    assert not answers({"do": "traits"}, {"traits": [{**trait, "dtype": ["float32"]}]})
    assert not answers({"do": "open"}, {"protocol": np.ones(2)})


def test_a_worker_turns_from_one_unit_to_the_next(monkeypatch, inputs):
    """Compiled code is dropped when the operator or the dtype changes, and at no other time."""
    server = Server()
    server.answer({"do": "open", "target": "numpy"})
    forgotten = []
    monkeypatch.setattr(type(server._opened_target().bridge), "free_compiled", lambda self: forgotten.append(1))
    narrow = {name: value.astype(np.float32) for name, value in inputs.items()}
    for arrays, turns in ((inputs, 1), (inputs, 1), (narrow, 2), (inputs, 3)):
        request = {"inputs": arrays, "settings": LAYER_NORM, "conventions": {}, "mode": "training", "times": 1}
        server.answer({"do": "call", "binding": 0, "device": "cpu", **request})
        assert len(forgotten) == turns


def test_forward_mode_and_second_order(here, there, inputs):
    """So are tangents and second-order gradients."""
    x, tangents = inputs["x"], {"x": inputs["x"] ** 2, "beta": inputs["gamma"]}
    mine, other = (_session(target, "layer_norm") for target in (here, there))
    np.testing.assert_array_equal(mine.jvp(inputs, LAYER_NORM, tangents), other.jvp(inputs, LAYER_NORM, tangents))
    _same(*(one.vjp_vjp(inputs, LAYER_NORM, x, {"x": x, "gamma": None}) for one in (mine, other)))


def test_batch_norm_by_its_old_momentum(inputs, function, there):
    """The momentum convention that the judge holds a session to is the worker's."""
    x = inputs["x"]
    running = {"running_mean": np.zeros(7), "running_var": np.ones(7)}
    settings = {"eps": 0.1, "momentum": 0.25, "training": True, "channel_axis": -1}
    session = _session(there, "batch_norm")
    new = session.start({**inputs, **running}, settings).outputs()["new_running_mean"]
    np.testing.assert_allclose(new, 0.25 * x.mean(0))
    session.conventions = {"momentum": "old"}
    old = session.start({**inputs, **running}, settings).outputs()["new_running_mean"]
    np.testing.assert_allclose(old, 0.75 * x.mean(0))


def test_parts_and_their_leaves(here, there, inputs):
    """Parts are made in the worker, inner ones too, and their leaves have gradients."""
    x, w = inputs["x"], np.arange(49.0).reshape(7, 7) / 50
    cascade = Part("cascade", inner=(Part("linear", ("branch.w",)), Part("scaled", number=0.5)))
    handed = {"x": x, "branch.w": w}
    found = []
    for target in (here, there):
        evaluation = _session(target, "residual").start(handed, {}, parts={"branch": cascade, "shortcut": None})
        found.append((evaluation.outputs(), evaluation.pull(x).gradients()))
    for one, other in zip(*found, strict=True):
        _same(one, other)
    assert found[1][1]["branch.w"] is not None
    branches = (Part("identity"), Part("negated"))
    handed = {"x": x, "logits": np.array([[0.5, 1.0]] * 2)[0]}
    found = [_session(t, "mhc").start(handed, {}, parts={"branches": branches}).outputs() for t in (here, there)]
    _same(*found)


def test_a_part_that_is_the_operator_itself_comes_alike(here, there, inputs):
    """The worker calls its own binding: outputs and gradients are those of a session in this process."""
    handed = {**inputs, "sublayer.gamma": inputs["gamma"] * 2, "sublayer.beta": inputs["beta"] - 1}
    itself = Part("itself", ("sublayer.gamma", "sublayer.beta"), 0.5, (Part("square"),))
    found = [
        _session(target, "post_norm").vjp(handed, {"eps": 0.1}, inputs["x"], parts={"sublayer": itself}, outputs=True)
        for target in (here, there)
    ]
    _same(found[0][0], found[1][0])
    _same(found[0][1][0], found[1][1][0])


def test_the_calls_of_parts_are_recorded(there, inputs):
    """The recorder has each call, and reads its tensors again in the worker."""
    session = _session(there, "residual")
    parts = {"branch": Part("negated")}
    recorder = session.start({"x": inputs["x"]}, {}, parts=parts, record=True).recorder
    assert [call.role for call in recorder.calls] == ["branch"]
    call = recorder.calls[0]
    np.testing.assert_array_equal(call.handed[0], inputs["x"])
    np.testing.assert_array_equal(recorder.handed_now(call)[0], inputs["x"])
    np.testing.assert_array_equal(recorder.returned_now(call), -inputs["x"])
    assert recorder.lists_are_whole()
    assert session.start({"x": inputs["x"]}, {}, parts=parts).recorder is None


def test_a_buffer_that_is_used_again_shows(function, inputs):
    """Results are as they came until the target is called again, and then as they are in the worker."""
    target = function("""
        buffer = np.zeros((4, 7))

        def layer_norm(x, gamma, beta, *, eps, axes):
            buffer[...] = x
            return buffer

        def layer_norm_vjp(x, gamma, beta, g, *, eps, axes):
            buffer[...] = -1.0
            gradients = np.zeros_like(x), np.zeros_like(gamma), np.zeros_like(beta)
            return gradients
    """)
    session = target.session(target.bindings[0])
    first = session.start(inputs, LAYER_NORM)
    kept = first.outputs()["y"]
    kept[:] = 9.0  # the caller owns the result
    np.testing.assert_array_equal(first.outputs()["y"], inputs["x"])
    second = session.start({**inputs, "x": inputs["x"] + 1.0}, LAYER_NORM)
    np.testing.assert_array_equal(first.outputs()["y"], inputs["x"] + 1.0)
    second.pull(inputs["x"])
    assert (first.outputs()["y"] == -1.0).all()


def test_gradients_are_read_late(function, inputs):
    """So are gradients, the cotangent and the inputs, which a target may change meanwhile."""
    target = function("""
        shared = np.zeros((4, 7))

        def layer_norm(x, gamma, beta, *, eps, axes):
            x[...] = 5.0
            return x + 1.0

        def layer_norm_vjp(x, gamma, beta, g, *, eps, axes):
            shared[...] = g
            g[...] = 7.0
            return shared, np.zeros_like(gamma), np.zeros_like(beta)
    """)
    session = target.session(target.bindings[0])
    evaluation = session.start(inputs, LAYER_NORM)
    assert (evaluation.inputs()["x"] == 5.0).all()
    first = evaluation.pull(np.full((4, 7), 2.0), keep=True)
    assert (first.gradients()["x"] == 2.0).all()
    assert (first.cotangent() == 7.0).all()
    second = evaluation.pull(np.full((4, 7), 3.0))
    assert (first.gradients()["x"] == 3.0).all()
    assert (second.gradients()["x"] == 3.0).all()


def test_how_calls_end(function, inputs):
    """Exceptions, wrong results and missing gradients arrive as they would here."""
    target = function("""
        def layer_norm(x, gamma, beta, *, eps, axes):
            if eps == 1:
                raise ValueError("eps is one")
            if eps == 2:
                raise KeyboardInterrupt
            if eps == 3:
                raise SystemExit("away")
            return None if eps == 4 else x

        def layer_norm_vjp(x, gamma, beta, g, *, eps, axes):
            if eps == 5:
                raise NotImplementedError("later")
            return g, None, g
    """)
    session = target.session(target.bindings[0])

    def start(eps):
        return session.start(inputs, {"eps": eps, "axes": (-1,)})

    for eps, words in ((1, "ValueError: eps is one"), (2, "KeyboardInterrupt"), (3, "SystemExit: away")):
        with pytest.raises(TargetRaised, match=words):
            start(eps)
    with pytest.raises(BadOutput, match="y is None"):
        start(4)
    with pytest.raises(Unsupported, match="later"):
        start(5).pull(inputs["x"])
    with pytest.raises(MissingGradient, match="no gradient reaches gamma") as caught:
        start(6).pull(inputs["x"])
    assert caught.value.missing == ("gamma",)
    with pytest.raises(Unsupported, match="inference"):
        session.start(inputs, LAYER_NORM, mode="inference").pull(inputs["x"])
    assert target.host.generation == 0


def test_layouts(there, inputs):
    """Every layout of the target can be passed; one that cannot be made is reported as here."""
    session = _session(there, "layer_norm")
    of_three = {
        "channels_last",
        "channels_last_sliced",
        "leading_transposed",
        "middle_transposed",
        "sliced_second_axis",
    }  # two axes are too few
    for layout in set(there.layouts) - {"zero_stride", *of_three}:
        y = session.start(inputs, LAYER_NORM, layouts={"x": layout}).outputs()["y"]
        np.testing.assert_array_equal(y, session.start(inputs, LAYER_NORM).outputs()["y"])
        session.start(inputs, LAYER_NORM).pull(inputs["x"], layout)
    with pytest.raises(LayoutNotApplicable):
        session.start(inputs, LAYER_NORM, layouts={"x": "zero_stride"})


def test_what_is_no_longer_needed_is_released(function, inputs):
    """The worker forgets whatever the judge no longer needs: memory does not grow with the calls."""
    target = function("""
        alive = set()

        class Kept(np.ndarray):
            def __del__(self):
                alive.discard(id(self))

        def layer_norm(x, gamma, beta, *, eps, axes):
            y = x.view(Kept)
            alive.add(id(y))
            return np.full(x.shape, float(len(alive))) if eps == 1 else y
    """)
    session = target.session(target.bindings[0])
    kept = [session.start(inputs, LAYER_NORM) for _ in range(3)]
    for _ in range(20):
        session.start(inputs, LAYER_NORM)
    alive = session.start(inputs, {"eps": 1, "axes": (-1,)}).outputs()["y"]
    assert alive[0, 0] <= len(kept) + 2


def test_several_functions_and_bindings_side_by_side(opened, inputs):
    """Two workers are independent, and one worker holds all bindings of its target."""
    first, second = opened("numpy"), opened("numpy", op=("layer_norm",))
    assert [binding.operator for binding in second.bindings] == ["layer_norm"]
    found = {binding.operator: first.session(binding) for binding in first.bindings}
    assert set(found) == set(OPERATORS)
    y = found["layer_norm"].start(inputs, LAYER_NORM)
    z = found["pre_norm"].start(inputs, {"eps": 0.1}, parts={"sublayer": Part("identity")})
    np.testing.assert_allclose(z.outputs()["y"] - inputs["x"], y.outputs()["y"])
    first.close()
    assert _session(second, "layer_norm").start(inputs, LAYER_NORM).outputs()["y"].shape == (4, 7)
    with pytest.raises(TargetLost, match="was lost meanwhile"):
        y.inputs()


def test_large_arrays(function, inputs):
    """A request and a reply that are larger than a pipe holds pass whole."""
    target = function("def layer_norm(x, gamma, beta, *, eps, axes): return -x")
    x = np.random.Generator(np.random.Philox(2)).normal(size=(300, 1000))
    session = target.session(target.bindings[0])
    y = session.start({"x": x, "gamma": None, "beta": None}, LAYER_NORM).outputs()["y"]
    np.testing.assert_array_equal(y, -x)


def test_the_import_path_is_this_ones(function, inputs, tmp_path, monkeypatch):
    """A module is found in the worker where it is found here, and ahead of another of its name."""
    for folder, number in (("ours", 1.0), ("theirs", 2.0)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "common_name.py").write_text(f"NUMBER = {number}\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "theirs"))
    monkeypatch.syspath_prepend(str(tmp_path / "ours"))
    target = function("""
        import common_name

        def layer_norm(x, gamma, beta, *, eps, axes):
            return x * common_name.NUMBER
    """)
    y = target.session(target.bindings[0]).start(inputs, LAYER_NORM).outputs()["y"]
    np.testing.assert_array_equal(y, inputs["x"])
    assert sys.path[0] == str(tmp_path / "ours")


@pytest.mark.parametrize("fresh", [False, True])
def test_a_second_call_on_the_memory_of_the_first_comes_alike(here, there, inputs, fresh):
    """Its outputs and gradients are those of a session in this process, with a cotangent or without."""
    later = {name: value * -2 for name, value in inputs.items()}
    for g in (None, later["x"]):
        found = [
            _session(target, "layer_norm").recall(inputs, LAYER_NORM, later, g=g, fresh=fresh)
            for target in (here, there)
        ]
        for mine, other in zip(*found, strict=True):
            _same(mine, other)
        assert bool(found[0][1]) is (g is not None)
