"""An mhc that divides last, and one that does so online, stay within the envelope wherever it is tightest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from normspec.conformance.cases.case import Case
from normspec.conformance.judging.subject import Subject
from normspec.reference.formats import FORMATS
from normspec.spec.parts import Part

from .runs import VARIANT, specimen

pytestmark = pytest.mark.exhaustive  # it does not depend on the Python version


def problem(random: np.random.Generator, dtype: str) -> Case:
    """A few branches of any number, logits near each other or far apart, values down to where they underflow."""
    stored, count = FORMATS[dtype], int(random.integers(1, 13))
    shape = (int(random.integers(1, 5)), int(random.integers(1, 4)))
    spread = random.choice([0.0, 0.5, 3.0, 12.0])
    logits = (
        random.choice([0.0, 1.0, 40.0]) + spread * np.sort(random.standard_normal(count))[:: random.choice([1, -1])]
    )
    least = np.log2(stored.smallest_subnormal)

    def values() -> np.ndarray:
        size = 2.0 ** random.choice([0.0, 3.0, random.uniform(least, least + 14)])
        return (size * random.standard_normal(shape)).astype(stored.dtype)

    inputs: dict[str, Any] = {"x": values(), "logits": logits.astype(stored.dtype)}
    inputs |= {f"branches.{k}.h": values() for k in range(count)}
    parts = {"branches": tuple(Part("leaf", (f"branches.{k}.h",)) for k in range(count)), "fuse": None}
    return Case("mhc", inputs, {}, values(), parts=parts)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("way", ["divided-last", "online"])
def test_dividing_last_stays_within_the_envelope(way: str, dtype: str) -> None:
    """y and every gradient lie within the envelope; in 16 bits this uses the dtype's own arithmetic."""
    native = FORMATS[dtype].narrow
    target = specimen(VARIANT[f"mh-native-{way}" if native else f"mh-{way}"])
    subject = Subject(target, target.bindings[0], dtype, conventions={"storage": "native"} if native else {})
    random = np.random.default_rng(33)
    with np.errstate(all="ignore"):
        for _ in range(150 if native else 40):
            case = problem(random, dtype)
            seen = subject.observe(case)
            found = [subject.judge_output(case, "y", seen.outputs["y"])]
            found += [subject.judge_gradient(case, name, value) for name, value in seen.gradients.items()]
            wrong = [(one.output, one.index, one.expected, one.got, one.envelope) for one in found if one.violated]
            assert not wrong, (wrong, case.inputs["logits"])
