"""Flax's layers, given directly: what they take is found out, and their parameters are lent to them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen, nnx

from normspec.adapters.declarations import Declarations
from normspec.adapters.flax import BRIDGE
from normspec.adapters.flax.own_nnx_layers import NnxKit
from normspec.adapters.layers.names import HANDED
from normspec.adapters.targets import resolve
from normspec.spec.errors import Unsupported, WrongSignature

from ..own_layer_checks import agrees


class Wrapped(nnx.Module):
    """A layer with one of Flax's within it, and an argument that says whether it is trained."""

    def __init__(self, channels, *, rngs):
        self.norm = nnx.BatchNorm(channels, rngs=rngs)

    def __call__(self, x, train: bool):
        return self.norm(x, use_running_average=not train)


class Compact(linen.Module):
    """LayerNorm with a norm of Flax's within it, and a field that says whether it is trained."""

    train: bool = True

    @linen.compact
    def __call__(self, x):
        return linen.BatchNorm(use_running_average=not self.train)(x)


class Branching(nnx.Module):
    """RMSNorm that asks for values, so that it cannot be compiled."""

    def __init__(self, dim, eps):
        self.weight, self.eps = nnx.Param(jnp.ones(dim)), eps

    def __call__(self, x):
        if jnp.max(jnp.abs(x)) > 1e30:
            return x
        return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + self.eps) * self.weight


@pytest.mark.parametrize("layer", [nnx.LayerNorm, nnx.RMSNorm, nnx.InstanceNorm, linen.GroupNorm, linen.BatchNorm])
def test_a_class_of_flax_is_its_operator(layer):
    """With the parameters that are lent to it, in the conventions of Flax's own binding."""
    binding = agrees(layer)
    assert binding.fixed.eps is None
    assert binding.conventions["storage"] in ("H1", "native")


@pytest.mark.parametrize(
    "layer", [nnx.BatchNorm(6, momentum=0.9, rngs=nnx.Rngs(0)), linen.BatchNorm(momentum=0.9)], ids=["nnx", "linen"]
)
def test_an_instance_is_taken_as_it_is(layer):
    """A module of linen has no size of its own, and without dtype= either returns the widest one."""
    binding = agrees(layer)
    assert binding.fixed.eps == 1e-5
    assert binding.fixed.momentum == pytest.approx(0.1)
    assert binding.fixed.channels == (6 if isinstance(layer, nnx.Module) else None)
    assert binding.conventions["mixed_dtypes"] == "promoted"


@pytest.mark.parametrize("layer", [Wrapped, Compact()])
def test_a_module_of_ones_own_is_trained_by_the_names_for_it(layer):
    """An argument or a field, in training and in inference."""
    agrees(layer, op="batch_norm")


def test_a_layer_that_asks_for_values_is_not_compiled():
    """It is called an operation at a time."""
    kit, layer = NnxKit(BRIDGE), Branching(2, 0.0)
    x, weight = jnp.array([[3.0, 4.0]]), jnp.array([1.0, 2.0])
    y, _ = kit.run(layer, {"weight": weight}, x, training=True, sample=1)
    np.testing.assert_allclose(y, x / jnp.sqrt(12.5) * weight, rtol=1e-6)


def test_a_layer_keeps_what_it_holds():
    """Parameters and statistics are lent for a call, and the layer's own stay unchanged."""
    layer = nnx.BatchNorm(6, rngs=nnx.Rngs(0))
    lent = {"scale": jnp.full(6, 2.0), "mean": jnp.ones(6), "var": jnp.ones(6)}
    _, after = NnxKit(BRIDGE).run(layer, lent, jnp.ones((3, 6)), training=True, sample=1)
    assert not np.array_equal(after["var"], lent["var"])
    np.testing.assert_array_equal(layer.mean[...], np.zeros(6))
    np.testing.assert_array_equal(layer.scale[...], np.ones(6))


def test_a_layer_with_a_dtype_of_its_own_declines_others():
    """It computes only in that dtype, and says so."""
    (binding,) = resolve(nnx.LayerNorm(4, dtype=jnp.bfloat16, rngs=nnx.Rngs(0))).bindings
    ones, zeros = jnp.ones(4), jnp.zeros(4)
    with pytest.raises(Unsupported, match="computes in bfloat16"):
        binding.call(ones[None], ones, zeros, eps=1e-6, axes=(-1,), mode="training")
    y = binding.call(ones[None].astype(jnp.bfloat16), ones, zeros, eps=1e-6, axes=(-1,), mode="training")
    assert y.dtype == jnp.bfloat16


def test_statistics_of_float32_are_no_mistake_of_a_layer():
    """nnx.BatchNorm without dtype= returns float32 for them, and declines a call only in 16 bits."""
    kit, narrow = NnxKit(BRIDGE), jnp.ones(6, jnp.bfloat16)
    x = jnp.ones((3, 6), jnp.bfloat16)
    lent = {"scale": narrow, "mean": narrow, "var": narrow}
    with pytest.raises(Unsupported, match="its statistics are float32"):
        kit.run(nnx.BatchNorm(6, rngs=nnx.Rngs(0)), lent, x, training=True, sample=1)
    y, _ = kit.run(nnx.BatchNorm(6, dtype=jnp.bfloat16, rngs=nnx.Rngs(0)), lent, x, training=True, sample=1)
    assert y.dtype == jnp.bfloat16


def test_a_layer_with_a_call_of_its_own_follows_nothing_of_flax():
    """Only what Flax itself computes may differ as Flax differs."""

    class Doubled(nnx.LayerNorm):
        def __call__(self, x):
            return super().__call__(x) * 1

    (binding,) = resolve(Doubled).bindings
    assert not binding.conventions


def test_the_layers_of_a_model_are_found():
    """For nnx, each kind by its path; a model of linen has its layers only during a call, and the command says so."""
    model = nnx.Sequential(nnx.LayerNorm(6, rngs=nnx.Rngs(0)), nnx.LayerNorm(6, rngs=nnx.Rngs(0)))
    (binding,) = resolve(model, declared=Declarations(layers=True)).bindings
    assert binding.name == "layers.0 and layers.1"
    with pytest.raises(WrongSignature, match=r"of flax\.linen has its layers only while it is called"):
        resolve(linen.Sequential([linen.LayerNorm()]), declared=Declarations(layers=True))


def test_a_factory_gets_what_flax_alone_has():
    """An argument named rngs makes it a factory, and dtype is that of x."""

    def layer_norm(num_features, epsilon, *, rngs, dtype):
        return nnx.LayerNorm(num_features, epsilon=epsilon, dtype=dtype, rngs=rngs)

    assert agrees(layer_norm).fixed.eps is None


def test_what_flax_passes_makes_a_factory():
    """The names that are looked for are those that its kit passes."""
    assert set(HANDED["flax"]) == NnxKit(BRIDGE).handed("float32").keys()
