"""The matrix of the self-test as it is printed."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from normspec.conformance.reporting.matrix_table import print_matrix
from normspec.conformance.selftest.matrix import FaultRow, Matrix, SoundRow

BOTH = ("float16", "float32")
KILLED = FaultRow("ln-eps-on-std", "layer_norm", "LN-F3", ("LN-F1", "LN-F3"), BOTH)
#: In float32 it is killed.
SURVIVOR = FaultRow("ln-unbiased", "layer_norm", "LN-F2", ("LN-F1", "LN-F2"), BOTH, ("float16",))
SOUND = SoundRow("welford", "layer_norm")


def shown(matrix: Matrix) -> str:
    """The matrix as an 80-column pipe gets it."""
    stream = io.StringIO()
    print_matrix(matrix, Console(file=stream, width=80, highlight=False))
    return stream.getvalue()


def test_each_fault_is_listed_with_the_requirement_that_killed_it():
    """Under the matrix every fault is named, and what killed it."""
    text = shown(Matrix((KILLED,), (SOUND,), "quick", 1))
    assert "killed by LN-F3 and 1 more" in text
    assert text.rstrip().endswith("PROVEN: 1 of 1 killed, 0 of 1 sound accused.")


def test_the_rows_are_requirements_and_the_columns_faults():
    """A filled mark is the required kill, an open one a further kill, a cross a fault that lives."""
    lines = shown(Matrix((KILLED, SURVIVOR), (SOUND,), "quick", 1, whole=True)).splitlines()
    assert "LN-F1   ○○" in lines
    assert "LN-F2   ·✗" in lines
    assert "LN-F3   ●·" in lines


def test_there_is_no_matrix_where_each_fault_was_run_on_its_own_requirement_alone():
    """The faults are named with their fates, and nothing more."""
    text = shown(Matrix((KILLED, SURVIVOR), (SOUND,), "quick", 1))
    assert "SURVIVED LN-F2 in float16" in text
    assert "4 pairs of fault and dtype" in text
    assert not any(line.startswith("LN-") for line in text.splitlines())


def test_many_faults_fold_into_blocks_that_fit():
    """More faults than columns continue below."""
    faults = tuple(FaultRow(f"fault-{i}", "layer_norm", "LN-F1", ("LN-F1",), BOTH) for i in range(150))
    text = shown(Matrix(faults, (SOUND,), "quick", 1, whole=True))
    assert max(map(len, text.splitlines())) <= 80
    assert sum(line.startswith("LN-F1") for line in text.splitlines()) == 3


@pytest.mark.parametrize(
    ("matrix", "status", "word"),
    [
        (Matrix((KILLED,), (SOUND,), "quick", 1), 0, "PROVEN"),
        (Matrix((SURVIVOR,), (SOUND,), "quick", 1), 1, "NOT PROVEN"),
        (Matrix((KILLED,), (SoundRow("welford", "layer_norm", ("LN-F1",)),), "quick", 1), 1, "NOT PROVEN"),
        (Matrix((KILLED,), (SOUND,), "quick", 1, partial=True), 3, "PARTIAL"),
        (Matrix((), (), "quick", 1), 2, "NOTHING"),
    ],
)
def test_the_exit_status_says_whether_the_suite_is_proven(matrix, status, word):
    """A survivor or an accused sound function is 1, nothing tested 2, an interruption 3."""
    assert matrix.exit_status == status
    assert shown(matrix).rstrip().splitlines()[-1].startswith(word)
