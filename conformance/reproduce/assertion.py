"""The assertion of a script: the plainest fact that the target's own results violate, as the probe saw them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import attrs
import numpy as np

from ...reference.formats import FORMATS
from ...spec.layout import Layout
from ..judging.call_log import LoggedCall
from ..judging.findings import Comparison, Elements
from ..judging.truth import owner_of
from ..judging.verdicts import Counterexample
from ..reporting.numbers import decimal, element_name
from .probe import StepOutcome, VariableContent
from .spelling import CannotWrite, literal
from .steps import Step
from .truths import Judge

#: The possible factors between two results in a law that holds to the last bit.
_FACTORS = tuple(sign * 2.0**power for power in range(-8, 9) for sign in (1, -1))


@attrs.frozen
class Assertion:
    """The end of a script."""

    #: The number of the last step that it needs.
    last: int
    #: Lines after that step, each time that it runs.
    lines: tuple[str, ...]
    #: What is wrong, in a few words.
    words: str
    #: Lines before all steps.
    first: tuple[str, ...] = ()
    #: Lines before the call of a step, once its tensors exist; then lines after a step.
    before: Mapping[int, tuple[str, ...]] = attrs.field(factory=dict)
    after: Mapping[int, tuple[str, ...]] = attrs.field(factory=dict)
    #: Whether the last step has to raise.
    raises: bool = False


def assertion(
    found: Counterexample, steps: Sequence[Step], happened: Sequence[Sequence[StepOutcome]], judge: Judge
) -> Assertion:
    """An assertion that fails on what happened. Raises CannotWrite if a script can show no failure."""
    looked = _Assertions(found, steps, happened, judge)
    for look in (
        *(looked.raising, looked.accepted, looked.form, looked.lost_nan, looked.changed, looked.value),
        *(looked.derived, looked.given, looked.contained, looked.repeated, looked.related, looked.missing),
    ):
        made = look()
        if made is not None:
            return made
    raise CannotWrite(f"no single result of a plain call shows what is wrong with {found.output}")


@attrs.frozen
class _Assertions:
    found: Counterexample
    steps: Sequence[Step]
    happened: Sequence[Sequence[StepOutcome]]
    judge: Judge

    @property
    def last(self) -> int:
        return len(self.steps) - 1

    def _all(self, place: int, name: str) -> list[VariableContent]:
        """The values of a variable, one for each time the step ran."""
        return [one.seen[name] for one in self.happened[place] if name in one.seen]

    def _received(self, place: int) -> Iterator[float]:
        """The values of the counterexample's element, one for each time that its result was returned."""
        for one in self._all(place, self.found.output):
            if one.values is not None and len(self.found.index) == one.values.ndim:
                yield float(one.values[self.found.index])

    # Failures other than wrong numbers ----------------------------------------------------------------------

    def raising(self) -> Assertion | None:
        """A call that raises and has to return."""
        kinds = [one.raised for one in self.happened[self.last] if one.raised]
        if not kinds:
            return None
        told = self.found.raised.type if self.found.raised is not None else kinds[0]
        if self.found.failure not in ("raises", "type", "count", "shape", "missing") or told != kinds[0]:
            raise CannotWrite(f"its call raises {kinds[0]} in a script")
        step = self.steps[self.last]
        name = "dx" if self.found.output == "gradient" and "dx" in step.results else next(iter(step.results))
        shape = step.call.inputs["x" if name in ("y", "dx") else owner_of(name)]
        lines = () if shape is None else (_has_shape(step.results[name], tuple(shape.shape)),)
        return Assertion(self.last, lines, f"the call raises {kinds[0]}, and must return")

    def accepted(self) -> Assertion | None:
        """A call that returns and has to raise."""
        if self.found.failure != "accepts":
            return None
        return Assertion(self.last, (), "the call returns, and must raise", raises=True)

    def form(self) -> Assertion | None:
        """A result of another type, shape or dtype, or none at all."""
        if self.found.failure not in ("type", "count", "shape", "dtype", "missing"):
            return None
        step = self.steps[self.last]
        for name, variable in step.results.items():
            owner = step.call.inputs.get(owner_of(name))
            for seen in self._all(self.last, name):
                if owner is None:
                    continue
                x = step.inputs[owner_of(name)]
                if seen.missing and name != "y":
                    return Assertion(self.last, (_is_there(variable),), f"{name} is missing")
                if seen.values is None:
                    words = f"{name} is {'None' if seen.missing else f'of type {seen.kind}'}"
                    return Assertion(self.last, (_has_type(variable, x),), words)
                shape = tuple(owner.shape)
                if seen.values.shape != shape:
                    words = f"{name} has shape {seen.values.shape} in place of {shape}"
                    return Assertion(self.last, (_has_shape(variable, shape),), words)
                if seen.dtype != str(owner.dtype):
                    words = f"{name} has dtype {seen.dtype} in place of {owner.dtype}"
                    return Assertion(self.last, (_has_dtype(variable, x),), words)
        return None

    def lost_nan(self) -> Assertion | None:
        """A number where NaN belongs."""
        if self.found.expected is None or not math.isnan(self.found.expected):
            return None
        step = self.steps[self.last]
        variable = step.results.get(self.found.output, "")
        handed = [one for one in (*step.call.inputs.values(), step.call.g) if one is not None]
        nan = any(np.isnan(one.astype(np.float64)).any() for one in handed)  # an infinity may stay one
        must, test = ("be NaN", "np.isnan(got)") if nan else ("not be finite", "not np.isfinite(got)")
        for got in self._received(self.last) if variable else ():
            if math.isfinite(got) or (nan and not math.isnan(got)):
                element = element_name(variable, self.found.index)
                lines = (f"got = float({element})", f"assert {test}, f{f'{element} is {{got}}, and must {must}'!r}")
                return Assertion(self.last, lines, f"{element} must {must}, and is {decimal(got)}")
        return None

    def changed(self) -> Assertion | None:
        """An input or a result that has changed since the call."""
        for place, step in enumerate(self.steps):
            if step.again is not None:
                made = self._changed_inputs(place, step) or self._changed_results(place, step)
                if made is not None:
                    return made
        return None

    def _changed_inputs(self, place: int, step: Step) -> Assertion | None:
        assert step.again is not None
        given = {**step.call.inputs, "g": step.call.g}
        if self.judge.subject.conventions.get("gain") == "one-plus-gamma":
            given.pop("gamma", None)  # the target gets gamma - 1
        for name, variable in step.inputs.items():
            array = given.get(name)
            for seen in self._all(place, f"{name} now"):
                if array is not None and seen.values is not None and not _alike(seen.values, array):
                    # Keep the numbers where the variable is set; for a cotangent that may be a later step.
                    home = next(
                        k for k, one in enumerate(self.steps) if any(_sets(line, variable) for line in one.lines)
                    )
                    return self._kept(place, home, variable, f"{variable} was changed by the call", before=True)
        return None

    def _changed_results(self, place: int, step: Step) -> Assertion | None:
        assert step.again is not None
        for name, variable in step.results.items():
            firsts, nows = self._all(step.again, name), self._all(place, name)
            if not firsts or not nows or firsts[-1].values is None or nows[-1].values is None:
                continue
            if not _alike(firsts[-1].values, nows[-1].values):
                return self._kept(
                    place, step.again, variable, f"{variable} changed since it was returned", before=False
                )
        return None

    def _kept(self, place: int, home: int, variable: str, words: str, *, before: bool) -> Assertion:
        lines = (f"assert np.array_equal(numbers({variable}), before, equal_nan=True), {words!r}",)
        kept = {home: (f"before = numbers({variable})",)}
        if before:
            return Assertion(place, lines, words, before=kept)
        return Assertion(place, lines, words, after=kept)

    # Numbers ------------------------------------------------------------------------------------------------

    def value(self) -> Assertion | None:
        """An output or a gradient with a wrong value."""
        shown = [self.last] if self.found.output in self.steps[self.last].results else []
        for place in [*shown, *(one for one in range(self.last, -1, -1) if one not in shown)]:
            step = self.steps[place]
            if step.again is not None:
                continue
            wrong = dict(self._violations(place))
            for name in sorted(wrong, key=lambda one: one != self.found.output):
                made = self._value(place, step.results[name], *self._shown(place, name, wrong[name]))
                if made is not None:
                    return made
        return None

    def _violations(self, place: int) -> Iterator[tuple[str, Comparison]]:
        step = self.steps[place]
        for one in self.happened[place]:
            seen = {name: one.seen[name] for name in step.results if name in one.seen}
            yield from self.judge.violations(step.call, seen)

    def _shown(self, place: int, name: str, worst: Comparison) -> tuple[tuple[int, ...], float, float, float]:
        """The element of the counterexample, if it is wrong by itself; otherwise the one that is farthest off."""
        elements = worst.elements
        if place == self.last and name == self.found.output and elements is not None and self.found.index:
            index = self.found.index
            if len(index) == elements.ratio.ndim and elements.ratio[index] > 1:
                return index, *_numbers(elements, index)
        return worst.index, worst.expected, worst.got, worst.envelope

    def _value(
        self, place: int, variable: str, index: tuple[int, ...], expected: float, got: float, envelope: float
    ) -> Assertion | None:
        """An assertion that an element lies within the envelope; None if it is near the largest number of its dtype."""
        stored = FORMATS[self.judge.subject.dtype]
        if abs(expected) + envelope >= stored.largest * (1 - 4 * stored.unit_roundoff):
            return None
        element = element_name(variable, index)
        lines = _is_equal(element, literal(expected), envelope)
        within = f" within {decimal(envelope)}" if envelope else ""
        words = f"{element} must be {decimal(expected, got)}{within}, and is {decimal(got, expected)}"
        return Assertion(place, lines, words)

    def derived(self) -> Assertion | None:
        """A tangent, or a derivative of a derivative. Its exact value is in the counterexample."""
        found, variable = self.found, self.steps[self.last].results.get(self.found.output)
        if variable is None or " " not in found.output or None in (found.expected, found.got, found.envelope):
            return None
        assert found.expected is not None and found.envelope is not None
        for got in self._received(self.last):
            if not abs(got - found.expected) <= found.envelope:
                return self._value(self.last, variable, found.index, found.expected, got, found.envelope)
        return None

    def given(self) -> Assertion | None:
        """A result with a known value: zero, an input, or an exact value out of range."""
        found, step = self.found, self.steps[self.last]
        variable = step.results.get(found.output)
        if variable is None or found.expected is None or found.got is None:
            return None
        for got in self._received(self.last):
            if got == found.expected or (math.isnan(got) and math.isnan(found.expected)):
                continue
            exact = self.judge.exact(step.call, found.output, found.index)
            known = exact == found.expected
            if known and found.envelope is not None and not abs(got - found.expected) <= found.envelope:
                return self._value(self.last, variable, found.index, found.expected, got, found.envelope)
            if found.envelope is None and not self._differ() and (known or exact is None):
                return self._value(self.last, variable, found.index, found.expected, got, 0.0)
        return None

    def contained(self) -> Assertion | None:
        """A result that must not be touched by a NaN or infinity elsewhere: it equals the one without it."""
        found, step = self.found, self.steps[self.last]
        if found.case is None or found.output not in step.results or found.expected is None:
            return None
        handed = [one for one in step.call.inputs.values() if one is not None]
        if all(np.isfinite(one.astype(np.float64)).all() for one in handed):
            return None
        clean = LoggedCall("vjp", found.case.inputs, found.case.settings, found.case.parts, found.case.g)
        for seen in self._all(self.last, found.output):
            compared = self.judge.compared(clean, found.output, seen)
            if compared is None or compared.elements is None or len(found.index) != compared.elements.ratio.ndim:
                continue
            elements, index = compared.elements, found.index
            if elements.ratio[index] > 1:
                return self._value(self.last, step.results[found.output], index, *_numbers(elements, index))
        return None

    def missing(self) -> Assertion | None:
        """A gradient that is missing at least once."""
        for place, step in enumerate(self.steps):
            for name, variable in step.results.items():
                owner = step.call.inputs.get(owner_of(name))
                if owner is not None and any(seen.missing for seen in self._all(place, name)):
                    return Assertion(place, (_is_there(variable),), f"{name} is missing")
        return None

    # Several results ----------------------------------------------------------------------------------------

    def _same_calls(self) -> Iterator[tuple[int, int]]:
        """
        Pairs of steps that ask the same, the earlier one first; a step that runs several times is paired with itself.
        """
        for place, step in enumerate(self.steps):
            if step.again is not None:
                continue
            if step.call.times > 1:
                yield place, place
            for earlier in range(place):
                other = self.steps[earlier]
                if other.again is None and _asks_the_same(other, step):
                    yield earlier, place

    def _differ(self) -> tuple[int, int, str] | None:
        """Two steps that ask the same and have results with different bits, and the name of the result."""
        for earlier, place in self._same_calls():
            for name in self.steps[place].results:
                seen = [*self._all(earlier, name), *self._all(place, name)]
                values = [one.values for one in seen if one.values is not None]
                if any(not _alike(values[0], other) for other in values[1:]):
                    return earlier, place, name
        return None

    def repeated(self) -> Assertion | None:
        """Calls that ask the same and differ in their bits."""
        differ = self._differ()
        if differ is None:
            return None
        earlier, place, name = differ
        words = f"repeated calls give another {name}"
        first, second = self.steps[earlier].results[name], self.steps[place].results[name]
        keep = f"several.append(numbers({first}))"
        check = f"assert all(np.array_equal(numbers({second}), one, equal_nan=True) for one in several), {words!r}"
        if earlier == place:
            return Assertion(place, (keep, check), words, first=("several = []",))
        return Assertion(place, (check,), words, first=("several = []",), after={earlier: (keep,)})

    def related(self) -> Assertion | None:
        """A law between two calls that holds to the last bit."""
        found = self.found
        if found.envelope != 0 or found.expected is None or found.got is None:
            return None
        for place in range(self.last, -1, -1):
            step = self.steps[place]
            variable = step.results.get(found.output)
            for got in self._received(place) if variable else ():
                if got != found.got:
                    continue
                for other, index, factor in self._partners(place, found.output, found.index, found.expected):
                    mine = element_name(variable or "", found.index)
                    theirs = element_name(self.steps[other].results[found.output], index)
                    times = "" if factor == 1 else f"{factor:g} * "
                    lines = _is_equal(mine, f"{times}float({theirs})")
                    return Assertion(max(place, other), lines, f"{mine} must be {times}{theirs}, to the last bit")
        return None

    def _partners(
        self, place: int, name: str, index: tuple[int, ...], expected: float
    ) -> Iterator[tuple[int, tuple[int, ...], float]]:
        """Elements of other calls' results that equal the expected value, or do so times a power of two."""
        for other, step in enumerate(self.steps):
            if other == place or step.again is not None or name not in step.results:
                continue
            for seen in self._all(other, name)[:1]:
                if seen.values is None:
                    continue
                for where in self._counterparts(place, other, index):
                    value = float(seen.values[where])
                    factor = next((one for one in _FACTORS if one * value == expected), None)
                    if factor is not None and value != 0:
                        yield other, where, factor

    def _counterparts(self, place: int, other: int, index: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        """The matching element of another call's x: the one in the same group of values, wherever that group is."""
        mine, theirs = self.steps[place].call, self.steps[other].call
        x, there = mine.inputs["x"], theirs.inputs["x"]
        assert x is not None and there is not None
        if x.shape == there.shape and np.count_nonzero(x) and _multiple(x, there):
            yield index
            return
        here = Layout.of(self.judge.operator, x.shape, mine.settings)
        away = Layout.of(self.judge.operator, there.shape, theirs.settings)
        numbered = here.rows(np.arange(x.size).reshape(x.shape))
        elsewhere = away.rows(np.arange(there.size).reshape(there.shape))
        if here.size != away.size:
            return
        group, position = (int(one[0]) for one in np.nonzero(numbered == np.ravel_multi_index(index, x.shape)))
        values, others = here.rows(x.astype(np.float64)), away.rows(there.astype(np.float64))
        for row in np.flatnonzero((others == values[group]).all(axis=1)):
            yield tuple(int(one) for one in np.unravel_index(int(elsewhere[row, position]), there.shape))


def _numbers(elements: Elements, index: tuple[int, ...]) -> tuple[float, float, float]:
    """The exact value, the received value and the envelope of one element."""
    return float(elements.expected[index]), float(elements.got[index]), float(elements.envelope[index])


def _multiple(x: np.ndarray, other: np.ndarray) -> bool:
    """Whether one array is the other times a power of two, or times its negative."""
    a, b = x.astype(np.float64), other.astype(np.float64)
    return any(np.array_equal(a, factor * b, equal_nan=True) for factor in _FACTORS)


def _is_equal(element: str, expected: str, envelope: float = 0.0) -> tuple[str, str]:
    """Lines that compare an element with an expression: it lies within an envelope, or is the same to the last bit."""
    test = f"abs(got - expected) <= {literal(envelope)}" if envelope else "got == expected"
    message = f"{element} is {{got}}, and must be {{expected}}"
    return f"got, expected = float({element}), {expected}", f"assert {test}, f{message!r}"


def _is_there(variable: str) -> str:
    return f"assert {variable} is not None, '{variable} is None'"


def _has_type(variable: str, x: str) -> str:
    there = f"f'{variable} is of type {{type({variable}).__name__}}, and must be of {{type({x}).__name__}}'"
    return f"assert isinstance({variable}, type({x})), {there}"


def _has_dtype(variable: str, x: str) -> str:
    there = f"f'{variable} has dtype {{{variable}.dtype}}, and must have {{{x}.dtype}}'"
    return f"assert {variable}.dtype == {x}.dtype, {there}"


def _has_shape(variable: str, shape: tuple[int, ...]) -> str:
    there = f"f'{variable} has shape {{tuple({variable}.shape)}}, and must have {shape}'"
    return f"assert tuple({variable}.shape) == {literal(shape)}, {there}"


def _alike(one: np.ndarray, other: np.ndarray) -> bool:
    return one.shape == other.shape and np.array_equal(one, np.asarray(other).astype(np.float64), equal_nan=True)


def _asks_the_same(one: Step, other: Step) -> bool:
    a, b = one.call, other.call
    same = a.does == b.does and a.settings == b.settings and a.parts == b.parts and a.layouts == b.layouts
    if not same or a.inputs.keys() != b.inputs.keys() or a.mode != b.mode:
        return False
    pairs = [(a.inputs[name], b.inputs[name]) for name in a.inputs] + [(a.g, b.g)]
    return all((p is None and q is None) or (p is not None and q is not None and _alike(np.asarray(p, np.float64), q))
               for p, q in pairs)  # fmt: skip


def _sets(line: str, variable: str) -> bool:
    return line.startswith(f"{variable} = ")
