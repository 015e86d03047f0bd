"""Scripts of counterexamples, run in this process: on the function that they were written for, and on a sound one."""

from __future__ import annotations

import sys
from pathlib import Path

import attrs
import numpy as np

from normspec import Report, Result
from normspec.conformance.engine.engine import Run
from normspec.conformance.faults import Fault
from normspec.conformance.reproduce.script import script
from normspec.conformance.reproduce.source import Source

from .replays import plan, shown_in
from .runs import specimen

#: A file whose function is a fault, or the function it was made from, with the derivatives next to it.
MODULE = """
from normspec.adapters.binding import DERIVATIVES
from normspec.adapters.numpy.operators import IMPLEMENTATIONS
from normspec.conformance.faults import FAULTS

made = {made}
target = made.call
def target_vjp(): pass
def target_jvp(): pass
def target_vjp_vjp(): pass
def target_jvp_vjp(): pass
def target_vjp_jvp(): pass
def target_jvp_jvp(): pass
globals().update({{f"target_{{name}}": getattr(made, name) for name in DERIVATIVES}})
"""


def run(text: str, *arguments: str) -> str | None:
    """The message of a script that fails; None for one that ends well."""
    before, path = sys.argv, list(sys.path)
    sys.argv = ["script.py", *arguments]
    try:
        with np.errstate(all="ignore"):
            exec(compile(text, "script.py", "exec"), {"__name__": "__main__"})
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    finally:
        sys.argv, sys.path[:] = before, path
    return None


def written(result: Result, file: Path, name: str, framework: str = "numpy") -> str:
    """The script for a result on a function of a file. Raises CannotWrite."""
    source = Source.of(f"{file}:{name}")
    made = attrs.evolve(result, target=source.target)
    return script(made, source, framework, {}, frozenset(), run, ["What is wrong."])


def violation(fault: Fault) -> Result:
    """The requirement that must kill a fault, violated, on the case that it was found on."""
    asked = {"requirements": frozenset({fault.requirement}), "explain": False}
    report = Report((), "quick", 0)
    for profile in ("quick", "standard"):
        report = Run(plan(specimen(fault), shown_in(fault), profile, **asked)).report()
        if report.failures() or report.advice():
            break
    return (*report.failures(), *report.advice())[0]


def judged(fault: Fault, folder: Path) -> str:
    """The problem with the script for a fault; empty if there is none. Raises CannotWrite."""
    bad, sound = folder / "bad.py", folder / "sound.py"
    bad.write_text(MODULE.format(made=f"next(one for one in FAULTS if one.name == {fault.name!r}).build()"))
    sound.write_text(MODULE.format(made=f"IMPLEMENTATIONS[{fault.operator!r}]().implementation()"))
    result = violation(fault)
    text = written(result, bad, "target")
    on_fault, on_sound = run(text), run(text, str(sound))
    if on_fault is not None and on_sound is None:
        return ""
    return f"{fault.name}, {fault.requirement}: {on_fault} on itself, {on_sound} on the sound function"
