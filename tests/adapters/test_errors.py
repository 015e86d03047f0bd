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
    assert errors.one_line(ValueError("at 10:5:\n  the reason\nmore")) == "ValueError: at 10:5: the reason"


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


@pytest.mark.parametrize(
    ("given", "found"),
    [("tolerance", []), ("strage", ["storage"]), ("dtype", ["eps_dtype"]), ("STORAGE", ["storage"]), ("epsilon", [])],
)
def test_only_what_is_near_is_suggested(given, found):
    """A word that shares a few letters with a name is no misspelling of it; a part of a name may stand for it."""
    assert errors.near(given, ("storage", "eps_dtype", "subnormals")) == found


def test_of_many_names_the_first_are_listed_and_the_others_counted():
    """The nearest is looked for among all of them."""
    told = errors.choices("name_49", [f"name_{number}" for number in range(50)])
    assert told.startswith("; did you mean 'name_49'? choose from name_0, name_1,")
    assert told.endswith("name_19 and 30 more")
