"""Messages of errors."""

from __future__ import annotations

import pytest

from normspec.spec import errors


def test_every_user_error_is_a_normspec_error():
    """Every error that a user can correct derives from NormspecError; the ways in which a call ends do not."""
    outcomes = {
        "BadOutput",
        "CannotVary",
        "MissingGradient",
        "PartRaised",
        "TakesNoPart",
        "TargetLost",
        "TargetRaised",
        "Unsupported",
    }
    for name in errors.__all__:
        member = getattr(errors, name)
        if isinstance(member, type):
            assert issubclass(member, errors.NormspecError) is (name not in outcomes)


def test_one_line_keeps_the_first_line():
    """A message of several lines is cut to its first."""
    assert errors.one_line(ValueError("\n first\nsecond")) == "ValueError: first"


def test_one_line_of_an_empty_message_is_the_type():
    """An exception without a message is reported by its type."""
    assert errors.one_line(KeyError()) == "KeyError"


def test_one_line_survives_a_str_that_raises():
    """An exception whose text raises is reported by its type."""

    class Nasty(Exception):
        def __str__(self):
            raise SystemExit

    assert errors.one_line(Nasty()) == "Nasty"
    assert str(errors.TargetRaised(Nasty(), "call")) == "Nasty"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("layernorm", "; did you mean 'layer_norm'? choose from layer_norm, batch_norm"),
        ("LayerNorm", "; did you mean 'layer_norm'? choose from layer_norm, batch_norm"),
        ("xyz", "; choose from layer_norm, batch_norm"),
    ],
)
def test_choices_suggests_what_is_near(given, message):
    """A near miss is suggested, in letters of any case, and the choices are always listed."""
    assert errors.choices(given, ("layer_norm", "batch_norm")) == message
