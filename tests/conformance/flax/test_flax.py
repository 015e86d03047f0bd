"""The layers of flax conform under what they declare, and every declaration is needed."""

from __future__ import annotations

import pytest

from normspec import Verdict
from normspec.adapters.flax import target

from ..jax.few import PLAIN, SHOWING, only, run

TARGET = target()

#: A binding, a convention that it declares, and a requirement and a dtype in which that shows.
DECLARED = [
    ("flax.nnx.LayerNorm", "variance_algorithm", "LN-F8", "float32"),
    ("flax.nnx.LayerNorm", "storage", "LN-G1", "bfloat16"),
    ("flax.nnx.LayerNorm(use_fast_variance=False)", "storage", "LN-G1", "bfloat16"),
    ("flax.nnx.BatchNorm", "variance_algorithm", "BN-F8", "float32"),
    ("flax.nnx.BatchNorm", "storage", "BN-G4", "bfloat16"),
    ("flax.nnx.BatchNorm", "momentum", "BN-S2", "float32"),
    ("flax.nnx.BatchNorm(use_fast_variance=False)", "storage", "BN-G4", "bfloat16"),
    ("flax.nnx.BatchNorm(use_fast_variance=False)", "momentum", "BN-S2", "float32"),
    ("flax.linen.LayerNorm", "variance_algorithm", "LN-F8", "float32"),
    ("flax.linen.LayerNorm", "storage", "LN-G1", "bfloat16"),
    ("flax.linen.LayerNorm(use_fast_variance=False)", "storage", "LN-G1", "bfloat16"),
    ("flax.linen.BatchNorm", "variance_algorithm", "BN-F8", "float32"),
    ("flax.linen.BatchNorm", "storage", "BN-G1", "bfloat16"),
    ("flax.linen.BatchNorm", "momentum", "BN-S2", "float32"),
    ("flax.linen.BatchNorm(use_fast_variance=False)", "storage", "BN-G1", "bfloat16"),
    ("flax.linen.BatchNorm(use_fast_variance=False)", "momentum", "BN-S2", "float32"),
    *(
        (f"flax.{interface}.{layer}", *shown)
        for interface in ("nnx", "linen")
        for layer, *shown in (
            ("GroupNorm", "variance_algorithm", "GN-F8", "float32"),
            ("GroupNorm", "storage", "GN-G1", "bfloat16"),
            ("GroupNorm(use_fast_variance=False)", "storage", "GN-G1", "bfloat16"),
            ("InstanceNorm", "variance_algorithm", "IN-F8", "float32"),
            ("InstanceNorm", "storage", "IN-G1", "bfloat16"),
            ("InstanceNorm(use_fast_variance=False)", "storage", "IN-G1", "bfloat16"),
            ("RMSNorm", "storage", "RM-G1", "bfloat16"),
        )
    ),
    ("flax x + sublayer(nnx.LayerNorm(x))", "variance_algorithm", "PR-F1", "float32"),
    ("flax x + sublayer(nnx.LayerNorm(x))", "storage", "CM-D1", "bfloat16"),
    ("flax nnx.LayerNorm(x + sublayer(x))", "variance_algorithm", "PO-F1", "float32"),
    ("flax nnx.LayerNorm(x + sublayer(x))", "storage", "PO-G1", "bfloat16"),
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
    assert without.verdict is Verdict.FAIL
    assert declared.verdict in (Verdict.PASS, Verdict.DEVIATES)


@pytest.mark.parametrize("binding", TARGET.bindings, ids=lambda binding: binding.name)
def test_every_declaration_has_a_reason_and_a_source(binding):
    """Each convention and each expected deviation says why, with a link."""
    assert set(binding.reasons) == set(binding.conventions)
    assert all("https://" in reason for reason in binding.reasons.values())
    assert all(one.links and all("https://" in link for link in one.links) for one in binding.known_violations)
