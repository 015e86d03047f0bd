"""JAX conforms with its declarations, each of which is needed; the user's own functions are judged correctly."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import pytest

from normspec import Verdict
from normspec.adapters.jax import target
from normspec.adapters.targets import resolve

from .few import PLAIN, SHOWING, only, run

TARGET = target()

#: A binding, a convention that it declares, and a requirement and a dtype in which that shows.
DECLARED = [
    ("jax.nn.standardize(x)", "variance_algorithm", "LN-F8", "float32"),
    ("jax.nn.standardize(x)", "storage", "LN-F1", "bfloat16"),
    ('jax.nn.standardize(x, algorithm="stable")', "storage", "LN-F1", "bfloat16"),
    ("jax.nn.standardize(x, mean=jnp.mean(x), variance=jnp.var(x))", "storage", "BN-F1", "bfloat16"),
    ("jax x + sublayer(jax.nn.standardize(x))", "variance_algorithm", "PR-F1", "float32"),
    ("jax x + sublayer(jax.nn.standardize(x))", "storage", "PR-F1", "bfloat16"),
    ("jax jax.nn.standardize(x + sublayer(x))", "variance_algorithm", "PO-F1", "float32"),
    ("jax jax.nn.standardize(x + sublayer(x))", "storage", "PO-F1", "bfloat16"),
    ("jax H * t + x * (1 - t)", "storage", "HW-F1", "bfloat16"),
    ("jax x + einsum(softmax(logits), stack(H))", "storage", "MH-F1", "bfloat16"),
]


@pytest.mark.parametrize("name", [binding.name for binding in TARGET.bindings])
def test_a_first_look(name):
    """Each binding passes the plain requirements, and nothing of it is left unjudged."""
    report = run(only(TARGET, name), "float32", PLAIN)
    assert report.failures() == ()
    assert report.errors() == ()
    assert {result.verdict for result in report.results} <= {Verdict.PASS, Verdict.DEVIATES, Verdict.NOT_EXERCISED}


def test_every_declaration_is_tested():
    """Each convention of each binding is in the list."""
    declared = {(binding.name, key) for binding in TARGET.bindings for key in binding.conventions}
    assert declared == {(name, key) for name, key, _, _ in DECLARED}


@pytest.mark.parametrize(("name", "convention", "requirement", "dtype"), DECLARED)
def test_a_declaration_is_needed_and_enough(name, convention, requirement, dtype):
    """Without the declaration the requirement is violated, and with it met."""
    showing = SHOWING.get(convention, {})
    (without,) = run(only(TARGET, name, without=convention), dtype, [requirement], **showing).results
    (declared,) = run(only(TARGET, name), dtype, [requirement], **showing).results
    assert (without.verdict, declared.verdict) == (Verdict.FAIL, Verdict.DEVIATES)


@pytest.mark.parametrize("binding", TARGET.bindings, ids=lambda binding: binding.name)
def test_every_declaration_has_a_reason_and_a_source(binding):
    """Each convention and each expected deviation says why, with a link."""
    assert set(binding.reasons) == set(binding.conventions)
    assert all("https://" in reason for reason in binding.reasons.values())
    assert all(one.links and all("https://" in link for link in one.links) for one in binding.known_violations)


# The user's own functions ---------------------------------------------------------------------------------


def _norm(x, gamma, beta, *, eps, axes, misplaced=False):
    d = x - jnp.mean(x, axes, keepdims=True)
    variance = jnp.mean(d * d, axes, keepdims=True)
    y = d / (jnp.sqrt(variance) + eps) if misplaced else d * jax.lax.rsqrt(variance + eps)
    y = y if gamma is None else y * gamma
    return y if beta is None else y + beta


# Not each with each: every operation of every shape is compiled.
@pytest.mark.parametrize(("misplaced", "compiled"), [(True, False), (False, True)])
def test_a_misplaced_eps_is_found(misplaced, compiled):
    """A function that adds eps outside the root fails, and the sound one, jitted, passes."""
    function = partial(_norm, misplaced=misplaced)
    if compiled:
        function = jax.jit(function, static_argnames=("axes",))
    report = run(resolve(function, op="layer_norm", framework="jax"), "float32", ["LN-F1", "LN-F3", "LN-G1"])
    assert report.errors() == ()
    verdicts = {result.requirement: result.verdict for result in report.results}
    if misplaced:
        assert verdicts["LN-F3"] is verdicts["LN-G1"] is Verdict.FAIL
    else:
        assert set(verdicts.values()) <= {Verdict.PASS, Verdict.DEVIATES}  # XLA's flushing is measured


@jax.custom_vjp
def _centred(x):
    return x - jnp.mean(x, -1, keepdims=True)


# The mistake: the mean's own share of the gradient is left out.
_centred.defvjp(lambda x: (_centred(x), None), lambda saved, g: (g,))


def test_a_wrong_rule_is_found():
    """A custom_vjp that forgets a term fails only in its gradient, and has no forward mode, which is no violation."""

    def layer_norm(x, gamma, beta, *, eps, axes):
        d = _centred(x.reshape(*x.shape[: x.ndim - len(axes)], -1))
        y = (d * jax.lax.rsqrt(jnp.mean(d * d, -1, keepdims=True) + eps)).reshape(x.shape)
        y = y if gamma is None else y * gamma
        return y if beta is None else y + beta

    report = run(resolve(layer_norm, op="layer_norm", framework="jax"), "float32", ["LN-F1", "LN-G1", "LN-G10"])
    verdicts = {result.requirement: result.verdict for result in report.results}
    assert verdicts.pop("LN-F1") in (Verdict.PASS, Verdict.DEVIATES)  # XLA's flushing is measured
    assert verdicts == {"LN-G1": Verdict.FAIL, "LN-G10": Verdict.UNSUPPORTED}
