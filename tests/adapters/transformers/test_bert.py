"""BERT's blocks of Hugging Face's transformers."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from normspec.adapters import numpy as plain
from normspec.adapters.targets import resolve

from ..composed_problems import PROBLEMS, SHAPE
from ..seam_formulas import drawn, judged

TARGET = resolve("torch", op="post_norm")
BINDINGS = {binding.name: binding for binding in TARGET.bindings}
DTYPES = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]


@pytest.mark.parametrize("shape", [(2, 5, 6), (3, 2, 7), (1, 1, 1)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_layer_obeys_the_formulas_at_its_seams(dtype, shape):
    """BertLayer is two post_norm blocks around attention and a feed-forward part."""
    judged(TARGET, BINDINGS["transformers BertLayer"], drawn(shape, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [name for name, problem in PROBLEMS.items() if problem.operator == "post_norm"])
def test_self_output_is_post_norm(name, dtype):
    """BertSelfOutput with a sublayer instead of its dense layer gives the values and gradients of post_norm."""
    problem = PROBLEMS[name]
    inputs, g = problem.drawn(dtype), np.random.Generator(np.random.Philox(1)).normal(size=SHAPE).astype(dtype)
    wide = {n: None if array is None else array.astype(np.float64) for n, array in inputs.items()}
    (exact,) = (b for b in plain.BINDINGS if b.operator == "post_norm")

    def all_of(session, inputs, g):
        evaluation = session.start(inputs, problem.settings, parts=problem.parts)
        return {**evaluation.outputs(), **{f"d{n}": a for n, a in evaluation.pull(g).gradients().items()}}

    got = all_of(TARGET.session(BINDINGS["transformers BertSelfOutput"]), inputs, g)
    for what, value in all_of(plain.target().session(exact), wide, g.astype(np.float64)).items():
        if value is None:
            assert got[what] is None
            continue
        assert got[what].dtype == dtype
        tolerance = 48 * float(ml_dtypes.finfo(dtype).eps) * (1 + np.abs(value).max())
        np.testing.assert_allclose(got[what].astype(np.float64), value, atol=tolerance, err_msg=what)


def test_self_output_has_modes():
    """Its dropout has probability zero: training and inference give the same."""
    problem = PROBLEMS["post_norm"]
    session = TARGET.session(BINDINGS["transformers BertSelfOutput"])
    training, inference = (
        session.start(problem.drawn(), problem.settings, parts=problem.parts, mode=mode).outputs()["y"]
        for mode in ("training", "inference")
    )
    np.testing.assert_array_equal(training, inference)
