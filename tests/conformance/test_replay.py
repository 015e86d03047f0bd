"""Cases in a report's JSON fail again on the faulty function, pass on a sound one, and do no harm."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from normspec import check, load_report
from normspec.conformance.command_line.root import main
from normspec.conformance.engine.engine import Run
from normspec.conformance.faults import FAULTS, Fault
from normspec.conformance.replay.forms import DamagedReport
from normspec.conformance.replay.reading import failed_cases
from normspec.conformance.replay.replaying import NothingToReplay, judged_again
from normspec.conformance.results.left_out import LeftOut
from normspec.conformance.sound.registry import prefix_of
from normspec.spec.operators import OPERATORS

from .replays import again, plan, report_on, shown_in, sound_base
from .runs import FAULT, result, run, specimen

#: A sample of the library's faults, with some of each operator and kind.
SAMPLE = FAULTS[::37]


def misjudged(fault: Fault, folder: Path) -> str:
    """What is wrong with the replay of a fault's counterexample; empty if nothing is."""
    dtype = shown_in(fault)
    report = report_on(fault, dtype)
    on_fault = again(report, specimen(fault), dtype, folder)
    on_base = again(report, sound_base(fault.operator), dtype, folder)
    if on_fault in (["fail"], ["advice"]) and on_base == ["pass"]:
        return ""
    return f"{fault.name}, {fault.requirement} in {dtype}: {on_fault} on itself, {on_base} on the sound function"


def test_what_failed_fails_again_and_passes_on_the_sound_function(tmp_path: Path) -> None:
    """For a sample of faults, each counterexample fails on its fault and passes on the function it was made from."""
    assert [words for fault in SAMPLE if (words := misjudged(fault, tmp_path))] == []


@pytest.mark.campaign  # a quarter of an hour
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("operator", OPERATORS)
def test_every_counterexample_of_the_fault_library_replays(operator: str, tmp_path: Path) -> None:
    """The same for every fault."""
    faults = [fault for fault in FAULTS if fault.operator == operator]
    assert faults, prefix_of(operator)
    assert [words for fault in faults if (words := misjudged(fault, tmp_path))] == []


# The contents of the JSON -----------------------------------------------------------------------------------------


def kept(name: str, dtype: str = "float32") -> dict[str, Any]:
    """The counterexample of a fault's own requirement, as in the JSON."""
    report = report_on(FAULT[name], dtype)
    (one,) = (r for r in json.loads(report.to_json())["results"] if r["requirement"] == FAULT[name].requirement)
    return one["counterexample"]


def array(written: dict[str, Any] | None) -> np.ndarray | None:
    """An array of the JSON, rebuilt without normspec, with the strides that it had."""
    if written is None:
        return None
    dtype, shape = np.dtype(written["dtype"]), written["shape"]
    values = np.array([float.fromhex(v) for v in written["values"]]).astype(dtype).reshape(shape)
    reach = sum((size - 1) * abs(stride) for size, stride in zip(shape, written["strides"], strict=True))
    buffer = np.full(reach + 1 + written["offset"], np.nan, dtype)
    strides = [stride * dtype.itemsize for stride in written["strides"]]
    view = np.lib.stride_tricks.as_strided(buffer[written["offset"] :], shape, strides)
    view[...] = values
    return view


def test_a_reader_without_normspec_gets_the_same_value() -> None:
    """The call, rebuilt in NumPy from the JSON alone, returns what was received."""
    found = kept("ln-rms-norm")
    given = {name: array(one) for name, one in found["inputs"].items()}
    settings = {"eps": float.fromhex(found["settings"]["eps"]), "axes": tuple(found["settings"]["axes"])}
    call = specimen(FAULT["ln-rms-norm"]).bindings[0].call
    assert (found["output"], found["calls"][found["shown_by"]]["does"]) == ("y", "call")
    y = call(given["x"], given["gamma"], given["beta"], **settings)
    assert float(y[tuple(found["index"])]) == float.fromhex(found["got"]) != float.fromhex(found["expected"])


def test_the_layout_of_each_input_is_kept() -> None:
    """If a stride is misread, the JSON says how x lies in memory: the rebuilt view gives the wrong y again."""
    found = kept("ln-strides-ignored")
    x = found["inputs"]["x"]
    assert x["layout"] != "contiguous" and x["strides"] != found["inputs"]["g"]["strides"]
    given = array(x)
    assert given is not None and not given.flags.c_contiguous
    call = specimen(FAULT["ln-strides-ignored"]).bindings[0].call
    gamma, beta = array(found["inputs"]["gamma"]), array(found["inputs"]["beta"])
    settings = {"eps": float.fromhex(found["settings"]["eps"]), "axes": tuple(found["settings"]["axes"])}
    y = call(given, gamma, beta, **settings)
    np.testing.assert_equal(float(y[tuple(found["index"])]), float.fromhex(found["got"]))


def test_the_layout_of_the_cotangent_is_kept() -> None:
    """A cotangent that is no contiguous array has its strides too."""
    found = kept("ln-cotangent-strides-ignored")
    assert found["inputs"]["g"]["layout"] != "contiguous"
    assert found["calls"][found["shown_by"]]["does"] == "vjp"


@pytest.mark.parametrize(
    ("name", "does", "directions"),
    [
        ("ln-double-backward-sign", "vjp of the vjp", "cotangents"),
        ("bn-jvp-detached", "jvp", "tangents"),
    ],
)
def test_the_derivative_and_its_directions_are_kept(name: str, does: str, directions: str) -> None:
    """The JSON says which derivative was taken of which, and along which directions."""
    found = kept(name)
    shown = found["calls"][found["shown_by"]]
    assert shown["does"] == does
    assert shown[directions]["x"]["values"]


def test_which_call_of_how_many_is_kept() -> None:
    """A trace of an earlier call shows in a later one: the JSON holds all of the calls, in order."""
    found = kept("ln-output-buffer-shared")
    does = [call["does"] for call in found["calls"]]
    assert does.count("call") >= 2
    assert "read the outputs again" in does


def test_parts_are_kept_by_kind_and_leaves() -> None:
    """A composed operator's parts can be built again: their kinds, and the inputs that they close over."""
    fault = next(one for one in FAULTS if one.operator == "highway")
    found = json.loads(report_on(fault, shown_in(fault)).to_json())["results"][0]["counterexample"]
    part = found["parts"]["transform"]
    assert part["kind"] and set(part["leaves"]) <= set(found["inputs"]) and part["formula"]


def test_a_case_is_read_back_to_the_last_bit(tmp_path: Path) -> None:
    """Values, settings, parts and the purpose of the case come back unchanged."""
    report = report_on(FAULT["ln-eps-on-std"], "float32")
    (tmp_path / "r.json").write_text(report.to_json())
    (one,) = failed_cases(str(tmp_path / "r.json")).cases
    shown = result(report, "LN-F3").counterexample
    assert shown is not None and shown.case is not None
    assert one.case.description == shown.case.description
    assert one.case.settings == shown.case.settings and one.case.requirements == shown.case.requirements
    for name, value in shown.case.inputs.items():
        back = one.case.inputs[name]
        assert (back is None) == (value is None)
        if back is not None and value is not None:
            assert back.dtype == value.dtype and back.tobytes() == value.tobytes()


# Replaying -------------------------------------------------------------------------------------------------------

FUNCTIONS = """
import numpy as np

def layer_norm(x, gamma, beta, *, eps, axes):
    wide = x.astype(np.float64)
    centred = wide - wide.mean(axes, keepdims=True)
    y = centred / {root}
    y = y if gamma is None else y * gamma
    return (y if beta is None else y + beta).astype(x.dtype)
"""
SOUND = FUNCTIONS.format(root="np.sqrt(np.square(centred).mean(axes, keepdims=True) + eps)")
FAULTY = FUNCTIONS.format(root="(np.sqrt(np.square(centred).mean(axes, keepdims=True)) + eps)")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a faulty function, a sound one, and the report on the first."""
    place = tmp_path_factory.mktemp("replay")
    (place / "faulty.py").write_text(FAULTY)
    (place / "sound.py").write_text(SOUND)
    asked: dict[str, Any] = {"dtypes": ["float32"], "profile": "quick", "only": ["LN-F1", "LN-F3", "LN-L11"]}
    report = check(f"{place}/faulty.py:layer_norm", **asked)
    (place / "report.json").write_text(report.to_json())
    return place


def test_the_command_replays_a_report(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Failed cases fail again, and conform on a sound function; the report says that only they were judged."""
    report = str(folder / "report.json")
    assert main(["check", f"{folder}/faulty.py:layer_norm", "--replay", report]) == 1
    out = capsys.readouterr().out
    assert "DOES NOT CONFORM: 3 violated: LN-F1, LN-F3, LN-L11" in " ".join(out.split())
    assert main(["check", f"{folder}/sound.py:layer_norm", "--replay", report]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "CONFORMS in what was asked: the failed cases of" in out
    assert "judged on the 3 failed cases of" in out
    assert "profile quick, seed 0, 3 cases" in out


def test_advice_is_no_failure_when_it_is_replayed(folder: Path, tmp_path: Path) -> None:
    """A violated SHOULD is counted apart from the failed cases."""
    document = json.loads((folder / "report.json").read_text())
    document["results"][0]["verdict"] = "advice"
    document["counts"] = {}
    (tmp_path / "r.json").write_text(json.dumps(document))
    report = check(f"{folder}/faulty.py:layer_norm", replay=tmp_path / "r.json")
    assert report.notes[0].startswith("judged on the 2 failed cases and 1 case of advice of ")


def test_what_failed_because_it_was_required_is_required_again(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A SHOULD that a run required fails when it is replayed too; words without a failed case ask for nothing."""
    target, file = f"{folder}/faulty.py:layer_norm", str(tmp_path / "r.json")
    asked: dict[str, Any] = {"dtypes": ["float32"], "profile": "quick", "only": ["CM-A1", "LN-R1"]}
    (tmp_path / "r.json").write_text(check(target, require=["CM-A1", "batch-invariant"], **asked).to_json())
    assert main(["check", target, "--replay", file]) == 1
    assert "DOES NOT CONFORM: 1 violated: CM-A1." in capsys.readouterr().out
    report = check(target, replay=file)
    assert (report.require, [one.requirement for one in report.advice()]) == (("CM-A1",), [])
    document = json.loads((tmp_path / "r.json").read_text())
    (tmp_path / "r.json").write_text(json.dumps({**document, "require": ["of another version", "CM-A1"]}))
    assert check(target, replay=file).exit_status == 1
    (tmp_path / "r.json").write_text(json.dumps({**document, "require": 7}))
    with pytest.raises(DamagedReport, match="require is 7, and has to be a list"):
        check(target, replay=file)


def test_each_requirement_is_judged_on_its_own_case_alone(folder: Path) -> None:
    """As many results as failed cases, each with the numbers that were reported."""
    report = check(f"{folder}/faulty.py:layer_norm", replay=folder / "report.json")
    again = {one["requirement"]: one["counterexample"] for one in json.loads(report.to_json())["results"]}
    first = json.loads((folder / "report.json").read_text())["results"]
    assert again == {one["requirement"]: one["counterexample"] for one in first}
    assert report.replayed == str(folder / "report.json")


def test_a_report_names_no_target_to_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a TARGET nothing is run: the contents of a file are never a command."""
    assert main(["check", "--replay", str(folder / "report.json")]) == 2
    assert "needs a TARGET" in capsys.readouterr().err


def test_nothing_to_replay_is_said(folder: Path) -> None:
    """A report without violations, and a target without the operator, are one clear error."""
    document = json.loads((folder / "report.json").read_text())
    (folder / "none.json").write_text(json.dumps({**document, "results": [], "counts": {}}))
    with pytest.raises(NothingToReplay, match="holds no failed case"):
        check(f"{folder}/faulty.py:layer_norm", replay=folder / "none.json")
    cases = failed_cases(str(folder / "report.json")).cases
    with pytest.raises(NothingToReplay, match="are of layer_norm"):
        judged_again(Run(plan(sound_base("batch_norm"), "float32")), cases)
    with pytest.raises(NothingToReplay, match="of what was asked; they are of LN-F1, LN-F3, LN-L11, in float32"):
        check(f"{folder}/faulty.py:layer_norm", replay=folder / "report.json", dtypes=("float64",))


def test_only_what_is_asked_is_replayed(folder: Path) -> None:
    """The note counts the cases of the requirements that --only names, and no others."""
    report = check(f"{folder}/faulty.py:layer_norm", replay=folder / "report.json", only=("LN-F3",))
    assert [one.requirement for one in report.results] == ["LN-F3"]
    assert report.notes[0].startswith("judged on the 1 failed case of ") and report.only == ("LN-F3",)


def test_a_narrower_function_is_handed_what_it_can_be(tmp_path: Path) -> None:
    """A float64 case with float32 numbers is judged where float64 is declared to be float32; others are not."""
    fault = FAULT["ln-eps-on-std"]
    report = run(specimen(fault), dtypes=("float64",), requirements={"LN-F1"}, explain=True)
    (tmp_path / "r.json").write_text(report.to_json())
    cases = failed_cases(str(tmp_path / "r.json")).cases
    declared = plan(specimen(fault), "float64")
    declared.conventions["float64"] = "float32"
    assert [one.verdict.value for one in judged_again(Run(declared), cases).results] == ["fail"]


def test_failed_cases_that_a_target_lacks_are_counted_and_the_run_is_partial(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """NumPy has no 16-bit dtype: the report says how many cases were judged and why others were not; status 3."""
    document = json.loads((folder / "report.json").read_text())
    for one in document["results"]:
        one["dtype"] = "float16" if one["requirement"] == "LN-F3" else one["dtype"]
    file = tmp_path / "r.json"
    file.write_text(json.dumps(document))
    assert main(["check", "numpy", "--replay", str(file), "--json", str(tmp_path / "again.json")]) == 3
    out = " ".join(capsys.readouterr().out.split())
    why = "numpy has no float16"
    assert f"PARTIAL: no violation in 2 of the 3 cases of {file}. Not judged: 1 case, because {why}." in out
    assert f"judged on 2 of the 3 failed cases of {file}, and on nothing else" in out
    report = load_report(tmp_path / "again.json")
    assert report.not_replayed == (LeftOut("numpy", 1, 3, why),)
    assert (report.exit_status, report.conforms) == (3, False)
    assert main(["check", "numpy", "--replay", str(file), "--dtype", "float32"]) == 0  # these alone were asked for
    failing = check("fault:ln-eps-on-std", replay=file, dtypes=["float16", "float32"])
    assert failing.exit_status == 1


def test_a_requirement_is_judged_on_no_other_kind_of_case(folder: Path, tmp_path: Path) -> None:
    """Where the case was made one that the requirement is not about, that is said, and nothing is judged."""
    document = json.loads((folder / "report.json").read_text())
    for one in document["results"]:
        one["counterexample"]["case"]["description"]["requirements"] = []
    (tmp_path / "other.json").write_text(json.dumps(document))
    report = check(f"{folder}/faulty.py:layer_norm", replay=tmp_path / "other.json")
    found = {one.requirement: (one.verdict.value, one.reason) for one in report.results}
    assert found["LN-F3"] == ("unsupported", "LN-F3 is not judged on the stored case")
    assert found["LN-F1"][0] == "fail"  # any ordinary case is one of it


# Damage ----------------------------------------------------------------------------------------------------------

Change = Callable[[dict[str, Any]], object]


def inputs(document: dict[str, Any]) -> dict[str, Any]:
    """The inputs of the first failed case."""
    return document["results"][0]["counterexample"]["inputs"]


def case(document: dict[str, Any]) -> dict[str, Any]:
    """The first failed case."""
    return document["results"][0]["counterexample"]["case"]


def put(place: Callable[[dict[str, Any]], dict[str, Any]], name: str, value: Any) -> Change:
    """A change of one field."""
    return lambda document: place(document).__setitem__(name, value)


def first(document: dict[str, Any]) -> dict[str, Any]:
    """The first result."""
    return document["results"][0]


def x(document: dict[str, Any]) -> dict[str, Any]:
    """x of the first failed case."""
    return inputs(document)["x"]


HOSTILE: dict[str, Change] = {
    "another schema": put(lambda d: d, "schema", 999),
    "no results": put(lambda d: d, "results", None),
    "a result that is a text": lambda d: d["results"].__setitem__(0, "os.system('true')"),
    "an operator that is none": put(first, "op", "__import__('os')"),
    "a requirement of another operator": put(first, "requirement", "BN-F1"),
    "a dtype that is none": put(first, "dtype", "object"),
    "an array of objects": put(x, "dtype", "O"),
    "fewer values than its shape says": put(x, "shape", [1 << 40, 1 << 40]),
    "a negative size": put(x, "shape", [-1, -2]),
    "sizes that are no numbers": put(x, "shape", ["2"]),
    "a value that is code": put(x, "values", ["__import__('os').getpid()", "0x1p+0"]),
    "a value of another dtype": put(x, "values", ["0x1.0000000000001p+0", "0x1p+0"]),
    "a value beyond all floats": put(x, "values", ["0x1p+99999999999", "0x1p+0"]),
    "x is missing": lambda d: case(d)["inputs"].pop("x"),
    "x is null": put(inputs, "x", None),
    "an input that no call takes": put(lambda d: case(d)["inputs"], "y", "as above"),
    "a text that is no array": put(lambda d: case(d)["inputs"], "x", "as below"),
    "a cotangent of another shape": put(lambda d: inputs(d)["g"], "shape", [2, 1]),
    "axes that x lacks": put(lambda d: case(d)["settings"], "axes", [-3, -2, -1]),
    "axes beside each other": put(lambda d: case(d)["settings"], "axes", [0]),
    "an eps that is a number": put(lambda d: case(d)["settings"], "eps", 1e-5),
    "a setting too many": put(lambda d: case(d)["settings"], "momentum", "0x1p-2"),
    "a part for a role that is none": put(case, "parts", {"sublayer": {"kind": "identity"}}),
    "a field of the description that is none": put(lambda d: case(d)["description"], "__class__", "x"),
    "a regime that is none": put(lambda d: case(d)["description"], "groups", [["nonesuch", 0]]),
    "no description": put(case, "description", None),
}


@pytest.mark.parametrize("damage", HOSTILE)
def test_damage_is_one_clear_error(damage: str, folder: Path, tmp_path: Path) -> None:
    """Any damage to a report is described in one line that names the file, and nothing is run."""
    document = json.loads((folder / "report.json").read_text())
    HOSTILE[damage](document)
    file = tmp_path / "damaged.json"
    file.write_text(json.dumps(document))
    with pytest.raises(DamagedReport) as raised:
        failed_cases(str(file))
    assert str(file) in str(raised.value) and "\n" not in str(raised.value)
    assert len(str(raised.value)) < 500


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"null", b"\x80\x04\x95.", b"[" * 100_000, b'{"schema": NaN}', b"1" * 10_000, b"\xff\xfe"],
    ids=["empty", "cut off", "a list", "null", "a pickle", "too deep", "NaN", "a long number", "not UTF-8"],
)
def test_what_is_no_report_is_one_clear_error(content: bytes, tmp_path: Path) -> None:
    """A file that is no JSON, or JSON of something else, is reported as that."""
    file = tmp_path / "other.json"
    file.write_bytes(content)
    with pytest.raises(DamagedReport, match=r"other.*: give a file that `normspec check --json` wrote"):
        failed_cases(str(file))


def test_a_file_that_is_not_there_is_one_clear_error(capsys: pytest.CaptureFixture[str]) -> None:
    """The command says which file, and ends with 2."""
    assert main(["check", "sound:ln-plain", "--replay", "nowhere.json"]) == 2
    assert "nowhere.json cannot be read" in capsys.readouterr().err


def test_a_report_of_no_case_is_counted(tmp_path: Path) -> None:
    """A violation that was kept without a case is counted, and the others are judged."""
    report = run(specimen(FAULT["ln-eps-on-std"]), requirements={"LN-F1", "LN-F3"}, explain=True)
    document = json.loads(report.to_json())
    document["results"][0]["counterexample"] = None
    (tmp_path / "r.json").write_text(json.dumps(document))
    found = failed_cases(str(tmp_path / "r.json"))
    assert (len(found.cases), found.without) == (1, 1)
    again = judged_again(Run(plan(specimen(FAULT["ln-eps-on-std"]), "float32")), found.cases, without=found.without)
    assert again.notes[1] == "1 violation was kept without a case"
