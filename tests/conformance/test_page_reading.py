"""The contents of a page, and the message if there is none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import normspec
from normspec.conformance.command_line import page
from normspec.conformance.command_line.root import main
from normspec.conformance.engine.folding import priority
from normspec.conformance.page.contents import Document, anchor, contents
from normspec.conformance.page.smallest import smallest_case


def eps_outside(x, gamma, beta, *, eps, axes):
    """The epsilon is added to the standard deviation."""
    d = x - x.mean(axes, keepdims=True)
    return d / (np.sqrt(np.square(d).mean(axes, keepdims=True)) + x.dtype.type(eps))


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    """The JSON of a report with a violation."""
    found = normspec.check(
        eps_outside, op="layer_norm", dtypes=["float32"], profile="quick", only=["LN-F3", "LN-G3"], forward_only=True
    )
    return json.loads(found.to_json())


def test_every_result_is_on_the_page(report):
    """Each result has a row with the data for its plot; texts are stored once."""
    found = contents([Document("a.json", report)])
    rows, words = found["data"]["rows"], found["data"]["words"]
    assert len(rows) == len(report["results"]) and len(words) == len(set(words))
    for row, result in zip(rows, report["results"], strict=True):
        assert (row[1], row[2], row[3]) == (result["op"], result["requirement"], result["dtype"])
        assert words[row[4]] == result["binding"] and found["data"]["verdicts"][row[5]] == result["verdict"]
        assert [words[place] for place in row[10][::2]] == list(result["kinds"])
    failed = next(one for one in report["results"] if one["verdict"] == "fail")
    assert failed["kinds"] and max(failed["kinds"].values()) == pytest.approx(failed["ratio"], rel=0.01)


@pytest.mark.parametrize(
    ("ratio", "on_the_page"),
    [(0.9996, 0.99), (1.0004, 1.01), (1.0, 1), (0.5, 0.5), (31.4, 31), (123456.0, 100000), (0.0041234, 0.00412)],
)
def test_a_ratio_stays_on_its_side_of_the_envelope(report, ratio, on_the_page):
    """As in the terminal, and a ratio below 0.01 keeps three digits for the plot."""
    result = report["results"][0] | {"ratio": ratio}
    (row,) = contents([Document("a.json", report | {"results": [result]})])["data"]["rows"]
    assert on_the_page in row and ratio == pytest.approx(on_the_page, rel=0.25)


def test_the_same_target_of_two_runs_is_told_apart(report):
    """The second is named with its file, and so has its own links."""
    found = contents([Document("a.json", report), Document("b.json", report)])
    name = report["targets"][0]["name"]
    assert [one["label"] for one in found["data"]["targets"]] == [name, f"{name} (b.json)"]


def test_links_name_target_requirement_and_dtype():
    """A link includes the operator if the requirement concerns all of them; special characters are escaped."""
    result = {"op": "layer_norm", "requirement": "LN-F3", "dtype": "float32"}
    assert anchor("torch", result) == "#torch/LN-F3/float32"
    assert anchor("torch", {**result, "requirement": "CM-P2"}) == "#torch/layer_norm/CM-P2/float32"
    assert anchor("a/b.py:<f>", result) == "#a%2Fb.py%3A%3Cf%3E/LN-F3/float32"


def test_the_smallest_case_is_told_in_plain_numbers(report):
    """Values in the digits of their format, brackets as in the shape, and the wrong values next to the right ones."""
    (failed,) = (one for one in report["results"] if one["verdict"] == "fail")
    case = failed["counterexample"]
    lines = dict(map(tuple, smallest_case(case)))
    x = np.array([float.fromhex(one) for one in case["inputs"]["x"]["values"]]).reshape(case["inputs"]["x"]["shape"])
    shown, _, rest = lines["x"].partition("  ")
    assert np.array_equal(np.array(json.loads(shown), np.float32), x.astype(np.float32))
    assert rest == f"float32, shape {x.shape}"
    assert lines["why"] == case["why"]
    for label, key in (("implied", "expected"), ("exact", "exact")):  # another group of the function implies the one
        assert float(lines[label]) == float.fromhex(case[key])
    assert float(lines["eps"]) > 0 and "g" not in lines


@pytest.mark.parametrize("text", ["", "[1, 2]", "{}", '{"schema": 1}', "[" * 100_000, None])
def test_what_is_no_report_is_told_in_one_line(tmp_path, capsys, monkeypatch, text):
    """The command ends with 2, says which file, and writes nothing."""
    monkeypatch.setattr(page, "ensure_jinja", lambda: None)
    file, out = tmp_path / "report.json", tmp_path / "page.html"
    if text is not None:
        file.write_text(text)
    assert main(["page", str(file), "--out", str(out)]) == 2
    told = capsys.readouterr().err
    assert "report.json" in told and told.count("\n") == 1
    assert not out.exists()


def test_a_file_that_a_report_names_gets_onto_no_page(report, tmp_path):
    """Of the files under `scripts` only those that --reproduce wrote are shown."""
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "script.py").write_text('"""It violates LN-F3 of normspec, edition 2."""\n')
    (failed,) = (one for one in report["results"] if one["verdict"] == "fail")
    place = {name: failed[name] for name in ("target", "op", "binding", "dtype", "requirement")}
    for name, shown in (("secret.txt", False), ("script.py", True), ("gone.py", False)):
        script = {**place, "fault": "", "file": str(tmp_path / name), "why_not": ""}
        found = contents([Document("a.json", {**report, "scripts": [script]})])
        assert any("code" in row[11] for row in found["data"]["rows"]) is shown


def test_without_jinja_the_command_says_what_to_install(report, tmp_path, capsys, monkeypatch):
    """Before a run begins, and in one line."""
    import importlib.util

    whole = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "jinja2" else whole(name, *rest)
    )
    file = tmp_path / "report.json"
    file.write_text(json.dumps(report))
    for command in (["page", str(file), "--out", "p.html"], ["check", "numpy", "--html", str(tmp_path / "p.html")]):
        assert main(command) == 2
        assert "pip install '.[html]'" in capsys.readouterr().err
    assert not list(Path(tmp_path).glob("*.html"))


@pytest.mark.parametrize("identifier", ["X", "LN-", "CM-", "ZZ-Q9"])
def test_an_id_of_no_form_that_is_known_has_its_row(report, identifier):
    """A report of another version may have ids that this one has not; a page shows them all the same."""
    others = [one | {"requirement": identifier} for one in report["results"] if one["verdict"] == "fail"]
    found = contents([Document("a.json", report | {"results": others})])
    assert [row[2] for row in found["data"]["rows"]] == [identifier] * len(others)
    assert priority(identifier) > priority("LN-F1")
