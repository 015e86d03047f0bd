"""Functions of the library as targets: `sound:NAME` and `fault:NAME`."""

from __future__ import annotations

import pytest

import normspec
from normspec.conformance.command_line.root import main
from normspec.conformance.faults import FAULTS
from normspec.conformance.requests.library_names import FAULT_PREFIX, SOUND_PREFIX, is_in_library
from normspec.conformance.requests.library_targets import library_target
from normspec.conformance.sound import DECLARED, SOUND
from normspec.spec.errors import UnknownOperator, UnknownTarget


def test_a_known_mistake_is_checked_by_its_name(capsys):
    """Its report is that of a function with this mistake, but for the script that only a file can have."""
    assert main(["check", "fault:ln-eps-on-std", "--profile", "quick", "--dtype", "float32", "--no-cache"]) == 1
    told = capsys.readouterr().out
    assert "Cause: Divides by sqrt(var) + eps." in told and "normspec explain ln-eps-on-std" in told
    assert "--reproduce" not in told


def test_a_sound_function_is_judged_under_what_it_declares():
    """Without its declaration it would violate BN-F8."""
    report = normspec.check("sound:bn-old-momentum", profile="quick", dtypes=("float32",), cache=False)
    assert report.exit_status == 0


def test_every_name_of_the_library_is_a_target_of_its_operator():
    """No function of a module can have such a name."""
    names = {SOUND_PREFIX + one.name: one.operator for one in (*SOUND, *DECLARED)}
    names |= {FAULT_PREFIX + one.name: one.operator for one in FAULTS}
    assert all(is_in_library(name) for name in names)
    few = [name for place, name in enumerate(names) if place % 97 == 0]
    assert [library_target(name).bindings[0].operator for name in few] == [names[name] for name in few]


@pytest.mark.parametrize("name", ["fault:layer_norm", "sound:layer_norm", "sound", "fault.py:ln-eps", "numpy", len])
def test_other_names_are_not_in_the_library(name, tmp_path, monkeypatch):
    """A module may be called `fault` or `sound`."""
    for module in ("fault", "sound"):
        (tmp_path / f"{module}.py").write_text("")
    monkeypatch.chdir(tmp_path)
    assert not is_in_library(name)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("fault:ln-eps-on-sdt", "did you mean fault:ln-eps-on-std"),
        ("sound:ln-welfrod", "did you mean sound:ln-welford"),
        ("fault:???", "explain faults"),
        ("sound:foo", "and there is no module sound"),
        ("sound:welford", "did you mean sound:.*welford"),
    ],
)
def test_a_name_that_the_library_lacks_is_refused(name, words):
    """The message has the nearest name, or says where all of them are."""
    with pytest.raises(UnknownTarget, match=f"the library has no {name[:6]}.*{words}"):
        normspec.check(name)


def test_a_function_of_another_operator_is_refused():
    """`--op` is for functions whose operator their name does not show."""
    with pytest.raises(UnknownOperator, match="is one of layer_norm, not of mhc"):
        normspec.check("fault:ln-eps-on-std", op="mhc")
