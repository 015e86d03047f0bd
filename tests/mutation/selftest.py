"""
Put the suite to its own faults and sound functions, and stop at the first that shows it wrong.

    python tests/mutation/selftest.py FILE OPERATOR...

If the changed FILE holds checks, the faults that these must kill come first. The last line printed names what went
wrong; the status is then 1.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from normspec import check
from normspec.conformance.checks.catalogue import checks_of
from normspec.conformance.faults import FAULTS
from normspec.conformance.selftest.selftest import judge_fault, judge_sound
from normspec.conformance.sound import DECLARED, SOUND

#: As in the environment `selftest` of tox.
DTYPES = ("float32",)


def accusations(operator: str, file: str) -> Iterator[str]:
    """The results that show the suite wrong about one operator."""
    module = "normspec." + file.removesuffix(".py").replace("/", ".")
    checked = {one.requirement for one in checks_of(operator) if one.body.__module__ == module}
    faults = sorted((one for one in FAULTS if one.operator == operator), key=lambda one: one.requirement not in checked)
    for fault in faults:
        if not judge_fault(fault.name, DTYPES, "quick", 0).killed:
            yield f"fault {fault.name} lives"
    for result in check("numpy", op=operator, profile="quick").results:
        if result.verdict.value in ("fail", "advice", "error"):
            yield f"{operator} of numpy is accused by {result.requirement}"
    for sound in (*SOUND, *DECLARED):
        if sound.operator == operator:
            yield from (
                f"{sound.name} is accused by {one}" for one in judge_sound(sound.name, DTYPES, "quick", 0).accused_by
            )


def main(file: str, *operators: str) -> int:
    """Report the first accusation."""
    for operator in operators:
        for said in accusations(operator, file):
            print(said)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
