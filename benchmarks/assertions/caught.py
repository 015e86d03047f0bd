"""
How many mistakes of the library a comparison sees, and how many sound functions it accuses, on the same data.

A mistake counts where it shows: where something that it returns differs from what the sound function returns that it
was made of, by a bit, by its dtype, or by not being there. `assert_close` is given the exact values rounded to the
dtype, which no project has, so that nothing is lost to a reference. A tolerance fitted afterwards stands beside those
that projects use: the least rtol = atol that accuses none of the sound functions on any of the data.
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

#: rtol and atol of tests of each project, by dtype where they depend on that.
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
    """What one function returned on data of a kind, and how it was judged."""

    kind: str
    function: str
    sound: bool
    within_envelope: bool
    #: Of each result got and want; infinitely far where shape or dtype is another, or nothing was returned.
    values: Sequence[tuple[Array, Array]]

    def close(self, rtol: float, atol: float) -> bool:
        """As torch.testing.assert_close has it."""
        return all(bool(((got == want) | (_far(got, want) <= atol + rtol * np.abs(want))).all())
                   for got, want in self.values)  # fmt: skip

    @property
    def tolerance(self) -> float:
        """The least rtol = atol at which it is close."""
        return max(float((_far(got, want) / (1 + np.abs(want))).max()) for got, want in self.values)


def _far(got: Array, want: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.abs(got - want)


def caught(kinds: Sequence[str]) -> None:
    """Print a table for each dtype."""
    names = ("envelope", *TOLERANCES, "fitted")
    for dtype in DTYPES:
        found = [one for kind in kinds for one in _returned(kind, dtype)]
        # It is a quotient, rounded.
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
    """How many mistakes there are, and how many sound functions."""
    functions = {(one.function, one.sound) for one in found}
    accused = sum(sound for _, sound in functions)
    return f"{len(functions) - accused}, {accused}"


def _returned(kind: str, dtype: str) -> Iterator[Returned]:
    """What every mistake that shows and every sound function returns on data of a kind."""
    rng = np.random.default_rng(0)
    for op, (_, usual, long) in CALLS.items():
        inputs, g = drawn(op, dtype, rng, long if KINDS[kind][1] else usual, kind)
        base = results(IMPLEMENTATIONS[op]().implementation(), op, inputs, g)
        want = {name: value.astype(DTYPES[dtype]) for name, value in exact(op, base, inputs, g).items()}
        for name, sound, made in _functions(op, dtype):
            try:
                found = results(made, op, inputs, g)
            except Exception:  # the mistake is that it raises
                continue
            if sound or not _same(found, base):
                values = [_pair_of(found.get(name), value) for name, value in want.items()]
                yield Returned(kind, name, sound, holds(op, found, inputs, g), values)


def _functions(op: str, dtype: str) -> Iterator[tuple[str, bool, Implementation]]:
    """Name, whether it is sound, and what was built of it."""
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
