"""The JSON report: strict, exact, and complete."""

from __future__ import annotations

import json

import attrs
import ml_dtypes
import numpy as np

from normspec import Verdict
from normspec.conformance.results.report import SCHEMA


def strict(text: str) -> dict:
    """The document, read by a parser that refuses bare NaN and infinities."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


def test_the_document_says_what_was_run(a_result, a_report):
    """Versions, seed, profile, subjects, counts and the verdict are at the top."""
    document = strict(a_report(a_result()).to_json())
    assert document["schema"] == SCHEMA
    assert document["versions"]["numpy"] == np.__version__
    assert (document["profile"], document["seed"]) == ("quick", 7)
    assert (document["conforms"], document["exit_status"]) == (True, 0)
    assert document["counts"]["pass"] == 1
    assert document["subjects"][0]["version"] == "2.13.0"
    assert document["subjects"][0]["conventions"] == {"variance_algorithm": "shifted"}


def test_arrays_come_back_bit_for_bit(a_result, a_report, counterexample):
    """dtype, shape and hexadecimal values rebuild an array of any of the four dtypes."""
    for dtype in (np.float16, ml_dtypes.bfloat16, np.float32, np.float64):
        x = np.array([[0.1, -0.0, np.nan], [np.inf, -np.inf, 3e-8]], dtype)
        case = attrs.evolve(counterexample, inputs={"x": x, "gamma": None})
        document = strict(a_report(a_result(verdict=Verdict.FAIL, counterexample=case)).to_json())
        inputs = document["results"][0]["counterexample"]["inputs"]
        assert inputs["gamma"] is None
        assert inputs["x"]["dtype"] == str(x.dtype)
        back = np.array([float.fromhex(v) for v in inputs["x"]["values"]]).astype(dtype).reshape(inputs["x"]["shape"])
        assert back.tobytes() == x.tobytes()


def test_numbers_that_json_lacks_are_strings(a_result, a_report, counterexample):
    """A ratio or a value that is NaN or infinite is written as a string."""
    case = attrs.evolve(counterexample, expected=float("inf"), got=float("nan"))
    report = a_report(a_result(verdict=Verdict.FAIL, ratio=float("inf"), counterexample=case))
    result = strict(report.to_json())["results"][0]
    assert result["ratio"] == "inf"
    assert (result["counterexample"]["expected"], result["counterexample"]["got"]) == ("inf", "nan")
    assert result["counterexample"]["envelope"] == "0x1p-22"
    assert result["counterexample"]["settings"] == {"eps": "0x1p-2", "axes": [-1]}


def test_settings_of_numpy_types_are_written(a_result, a_report, counterexample):
    """A setting that is a NumPy number, or an object of no JSON type, does not stop the report."""
    case = attrs.evolve(counterexample, settings={"axes": np.int64(-1), "eps": np.float32(0.5), "odd": object})
    document = strict(a_report(a_result(verdict=Verdict.FAIL, counterexample=case)).to_json())
    settings = document["results"][0]["counterexample"]["settings"]
    assert (settings["axes"], settings["eps"]) == (-1, "0x1p-1")
