"""
How many of the library's mistakes a comparison catches, and how many sound functions it accuses, on the same data.

A mistake counts where it shows: some result differs in a bit or in its dtype from that of the sound function that it
was made from, or is missing. `assert_close` gets the exact values rounded to the dtype, which no project has, so that
no reference adds an error. Beside the tolerances of projects there is one fitted afterwards: the smallest rtol = atol
that accuses none of the sound functions on any of the data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from normspec.adapters.numpy.operators import IMPLEMENTATIONS
from normspec.adapters.numpy.operators.implementation import Implementation
from normspec.conformance.faults import registered
from normspec.conformance.sound import SOUND

from .data import CALLS, DTYPES, KINDS, Array, Results, drawn, exact, holds, results

#: rtol and atol in each project's tests, by dtype where they depend on it.
TOLERANCES: Mapping[str, Mapping[str, tuple[float, float]]] = {
    "defaults": {
        "float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7),
    },
    "1e-3": dict.fromkeys(DTYPES, (1e-3, 1e-3)),
    "1e-2": dict.fromkeys(DTYPES, (1e-2, 1e-2)),
    "0.06": dict.fromkeys(DTYPES, (0.0, 6e-2)),
    "0.5": dict.fromkeys(DTYPES, (0.0, 5e-1)),
}  # fmt: skip


@dataclass(frozen=True)
class Returned:
    """One function's results on data of a kind, and the judgement of them."""

    kind: str
    function: str
    sound: bool
    within_envelope: bool
    #: Got and wanted values of each result; infinitely far apart if shape or dtype differs or the result is missing.
    values: Sequence[tuple[Array, Array]]

    def close(self, rtol: float, atol: float) -> bool:
        """Whether torch.testing.assert_close would accept it."""
        return all(bool(((got == want) | (_far(got, want) <= atol + rtol * np.abs(want))).all())
                   for got, want in self.values)  # fmt: skip

    @property
    def tolerance(self) -> float:
        """The smallest rtol = atol at which it is close."""
        return max(float((_far(got, want) / (1 + np.abs(want))).max()) for got, want in self.values)


def _far(got: Array, want: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.abs(got - want)


def caught(kinds: Sequence[str]) -> None:
    """Print a table for each dtype."""
    names = ("envelope", *TOLERANCES, "fitted")
    for dtype in DTYPES:
        found = [one for kind in kinds for one in _returned(kind, dtype)]
        # The tolerance is a rounded quotient.
        fitted = max(one.tolerance for one in found if one.sound) * (1 + 1e-9)
        tolerances = (*(one[dtype] for one in TOLERANCES.values()), (fitted, fitted))
        failing = [[one for one in found if not one.within_envelope]]
        failing += [[one for one in found if not one.close(*tolerance)] for tolerance in tolerances]
        print(f"\nfitted: {fitted:.2g}\n")
        print(f"| {dtype} | all | {' | '.join(names)} |\n|---|---|{'---|' * len(names)}")
        for kind in kinds:
            cells = [_counts(one for one in each if one.kind == kind) for each in (found, *failing)]
            print(f"| `{kind}` | {' | '.join(cells)} |")
        print(f"| any of them | {' | '.join(map(_counts, (found, *failing)))} |", flush=True)


def _counts(found: Iterable[Returned]) -> str:
    """The numbers of mistakes and of sound functions."""
    functions = {(one.function, one.sound) for one in found}
    accused = sum(sound for _, sound in functions)
    return f"{len(functions) - accused}, {accused}"


def _returned(kind: str, dtype: str) -> Iterator[Returned]:
    """The results of every mistake that shows, and of every sound function, on data of a kind."""
    rng = np.random.default_rng(0)
    for op, (_, usual, long) in CALLS.items():
        inputs, g = drawn(op, dtype, rng, long if KINDS[kind][1] else usual, kind)
        base = results(IMPLEMENTATIONS[op]().implementation(), op, inputs, g)
        want = {name: value.astype(DTYPES[dtype]) for name, value in exact(op, base, inputs, g).items()}
        for name, sound, made in _functions(op, dtype):
            try:
                found = results(made, op, inputs, g)
            except Exception:  # the mistake may raise
                continue
            if sound or not _same(found, base):
                values = [_pair_of(found.get(name), value) for name, value in want.items()]
                yield Returned(kind, name, sound, holds(op, found, inputs, g), values)


def _functions(op: str, dtype: str) -> Iterator[tuple[str, bool, Implementation]]:
    """The name, whether it is sound, and the implementation."""
    for variant in SOUND:
        if variant.operator == op:
            yield variant.name, True, variant.build()
    for fault in registered():
        if fault.operator == op and dtype in fault.dtypes:
            yield fault.name, False, fault.build()


def _pair_of(got: Array | None, want: Array) -> tuple[Array, Array]:
    if got is None or got.shape != want.shape or got.dtype != want.dtype:
        return np.array(np.inf), np.array(0.0)
    return got.astype(np.float64), want.astype(np.float64)


def _same(found: Results, base: Results) -> bool:
    return all(
        found.get(name) is not None and found[name].dtype == value.dtype and np.array_equal(found[name], value)
        for name, value in base.items()
    )
