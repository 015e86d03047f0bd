"""The fixed deck of the composed operators: every recipe, and data on which one aspect shows at a time."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from ...spec.operators import OPERATORS
from .description import NEGLIGIBLE_EPS, Description, Kinds
from .logits import FUSIONS, GATES
from .recipes import RECIPES

_PLAIN: Kinds = (("normal", 0), ("integers", 1), ("scaled", 0), ("normal", 2))
_MANY: Kinds = (*_PLAIN, ("witness", 6), ("scaled", 3), ("one_hot", 1), ("normal", 5))
_LAWFUL: Kinds = (("normal", 0), ("near_eps", 0), ("integers", 1), ("scaled", 0), ("normal", 2))
_INTEGERS: Kinds = (("integers", 0), ("integers", 1), ("integers", 2))
_GRID: Kinds = tuple(("integers", place) for place in range(12))
_NEAR: Kinds = (("near_eps", 0), ("near_eps", 1), ("near_eps", 2), ("near_eps", 5), ("witness", 2))
_TINY: Kinds = (("scaled", 7), ("scaled", 5), ("normal", 0))
_BELOW: Kinds = (("below_eps", 0), ("below_eps", 1), ("below_eps", 2))
_OFFSETS: Kinds = (*(("offset", place) for place in range(8)), ("witness", 11))
#: Rows of zeros with one row of numbers.
_PADDED: Kinds = (("constant", 0), ("normal", 0), ("constant", 0))
_ODD: Kinds = (("offset", 0), ("constant", 2), ("heavy_tailed", 0), ("near_overflow", 0), ("subnormal", 0))

#: The recipe for the laws of a call (purity, layouts, NaN): its parts hide nothing.
_LAW = {"residual": "leaf", "pre_norm": "scaled", "post_norm": "leaf", "highway": "leaf", "mhc": "leaf"}
#: More recipes for these laws: their parts depend on x, each row by itself.
_ROWWISE = ("tanh_linear", "chain", "mixed", "post_activation")
#: Recipes whose parts hold nothing that a second case could show.
_BRIEF = ("view", "identity", "zero", "negated", "counted", "dropped_leaf", "fuse_shared", "tiny")
#: The same, of values that matter for one thing alone.
_RARE = ("large", "opposed", "cancelling")
#: Recipes whose second derivatives are not zero.
_CURVED = {
    "residual": ("tanh_linear", "square", "post_activation", "projected"),
    "pre_norm": ("tanh_linear", "square", "linear"),
    "post_norm": ("tanh_linear", "square", "leaf"),
    "highway": ("chain", "square", "chain_carry", "linear"),
    "mhc": ("mixed", "leaf", "fuse_coupled", "fuse_product"),
}


#: Requirements about fusion weights: for logits of any size, and for moderate logits only.
_WEIGHTS = frozenset(("MH-F2", "MH-L4"))
_MODERATE = frozenset(("MH-G4", "MH-L1", "MH-L2", "MH-L5"))
#: The laws, and other requirements that need a few small cases.
LAWS = frozenset(
    (
        *(*_WEIGHTS, *_MODERATE, "PR-L2", "CM-A1", "CM-A2", "CM-S2", "CM-T3"),
        *("CM-P1", "CM-P4", "CM-P5", "CM-N1", "CM-N3", "CM-N4"),
    )
)
#: Requirements about the treatment of parts. Values do not matter: one case a recipe is enough, and a few more.
PARTS = frozenset(
    (
        *("CM-C1", "CM-C2", "CM-C3", "CM-C4", "CM-C5", "CM-C6", "CM-C7", "CM-C10", "CM-C11", "CM-C12"),
        *("CM-N5", "CM-N6", "CM-N7"),
    )
)
DERIVATIVES = frozenset(("RS-G4", "RS-G5", "RS-G7", "RS-G8", "RS-G9"))
#: Requirements that need logits far apart, infinite ones included.
SATURATED = _WEIGHTS | {"HW-F4", "HW-G6", "MH-F3", "MH-G6"}
COUNTS = _WEIGHTS | _MODERATE | {"MH-F4"}
EPS_INSIDE = ("PR-F3", "PR-F6", "PO-F3", "PO-F6")
FEW = ("PR-F5", "PR-F7", "PO-F5", "PO-F7")
WITHOUT = ("PR-F4", "PO-F4", "PO-L1")


def composed_deck(operator: str) -> list[Description]:
    """Return the fixed cases of a composed operator, in the order they run."""

    def d(n: int, groups: Kinds, *requirements: str, **rest: object) -> Description:
        plain = Description(operator, n, groups, requirements=frozenset(requirements), recipe=_LAW[operator])
        return attrs.evolve(plain, **rest)  # type: ignore[arg-type]

    def cases() -> Iterator[Description]:
        yield d(8, _LAWFUL, *LAWS, "CM-P2", "CM-P3", "CM-V1", "CM-V2", "CM-V3", eps=2.0**-10)
        yield d(6, _INTEGERS, *LAWS, "PR-L3", gamma="powers")
        for place, recipe in enumerate(_CURVED[operator]):
            yield d(3 + place, _PLAIN[: 2 + place % 2], *DERIVATIVES, recipe=recipe, eps=2.0**-4, count=2 + place % 2)
        for place, recipe in enumerate(RECIPES[operator]):
            # Every recipe, on a matrix and on a sequence of them, with sizes that differ from one another.
            law = LAWS if recipe in _ROWWISE else ()
            groups = _PADDED if recipe == "tiny" else _LAWFUL[:3]  # in rows of zeros only the tiny values are left
            yield d(5, groups, *PARTS, *law, recipe=recipe, eps=2.0**-8, logits="moderate")
            if recipe in (*_BRIEF, *_RARE):
                continue
            shaped: dict[str, object] = {"leading": (2, 4)} if place % 2 else {"leading": (8,)}
            yield d(6, _MANY, recipe=recipe, eps=NEGLIGIBLE_EPS, count=2, **shaped)
        yield from own()
        yield d(7, _ODD, "PR-F1")
        yield d(12, _MANY, cotangent="one_hot")
        yield d(4, _MANY, cotangent="ones", eps=1e-3)
        yield d(9, _MANY, cotangent="small", gamma="large", beta="large")
        yield d(1, _PLAIN[:3], cotangent="integers", eps=0.5)
        yield d(6, _MANY[:6], "CM-V1", "CM-V2", "CM-V3", *PARTS, leading=(2, 3))
        yield d(5, _MANY[:6], "CM-V1", "CM-V2", "CM-V3", leading=(3, 2), recipe=_READING[operator])
        yield d(5, _PLAIN[:1], "CM-C1", "CM-C2", "CM-C10", "CM-P1", leading=())
        yield d(1, _PLAIN[:1], eps=0.5)  # x is one value, whose axes a function may squeeze
        yield d(4, _PLAIN[:1], leading=(), recipe=_ALL_PARTS[operator])
        # Shapes that broadcast by mistake: a batch of one, and dimensions of 1 between others.
        yield d(4, _MANY[:4], leading=(1, 4), recipe=_READING[operator])
        yield d(3, _MANY, leading=(2, 2, 2))
        # One row without parameters, and parts that return what they are handed.
        yield d(4, _PLAIN[:1], leading=(), gamma="none", beta="none", recipe=_LAW[operator])
        if "identity" in RECIPES[operator]:
            yield d(4, _MANY[:4], leading=(2, 2), recipe="identity", eps=2.0**-8)
        # Six axes, with all parts: code that flattens some of them, or names them, ends at four or five.
        yield d(3, _MANY, *PARTS, leading=(1, 2, 1, 2, 2), recipe=_ALL_PARTS[operator])
        # Padding: some rows of zeros, and all rows.
        yield d(4, _PADDED, *PARTS)
        yield d(4, (("constant", 0),), *PARTS, recipe=_READING[operator])
        yield d(4, (("constant", 0),))  # the parts return other values than zeros
        yield d(4, _MANY[:6], "CM-V1", "CM-V2", "CM-V3", "CM-C10", leading=(2, 1, 3))
        yield d(33, _PLAIN, cotangent="large")
        yield d(33, _PLAIN, "CM-P1", recipe=_READING[operator], only=True)

    def own() -> Iterator[Description]:
        if OPERATORS[operator].normalises:
            yield from _blocks(operator, d)
        if OPERATORS[operator].has_gates:
            yield from _highway(d)
        if OPERATORS[operator].has_branches:
            yield from _mhc(d)

    return list(cases())


def _blocks(operator: str, d) -> Iterator[Description]:  # type: ignore[no-untyped-def]
    """eps, absent parameters, few values, leading dimensions: the possible mistakes of the normalisation inside."""
    for recipe in ("scaled", "identity", "leaf"):
        yield d(2, _NEAR, *EPS_INSIDE, recipe=recipe, beta="none", gamma="ones")
    yield d(5, _NEAR, *EPS_INSIDE, recipe="scaled", eps=16.0)  # code may limit a large eps
    for recipe in ("scaled", "zero"):
        yield d(5, _NEAR, *EPS_INSIDE, recipe=recipe, eps=1e-3)
        yield d(3, _BELOW, *EPS_INSIDE, recipe=recipe, eps=1e-6, gamma="large", beta="none")
        yield d(2, _BELOW, *EPS_INSIDE, recipe=recipe, eps=1e-5, gamma="ones", beta="none")
    yield d(6, _TINY, recipe="scaled", eps=0.0)  # `eps or 1e-6` takes 0 for an eps that was not given
    for n, eps in ((7, 1e-3), (16, 0.5)):  # where a one-pass variance cancels
        yield d(n, _OFFSETS, "PR-F1", recipe="scaled", eps=eps, gamma="ones", beta="none")
    if OPERATORS[operator].normalises_sum:  # a variance put together from those of x and F(x) cancels
        for recipe in ("opposed", "cancelling"):
            yield d(16, _MANY, "PO-F1", recipe=recipe, eps=NEGLIGIBLE_EPS, gamma="ones", beta="none")
    for n in (2, 3, 4):
        yield d(n, _PLAIN, *FEW, recipe="scaled", eps=NEGLIGIBLE_EPS, gamma="powers")
    for recipe in ("tanh_linear", "scaled"):  # blocks are initialised like this to be the identity
        yield d(6, _PLAIN, recipe=recipe, eps=NEGLIGIBLE_EPS, gamma="zeros")
    # How the sublayer bends shows in bfloat16 too where eps is as large as the variance.
    yield d(3, (("scaled", 0), ("normal", 2)), *DERIVATIVES, recipe="square", eps=1.0, only=True)
    for gamma, beta in (("none", "none"), ("mixed", "none"), ("none", "mixed")):
        for recipe in ("scaled", "tanh_linear", "leaf"):
            yield d(6, _PLAIN, *WITHOUT, recipe=recipe, eps=NEGLIGIBLE_EPS, gamma=gamma, beta=beta)
        yield d(4, _PLAIN[:2], *DERIVATIVES, recipe="scaled", eps=2.0**-4, gamma=gamma, beta=beta, only=True)
        yield d(4, _PLAIN[:1], *WITHOUT, recipe="scaled", eps=NEGLIGIBLE_EPS, leading=(), gamma=gamma, beta=beta)
    yield d(5, _PLAIN, *WITHOUT, recipe="scaled", eps=0.5, gamma="none", beta="none")
    normalised = (("witness", 0), ("witness", 0))  # mean 0 and variance 1, which eps changes all the same
    yield d(2, normalised, *WITHOUT, recipe="scaled", eps=0.5, gamma="none", beta="none")
    yield d(3, _MANY[:6], "PR-F5", "PO-F5", recipe="scaled", eps=NEGLIGIBLE_EPS, leading=(2, 3))
    yield d(3, _PLAIN[:3], "PR-F5", "PO-F5", recipe="scaled", eps=NEGLIGIBLE_EPS)
    yield d(4, _MANY, "PR-F5", "PO-F5", recipe="tanh_linear", eps=NEGLIGIBLE_EPS, leading=(2, 4))
    yield d(6, _PLAIN, "PR-F5", "PO-F5", recipe="scaled", eps=NEGLIGIBLE_EPS, leading=(4, 1))  # one step of each
    # A beta of zeros (parameters.py), as it is at first.
    yield d(5, _PLAIN[:1], "PR-F5", "PO-F5", recipe="scaled", eps=NEGLIGIBLE_EPS, leading=(), beta="ones")
    yield d(8, _PLAIN, "CM-D1", "CM-D2", "CM-D3", recipe="scaled", eps=NEGLIGIBLE_EPS, only=True, mixed=True)
    mixed = ("CM-D1", "CM-D2", "CM-D3", "CM-N3", "CM-N4")
    yield d(6, _PLAIN, *mixed, recipe="leaf", eps=NEGLIGIBLE_EPS, only=True, mixed=True)
    yield d(6, _PLAIN, recipe="scaled", eps=NEGLIGIBLE_EPS, gamma="ones", beta="ones")  # those of a new layer
    # Rows that are zeros once normalised, of which the sublayer makes other values.
    yield d(4, _PADDED, *WITHOUT, recipe="leaf", eps=NEGLIGIBLE_EPS, beta="none")


def _highway(d) -> Iterator[Description]:  # type: ignore[no-untyped-def]
    """Logits over their whole range, with and without a separate carry gate."""
    for recipe in ("leaf", "leaf_carry"):
        for logits in GATES:
            named = {"HW-F3"} if logits in ("mixed", "moderate", "zero") else SATURATED
            # Where a part shows fully, or not at all, code may skip the call or return x.
            named = named.union(*{"closed": (PARTS, LAWS), "open": (PARTS,)}.get(logits, ()))
            groups = _PADDED if logits.startswith("nearly_") else _PLAIN
            yield d(14, groups, *named, recipe=recipe, logits=logits)
    # Transform and gate are linear, so that only the gate bends: bfloat16 leaves no room for another term.
    yield d(2, _GRID, "HW-G7", recipe="shared", eps=2.0**-4)
    yield d(5, _PLAIN, "HW-F3", recipe="identity", logits="moderate")
    yield d(14, _PLAIN, *SATURATED, recipe="identity", logits="extreme")


#: Recipes whose parts read x, so that its layout matters to them.
_READING = {
    "residual": "tanh_linear",
    "pre_norm": "tanh_linear",
    "post_norm": "tanh_linear",
    "highway": "chain",
    "mhc": "mixed",
}


#: Recipes with a part in every role.
_ALL_PARTS = {**_READING, "residual": "projected", "highway": "chain_carry", "mhc": "fuse_coupled"}


def _mhc(d) -> Iterator[Description]:  # type: ignore[no-untyped-def]
    """One branch, two, eight and twelve; logits that are equal, far apart, or closed."""
    for count in (1, 2, 8, 12):
        for recipe in ("leaf", "mixed", "equal"):
            yield d(5, _PLAIN, *COUNTS, recipe=recipe, count=count)
    for logits in FUSIONS:
        extreme = logits not in ("mixed", "zero")
        for count in (2, 5):
            named = SATURATED if extreme else frozenset[str]()
            yield d(5, _PLAIN, *named, *(PARTS if logits == "one_closed" else ()), logits=logits, count=count)
    yield d(1, _PLAIN[:1], *SATURATED, logits="spread_10000", count=1)
    yield d(6, _PLAIN, "CM-D1", "CM-D2", "CM-D3", count=3, only=True, mixed=True)
    yield d(2, _MANY, "MH-L7", recipe="convolutions", leading=(1, 8), count=3)
    yield d(3, tuple(("normal", i) for i in range(17)), "MH-L7", recipe="convolutions", leading=(17,), count=3)
    yield d(3, tuple(("normal", i) for i in range(17)), "MH-L7", recipe="causal", leading=(17,), count=3)
    # One branch is fused too, and more than any of the other cases fuse.
    for recipe, count in (("fuse_sum", 6), ("fuse_product", 4), ("fuse_weighted", 1), ("fuse_coupled", 12)):
        yield d(4, _PLAIN, recipe=recipe, count=count)
    # More values than a block has, in more branches than are written out one by one.
    yield d(70, _PLAIN, count=6, only=True, requirements=frozenset(("CM-S1",)))
