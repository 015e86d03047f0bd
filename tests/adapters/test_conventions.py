"""Declared conventions."""

from __future__ import annotations

import pytest

from normspec.spec.conventions import CONVENTIONS, parse_conventions, validate
from normspec.spec.errors import UnknownConvention


def test_the_first_value_is_normative():
    """Each convention lists its normative value first."""
    assert {key: values[0] for key, values in CONVENTIONS.items()} == {
        "variance_algorithm": "centred",
        "affine": "folded",
        "storage": "H0",
        "running_variance": "biased",
        "momentum": "new",
        "single_value": "beta",
        "eps_dtype": "exact",
        "subnormals": "kept",
        "float64": "float64",
        "mixed_dtypes": "kept",
        "gain": "gamma",
        "cast": "last",
    }


def test_parse_reads_key_and_value():
    """KEY=VALUE becomes an entry, and saying the same twice does no harm."""
    assert parse_conventions(["momentum=old", " storage = H2 ", "momentum=old"]) == {"momentum": "old", "storage": "H2"}


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["momentum"], "not of the form KEY=VALUE"),
        (["=old"], "not of the form KEY=VALUE"),
        (["momentum="], "not of the form KEY=VALUE"),
        (["momentom=old"], "did you mean 'momentum'"),
        (["momentum=older"], "did you mean 'old'.*choose from new, old"),
        (["momentum=old", "momentum=new"], "given twice, as 'old' and as 'new'"),
    ],
)
def test_parse_says_what_is_wrong(texts, message):
    """A text that is no convention is refused with what to write."""
    with pytest.raises(UnknownConvention, match=message):
        parse_conventions(texts)


def test_validate_returns_a_new_dict():
    """The declarations are copied."""
    declared = {"storage": "native"}
    assert validate(declared) == declared
    assert validate(declared) is not declared
