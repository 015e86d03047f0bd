"""Layers of Equinox as they are: mapped over a batch, with the parameters and the state that are lent to them."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest

from normspec.adapters.declarations import Declarations
from normspec.adapters.equinox import KITS
from normspec.adapters.layers.names import HANDED
from normspec.adapters.targets import resolve
from normspec.spec.errors import WrongSignature

from ..own_layer_checks import agrees


def batch_norm(channels, eps, momentum):
    """Make a BatchNorm that takes the statistics of the batch."""
    return eqx.nn.BatchNorm(channels, "rows", eps=eps, momentum=momentum, mode="batch")


class Counted(eqx.Module):
    """BatchNorm over the last axis, with state indices of its own."""

    weight: jax.Array
    moving_mean: eqx.nn.StateIndex
    moving_var: eqx.nn.StateIndex
    calls: eqx.nn.StateIndex
    inference: bool

    def __init__(self, channels):
        self.inference = False
        self.weight = jnp.ones(channels)
        self.moving_mean = eqx.nn.StateIndex(jnp.zeros(channels))
        self.moving_var = eqx.nn.StateIndex(jnp.ones(channels))
        self.calls = eqx.nn.StateIndex(jnp.array(0))

    def __call__(self, x, state):
        mean, var = state.get(self.moving_mean), state.get(self.moving_var)
        if not self.inference:
            batch = jax.lax.pmean(x.mean(1), "batch")
            spread = jax.lax.pmean(jnp.square(x - batch[:, None]).mean(1), "batch")
            state = state.set(self.moving_mean, 0.75 * mean + 0.25 * batch)
            state = state.set(self.moving_var, 0.75 * var + 0.25 * spread)
            state = state.set(self.calls, state.get(self.calls) + 1)
            mean, var = batch, spread
        y = (x - mean[:, None]) * jax.lax.rsqrt(var[:, None] + 1e-3) * self.weight[:, None]
        return y, state


class WholeBatch(eqx.Module):
    """LayerNorm that takes a batch of rows, but not a single row."""

    weight: jax.Array
    bias: jax.Array
    eps: float

    def __init__(self, dim, eps):
        self.weight, self.bias, self.eps = jnp.ones(dim), jnp.zeros(dim), eps

    def __call__(self, x):
        rows = x.reshape(x.shape[0], -1, x.shape[-1])
        centred = rows - rows.mean(2, keepdims=True)
        y = centred * jax.lax.rsqrt(jnp.square(centred).mean(2, keepdims=True) + self.eps) * self.weight + self.bias
        return y.reshape(x.shape[0], x.shape[1], -1) if x.ndim == 3 else y[:, 0]


@pytest.mark.parametrize("norm", ["LayerNorm", "RMSNorm", "GroupNorm"])
def test_a_class_of_equinox_is_its_operator(norm):
    """With the parameters that are lent to it, one sample at a time."""
    binding = agrees(getattr(eqx.nn, norm))
    assert binding.fixed.eps is None
    assert binding.known_violations


@pytest.mark.parametrize("layer", [batch_norm, eqx.nn.make_with_state(batch_norm)(6, 1e-5, 0.9)], ids=["made", "pair"])
def test_batch_norm_has_its_state_lent_to_it(layer):
    """In training and in inference, whatever its axis is called; a pair of layer and state counts as a layer."""
    binding = agrees(layer)
    assert binding.operator == "batch_norm"
    assert binding.conventions["momentum"] == "old"


def test_a_state_of_ones_own_is_found_by_the_names_of_its_places():
    """State that is no statistic has its initial value in each call."""
    binding = agrees(Counted, op="batch_norm")
    assert binding.fixed.momentum == 0.25
    assert binding.fixed.eps == pytest.approx(1e-3)


def test_a_layer_that_takes_a_whole_batch_is_handed_one():
    """Where no call with one sample works."""
    assert agrees(WholeBatch, op="layer_norm").call.takes_batch


def test_a_state_that_is_not_there_is_asked_for():
    """A layer from make_with_state without its state is refused."""
    layer, _ = eqx.nn.make_with_state(batch_norm)(6, 1e-5, 0.9)
    with pytest.raises(WrongSignature, match="name the pair of layer and state"):
        resolve(layer)


def test_the_layers_of_a_model_are_found():
    """Each kind by its path."""
    model = eqx.nn.Sequential([eqx.nn.LayerNorm(6), eqx.nn.Linear(6, 6, key=jax.random.key(0)), eqx.nn.LayerNorm(6)])
    (binding,) = resolve(model, declared=Declarations(layers=True)).bindings
    assert binding.name == "layers.0 and layers.2"


@pytest.mark.filterwarnings("ignore:When .eqx.nn.BatchNorm")
def test_a_mode_that_equinox_is_not_judged_in_declares_nothing():
    """BatchNorm's default normalises by running statistics, and follows no convention of ours."""
    (binding,) = resolve(eqx.nn.BatchNorm).bindings
    assert not binding.conventions


def test_a_layer_of_a_model_whose_state_is_not_with_it_declines_every_call():
    """It says so, while the other layers are judged."""
    model = eqx.nn.make_with_state(lambda: eqx.nn.Sequential([eqx.nn.LayerNorm(6), batch_norm(6, 1e-5, 0.9)]))()
    norm, batch = resolve(model, declared=Declarations(layers=True)).bindings
    assert norm.accepts((3, 6), {}) is None
    assert "its state is not with it" in (batch.accepts((3, 6), {}) or "")


def test_a_factory_gets_the_random_key_that_it_takes():
    """Equinox calls this argument key."""

    def rms_norm(shape, *, key):
        assert jnp.issubdtype(key.dtype, jax.dtypes.prng_key)
        return eqx.nn.RMSNorm(shape, use_bias=False)

    assert agrees(rms_norm).fixed.eps == pytest.approx(1e-5)


def test_what_equinox_passes_makes_a_factory():
    """The names that are looked for are those that its kit passes."""
    assert set(HANDED["equinox"]) == KITS[0].handed("float32").keys()
