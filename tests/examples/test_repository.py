"""The repository of five files in examples/, the action and the hook: run as far as that goes without a network."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from ..conftest import PLUGIN

CHECKOUT = Path(__file__).parent.parent.parent
FILES = {".github/workflows/check.yml", "README.md", "kernel.py", "normspec.toml", "test_kernel.py"}


@pytest.fixture
def repository(tmp_path):
    """A copy of the repository."""
    folder = tmp_path / "repository"
    shutil.copytree(
        CHECKOUT / "examples" / "repository", folder, ignore=shutil.ignore_patterns("__pycache__", ".pytest_cache")
    )
    return folder


def shell(script: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a script as a runner of GitHub does, with the Python of the tests."""
    places = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=folder,
        env={**os.environ, "PATH": places, "GITHUB_WORKSPACE": str(folder), **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def read(file: str) -> Any:
    """A YAML file of the checkout."""
    return yaml.safe_load((CHECKOUT / file).read_text(encoding="utf-8"))


def step(name: str) -> dict[str, Any]:
    """A step of the action, by its name."""
    (found,) = (one for one in read("action.yml")["runs"]["steps"] if one["name"] == name)
    return found


def variables(**given: str) -> dict[str, str]:
    """The variables of the step that checks, as GitHub fills them in from the inputs."""
    inputs = {name: about.get("default", "") for name, about in read("action.yml")["inputs"].items()} | given
    return {
        name: re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda found: inputs[found[1]], text)
        for name, text in step("Check")["env"].items()
    }


def test_the_repository_has_five_files(repository):
    """The number is the one in its README, which is not counted."""
    found = {file.relative_to(repository).as_posix() for file in repository.rglob("*") if file.is_file()}
    assert found == FILES
    readme = (repository / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(.*?)` \|", readme, re.M)) == FILES - {"README.md"}


@pytest.mark.exhaustive  # the result does not depend on the Python version
def test_its_test_passes_and_fails_where_the_kernel_is_broken(repository):
    """Each requirement has a test; an expected failure is an xfail; a planted regression fails, with cause and line."""
    command = shlex.join([sys.executable, "-m", "pytest", *PLUGIN, "-p", "no:cacheprovider", "-q", "-rx"])
    done = shell(f"{command} -k float32", repository)
    assert done.returncode == 0, done.stdout
    assert re.search("XFAIL .*CM-S2.*an empty batch is refused", done.stdout)
    line = _break(repository)
    done = shell(f"{command} -k 'float32 and LN-F3' --normspec kernel.py:layer_norm", repository)
    assert done.returncode == 1
    for text in ("Cause: Divides by sqrt(var) + eps.", f"\nkernel.py:{line}: violates LN-F3\n"):
        assert done.stdout.count(text) == 2  # in the test of the file, and in the requested one


def _break(repository: Path) -> int:
    """Plant a regression, eps on the deviation, and return the line of the function."""
    file = repository / "kernel.py"
    text = file.read_text(encoding="utf-8")
    broken = text.replace(
        "np.sqrt(np.square(d).mean(axes, keepdims=True) + np.asarray(eps, wide.dtype))",
        "(np.sqrt(np.square(d).mean(axes, keepdims=True)) + np.asarray(eps, wide.dtype))",
    )
    assert broken != text
    file.write_text(broken, encoding="utf-8")
    return 1 + broken.split("\n").index("def layer_norm(x, gamma, beta, *, eps, axes):")


def test_the_action_checks_what_is_configured_and_a_regression_is_annotated_and_found_by_diff(repository):
    """The same regression is in the annotations, in the summary and in the diff, each with the line."""
    summary = repository / "summary.md"
    sound = shell(step("Check")["run"], repository, **variables(report="old.json"), GITHUB_STEP_SUMMARY=str(summary))
    assert sound.returncode == 0, sound.stderr
    assert "CONFORMS except for expected failures (CM-S2)" in sound.stdout and "::error" not in sound.stdout
    line = _break(repository)
    given = variables(targets="kernel.py:layer_norm", options="--dtype float32", against="old.json", report="new.json")
    broken = shell(step("Check")["run"], repository, **given, GITHUB_STEP_SUMMARY=str(summary))
    assert broken.returncode == 1
    (annotation, *_) = [one for one in broken.stdout.splitlines() if one.startswith("::error")]
    assert annotation.startswith(f"::error file=kernel.py,line={line},title=kernel.py%3Alayer_norm%3A LN-F3")
    assert "Ceased to conform" in summary.read_text(encoding="utf-8")
    diff = shell("python -m normspec diff old.json new.json", repository)
    assert diff.returncode == 1
    assert f"kernel.py:layer_norm at kernel.py:{line}" in diff.stdout
    assert json.loads((repository / "new.json").read_text(encoding="utf-8"))["exit_status"] == 1


def test_the_action_takes_no_code_from_its_inputs(repository):
    """A caller's text is split into words, and never run."""
    scripts = [one["run"] for one in read("action.yml")["runs"]["steps"] if "run" in one]
    assert not any("${{" in script for script in scripts)
    given = variables(targets="$(touch made) ; touch made", report="r.json")
    done = shell(step("Check")["run"], repository, **given)
    assert done.returncode == 2 and not (repository / "made").exists()


def test_the_action_checks_the_targets_of_all_lines(repository):
    """Several lines of an input are one list of words, and none of them is lost."""
    given = variables(
        targets="kernel.py:layer_norm\nkernel.py:nonesuch\n", options="--dtype float32\n--profile quick\n", report="r"
    )
    done = shell(step("Check")["run"], repository, **given)
    assert done.returncode == 2 and "kernel.py has no 'nonesuch'" in done.stderr


def test_the_action_takes_words_in_quotes(repository):
    """A pattern is written in quotes everywhere else, and the name of a file may have a blank; a backslash stays."""
    (repository / "my kernel.py").write_bytes((repository / "kernel.py").read_bytes())
    options = "--profile quick --dtype float32 --only 'LN-F*'"
    given = variables(targets="'my kernel.py:layer_norm'", options=options, report="r.json")
    done = shell(step("Check")["run"], repository, **given)
    assert done.returncode == 0, done.stderr
    assert "CONFORMS in what was asked: LN-F*" in done.stdout
    for targets, told in (
        (r"folder\kernel.py:f", r"folder\kernel.py"),
        ("'kernel.py:f", "options of the action: No cl"),
    ):
        done = shell(step("Check")["run"], repository, **variables(targets=targets, report="r.json"))
        assert done.returncode == 2 and told in done.stderr


def test_every_input_of_the_action_is_used_and_said_what_for():
    """Every input has an effect, and a sentence that describes it."""
    action = read("action.yml")
    used = set(re.findall(r"inputs\.(\w+)", (CHECKOUT / "action.yml").read_text(encoding="utf-8")))
    assert set(action["inputs"]) == used
    assert all(about["description"] for about in (*action["inputs"].values(), *action["outputs"].values()))
    assert action["runs"]["using"] == "composite"
    assert all("shell" in one for one in action["runs"]["steps"] if "run" in one)


def test_the_workflow_is_one_and_uses_the_action_of_this_repository(repository):
    """Each step uses an action or runs a command; the action is the one in the package's repository."""
    workflow = yaml.safe_load((repository / ".github/workflows/check.yml").read_text(encoding="utf-8"))
    (job,) = workflow["jobs"].values()
    assert all(("uses" in one) != ("run" in one) for one in job["steps"])
    assert "normspec/normspec@main" in [one.get("uses") for one in job["steps"]]
    assert True in workflow  # `on`, which YAML 1.1 reads as true


@pytest.mark.exhaustive  # the result does not depend on the Python version
def test_the_hook_checks_what_is_configured(repository):
    """Its command runs without a file name, and fails where the kernel is broken."""
    (hook,) = read(".pre-commit-hooks.yaml")
    assert (hook["id"], hook["language"], hook["pass_filenames"]) == ("normspec", "python", False)
    assert shell(f"{hook['entry']} --dtype float32", repository).returncode == 0
    _break(repository)
    assert shell(f"{hook['entry']} --dtype float32", repository).returncode == 1
