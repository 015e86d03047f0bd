"""Accuracy classes: which algorithms an envelope allows for, and in which arithmetic.

A class is a set of choices, named like the conventions in spec/conventions.md. A class and the formats of
the data determine the :class:`Arithmetic`: the few numbers that the formulas of spec/accuracy.md take.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from .formats import FORMATS, Format, format_of


@attrs.frozen(cache_hash=True)
class AccuracyClass:
    """The algorithms whose worst error the envelope bounds; the defaults are the normative class."""

    #: How the variance is formed: "centred" (two-pass, Welford, merged), "shifted" (one pass about
    #: an element of the group), "one-pass" (mean of squares less squared mean, clamped at zero).
    variance: str = attrs.field(default="centred", validator=attrs.validators.in_(("centred", "shifted", "one-pass")))
    #: How the affine map is applied: "folded" allows x*a + b, "centred" only (x - mu)*r*gamma + beta.
    affine: str = attrs.field(default="folded", validator=attrs.validators.in_(("folded", "centred")))
    #: What a 16-bit format is rounded to on the way: "H0" only the results, "H1" the normalised
    #: value too, "H2" the saved statistics and parameter sums too, "native" every operation.
    storage: str = attrs.field(default="H0", validator=attrs.validators.in_(("H0", "H1", "H2", "native")))
    #: Where a normalisation without a mean is rounded to a 16-bit format: "last", or once "before-gain" as well.
    cast: str = attrs.field(default="last", validator=attrs.validators.in_(("last", "before-gain")))
    #: The names of the formats whose subnormal numbers may become zero.
    flushed: frozenset[str] = frozenset()

    def flushes(self, form: Format) -> bool:
        """Whether subnormal numbers of a format may become zero."""
        return form.name in self.flushed

    @classmethod
    def from_conventions(
        cls, conventions: Mapping[str, str], flushes: frozenset[str] = frozenset(FORMATS)
    ) -> AccuracyClass:
        """Return the class that these conventions imply; ``flushes`` are the formats that "flushed" is about."""
        return cls(
            variance=conventions.get("variance_algorithm", "centred"),
            affine=conventions.get("affine", "folded"),
            storage=conventions.get("storage", "H0"),
            cast=conventions.get("cast", "last"),
            flushed=flushes if conventions.get("subnormals") == "flushed" else frozenset(),
        )


@attrs.frozen(cache_hash=True)  # it is part of the key of every truth
class Arithmetic:
    """The numbers that one evaluation of the envelope depends on."""

    #: Unit roundoff and underflow error of the computation.
    u: float
    eta: float
    #: The same for the format of x, y and dx.
    u_data: float
    eta_data: float
    #: The same for the format of gamma, beta, their gradients, and the running statistics.
    u_parameter: float
    eta_parameter: float
    #: Largest finite and smallest normal value of the computation's format.
    largest: float
    smallest_normal: float
    #: Largest finite value of the data's format.
    largest_data: float = float("inf")
    #: The most that an operand of a sum, or the sum itself, may lose where subnormal numbers are flushed, in the
    #: computation's format and in the data's; zero where they are kept.
    flush: float = 0.0
    flush_data: float = 0.0
    #: Unit roundoff and underflow error of y's format; None where it is the data's format.
    result: tuple[float, float] | None = None
    #: True where the data has 16 bits, so that the storage classes differ.
    narrow: bool = False
    accuracy: AccuracyClass = AccuracyClass()

    @classmethod
    def of(
        cls, data: Any, parameter: Any = None, accuracy: AccuracyClass = AccuracyClass(), result: Any = None
    ) -> Arithmetic:
        """Return the arithmetic for tensors of these formats in this class.

        16-bit data is computed on in float32, unless the class is "native". Parameters and y have the
        format of the data unless ``parameter`` and ``result`` say otherwise.
        """
        stored = format_of(data)
        held = stored if parameter is None else format_of(parameter)
        returned = stored if result is None else format_of(result)
        computed: Format = stored
        if stored.narrow and accuracy.storage != "native":
            computed = FORMATS["float32"]
        eta, eta_data = (form.underflow(flushed=accuracy.flushes(form)) for form in (computed, stored))
        return cls(
            u=computed.unit_roundoff,
            eta=eta,
            u_data=stored.unit_roundoff,
            eta_data=eta_data,
            u_parameter=held.unit_roundoff,
            eta_parameter=held.underflow(flushed=accuracy.flushes(held)),
            largest=computed.largest,
            smallest_normal=computed.smallest_normal,
            largest_data=stored.largest,
            flush=eta if accuracy.flushes(computed) else 0.0,
            flush_data=eta_data if accuracy.flushes(stored) else 0.0,
            result=None
            if returned is stored
            else (returned.unit_roundoff, returned.underflow(flushed=accuracy.flushes(returned))),
            narrow=stored.narrow,
            accuracy=accuracy,
        )

    @property
    def of_y(self) -> tuple[float, float]:
        """Unit roundoff and underflow error of y's format."""
        return self.result or (self.u_data, self.eta_data)

    @property
    def stores_between(self) -> bool:
        """Whether intermediate values are also rounded to the data's 16 bits."""
        return self.narrow and (self.accuracy.storage != "H0" or self.accuracy.cast == "before-gain")

    @property
    def composed(self) -> Arithmetic:
        """The arithmetic of derivatives that the framework composes from primitive operations.

        Second-order and forward-mode derivatives are composed in this way, and each primitive operation returns
        a tensor. Where the class stores intermediate values, each operation therefore rounds to the data's format.
        """
        if not self.stores_between:
            return self
        return attrs.evolve(self, u=self.u_data, eta=self.eta_data, largest=self.largest_data, flush=self.flush_data)

    @property
    def saves_statistics(self) -> bool:
        """Whether mean and r are rounded to the data's 16 bits before they are used (H2)."""
        return self.narrow and self.accuracy.storage == "H2"


#: The reference's own arithmetic: double-double, with one final rounding to float64. u is 2^-102: four of the
#: 106 bits allow for the few ulps that a double-double multiplication or division may lose.
REFERENCE_ARITHMETIC = Arithmetic(
    u=2.0**-102,
    eta=0.0,
    u_data=2.0**-53,
    eta_data=2.0**-1074,
    u_parameter=2.0**-53,
    eta_parameter=2.0**-1074,
    largest=float("inf"),
    smallest_normal=0.0,
    accuracy=AccuracyClass(variance="centred", affine="centred"),
)
