"""The table as it is printed, as Markdown and as JSON."""

from __future__ import annotations

import io
import json

import attrs
import pytest
from click.testing import CliRunner
from rich.console import Console

from normspec.conformance.command_line.compare import compare as command
from normspec.conformance.compare.comparison import Comparison
from normspec.conformance.compare.run import compare
from normspec.conformance.compare.table import Cell, Column, Kind, OperatorTable, Row
from normspec.conformance.reporting.comparison import conclusion, print_comparison
from normspec.spec.errors import UnknownDtype, UnknownOperator, UnknownTarget

from .planted import AnotherDefault, Bessel, target

NAMES = ["torch", "tensorflow", "keras[tensorflow]", "keras[torch]", "keras[jax]", "jax", "flax", "equinox",
         "onnxruntime", "onnx-reference", "mxnet"]  # fmt: skip


def _made(count: int) -> Comparison:
    columns = tuple(Column(n, f"{n}.layers.LayerNormalization", n, "1.0") for n in NAMES[:count])
    eps = tuple(Cell(("1e-05", "0.001")[place % 2]) for place in range(count))
    reason = {"reason": "has no `float16`, and | says so"}
    half = (Cell("unsupported", Kind.UNSUPPORTED, reason), *(Cell("H0"),) * (count - 1))
    rows = (Row("default_eps", "default eps", "float32", eps), Row("float16", "float16: y", "float16", half))
    return Comparison((OperatorTable("layer_norm", columns, rows),), "float32", "cpu")


def _printed(table: Comparison, width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, markup=False, highlight=False)
    print_comparison(table, console)
    return console.file.getvalue().splitlines()


@pytest.mark.parametrize("width", [20, 40, 54, 60, 80, 100, 200])
@pytest.mark.parametrize("count", [1, 2, 3, 11])
def test_every_line_fits(count, width):
    """For any number of targets and any width of the terminal, nothing is cut off."""
    lines = _printed(_made(count), width)
    assert all(len(line) <= width for line in lines)
    text = "".join(line.strip() for line in lines).replace(" ", "")
    assert all(name in text for name in NAMES[:count])


def test_three_targets_stand_side_by_side_in_100_columns():
    """Each has a column, and a row is one line."""
    lines = _printed(_made(3), 100)
    assert any(line.split() == ["≠", "default", "eps", "1e-05", "0.001", "1e-05"] for line in lines)


def test_of_eleven_targets_each_behaviour_is_named_once():
    """A row lists the behaviours, and who has each."""
    lines = _printed(_made(11), 100)
    (place,) = (i for i, line in enumerate(lines) if line.startswith("≠ default eps"))
    assert lines[place].split()[3] == "1e-05"
    assert "unsupported                  torch" in "\n".join(lines)


def test_what_is_not_there_is_no_difference():
    """A row in which all measured values agree is not highlighted."""
    assert [row.key for _, row in _made(3).differences] == ["default_eps"]


def test_one_of_a_kind_is_not_told_as_several():
    """One row that differs, and one cell that is lost."""
    (section,) = _made(2).sections
    lost = Row("inf", "one Inf makes", "float32", (Cell("lost", Kind.LOST), Cell("its group NaN")))
    table = Comparison((OperatorTable("layer_norm", section.columns, (*section.rows, lost)),), "float32", "cpu")
    assert conclusion(table)[0].startswith(
        "1 of 1 row differs; 2 more could not be compared (1 cell could not be measured); measured in float32"
    )
    assert conclusion(_made(1))[0].startswith("no difference in 1 row; 1 more could not be compared; measured in")


def test_a_row_that_only_one_target_has_is_not_compared():
    """Nor are targets that have no operator in common."""
    (section,) = _made(2).sections
    alone = tuple(attrs.evolve(section, columns=(column,), rows=()) for column in section.columns)
    found = conclusion(Comparison(alone, "float32", "cpu"))[0]
    assert found.startswith("nothing was compared: no operator is common to two of them")


def test_the_reason_is_told_under_the_table():
    """The reason why something could not be measured is below it."""
    assert any("has no `float16`, and | says so" in line for line in _printed(_made(2), 100))


def test_json_holds_every_cell_with_its_evidence():
    """The document is strict JSON of a fixed structure."""
    table = compare([target("batch_norm"), target("batch_norm", Bessel, "changed")], op="batch_norm")

    def refuse(name):
        raise AssertionError(name)

    document = json.loads(table.to_json(), parse_constant=refuse)
    assert document["schema"] == 1
    assert document["differences"] == 1
    (section,) = document["sections"]
    assert [column["target"] for column in section["columns"]] == ["plain", "changed"]
    (row,) = (row for row in section["rows"] if row["differs"])
    assert row["key"] == "running_variance"
    assert [cell["text"] for cell in row["cells"]] == ["biased", "Bessel (n - 1)"]
    assert row["cells"][1]["evidence"]["entered"] == pytest.approx(16 * 4 / 3)
    assert all(set(cell) == {"text", "kind", "evidence"} for row in section["rows"] for cell in row["cells"])


def test_markdown_is_a_table_of_github():
    """Every line of the table has as many cells, and what differs is bold."""
    table = compare([target("layer_norm"), target("layer_norm", AnotherDefault, "a|b*c")], op="layer_norm")
    lines = [line for line in table.to_markdown().splitlines() if line.startswith("|")]
    assert {line.replace("\\|", "").count("|") for line in lines} == {4}
    assert "| **default eps** | **1e-05** | **0.001** |" in lines
    assert "a\\|b\\*c" in lines[0]


def test_two_functions_of_one_name_are_told_apart():
    """The second of a name has a number."""
    table = compare([target("layer_norm"), target("layer_norm")], op="layer_norm")
    assert [column.target for column in table.sections[0].columns] == ["plain", "plain (2)"]


def test_a_target_without_the_operator_is_named():
    """It has no column, and is not forgotten."""
    table = compare([target("layer_norm"), target("batch_norm", name="other")], op="layer_norm")
    assert table.left_out == ("other",)


def test_operators_of_the_targets_are_compared():
    """If a target has neither layer_norm nor batch_norm, its own operators are measured without being asked for."""
    table = compare([target("rms_norm"), target("layer_norm", name="other")])
    assert {"rms_norm", "layer_norm"} <= {section.op for section in table.sections}
    assert not table.left_out


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"targets": "numpy", "dtype": "float8"}, UnknownDtype),
        ({"targets": "numpy", "dtype": "float16"}, UnknownDtype),
        ({"targets": "nunpy"}, UnknownTarget),
        ({"targets": []}, UnknownTarget),
        ({"targets": "numpy", "op": "layernorm"}, UnknownOperator),
    ],
)
def test_a_mistaken_request_is_an_error_that_helps(arguments, error):
    """Nothing is measured where the request cannot be carried out."""
    with pytest.raises(error):
        compare(**arguments)


def test_the_command_writes_the_table_and_the_json(tmp_path):
    """The table goes to standard output and the JSON to the file."""
    path = tmp_path / "table.json"
    done = CliRunner().invoke(command, ["numpy", "--op", "layer_norm", "--json", str(path)], standalone_mode=False)
    assert done.return_value == 0
    assert "place of eps" in done.output
    assert json.loads(path.read_text(encoding="utf-8"))["sections"][0]["op"] == "layer_norm"


def test_the_command_writes_markdown(tmp_path):
    """To a file beside the table; or to standard output, and then nothing else is there."""
    path = tmp_path / "table.md"
    done = CliRunner().invoke(command, ["numpy", "--op", "residual", "--markdown", str(path)], standalone_mode=False)
    assert done.return_value == 0
    assert done.stdout.startswith("\nresidual   cpu\n")
    text = path.read_text(encoding="utf-8")
    assert text.startswith("<!-- normspec wrote this file and may replace it. -->\n\n### residual\n\n| | numpy |\n")
    done = CliRunner().invoke(command, ["numpy", "--op", "residual", "--markdown", "-"], standalone_mode=False)
    assert done.stdout.startswith("### residual\n\n| | numpy |\n")
    done = CliRunner().invoke(command, ["numpy", "--json", "-", "--markdown", "-"])
    assert "--json and --markdown write to the same place" in done.output
