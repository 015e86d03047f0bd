"""docs/report.md documents every field of the JSON, and no other."""

from __future__ import annotations

import json
import re
from typing import Any

import attrs
import numpy as np
import pytest

import normspec
from normspec.conformance.diagnosis.cause import Cause
from normspec.conformance.judging.verdicts import Deviation
from normspec.conformance.reproduce.reproducer import Reproducer
from normspec.conformance.results.expectation import Expectation

from .blocks import CHECKOUT


def eps_outside(x, gamma, beta, *, eps, axes):
    """A function whose report has every kind of object."""
    d = x - x.mean(axes, keepdims=True)
    return d / (np.sqrt(np.square(d).mean(axes, keepdims=True)) + eps)


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    """The JSON of a report with a violation."""
    report = normspec.check(eps_outside, op="layer_norm", dtypes=["float32"], profile="quick", only="LN-F3")
    return json.loads(report.to_json())


def documented() -> dict[str, list[str]]:
    """The fields in the tables of the page, by the last word of the heading above."""
    found: dict[str, list[str]] = {}
    heading = ""
    for line in (CHECKOUT / "docs" / "report.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            heading = line.split()[-1].strip("`")
        elif line.startswith("| `"):
            found.setdefault(heading, []).extend(re.findall("`(.*?)`", line.split("|")[1]))
    return found


def test_every_field_is_documented_once_and_no_other(document):
    """The page and a real report have the same fields, for each kind of object."""
    (failed,) = (one for one in document["results"] if one["counterexample"] is not None)
    real = {
        "JSON": document,
        "targets": document["targets"][0],
        "taken": document["taken"][0],
        "subjects": document["subjects"][0],
        "expected": attrs.asdict(Expectation("", "", "")),
        "causes": attrs.asdict(Cause("", "", (), (), (), "", "", "", (), ())),
        "scripts": attrs.asdict(Reproducer("", "", "", "", "", "", "", "")),
        "results": failed,
        "counterexample": failed["counterexample"],
    }
    assert {name: sorted(fields) for name, fields in documented().items()} == {
        name: sorted(fields) for name, fields in real.items()
    }


def test_the_schema_names_the_fields_of_the_page():
    """Every field of the page is one of the JSON Schema, and no other is."""
    schema = normspec.report_schema()
    names = {
        "targets": "target",
        "taken": "taken",
        "subjects": "subject",
        "expected": "expectation",
        "causes": "cause",
        "scripts": "script",
        "results": "result",
    }
    objects = {"JSON": schema, "counterexample": schema["$defs"]["counterexample"]}
    objects |= {name: schema["$defs"][one] for name, one in names.items()}
    assert {name: sorted(one["properties"]) for name, one in objects.items()} == {
        name: sorted(fields) for name, fields in documented().items()
    }


def test_the_fields_of_known_violations_are_named():
    """`known` holds objects; their fields are listed next to it."""
    (line,) = (
        one
        for one in (CHECKOUT / "docs" / "report.md").read_text(encoding="utf-8").splitlines()
        if one.startswith("| `known`")
    )
    assert {field.name for field in attrs.fields(Deviation)} <= set(re.findall("`(.*?)`", line))


def test_the_verdicts_that_the_page_names_are_all():
    """The verdicts on the page are all the words of the report."""
    (line,) = (
        one
        for one in (CHECKOUT / "docs" / "report.md").read_text(encoding="utf-8").splitlines()
        if one.startswith("| `verdict` | `pass`")
    )
    assert set(re.findall("`(.*?)`", line)) - {"verdict"} == {verdict.value for verdict in normspec.Verdict}
