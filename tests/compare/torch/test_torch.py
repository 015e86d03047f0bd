"""The table's entries for PyTorch."""

from __future__ import annotations

import pytest

from normspec.conformance.compare.run import compare

#: The entries according to its documentation and its source.
KNOWN = {
    "layer_norm": {
        "eps_placement": "inside the root",
        "eps_float32": "as given",
        "variance": "biased (n)",
        "axes": "as given",
        "float16": "H0",
        "float16_gradients": "H2",
        "bfloat16_gradients": "H2",
        "single": "beta",
        "nan": "its group NaN",
        "gradients": "yes",
    },
    "batch_norm": {
        "eps_zero": "raises ValueError",
        "momentum": "the new",
        "running_variance": "Bessel (n - 1)",
        "channel_axis": "as given",
        "accuracy": "centred / folded",
        "single": "raises ValueError",
        "empty": "empty; statistics kept",
    },
    "rms_norm": {
        "default_eps": "1.19209e-07; 2.220446e-16 in float64",
        "mean_square": "divided by n",
        "gain": "gamma",
        "float16": "H0",
    },
    "group_norm": {
        "channels": "consecutive",
        "channel_axis": "as given",
        "variance": "biased (n)",
        "single": "raises ValueError",
    },
    "instance_norm": {"channel_axis": "as given", "variance": "biased (n)", "single": "raises ValueError"},
}


@pytest.fixture(scope="module")
def table():
    """The first spelling of each operator."""
    return compare("torch", op=list(KNOWN))


@pytest.mark.parametrize("operator", KNOWN)
def test_the_table_says_what_is_known(table, operator):
    """The first binding of each operator shows PyTorch's conventions."""
    (section,) = (section for section in table.sections if section.op == operator)
    first = {row.key: row.cells[0].text for row in section.rows}
    assert {key: first[key] for key in KNOWN[operator]} == KNOWN[operator]


def test_modules_and_functions_do_the_same():
    """The spellings of one operator wrap the same code: apart from defaults no row differs."""
    table = compare("torch", all_bindings=True)
    # Each BatchNorm takes x of one rank, and a layout of one rank may not exist in another.
    assert not [row.key for _, row in table.differences if not row.key.startswith(("default", "layouts"))]
