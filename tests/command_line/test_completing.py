"""A shell completes what may stand at a place of a command."""

from __future__ import annotations

import pytest
from click.shell_completion import ShellComplete

from normspec.conformance.command_line.root import main, normspec


def completed(line: str) -> list[str]:
    """What may stand in place of the last word of a line, which may be empty; a file is shown as `FILE`."""
    *words, last = line.split(" ")
    found = ShellComplete(normspec, {}, "normspec", "_NORMSPEC_COMPLETE").get_completions(words, last)
    return ["FILE" if one.type == "file" else one.value for one in found]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("ch", ["check"]),
        ("check to", ["FILE", "torch"]),
        ("compare nu", ["FILE", "numpy"]),
        ("identify equ", ["FILE", "equinox"]),
        ("study --target nu", ["FILE", "numpy"]),
        ("campaign so", ["FILE", "sound"]),
        ("check --op lay", ["layer_norm"]),
        ("check --op layer_norm,HI", ["layer_norm,highway"]),
        ("compare --op lay", ["layer_norm"]),
        ("check --dtype b", ["bfloat16"]),
        ("identify --dtype b", ["bfloat16"]),
        ("check --profile ", ["quick", "standard", "thorough"]),
        ("check --framework tor", ["torch"]),
        ("check --mode inf", ["inference"]),
        ("check --layout channels-f", ["channels-first"]),
        ("check --convention momentum=", ["momentum=new", "momentum=old"]),
        ("check --only ln-f3", ["LN-F3"]),
        ("check --only LN-F3,grad", ["LN-F3,gradients"]),
        ("check --require det", ["deterministic"]),
        ("explain err-15", ["ERR-15"]),
        ("explain ln-eps-on-s", ["ln-eps-on-std", "ln-eps-on-sum", "ln-eps-on-std-in-the-middle"]),
        ("study norm-p", ["norm-position"]),
    ],
)
def test_names_are_completed(line, words):
    """In letters of any case, and after a comma where several names may stand."""
    assert completed(line) == words


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_its_script(shell, monkeypatch, capsys):
    """The lines of docs/configuring.md end with status 0."""
    monkeypatch.setattr("click.shell_completion.BashComplete._check_version", lambda *_: None)  # bash need not be here
    monkeypatch.setenv("_NORMSPEC_COMPLETE", f"{shell}_source")
    assert main([]) == 0
    assert "_NORMSPEC_COMPLETE" in capsys.readouterr().out
