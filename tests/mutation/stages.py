"""The groups of tests that a mutant goes through, and in which order."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

#: Looks for the script that an installation makes, which a copy of the checkout has not.
NOT_INSTALLED = "tests/house/test_package.py::test_the_command_works_outside_the_checkout"
#: -P: a checkout on sys.path would hide other packages.
PYTEST = ("-P", "-m", "pytest", "-x", "-q", "--tb=no", "-p", "no:cacheprovider", f"--deselect={NOT_INSTALLED}")


@attrs.frozen
class Stage:
    """A group of tests."""

    name: str
    #: Arguments of Python.
    arguments: tuple[str, ...]
    #: A mutant that takes longer than this counts as found: it is some ten times the duration of the tests.
    seconds: float = 900.0

    @property
    def is_pytest(self) -> bool:
        """Whether it names the tests that fail."""
        return self.arguments[: len(PYTEST)] == PYTEST

    def command(self, path: str) -> Sequence[str]:
        """The command for a mutant of one file."""
        return [argument.format(path=path) for argument in self.arguments]


def _tests(name: str, *files: str, mark: str = "") -> Stage:
    marked = ("-m", mark) if mark else ()
    return Stage(name, (*PYTEST, *files, *marked))


def _own(name: str, *operators: str) -> Stage:
    return Stage(name, ("tests/mutation/selftest.py", "{path}", *operators))


SHORT, LONG = "not exhaustive", "exhaustive"
#: Tests that evaluate the accuracy page.
FORMULAS = tuple(
    f"tests/spec/test_{name}.py"
    for name in ("formulas_of_accuracy", "closed_bounds", "running_analysis", "range_rules", "relation_bounds")
)
#: Tests of conformance/ about what is drawn, and how it is judged.
CASES = tuple(
    f"tests/conformance/test_{name}.py"
    for name in ("stream", "generate", "regimes", "composed_cases", "sizes", "selection")
)
#: Tests of conformance/ about single checks, findings and what is known: each file takes a few seconds.
NEAR = tuple(
    f"tests/conformance/test_{name}.py"
    for name in (
        "single_checks", "single_steps", "findings", "subject", "equality", "aspects", "non_finite", "divided_last",
        "empty_batch", "mixed_dtypes", "missing_gradients", "known", "groups", "large", "traits", "translated",
        "receptive_field", "range_rules", "seams",
    )
)  # fmt: skip
#: Tests that start many processes: long, and about none of the changed code.
APART = ("tests/conformance/test_isolation.py", "tests/examples", "tests/house", "tests/adapters/remote")
_NOT_APART = tuple(f"--ignore={path}" for path in APART)
RECORDED = "tests/conformance/recorded"
_NOT_BEFORE = tuple(f"--ignore={path}" for path in (*CASES, *NEAR, RECORDED))

STAGES = {
    stage.name: stage
    for stage in (
        _tests("formulas", *FORMULAS),
        _tests("reference", "tests/reference", mark=SHORT),
        _tests("cases", *CASES),
        _tests("near", *NEAR),
        _tests("recorded", RECORDED),
        _tests("judging", "tests/conformance", *_NOT_APART, *_NOT_BEFORE, mark=SHORT),
        _own("selftest rows", "layer_norm", "rms_norm"),
        _own("selftest layers", "residual", "pre_norm", "post_norm", "highway", "mhc"),
        _own("selftest channels", "batch_norm", "group_norm", "instance_norm"),
        _tests("pages", "tests/spec", *(f"--ignore={path}" for path in FORMULAS)),
        _tests("checks", "tests/conformance", *_NOT_APART, *_NOT_BEFORE, mark=LONG),
        _tests("mpmath", "tests/reference", mark=LONG),
        _tests("front", "tests/adapters", "tests/command_line", *_NOT_APART, mark=SHORT),
        _tests("compare", "tests/compare"),
        _tests("apart", *APART),
        _tests("faults", "tests/faults"),
    )
}  # fmt: skip

#: Tests that are likely to see a change come first.
FIRST: dict[str, tuple[str, ...]] = {
    "reference/": (
        "formulas", "reference", "near", "recorded", "selftest rows", "judging", "mpmath", "selftest layers",
    ),
    "conformance/cases/": ("cases", "near", "recorded", "selftest rows", "judging", "checks"),
    "conformance/checks/": (
        "near", "recorded", "selftest rows", "selftest layers", "selftest channels", "judging", "checks",
    ),
    "conformance/": ("near", "recorded", "selftest rows", "judging", "front", "checks"),
}  # fmt: skip


def stages_of(path: str) -> list[Stage]:
    """The stages of a mutant, in order, without those whose tests do not exist."""
    first = next(names for start, names in FIRST.items() if path.startswith(start))
    return [STAGES[name] for name in (*first, *(name for name in STAGES if name not in first)) if name in STAGES]
