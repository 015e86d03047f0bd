"""A script that shows one violation: from a counterexample to text, with the help of a probe."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import product

import attrs

from ...spec.operators import OPERATORS
from ..judging.verdicts import Result
from .assertion import assertion
from .assertion_lines import Assertion
from .language import Language, language_of
from .probe import Runner, StepOutcome, indented, probe, seen
from .sequences import sequences
from .source import Source
from .spelling import CannotWrite, Spelling
from .step import Step
from .steps import steps
from .truths import Judge

#: The names in a line of code.
_WORD = re.compile(r"[A-Za-z_]\w*")

#: Most steps of a script: nobody reads a longer one.
_STEPS = 24


def script(
    result: Result, source: Source, framework: str, conventions: Mapping[str, str], flushes: frozenset[str],
    run: Runner, head: Sequence[str],
) -> str:  # fmt: skip
    """
    The text of a script that fails if the target violates what this result says, and ends well otherwise.

    ``conventions``: those that the target declares. ``run``: runs the probe. ``head``: what it is about, in lines.
    Raises CannotWrite with the reason if there is no script.
    """
    found = result.counterexample
    if found is None:
        raise CannotWrite("no case of it was kept")
    language = language_of(framework)
    judge = Judge(result.op, result.dtype, conventions, flushes)
    reasons: list[str] = []
    untracked = (False, True) if "untracked" in language.functions else (False,)  # the plainest calls first
    for bare, written_out, calls in product(untracked, _ways(source, language), sequences(found)):
        if len(calls) > _STEPS:
            continue
        spelling = Spelling(result.op, OPERATORS[result.op], language, conventions, result.device, written_out, bare)
        try:
            made = steps(calls, spelling)
            text = _ScriptText(source, spelling, made)
            happened = seen(text.probe, len(made), run)
            return text.whole(assertion(found, made, happened, judge), head, happened)
        except CannotWrite as why:
            reasons.append(str(why))
    raise CannotWrite(reasons[-1] if reasons else "what shows it takes too many calls")


def _ways(source: Source, language: Language) -> list[frozenset[str]]:
    """
    Which derivatives are called by name: all in NumPy; elsewhere the vjp only after the framework's shows nothing.
    """
    beside = source.beside()
    if "differentiated" not in language.functions:
        return [beside]
    return [beside - {"vjp"}, beside] if "vjp" in beside else [beside]


@attrs.frozen
class _ScriptText:
    source: Source
    spelling: Spelling
    steps: Sequence[Step]

    def probe(self, file: str) -> str:
        """The probe of all steps."""
        head = self._head([line for step in self.steps for line in step.lines], more=("numbers",))
        return probe(head, [(step.lines, step.read, step.times) for step in self.steps], file)

    def whole(self, end: Assertion, head: Sequence[str], happened: Sequence[Sequence[StepOutcome]]) -> str:
        """The script, without the calls that raise, unless raising is what it shows."""
        body = list(end.first)
        for place, step in enumerate(self.steps[: end.last + 1]):
            if place < end.last and any(one.raised for one in happened[place]):
                continue
            lines = list(step.lines)
            if step.again is None:
                lines = _with_before(lines, end.before.get(place, ()))
            lines += end.after.get(place, ())
            if place == end.last:
                lines = _raising(lines) if end.raises else [*lines, *end.lines]
            body += [f"for _ in range({step.times}):", *indented(lines)] if step.times > 1 else lines
        comments = [f"# {_comment(line)}" for line in (*head, f"{end.words}.")]
        return "\n".join([*comments, *self._head(body), "", *body, ""])

    def _head(self, bodies: Sequence[str], more: Sequence[str] = ()) -> list[str]:
        """Imports, the helpers that these lines call, and the target."""
        words = {word for line in bodies for word in _WORD.findall(line)}
        language = self.spelling.language
        helpers = language.copied([*more, *(one for one in language.functions if one in words)])
        modules = {*self.source.imports, *(one for one in ("functools", "operator") if one in words)}
        needed = [f"import {one}" for one in sorted(modules)]
        third = list(language.imports)
        if not any("numpy" in one for one in third):
            third.append("import numpy as np")
        if any("bfloat16" in line for line in bodies) and not language.backend and "strided" in language.functions:
            third.append("import ml_dtypes  # numpy's bfloat16")
        if language.backend:
            needed += ["", f"os.environ['KERAS_BACKEND'] = {language.backend!r}"]
        derivatives = [one for one in self.spelling.written_out if f"{self.spelling.function}_{one}" in words]
        gaps = [part for helper in helpers for part in ("", "", *helper.splitlines())]
        return [*needed, "", *third, *gaps, "", "", *self.source.lines(self.spelling.function, sorted(derivatives))]


def _with_before(lines: list[str], before: Sequence[str]) -> list[str]:
    """The lines of a step; the line that keeps a tensor follows the line that makes it."""
    for one in before:
        match = re.fullmatch(r"before = numbers\((\w+)\)", one)
        if match:
            place = next((k for k, line in enumerate(lines) if line.startswith(f"{match[1]} = ")), -1)
            lines = [*lines[: place + 1], one, *lines[place + 1 :]]
    return lines


def _raising(lines: Sequence[str]) -> list[str]:
    """Lines whose last call has to raise."""
    return [
        *lines[:-1],
        "try:",
        *indented(lines[-1:]),
        "except Exception:",
        "    pass  # as it should be",
        "else:",
        "    raise AssertionError('the call returned, and must raise')",
    ]


def _comment(words: str) -> str:
    """Words made fit for a comment: on one line, whatever a target put into them."""
    return "".join(one if one.isprintable() else "?" for one in " ".join(words.split()))
