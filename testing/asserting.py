"""Turns a test's arrays into a judgement, or into the AssertionError that says what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import attrs
import numpy as np

from ..conformance.judging.truth import owner_of
from ..reference.arguments import channel_from_front, group_count, nonnegative, sample_channels, trailing_shape
from ..reference.formats import FORMATS
from ..spec.operators import OPERATORS, Groups
from . import in_blocks
from .arrays import array, optional
from .call import Call, copied, sampled
from .cause import Mistake, mistakes
from .judgement import Envelope, Judgement
from .message import message
from .options import JudgementOptions, wider_options

#: pytest then shows the test's line that passed these arguments, not the line here that refuses them.
__tracebackhide__ = True


class OutsideEnvelope(AssertionError):
    """A result has elements that no sound algorithm returns; ``judgement`` has the details."""

    def __init__(self, judgement: Judgement, explain: Callable[[], str]) -> None:
        super().__init__()
        self.judgement = judgement
        self._explain: Callable[[], str] | None = explain
        self._text = ""

    def __str__(self) -> str:
        """The message. The cause is searched for only on the first read: Hypothesis catches many that nobody reads."""
        if self._explain is not None:
            self._text, self._explain = self._explain(), None
        return self._text


def judge_or_raise(
    operator: str,
    results: Mapping[str, Any],
    inputs: Mapping[str, Any],
    settings: Mapping[str, Any],
    options: JudgementOptions,
    g: Any = None,
    *,
    unjudged: bool = False,
) -> dict[str, Judgement]:
    """
    Judge named results of one call; raise OutsideEnvelope for the first one that has elements outside.

    A result that is ``...`` is left out. Raises AssertionError for one that is None or of the wrong shape or dtype,
    ValueError and TypeError for unsuitable arguments, and ValueError where nothing of a result could be judged, unless
    ``unjudged`` allows that.
    """
    given, settings, cotangent = _arguments(operator, inputs, settings, g, gradients="dx" in results)
    got = {name: array(name, value) for name, value in results.items() if not _is_left_out(name, value, given)}
    if not got:
        raise ValueError(f"there is nothing to judge: pass at least one of {', '.join(results)}")
    got = {name: _checked_result(name, value, given, options) for name, value in got.items()}
    # y and its cotangent have the same dtype; the arithmetic calls it the result's.
    result = next((value for value in (got.get("y"), cotangent) if value is not None), given["x"])
    assert result is not None
    call = Call(operator, given, settings, result.dtype, options.accuracy)
    found = _judgements(call, got, cotangent, options)
    for name, judgement in found.items():
        if not judgement.holds:
            # The message may be made after the caller has written to these arrays.
            wrong, pulled = got[judgement.name].copy(), copied(cotangent)
            raise OutsideEnvelope(judgement, partial(_error_message, call.copied(), judgement, wrong, pulled, options))
        if not judgement.judged and not unjudged:
            raise ValueError(
                f"nothing of {name} could be judged: all of it lies where intermediate results may overflow or"
                " underflow (R1 to R6 of spec/accuracy.md), or depends on what is not finite"
            )
    return found


def _judgements(
    call: Call, got: dict[str, np.ndarray], g: np.ndarray | None, options: JudgementOptions
) -> dict[str, Judgement]:
    """Judge every result; those of x's shape come first."""
    groups = sampled(call, options.sample, options.seed)
    summed = next((name for name in got if name not in in_blocks.X_SHAPED), "")
    if summed and groups is not None and not call.layout.along_columns:
        raise ValueError(
            f"{summed} is a sum over all groups, which a sample of them does not tell: leave out sample or {summed}"
        )
    return in_blocks.judge(call, got, g, groups, options)


def _error_message(
    call: Call, judgement: Judgement, got: np.ndarray, g: np.ndarray | None, options: JudgementOptions
) -> str:
    """The error message: with the mistake if it is known, else with the option that would have allowed the result."""
    causes: tuple[Mistake, ...] = ()
    if judgement.name in in_blocks.X_SHAPED:
        causes = mistakes(call, {judgement.name: got}, g, judgement.groups_outside)
    return message(judgement, causes, "" if causes else _allowing_option(call, judgement.name, got, g, options))


def _allowing_option(call: Call, name: str, got: np.ndarray, g: np.ndarray | None, options: JudgementOptions) -> str:
    """The keyword, for a wider class of algorithms, with which the result would hold; "" where there is none."""
    for option, value in wider_options(options, narrow=call.arithmetic.narrow, centred=call.record.centred):
        other = attrs.evolve(options, **{option: value})
        again = attrs.evolve(call, accuracy=other.accuracy)
        if all(judgement.holds for judgement in _judgements(again, {name: got}, g, other).values()):
            return f'{option}="{value}"'
    return ""


def checked_envelopes(
    operator: str,
    names: tuple[str, ...],
    inputs: Mapping[str, Any],
    settings: Mapping[str, Any],
    options: Mapping[str, Any],
    g: Any = None,
) -> dict[str, Envelope]:
    """The exact values of results and their envelopes, by name; ``options`` are keywords of JudgementOptions."""
    chosen = JudgementOptions.of(operator, **options)
    given, settings, cotangent = _arguments(operator, inputs, settings, g, gradients="dx" in names)
    x = given["x"]
    assert x is not None
    return in_blocks.envelopes(Call(operator, given, settings, x.dtype, chosen.accuracy), names, cotangent, chosen)


def _arguments(
    operator: str, inputs: Mapping[str, Any], settings: Mapping[str, Any], g: Any, *, gradients: bool
) -> tuple[dict[str, np.ndarray | None], dict[str, Any], np.ndarray | None]:
    """Check and return arrays, settings and cotangent; ValueError or TypeError where they do not fit together."""
    record = OPERATORS[operator]
    x = array("x", inputs["x"])
    given = {"x": x} | {name: optional(name, value) for name, value in inputs.items() if name != "x"}
    settings = {**settings, "eps": nonnegative("eps", settings["eps"])}
    if "momentum" in settings:
        settings["momentum"] = nonnegative("momentum", settings["momentum"], most=1.0)
    if record.groups is Groups.TRAILING:
        settings["axes"] = tuple(settings["axes"]) if isinstance(settings["axes"], (tuple, list)) else settings["axes"]
        shape = trailing_shape(x, settings["axes"])
    elif record.groups is Groups.CHANNEL:
        shape = (x.shape[channel_from_front(x, settings["channel_axis"])],)
    else:
        _, channels = sample_channels(x, settings["channel_axis"])
        group_count(settings.get("groups", 1), channels)
        shape = (channels,)
    for name, value in given.items():
        if name != "x" and value is not None and value.shape != shape:
            raise ValueError(f"{name} has shape {value.shape}: pass one of shape {shape}")
    if record.has_modes and not settings["training"] and any(given[name] is None for name in record.statistics):
        raise ValueError("without training the running statistics normalise x: pass running_mean and running_var")
    if not x.size:
        raise ValueError(f"x has shape {x.shape}, and no values: there is nothing to judge")
    cotangent = array("g", g) if gradients else None
    if cotangent is not None and cotangent.shape != x.shape:
        raise ValueError(f"g has shape {cotangent.shape}: pass one of x's shape, {x.shape}")
    return given, settings, cotangent


def _is_left_out(name: str, value: Any, given: Mapping[str, np.ndarray | None]) -> bool:
    """Whether a result is not to be judged. AssertionError for a None where the function must return an array."""
    if value is None and name in ("y", "dx", "dgamma", "dbeta") and given.get(owner_of(name)) is not None:
        raise AssertionError(
            f"{name} is None, and {owner_of(name)} is given: the function has not returned it. Pass ... in its place"
            " if it is not to be judged"
        )
    return value is None or value is ...


def _checked_result(
    name: str, got: np.ndarray, given: Mapping[str, np.ndarray | None], options: JudgementOptions
) -> np.ndarray:
    """
    A result with the shape and dtype of its input; y may have another dtype where parameters are wider than x.

    AssertionError for another shape, and for another dtype unless ``check_dtype`` is off.
    """
    source = owner_of(name)
    owner = given.get(source)
    if owner is None and source == "beta":
        owner = given["gamma"]
    if owner is None and source == "beta":
        raise ValueError("dbeta is judged beside gamma: pass gamma, which is ones if the function has none")
    if owner is None:
        raise ValueError(f"{name} is given and {source} is not: pass {source}, or leave {name} out")
    if got.shape != owner.shape:
        raise AssertionError(f"{name} has shape {got.shape} in place of {owner.shape}")
    if got.dtype == owner.dtype:
        return got
    with np.errstate(all="ignore"):
        own = got.astype(owner.dtype)
    wider = FORMATS[got.dtype.name].unit_roundoff < FORMATS[owner.dtype.name].unit_roundoff
    if name == "y" and wider and any(one is not None and one.dtype == got.dtype for one in given.values()):
        # If all its values are numbers of x's dtype, it was rounded to that dtype before.
        return own if np.array_equal(own.astype(got.dtype), got, equal_nan=True) else got
    if options.check_dtype:
        raise AssertionError(
            f"{name} is {got.dtype} in place of {owner.dtype}: pass it as the function returned it, or"
            f" check_dtype=False, which judges it rounded to {owner.dtype}"
        )
    return own
