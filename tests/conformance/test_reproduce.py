"""A script shows a violation without normspec: it fails on the function it is about, and passes on a sound one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import attrs
import pytest

from normspec import check
from normspec.conformance.faults import FAULTS, Fault
from normspec.conformance.judging.verdicts import Result
from normspec.conformance.reproduce.files import UnwritableFolder, file_name, free_name, write
from normspec.conformance.reproduce.language import language_of
from normspec.conformance.reproduce.source import Source
from normspec.conformance.reproduce.spelling import CannotWrite, literal
from normspec.spec.operators import OPERATORS

from . import scripts
from .runs import FAULT
from .scripts import judged, violation, written

#: A fault for every kind of assertion in a script, and the text by which the script shows it.
KINDS = {
    "ln-rms-norm": "got, expected = float(y[",
    "ln-variance-detached": "layer_norm_vjp(",
    "ln-jvp-detached": "layer_norm_jvp(",
    "ln-double-backward-no-gamma": "layer_norm_vjp_vjp(",
    "ln-forward-over-reverse-detached": "layer_norm_jvp_vjp(",
    "ln-reverse-over-forward-detached": "layer_norm_vjp_jvp(",
    "ln-forward-over-forward-detached": "layer_norm_jvp_jvp(",
    "ln-strides-ignored": "strided(",
    "ln-cotangent-strides-ignored": "g = strided(",
    "ln-zero-groups-refused": ".shape) == ",
    "ln-eps-unchecked": "raise AssertionError",
    "ln-output-float32": ".dtype == x.dtype",
    "ln-output-flattened": ".shape) == ",
    "ln-statistics-returned-too": "isinstance(y",
    "ln-dgamma-not-returned": "is not None",
    "ln-nan-to-zero": "np.isnan(got)",
    "ln-inf-clipped": "not np.isfinite(got)",
    "ln-nan-leaks-to-neighbour": "nan",
    "ln-x-overwritten": "before = numbers(x",
    "ln-output-buffer-shared": "before = numbers(y",
    "ln-last-bit-on-alternate-calls": "for _ in range(",
    "ln-drifts-after-ten-calls": "for _ in range(",
    "ln-saved-statistics-shared": "layer_norm_vjp(",
    "ln-reciprocal-root-by-power": "assert got == expected",
    "ln-odd-groups-last-bit": "assert got == expected",
    "ln-mixed-output-as-parameters": "'float16'",
    "bn-momentum-convention": "new_running_mean",
    "rs-activation-ignored": "activation=",
    "hw-carry-added": "lambda x: ",
    "mh-weights-unnormalised": "mhc(",
}


#: What the script for a result of another form says.
FORMS = {
    "ln-output-float32": "AssertionError: y has dtype float32, and must have float16",
    "ln-output-flattened": "AssertionError: y has shape (12, 5), and must have (3, 4, 5)",
    "ln-statistics-returned-too": "AssertionError: y is of type tuple, and must be of ndarray",
    "ln-dgamma-not-returned": "AssertionError: dgamma is None",
}


@pytest.mark.parametrize("name", FORMS)
def test_a_script_says_which_form_a_result_has(name: str, tmp_path: Path) -> None:
    """A wrong shape, dtype or type is told with the right one."""
    bad = tmp_path / "bad.py"
    bad.write_text(scripts.MODULE.format(made=f"next(one for one in FAULTS if one.name == {name!r}).build()"))
    assert scripts.run(written(violation(FAULT[name]), bad, "target")) == FORMS[name]


@pytest.mark.parametrize("name", [name for name in KINDS if name in FAULT])
def test_a_script_fails_on_the_fault_and_passes_on_the_sound_function(name: str, tmp_path: Path) -> None:
    """For every kind of check, its script distinguishes the wrong function from the right one."""
    assert judged(FAULT[name], tmp_path) == ""
    assert KINDS[name] in written(violation(FAULT[name]), tmp_path / "bad.py", "target")


#: Reasons why there is no script, by words that say what one would need.
WITHOUT = (
    "take parts that have derivatives of their own",
    "only some of the gradients",
    "takes more than an expression",
    "no single result of a plain call",
    "takes too many calls",
)


def outcomes(faults: list[Fault], folder: Path) -> tuple[list[str], Counter[str]]:
    """The problems with these faults' scripts, and how many have none for which reason."""
    wrong, without = [], Counter[str]()
    for fault in faults:
        try:
            words = judged(fault, folder)
        except CannotWrite as why:
            reason = next((one for one in WITHOUT if one in str(why)), str(why))
            without[reason] += 1
        else:
            wrong += [words] if words else []
    return wrong, without


@pytest.mark.campaign  # some ten minutes
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("operator", OPERATORS)
def test_every_script_of_the_fault_library(operator: str, tmp_path: Path) -> None:
    """In the whole library no script is wrong; if there is none, the reason is a known one."""
    faults = [fault for fault in FAULTS if fault.operator == operator]
    wrong, without = outcomes(faults, tmp_path)
    print(f"{operator}: {len(faults) - without.total()} of {len(faults)} have a script; {dict(without)}")
    assert wrong == []
    assert set(without) <= set(WITHOUT)


# From the command line ------------------------------------------------------------------------------------------

FAULTY = """
import numpy as np

def eps_outside(x, gamma, beta, *, eps, axes):
    d = x.astype(np.float64) - x.mean(axes, keepdims=True, dtype=np.float64)
    y = d / ({root})
    y = y if gamma is None else y * gamma
    return (y if beta is None else y + beta).astype(x.dtype)
"""
WRONG = FAULTY.format(root="np.sqrt(np.square(d).mean(axes, keepdims=True)) + eps")
RIGHT = FAULTY.format(root="np.sqrt(np.square(d).mean(axes, keepdims=True) + eps)")


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory: pytest.TempPathFactory):
    """A report on a wrong function whose file has a hostile name, and the folder of its script."""
    folder = tmp_path_factory.mktemp("a folder'); import nothing #")
    file = folder / "mine \"'; raise SystemExit #.py"
    file.write_text(WRONG)
    scripts = folder / "scripts"
    report = check(
        f"{file}:eps_outside", op="layer_norm", dtypes=["float32"], profile="quick", only="LN-F*", reproduce=scripts
    )
    return report, scripts


def test_a_cause_has_one_script_that_needs_no_normspec(reproduced, tmp_path: Path) -> None:
    """It names the mistake, is short, imports only NumPy, and fails; on the corrected file it passes."""
    report, _ = reproduced
    (one,) = report.reproducers
    assert (one.fault, one.why_not) == ("ln-eps-on-std", "")
    text = Path(one.file).read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.strip()]
    assert len(lines) <= 24 and "Divides by sqrt(var) + eps." in lines[0]
    assert "import normspec" not in text and "from normspec" not in text
    mended = tmp_path / "mended.py"
    mended.write_text(RIGHT)
    alone = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    told = [
        subprocess.run([sys.executable, one.file, *more], capture_output=True, text=True, env=alone, cwd=tmp_path)
        for more in ((), (str(mended),))
    ]
    assert [one.returncode for one in told] == [1, 0], told
    assert "AssertionError: y[0, 0] is -0.66" in told[0].stderr


HALVED = """
import numpy as np

def layer_norm(x, gamma, beta, *, eps, axes):
    xhat, _ = normalised(x, eps, axes)
    y = xhat if gamma is None else xhat * gamma
    return (y if beta is None else y + beta).astype(x.dtype)

def layer_norm_vjp(x, gamma, beta, g, *, eps, axes):
    xhat, r = normalised(x, eps, axes)
    h = g if gamma is None else g * gamma
    dx = r * (h - h.mean(axes, keepdims=True) - xhat * (h * xhat).mean(axes, keepdims=True))
    rows = tuple(range(x.ndim - len(axes)))
    dgamma = None if gamma is None else (0.5 * g * xhat).sum(rows).astype(gamma.dtype)
    return dx.astype(x.dtype), dgamma, None if beta is None else g.sum(rows)

def normalised(x, eps, axes):
    d = x - x.mean(axes, keepdims=True)
    r = 1 / np.sqrt(np.square(d).mean(axes, keepdims=True) + eps)
    return d * r, r
"""


def test_a_script_shows_what_the_cause_is_about(tmp_path: Path) -> None:
    """Of the cases that are equally plain, that of the requirement under which the report shows the cause."""
    (tmp_path / "mine.py").write_text(HALVED)
    asked = {"dtypes": ["float32"], "profile": "quick", "only": ["CM-P2", "CM-S1", "LN-G*"]}
    report = check(f"{tmp_path}/mine.py:layer_norm", **asked, reproduce=tmp_path / "scripts")
    assert [cause.requirement for cause in report.causes] == ["LN-G2"]
    assert [Path(one.file).name for one in report.reproducers] == ["mine-layer_norm-LN-G2-float32.py"]
    assert str(report).count("mine-layer_norm-LN-G2-float32.py") == 1  # under the cause, and not again below


def test_the_report_says_where_the_script_lies(reproduced) -> None:
    """The text names the file next to the cause, and so does the JSON."""
    report, scripts = reproduced
    file = f"{scripts}/mine-raise-SystemExit-eps_outside-ln-eps-on-std-float32.py"
    assert "".join(f"script{file}".split()) in "".join(str(report).split())
    assert '"fault": "ln-eps-on-std"' in report.to_json()


def test_without_the_option_the_report_says_how(reproduced) -> None:
    """Under a cause the report says that --reproduce writes a script."""
    report, _ = reproduced
    assert "--reproduce DIR" in str(attrs.evolve(report, reproducers=()))


# The file written --------------------------------------------------------------------------------------------------


def test_a_file_of_other_content_is_not_overwritten(tmp_path: Path) -> None:
    """The same text may be written twice; another is refused with one clear reason, and no file is left."""
    assert write(str(tmp_path), "a.py", "one\n") == write(str(tmp_path), "a.py", "one\n")
    with pytest.raises(CannotWrite, match=r"a\.py is there with other content; move it away"):
        write(str(tmp_path), "a.py", "two\n")
    assert [file.name for file in tmp_path.iterdir()] == ["a.py"]
    assert (tmp_path / "a.py").read_text() == "one\n"


def test_a_folder_that_cannot_be_is_told_before_anything_is_checked(tmp_path: Path) -> None:
    """A file where the folder should be is one error that says so."""
    (tmp_path / "file").write_text("")
    with pytest.raises(UnwritableFolder, match="is not a folder and cannot be made one"):
        check("sound:ln-plain", profile="quick", reproduce=tmp_path / "file")


def test_names_become_names_of_files() -> None:
    """Whatever the name of a target, its script is in the named folder."""
    assert file_name(["../../etc/passwd\n;rm", "", "LN-F3"]) == "etc-passwd-rm-LN-F3.py"
    assert file_name(["layer_norm_é"]) != file_name(["layer_norm_è"])
    assert len(file_name(["é" * 500, "層" * 500, "x" * 500, "float32"]).encode()) < 255
    assert free_name("a.py", []) == "a.py"
    assert free_name("a.py", ["a.py", "A-2.py"]) == "a-3.py"


def test_two_files_of_one_name_have_two_scripts(tmp_path: Path) -> None:
    """Mistakes in functions of the same name, in files of the same name, each have a script; again, the same ones."""
    targets = []
    for folder, factor in (("a", 2), ("b", 3)):
        (tmp_path / folder).mkdir()
        file = tmp_path / folder / "mine.py"
        file.write_text(_SCALED.format(factor=factor))
        targets.append(f"{file}:layer_norm")
    for _ in range(2):
        report = check(targets, profile="quick", only=["LN-F1"], dtypes=["float32"], reproduce=tmp_path / "out")
        files = [Path(one.file).name for one in report.reproducers]
        assert files == ["mine-layer_norm-LN-F1-float32.py", "mine-layer_norm-LN-F1-float32-2.py"]


_SCALED = """
import numpy as np


def layer_norm(x, gamma, beta, *, eps, axes):
    d = x - x.mean(axes, keepdims=True)
    y = d / np.sqrt((d * d).mean(axes, keepdims=True) + x.dtype.type(eps))
    y = y if gamma is None else y * gamma
    return (y if beta is None else y + beta) * {factor}
"""


def test_numbers_are_written_to_the_last_bit_and_nothing_else_is() -> None:
    """Floats in hexadecimal, including NaN and infinities; anything but numbers and tuples is refused."""
    values = (0.1, -0.0, float("inf"), float("nan"), (-2, -1), True, None)
    assert repr([eval(literal(one)) for one in values]) == repr(list(values))
    with pytest.raises(CannotWrite):
        literal("__import__('os')")


def test_a_target_that_is_no_function_of_a_file_has_no_script() -> None:
    """Only normspec can call a framework, a command or a sound function."""
    for target in ("torch", "sound:ln-plain", "exec:./kernel"):
        with pytest.raises(CannotWrite):
            Source.of(target)


@pytest.mark.parametrize("framework", ["numpy", "torch", "tensorflow", "jax", "mxnet", "onnx", "keras[jax]"])
def test_every_framework_has_what_a_script_needs(framework: str) -> None:
    """Its file is read without importing it, and each helper is plain code without annotations."""
    language = language_of(framework)
    assert {"tensor", "numbers", "zeros", "tanh", "relu", "matmul", "view"} <= language.functions.keys()
    for source in language.functions.values():
        compile(source, framework, "exec")
        assert "Any" not in source


def test_what_cannot_be_written_says_so(tmp_path: Path) -> None:
    """In NumPy the gradients of a block need parts with their own derivatives: one line says so."""
    (tmp_path / "bad.py").write_text("def target(): pass\ndef target_vjp(): pass\n")
    result: Result = violation(FAULT["rs-gradient-of-identity-twice"])
    with pytest.raises(CannotWrite, match="parts that have derivatives of their own"):
        written(result, tmp_path / "bad.py", "target")
