"""A report's JSON is read back as the report; anything else is one clear error."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import jsonschema
import numpy as np
import pytest

import normspec
from normspec import Verdict
from normspec.conformance.faults import FAULTS
from normspec.conformance.page.contents import Document, contents
from normspec.conformance.replay import forms
from normspec.conformance.replay.forms import DamagedReport
from normspec.conformance.results.report import SCHEMA

from .replays import report_on, shown_in


def eps_outside(x, gamma, beta, *, eps, axes):
    """A function whose report has every kind of object."""
    d = x - x.mean(axes, keepdims=True)
    return d / (np.sqrt(np.square(d).mean(axes, keepdims=True)) + eps)


def raises(x, gamma, beta, *, eps, axes):
    """A function that raises where there is no gamma."""
    return x * (1 + gamma)


@pytest.fixture(scope="module")
def reports() -> list[normspec.Report]:
    """Reports with a cause, with an exception and its line, and of faults: layouts, parts, derivatives."""
    short: dict[str, Any] = {"op": "layer_norm", "dtypes": ["float32"], "profile": "quick"}
    found = [
        normspec.check(eps_outside, only=["LN-F3"], forward_only=True, **short),
        normspec.check(raises, only=["CM-T1"], forward_only=True, **short),
    ]
    return found + [report_on(fault, shown_in(fault)) for fault in FAULTS[::193] if fault.kind != "state"]


def kept(report: normspec.Report, folder: Path) -> Path:
    """The file of a report."""
    file = folder / "report.json"
    file.write_text(report.to_json(), encoding="utf-8")
    return file


def test_what_is_read_is_what_was_written(reports, tmp_path):
    """The JSON of the report that is read is that of the file, byte for byte, and it prints as the other does."""
    for report in reports:
        again = normspec.load_report(kept(report, tmp_path))
        assert again.to_json() == report.to_json()
        assert str(again) == str(report)
        assert again.to_junit() == report.to_junit()


def objects(schema: Any) -> Any:
    """Every object of a schema that has fields of its own."""
    if isinstance(schema, dict):
        if "properties" in schema:
            yield schema
        for one in schema.values():
            yield from objects(one)
    elif isinstance(schema, list):
        for one in schema:
            yield from objects(one)


def test_real_reports_have_the_form_of_the_schema_and_no_field_beyond_it(reports):
    """Each report is valid, and stays so where the schema admits no field that it does not name."""
    schema = normspec.report_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    strict = copy.deepcopy(schema)
    for one in objects(strict):
        one["additionalProperties"] = False
    for report in reports:
        jsonschema.validate(json.loads(report.to_json()), strict)


def test_the_schema_has_the_version_of_the_reports():
    """Its title, its id and the one value that it admits for `schema` name the number that reports carry."""
    schema = normspec.report_schema()
    assert schema["properties"]["schema"]["const"] == SCHEMA
    assert schema["$id"] == f"urn:normspec:report:{SCHEMA}"
    assert schema["title"].endswith(f"schema {SCHEMA}")


def test_the_schema_refuses_what_is_damaged(reports):
    """An unknown verdict, a missing field, a number where a text belongs: each is found."""
    changes: list[Any] = [
        lambda found: found["results"][0].__setitem__("verdict", "fine"),
        lambda found: found.pop("seed"),
        lambda found: found["targets"][0].__setitem__("exit_status", 7),
        lambda found: found["results"][0].__setitem__("ratio", "much"),
        lambda found: found["results"][0]["counterexample"]["inputs"]["x"]["values"].__setitem__(0, "1.5"),
    ]
    for change in changes:
        found = json.loads(reports[0].to_json())
        change(found)
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(found, normspec.report_schema())


# Damage ----------------------------------------------------------------------------------------------------------


def places(value: Any, path: tuple[Any, ...] = ()) -> Any:
    """The place of every value in a document."""
    yield path
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in children:
        yield from places(one, (*path, key))


#: Values that the reader derives itself, and so does not read.
DERIVED = (
    "share",
    "conforms",
    "exit_status",
    "targets",
    "sentence",
    "strides",
    "offset",
    "formula",
    "type",
    "layout",
    "raised",
)


def damaged(document: Any) -> Iterator[tuple[str, Any]]:
    """The texts of damaged files: each value in turn of another type, and the file cut off at many places."""
    kinds: dict[type, Any] = {
        str: {"x": 1},
        int: "seven",
        float: [],
        bool: "yes",
        type(None): 1.5,
        list: "x",
        dict: [1],
    }
    for path in places(document):
        if path and not any(part in DERIVED for part in path):
            found = holder = copy.deepcopy(document)
            for part in path[:-1]:
                holder = holder[part]
            holder[path[-1]] = kinds[type(holder[path[-1]])]
            yield json.dumps(found), path
    whole = json.dumps(document)
    for end in range(1, len(whole), len(whole) // 60):
        yield whole[:end], end


def test_two_hundred_damaged_reports_are_one_clear_error_each(reports, tmp_path):
    """For any value of the wrong type, the error is one line that names the file, and nothing is written."""
    file, several = tmp_path / "damaged.json", list(damaged(json.loads(reports[0].to_json())))
    assert len(several) >= 200
    for content, where in several:
        file.write_text(content, encoding="utf-8")
        try:
            normspec.load_report(file)
            words = "it is read"
        except DamagedReport as error:
            words = str(error)
        assert words.startswith(f"{file}") and "\n" not in words and len(words) < 500, (where, words)
    assert [one.name for one in tmp_path.iterdir()] == ["damaged.json"]


def test_a_whole_number_beyond_all_floats_is_damage(reports, tmp_path):
    """JSON has whole numbers of any length, and Python reads them."""
    found = json.loads(reports[0].to_json())
    (tmp_path / "damaged.json").write_text(json.dumps({**found, "seconds": 10**400}), encoding="utf-8")
    with pytest.raises(DamagedReport, match=r"seconds is 10+\.\.\., and has to be a number"):
        normspec.load_report(tmp_path / "damaged.json")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "is not the JSON of a report"),
        ("[1, 2]", "is JSON, but not a report: give a file that `normspec check --json` wrote"),
        ('{"name": "package", "version": 1}', "is JSON, but not a report"),
        ('{"schema": 3, "results": []}', "has schema 3, and this version of normspec reads 2: update normspec"),
        ('{"schema": 1, "results": []}', "has schema 1, but this version of normspec reads 2: write it again"),
        ('{"schema": true, "results": []}', "has schema True"),
        ('{"schema": 2, "results": []}', "the report has no profile"),
        ("[" * 100_000, "is not the JSON of a report"),
        ("9" * 10_000, "is not the JSON of a report"),
    ],
)
def test_a_foreign_a_newer_and_an_older_file_are_told_apart(tmp_path, content, words):
    """Each is one line that names the file and says what to do."""
    file = tmp_path / "other.json"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(DamagedReport) as raised:
        normspec.load_report(file)
    assert f"{file}" in str(raised.value) and words in str(raised.value)


def test_what_an_older_report_of_the_schema_lacks_is_left_at_its_default(reports, tmp_path):
    """Fields may be added while the number of the schema stays: a report that lacks them is read all the same."""
    document = json.loads(reports[0].to_json())
    for name in ("causes", "notes", "replayed"):
        del document[name]
    del document["subjects"][0]["file"]
    file = tmp_path / "older.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    report = normspec.load_report(file)
    assert (report.causes, report.notes, report.conforms) == ((), (), False)


def test_a_report_of_another_version_is_told_in_every_form(reports, tmp_path):
    """A word of --only that this version does not know, and a function whose line is not told, end no output."""
    document = json.loads(reports[0].to_json())
    document["only"] = document["require"] = ["a bundle of the future", "LN-F3"]
    document["subjects"][0] |= {"file": "mine.py", "line": None}
    del document["subjects"][0]["framework"]
    file = tmp_path / "other.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    report = normspec.load_report(file)
    assert "only        a bundle of the future, LN-F3" in str(report)
    assert "no requirement" not in report.to_markdown(reports[0]) + report.to_junit() + report.to_json()
    assert json.loads(report.to_json())["targets"] and contents([Document("other", json.loads(report.to_json()))])
    passing = attrs.evolve(report, results=tuple(attrs.evolve(one, verdict=Verdict.PASS) for one in report.results))
    assert "nothing of a bundle of the future was judged" in str(passing)


def test_a_report_of_which_results_were_cut_out_is_damaged(reports, tmp_path):
    """A report whose violations have been removed is not believed."""
    document = json.loads(reports[0].to_json())
    document["results"] = []
    file = tmp_path / "changed.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(DamagedReport, match=r"counts\.fail is 1, and 0 of its results are that"):
        normspec.load_report(file)


def test_what_may_never_end_is_not_read(monkeypatch, tmp_path):
    """A device, a pipe and a file that is too large are refused before they are read."""
    pipe, large = tmp_path / "pipe", tmp_path / "large.json"
    os.mkfifo(pipe)
    for path in ("/dev/zero", pipe):
        with pytest.raises(DamagedReport, match="not a regular file"):
            normspec.load_report(path)
    monkeypatch.setattr(forms, "LARGEST", 3)
    large.write_text("null")
    with pytest.raises(DamagedReport, match="has 4 bytes"):
        normspec.load_report(large)
