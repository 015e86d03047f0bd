"""
Conventions: choices in which implementations differ by design.

The first value of each is the normative one and the default. A binding, or the user with ``--convention KEY=VALUE``,
declares another; the target is then checked against exactly that value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from .errors import UnknownConvention, choices
from .operators import OPERATORS, Operator

#: Name of each convention, and its values; the first is normative.
CONVENTIONS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        # How the variance is formed: from deviations, as E[x^2] - E[x]^2, or the latter about a chosen shift.
        "variance_algorithm": ("centred", "one-pass", "shifted"),
        # y as x*a + b with a and b folded beforehand, or as gamma * ((x - mean) * r) + beta, which errs less.
        "affine": ("folded", "centred"),
        # What a 16-bit call rounds to 16 bits: its outputs (H0), also the second stage (H1), also the saved statistics
        # and the parameter sums (H2), every operation (native).
        "storage": ("H0", "H1", "H2", "native"),
        # The variance that updates the running one: divided by m, or by m - 1.
        "running_variance": ("biased", "bessel"),
        # Whether momentum weighs the new batch statistic or the old running one.
        "momentum": ("new", "old"),
        # One value in a channel in training, or in a group of instance_norm: y = beta, or an error.
        "single_value": ("beta", "error"),
        # Whether eps is used as given or held in float32.
        "eps_dtype": ("exact", "float32"),
        # The arithmetic in which float64 data is computed.
        "float64": ("float64", "float32"),
        # The dtype of y where 16-bit data meets float32 parameters: the data's, or the parameters'.
        "mixed_dtypes": ("kept", "promoted"),
        # What multiplies the normalised value is the gain: the parameter gamma itself, or 1 + gamma.
        "gain": ("gamma", "one-plus-gamma"),
        # Where rms_norm rounds to 16 bits: once at the end, or before the gain as well.
        "cast": ("last", "before-gain"),
        # Whether subnormal numbers are kept or become zero.
        "subnormals": ("kept", "flushed"),
    }
)

#: The normative value of each convention.
NORMATIVE: Mapping[str, str] = MappingProxyType({key: values[0] for key, values in CONVENTIONS.items()})

#: The operators to which a convention applies, where those are not all.
_ABOUT: Mapping[str, Callable[[Operator], bool]] = MappingProxyType(
    {
        "variance_algorithm": lambda one: one.normalises and one.centred,
        "affine": lambda one: one.normalises and one.centred,
        "running_variance": lambda one: bool(one.statistics),
        "momentum": lambda one: bool(one.statistics),
        "single_value": lambda one: one.channels_alone,
        "eps_dtype": lambda one: one.normalises,
        "mixed_dtypes": lambda one: bool(one.parameters),
        "gain": lambda one: one.has_gain,
        "cast": lambda one: one.normalises and not one.centred,
    }
)

_NARROW = frozenset({"float16", "bfloat16"})

#: The dtypes in which a convention matters, where those are not all.
_IN_DTYPES: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "storage": _NARROW,
        "cast": _NARROW,
        "mixed_dtypes": _NARROW,
        "eps_dtype": frozenset({"float64"}),
        "float64": frozenset({"float64"}),
    }
)


def matters_in(key: str, dtype: str) -> bool:
    """Whether a convention changes anything about calls in a dtype."""
    return key not in _IN_DTYPES or dtype in _IN_DTYPES[key]


def operators_about(key: str) -> tuple[str, ...]:
    """The operators to which a convention applies; in the others it has no meaning."""
    return tuple(name for name, one in OPERATORS.items() if key not in _ABOUT or _ABOUT[key](one))


def ensure_about(declared: Iterable[str], operators: Iterable[str], whose: str) -> None:
    """
    Raise UnknownConvention unless each of these conventions applies to one of these operators.

    ``whose`` says in the message whose conventions they are.
    """
    there = tuple(dict.fromkeys(operators))
    for key in declared:
        about = operators_about(key)
        if not set(about) & set(there):
            raise UnknownConvention(
                f"convention {key} is about {', '.join(about)}, and {whose} {', '.join(there)}: leave it out"
            )


def validate(declared: Mapping[str, str]) -> dict[str, str]:
    """
    The declared conventions in a new dict, checked to be known.

    Raises UnknownConvention on a name or a value that does not exist.
    """
    for key, value in declared.items():
        if key not in CONVENTIONS:
            raise UnknownConvention(f"unknown convention {key!r}{choices(key, CONVENTIONS)}")
        if value not in CONVENTIONS[key]:
            raise UnknownConvention(f"convention {key} has no value {value!r}{choices(value, CONVENTIONS[key])}")
    return dict(declared)


def parse_conventions(texts: Iterable[str]) -> dict[str, str]:
    """
    Conventions written as ``KEY=VALUE``.

    Raises UnknownConvention if the text has another form, names an unknown convention or value, or contradicts an
    earlier one.
    """
    parsed: dict[str, str] = {}
    for text in texts:
        key, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not key or not value:
            raise UnknownConvention(f"convention {text!r} is not of the form KEY=VALUE, such as momentum=old")
        if parsed.get(key, value) != value:
            raise UnknownConvention(f"convention {key} is given twice, as {parsed[key]!r} and as {value!r}: keep one")
        parsed[key] = value
    return validate(parsed)
