"""Sessions of composed operators: parts are made from tensors, recorded, and asked for their leaves."""

from __future__ import annotations

import numpy as np
import pytest

from normspec.adapters.binding import Binding
from normspec.adapters.numpy import BRIDGE
from normspec.adapters.session import Session
from normspec.spec.errors import PartRaised, TargetRaised, Unsupported
from normspec.spec.parts import Part

X = np.array([[1.0, -2.0, 0.5]])
H = np.array([[3.0, 4.0, -1.0]])
LEAF = {"branch": Part("leaf", ("branch.h",))}


def session(call, **rest) -> Session:
    """A session of one function as a residual connection on NumPy arrays."""
    derivatives = {name: rest.pop(name) for name in ("vjp", "jvp", "vjp_vjp") if name in rest}
    binding = Binding("residual", "own", call, derivatives, **rest)
    return Session(BRIDGE, binding)


def plain(x, branch, *, shortcut=None, activation=None):
    """x + branch(x)."""
    return x + branch(x)


def test_a_part_closes_over_the_tensors_handed_over():
    """A leaf part returns the leaf's values."""
    evaluation = session(plain).start({"x": X, "branch.h": H}, {}, parts=LEAF)
    np.testing.assert_array_equal(evaluation.outputs()["y"], X + H)


def test_a_written_out_vjp_makes_the_parts_note_their_leaves():
    """A function's argument to part.vjp becomes the leaf's gradient; a part without a call has zero."""

    def vjp(x, branch, g, *, shortcut=None, activation=None):
        return g + branch.vjp(x, 2 * g)

    def blind(x, branch, g, *, shortcut=None, activation=None):
        return (g,)

    for own, want in ((vjp, 2.0), (blind, 0.0)):
        evaluation = session(plain, vjp=own).start({"x": X, "branch.h": H}, {}, parts=LEAF)
        gradients = evaluation.pull(np.ones_like(X)).gradients()
        np.testing.assert_array_equal(gradients["x"], np.ones_like(X))
        np.testing.assert_array_equal(gradients["branch.h"], np.full_like(X, want))


def test_calls_are_recorded_in_order_with_copies():
    """A recorder keeps a copy of each part's arguments and results, and reads both again unchanged."""

    def twice(x, branch, *, shortcut=None, activation=None):
        first = branch(x)
        first += 1
        branch(x * 2)
        return first

    recorder = session(twice).start({"x": X, "branch.h": H}, {}, parts=LEAF, record=True).recorder
    assert recorder is not None
    assert [call.role for call in recorder.calls] == ["branch", "branch"]
    np.testing.assert_array_equal(recorder.calls[1].handed[0], X * 2)
    np.testing.assert_array_equal(recorder.calls[0].returned, H)
    np.testing.assert_array_equal(recorder.returned_now(recorder.calls[0]), H + 1)


def test_what_is_handed_to_a_part_and_is_no_tensor_is_told():
    """A list in the place of an array is recorded as a list."""

    def listed(x, branch, *, shortcut=None, activation=None):
        branch(x.tolist()[0])
        return x

    recorder = session(listed).start({"x": X, "branch.h": H}, {}, parts=LEAF, record=True).recorder
    assert recorder is not None
    assert all(isinstance(value, str) for value in recorder.calls[0].handed)


def test_a_function_without_an_optional_argument_lacks_it():
    """Passing a shortcut to a function that takes none is unsupported, before anything is called."""
    parts = {**LEAF, "shortcut": Part("identity")}
    with pytest.raises(Unsupported, match="own takes no shortcut"):
        alone = session(lambda x, branch: x, unsupported_keywords=frozenset({"shortcut"}))
        alone.start({"x": X, "branch.h": H}, {}, parts=parts)


def test_an_optional_argument_that_is_not_implemented_is_lacking():
    """With an optional part NotImplementedError means that it is lacking; without one it declines the call."""

    def unfinished(x, branch, *, shortcut=None, activation=None):
        raise NotImplementedError("later")

    with pytest.raises(Unsupported, match="does not take activation: NotImplementedError: later"):
        session(unfinished).start({"x": X, "branch.h": H}, {}, parts={**LEAF, "activation": Part("relu")})
    with pytest.raises(Unsupported, match=r"^NotImplementedError: later$"):
        session(unfinished).start({"x": X, "branch.h": H}, {}, parts=LEAF)


def test_what_a_part_raises_is_the_targets_error():
    """A part that raises ends the call as an exception of the target, with the part's own inside."""
    with pytest.raises(TargetRaised) as raised:
        session(plain).start({"x": X}, {}, parts={"branch": Part("raising")})
    assert isinstance(raised.value.original, PartRaised)


def test_a_common_part_is_one_callable():
    """Equal parts of the kind "common" are one object in all roles of a call; other equal parts are several."""
    seen = []

    def noting(x, branch, *, shortcut=None, activation=None):
        seen.append(branch is shortcut)
        return branch(x) + shortcut(x)

    for kind in ("common", "counted"):
        parts = {role: Part(kind, inner=(Part("negated"),)) for role in ("branch", "shortcut")}
        started = session(noting).start({"x": X}, {}, parts=parts, record=True)
        np.testing.assert_array_equal(started.outputs()["y"], -2 * X)
    assert seen == [True, False]


def test_a_buffer_outlives_the_evaluation_and_is_written_again():
    """A buffered part returns one buffer, call after call, so that an alias of it changes."""
    alias = session(lambda x, branch, *, shortcut=None, activation=None: branch(x))
    parts = {"branch": Part("buffered", inner=(Part("negated"),))}
    first = alias.start({"x": X}, {}, parts=parts, wrt=())
    np.testing.assert_array_equal(first.outputs()["y"], -X)
    alias.start({"x": 2 * X}, {}, parts=parts, wrt=())
    np.testing.assert_array_equal(first.outputs()["y"], -2 * X)


def test_the_names_of_parts_read_as_formulas():
    """A part is written as the formula that it computes, as reports show it."""
    assert str(Part("tanh_linear", ("gate.w",))) == "tanh(x @ gate.w)"
    assert str(Part("dropout", ("branch.mask",), inner=(Part("leaf", ("branch.h",)),))) == "(branch.h) * branch.mask"
    assert str(Part("fuse_product")) == "product"
