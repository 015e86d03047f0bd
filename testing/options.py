"""The keywords that all assertions and envelopes share; each operator also has its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypedDict

import attrs
import numpy as np

from ..reference.accuracy import AccuracyClass
from ..reference.formats import FORMATS
from ..spec.conventions import CONVENTIONS, operators_about
from ..spec.errors import choices
from ..spec.operators import OPERATORS

#: pytest then shows the test's line that passed these arguments, not the line here that refuses them.
__tracebackhide__ = True


class EnvelopeOptions(TypedDict, total=False):
    """The class of algorithms that the envelope allows for; each convention is the normative one by default."""

    #: "kept", or "flushed" where subnormal numbers become zero.
    subnormals: str


class CentredEnvelopeOptions(EnvelopeOptions, total=False):
    """The options of an operator that subtracts the mean."""

    #: "centred"; "shifted" or "one-pass" where the variance is a mean of squares less a squared mean.
    variance_algorithm: str
    #: "folded", or "centred" where (x - mean) r is formed before gamma and beta are applied.
    affine: str


class Options(EnvelopeOptions, total=False):
    """The options of an assertion: its envelope's, and which results and groups it looks at."""

    #: Whether a result with another dtype than its input's fails; it does by default. If False, the result is rounded
    #: to that dtype and judged: for tests that convert before they compare.
    check_dtype: bool
    #: How many groups to look at, drawn with ``seed``; all of them by default.
    sample: int | None
    seed: int


class CentredOptions(CentredEnvelopeOptions, Options, total=False):
    """The options of an assertion for an operator that subtracts the mean."""


def _check_sample(_options: object, _field: object, value: int | None) -> None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1):
        raise ValueError(f"sample is {value!r}: pass the number of groups to look at, or None for all")


def _check_seed(_options: object, _field: object, value: int) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 0:
        raise ValueError(f"seed is {value!r}: pass a whole number from 0 on")


def _check_convention(_options: object, field: attrs.Attribute[str], value: str) -> None:
    if value not in CONVENTIONS[field.name]:
        raise ValueError(f"{field.name} is {value!r}{choices(value, CONVENTIONS[field.name])}")


def _convention(default: str) -> str:
    """A field that is a convention of the specification, with its values."""
    return attrs.field(default=default, validator=_check_convention)


@attrs.frozen(kw_only=True)
class JudgementOptions:
    """The options of a judgement: its class of algorithms, its checks and its sample; the fields are the keywords."""

    variance_algorithm: str = _convention("centred")
    affine: str = _convention("folded")
    storage: str = _convention("H0")
    cast: str = _convention("last")
    subnormals: str = _convention("kept")
    running_variance: str = _convention("biased")
    check_dtype: bool = True
    sample: int | None = attrs.field(default=None, validator=_check_sample)
    seed: int = attrs.field(default=0, validator=_check_seed)

    @classmethod
    def of(cls, operator: str | None, **given: Any) -> JudgementOptions:
        """
        The options among the keywords of a call.

        ``operator``: whose options they are, and whose settings the call takes too; None for the options of all, and
        no settings. Raises TypeError for an unknown keyword, and ValueError for a value that does not exist.
        """
        fields = [one.name for one in attrs.fields(cls)]
        own = [one for one in fields if one not in CONVENTIONS or operator in (None, *operators_about(one))]
        for name in given:
            if name not in own:
                settings = OPERATORS[operator].settings if operator is not None else ()
                whose = f" for {operator}" if name in fields else ""
                raise TypeError(f"there is no argument {name!r}{whose}{choices(name, (*settings, *own))}")
        return cls(**given)

    @property
    def accuracy(self) -> AccuracyClass:
        """The class of algorithms; ValueError for an unknown name."""
        flushed = frozenset(FORMATS) if self.subnormals == "flushed" else frozenset()
        return AccuracyClass(self.variance_algorithm, self.affine, self.storage, self.cast, flushed)


def wider_options(options: JudgementOptions, *, narrow: bool, centred: bool) -> Iterator[tuple[str, str]]:
    """Other values of single fields that allow for more, the most common first."""
    storages = ("H0", "H1", "H2", "native")
    if narrow:
        yield from (("storage", value) for value in storages[storages.index(options.storage) + 1 :])
        if not centred and options.cast == "last":
            yield "cast", "before-gain"
    if centred and options.variance_algorithm == "centred":
        yield "variance_algorithm", "one-pass"
    if options.subnormals == "kept":
        yield "subnormals", "flushed"
