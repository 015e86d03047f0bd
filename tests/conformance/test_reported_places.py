"""What a finding says of itself: the name and the place of what is wrong, and on which conventions it depends."""

from __future__ import annotations

import pytest

from normspec.conformance.judging.verdicts import Verdict

from .runs import FAULT, VARIANT, result, run, specimen


@pytest.mark.parametrize(
    ("fault", "requirement", "name"),
    [
        ("ln-dx-no-mean", "LN-G4", "sum of dx"),
        ("po-dx-no-mean", "PO-G5", "sum of dsublayer.h"),
        ("mh-dlogits-without-mean", "MH-G4", "sum of dlogits"),
    ],
)
def test_a_sum_is_named_as_one(fault, requirement, name):
    """A place in a sum over a group is none in the gradient, whose envelope is looked up by its name."""
    shown = result(run(specimen(FAULT[fault]), requirements={requirement}), requirement).counterexample
    assert shown.output == name


def test_a_place_among_unmoved_positions_is_one_of_y():
    """Of y, only the positions are compared that the moved one does not reach; the place is that in the whole of y."""
    shown = result(run(specimen(FAULT["mh-neighbours-mixed"]), requirements={"MH-L7"}), "MH-L7").counterexample
    x = shown.inputs["x"]
    moved = int(shown.note.split("position ")[1].split(",")[0])
    assert all(index < length for index, length in zip(shown.index, x.shape, strict=True))
    assert shown.index[-2] != moved


@pytest.mark.parametrize("requirement", ["LN-G1", "LN-G9", "LN-G10", "LN-G12", "LN-G13", "LN-G14"])
def test_derivatives_depend_on_the_conventions_that_the_formula_depends_on(requirement):
    """With eps rounded to float32 all of them are other numbers: what is right as declared deviates."""
    report = run(
        specimen(VARIANT["ln-single-precision-eps"]),
        dtypes=("float64",),
        profile="standard",
        requirements={requirement},
    )
    assert result(report, requirement, "float64").verdict is Verdict.DEVIATES


def test_the_dual_of_layer_norm_depends_on_eps():
    """BN-L12 takes eps as declared for its verdict, and as given to see whether the target deviates."""
    report = run(specimen(VARIANT["bn-single-precision-eps"]), dtypes=("float64",), requirements={"BN-L12"})
    assert result(report, "BN-L12", "float64").verdict is Verdict.DEVIATES
