"""The layers of equinox conform under what they declare, and every declaration is needed."""

from __future__ import annotations

import pytest

from normspec import Verdict
from normspec.adapters.equinox import target

from ..jax.few import PLAIN, SHOWING, only, run

TARGET = target()

#: A binding, a convention that it declares, and a requirement and a dtype in which that shows.
DECLARED = [
    ("equinox.nn.GroupNorm", "storage", "GN-G3", "bfloat16"),
    ("equinox.nn.GroupNorm(channels, channels)", "storage", "IN-G2", "bfloat16"),
    ('equinox.nn.BatchNorm(mode="batch")', "storage", "BN-F1", "bfloat16"),
    ('equinox.nn.BatchNorm(mode="batch")', "momentum", "BN-S2", "float32"),
    ('equinox.nn.BatchNorm(mode="batch")', "mixed_dtypes", "CM-D2", "bfloat16"),
    ("equinox nn.LayerNorm(x + sublayer(x))", "storage", "PO-F1", "bfloat16"),
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
    showing = SHOWING.get(convention, {"cases": 3})
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
