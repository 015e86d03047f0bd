"""
Sizes: every extent of every operator, past the limits at which kernels change their path.

An extent is something that a kernel counts: the features of a group, the groups, the channels, the samples. The sweep
takes one extent at a time past one threshold after another, by one, and leaves the others small. So a fault that begins
past a threshold shows in the next case, even one that ends at the next threshold. The values are easy. The cotangent is
large at the edges (regime and cotangent "edges"), since a wrong block loses those. All of every result is judged: the
whole sweep of an extent up to 8192 costs as much as one call of 70,000 values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

import attrs

from ...spec.operators import OPERATORS, Groups
from .description import NEGLIGIBLE_EPS, Description

#: The last count before a path ends, and the origin of such a limit.
THRESHOLDS: Mapping[int, str] = {
    32: "lanes of a warp (NVIDIA); floats in two AVX-512 registers",
    64: "lanes of a wavefront (AMD); bytes in a cache line",
    100: "what people write for `small`",
    128: "four warps; the last dimension of a TPU's tile",
    256: "the most usual block of threads; an 8-bit counter",
    512: "bytes in a warp's vector load",
    768: "features of BERT, for which kernels are written by hand",
    1000: "what people write for `large`",
    1024: "threads in the largest block of CUDA",
    2048: "two values for each thread of the largest block",
    4096: "values in a page of 16 KiB; four values for each thread",
    8192: "the longest row of many fused kernels",
    16384: "64 KiB of float32: the shared memory of a GPU's multiprocessor",
    65536: "a 16-bit counter; the second dimension of CUDA's grid, whose limit is 65,535; Triton's fused rows",
}

#: The thresholds of each profile. `standard` has no 16,384, which costs as much as all before it; it has 65,536
#: because of the grid. `quick` catches a fault that begins past 4096 or less and does not end there.
PROFILES: Mapping[str, tuple[int, ...]] = {
    "quick": (64, 1024, 4096),
    "standard": tuple(size for size in THRESHOLDS if size != 16384),
    "thorough": tuple(THRESHOLDS),
}
#: Up to here every profile has the threshold itself too, because kernels load in vectors and are specialised for sizes
#: that divide a block's or equal it. Beyond, one more case costs as much as all before it.
_FULL = 8192
#: Numbers of features and channels of widespread models, none of them a power of two: kernels are specialised for some.
#: Several are multiples of 32 or 64, and not of the block that a kernel may take them for. `quick` has the first three.
_WIDTHS = (
    *(96, 192, 320, 80, 112, 160, 240, 384, 480, 576, 640, 672, 960, 1152, 1280, 1536, 1600, 2304, 2560, 3072, 3584),
    *(5120, 6144, 7168),
)
#: Features of the widest models (GPT-3, the largest Llama 3), for which `standard` has no threshold.
_WIDEST = (12288, 16384)
#: Even numbers of features that are no multiple of four: a row then begins within a vector of four, though on a vector
#: of two. Each is past a threshold or a block, and there are more rows than a block of four has. `quick` has the first.
_HALF_VECTORS, _ROWS_OF_HALF_VECTORS = (602, 258, 1030, 2054, 4102), 7
#: The positions of images of 224 x 224 after each halving, from the last on.
_POSITIONS = (49, 196, 784, 3136)
#: The groups of GroupNorm in widespread models, and how many channels they have: 64 to 1,280 channels in all.
_GROUPS_OF_MODELS, _CHANNELS_OF_MODELS = 32, (2, 4, 8, 10, 16, 20, 40)
#: The sizes for a framework that compiles every new shape (in_few_shapes in few_shapes.py, large in
#: engine/selection.py): the ends of the usual range.
SLOW: Mapping[str, tuple[int, ...]] = {"quick": (4096,), "standard": (1024, 8192), "thorough": ()}

#: Up to here several samples have as many groups each: beyond, they cost too much.
_SEVERAL = 1025


#: Groups whose sums consist of a few large values, the last value among them. In the first group only the last value is
#: nonzero, so the dx of that value vanishes; this must therefore not be the last group.
_GROUPS = (("one_hot", 4), *(("edges", index) for index in range(3)))


@attrs.frozen
class Extent:
    """Something that an operator counts, and the case in which it alone is this large."""

    name: str
    #: The fields of the case's description for a count and for the count's place in the sweep.
    case: Callable[[int, int], Mapping[str, object]]
    #: The largest count that makes sense.
    largest: int = 65537


def _features(size: int, place: int) -> dict[str, object]:
    return {"n": size, "groups": _GROUPS}


def _many(size: int, place: int) -> dict[str, object]:
    return {"n": 5, "groups": tuple(("edges", index) for index in range(7)), "repeat": size}


def _axis(size: int) -> dict[str, object]:
    """Channels lie last where they are whole vectors, and second where they are one more."""
    return {"channel_axis": 1 if size % 2 else -1}


def _of_batch(*, training: bool) -> tuple[Extent, ...]:
    """Some cases have positions besides the samples; kernels count the samples or the product."""
    arounds = {"rank": 3, "n": 6, "samples": 2}, {"rank": 4, "n": 8, "samples": 2}, {"rank": 2, "n": 5, "samples": 5}

    def channels(size: int, place: int) -> dict[str, object]:
        return {**_many(size, place), **arounds[place % 3], **_axis(size), "training": training}

    def samples(size: int, place: int) -> dict[str, object]:
        around = {"rank": 4, "n": 2 * size} if place % 2 else {"rank": 2, "n": size}
        return {"groups": _GROUPS[:3], "samples": size, **around, "training": training}

    def positions(size: int, place: int) -> dict[str, object]:
        return {"groups": _GROUPS[:3], "samples": 2, "n": 2 * size, "rank": 3 + place % 2, "training": training}

    mode = "training" if training else "inference"
    counted = (("channels", channels), ("samples", samples), ("positions", positions))
    return tuple(Extent(f"{name}, {mode}", case) for name, case in counted)


def _in_samples(*, alone: bool) -> tuple[Extent, ...]:
    """
    The extents where groups are channels of samples. Every second case has its positions along two axes.

    ``alone``: each channel is a group, so nothing counts the channels of a group.
    """

    def case(size: int, place: int, **rest: object) -> dict[str, object]:
        return {"rank": 3 + place % 2, **rest}

    def positions(size: int, place: int) -> dict[str, object]:
        around = {"n": size} if alone else {"n": 2 * size, "width": 2}
        return case(size, place, groups=_GROUPS, samples=2, **around)

    def channels(size: int, place: int) -> dict[str, object]:
        return case(size, place, groups=_GROUPS, n=2 * size, width=size, samples=2)

    def groups(size: int, place: int) -> dict[str, object]:
        samples = 2 if size <= _SEVERAL else 1
        return case(size, place, **{**_many(samples * size, place), **_axis(size)}, samples=samples)

    return (
        Extent("samples", lambda size, place: case(size, place, **_many(size, place), samples=size)),
        Extent("groups", groups),
        *(() if alone else (Extent("channels of a group", channels),)),
        Extent("positions", positions),
    )


_ROWS = (Extent("features", _features), Extent("groups", _many))
#: Branches are separate tensors, passed one by one: no more than a model might have.
_BRANCHES = Extent("branches", lambda size, place: {"n": 5, "groups": _GROUPS[:2], "count": size}, 257)


def extents(operator: str) -> tuple[Extent, ...]:
    """The extents that an operator counts."""
    record = OPERATORS[operator]
    if record.groups is Groups.CHANNEL:
        return _of_batch(training=True) + _of_batch(training=False)
    if record.groups is Groups.SAMPLE_CHANNELS:
        return _in_samples(alone=record.channels_alone)
    return (*_ROWS, _BRANCHES) if record.has_branches else _ROWS


#: The parts of a composed operator, chosen so that all inputs are used and x's pattern goes through.
RECIPES = {"residual": "leaf", "pre_norm": "scaled", "post_norm": "scaled", "highway": "leaf", "mhc": "leaf"}


#: Requirements of the sweep's cases: the numbers, and that the call returns them at all.
_SIZES = frozenset(("CM-S1", "CM-T1", "CM-T2"))
#: The same where code may call a part with one chunk of x after the other, hand it something else, or write into its
#: result: past the usual thresholds from this one on. It is the first of a thousand and more, which people write for
#: such a path.
_OF_PARTS, _CHUNKED_PAST = _SIZES | {"CM-C1", "CM-C2", "CM-C3", "CM-C4"}, 1024


def place_of(size: int) -> int:
    """The place of a size in the sweep: how many thresholds it is past."""
    return sum(size > threshold + 1 for threshold in THRESHOLDS)


def sized(operator: str, extent: Extent, size: int, *, far: bool = False, place: int | None = None) -> Description:
    """The case in which an extent has this size; ``place``: that of another size, for a case like its own."""
    place = place_of(size) if place is None else place
    parts: dict[str, object] = {}
    if OPERATORS[operator].composed:
        past = size > _CHUNKED_PAST and size - 1 in THRESHOLDS
        parts = {"recipe": RECIPES[operator], "requirements": _OF_PARTS if past else _SIZES}
    common = {"eps": NEGLIGIBLE_EPS, "gamma": "powers", "beta": "mixed", "cotangent": "edges"}
    plain = Description(operator, 1, (), requirements=_SIZES, only=True, far=far)
    return attrs.evolve(plain, **{**common, **parts, **extent.case(size, place)})  # type: ignore[arg-type]


#: Numbers of branches that loops and blocks are written for. The deck has 1, 2, 3, 5, 8 and 12.
_FEW_BRANCHES = (4, 6, 7, 9, 10, 16, 17)


def _sizes(profile: str, extent: Extent) -> Iterator[int]:
    if extent is _BRANCHES:
        yield from _FEW_BRANCHES
    if extent.name.startswith(("features", "channels")):
        yield from _WIDTHS[:3] if profile == "quick" else _WIDTHS
    if extent.name == "features" and profile != "quick":
        yield from _WIDEST
    if extent.name.startswith("positions") and profile != "quick":
        yield from _POSITIONS
    for threshold in PROFILES[profile]:
        if profile == "thorough" or threshold <= _FULL:
            yield threshold
        yield threshold + 1


#: Number of groups and their length in the calls that are repeated to provoke a race: more than 64, 1000 and
#: 100,000 values. Below such a limit code uses one thread or one block. PyTorch's bridge gives two threads
#: or more from 65,536 values on; 257 groups of 400 are several for each thread.
_REPEATED = ((7, 10), (33, 33), (257, 400))
#: The shapes that `quick` repeats.
_QUICK = slice(1, 2)


def repeated_deck(operator: str, profile: str) -> list[Description]:
    """The larger cases whose calls are repeated (CM-P2, CM-P3)."""
    found = []
    for groups, n in _REPEATED[_QUICK] if profile == "quick" else _REPEATED:
        for training in (True, False) if OPERATORS[operator].has_modes else (True,):
            plain = sized(operator, extents(operator)[0], n, far=profile != "quick")
            shaped = {"n": n, "samples": None, "width": None, "rank": 2, "groups": _GROUPS[1:], "repeat": groups}
            found.append(attrs.evolve(plain, **shaped, training=training, requirements=_SIZES | {"CM-P2", "CM-P3"}))  # type: ignore[arg-type]
    return found


#: The extents whose values a kernel takes in vectors.
_IN_VECTORS = ("features", "samples, training", "positions, training", "positions")
#: Floats in an AVX-512 register, or 16-bit values in half of one: the tail of a row is one of as many.
_VECTOR = 16


def _tails(operator: str) -> Iterator[Description]:
    """Every tail of a vector, behind one of them and behind several; the groups have every tail too."""
    taken = [extent for extent in extents(operator) if extent.name in _IN_VECTORS]
    for tail in range(_VECTOR):
        groups = _VECTOR + (5 * tail + 3) % _VECTOR  # in another order: groups and values differ in number
        n = _VECTOR + tail
        # One channel a group, so that the tail is the group's too.
        yield attrs.evolve(sized(operator, taken[0], n), n=n, width=1, repeat=groups)
        yield sized(operator, taken[-1], 64 + (_VECTOR + 1) * tail)


def _half_vectors(operator: str, profile: str) -> Iterator[Description]:
    """Rows of which every second begins within a vector of four."""
    features = extents(operator)[0]
    if features.name == "features":
        for n in _HALF_VECTORS[: 1 if profile == "quick" else None]:
            yield attrs.evolve(sized(operator, features, n), repeat=_ROWS_OF_HALF_VECTORS)


def _one_sample(operator: str) -> Iterator[Description]:
    """A training batch of one sample, whose statistics are of positions alone, with its channels second and last."""
    if OPERATORS[operator].groups is Groups.CHANNEL:
        positions = next(extent for extent in extents(operator) if extent.name == "positions, training")
        for channel_axis in (1, -1):
            yield attrs.evolve(sized(operator, positions, 64), samples=1, n=64, channel_axis=channel_axis)


def _of_models(operator: str) -> Iterator[Description]:
    """Numbers of channels and groups that models have together."""
    record = OPERATORS[operator]
    if record.groups is Groups.SAMPLE_CHANNELS and not record.channels_alone:
        positions = next(extent for extent in extents(operator) if extent.name == "positions")
        for width in _CHANNELS_OF_MODELS:
            yield attrs.evolve(
                sized(operator, positions, 3), n=3 * width, width=width, samples=1, repeat=_GROUPS_OF_MODELS
            )


#: Three normalised axes, with just over 30, 64, 256, 1024 and 4096 values together.
_VOLUMES = ((3, 4, 3), (3, 5, 5), (5, 6, 9), (5, 11, 19), (6, 19, 36))


def _of_three_axes(operator: str) -> Iterator[Description]:
    """Groups along three axes, which code may take by a path of its own: past 30, 64, 256, 1024 and 4096 values."""
    if OPERATORS[operator].groups is Groups.TRAILING:
        plain = sized(operator, extents(operator)[0], 5)
        for axes in _VOLUMES:
            yield attrs.evolve(plain, n=math.prod(axes), features=axes, leading=(2,), groups=_GROUPS[1:3])


#: The extents that count the values of a group.
_OF_A_GROUP = ("features", "samples, training", "positions, training", "channels of a group", "positions")
#: Past each, code may compute the variance in one pass. `quick` has the last: code that begins earlier does so too.
_IN_ONE_PASS = (1025, 4097)
#: In float64, means 2^22 deviations from zero (cases/regimes.py). In one pass the variance keeps nine bits, and any two
#: passes keep twenty. In float32 so long a sum has no such room: whatever its order, it may cost as much.
_FAR_FROM_ZERO = tuple(("offset", 4 * index + 1) for index in range(2))


def _far_from_zero(operator: str, profile: str) -> Iterator[Description]:
    """Large groups whose mean is far above their deviation."""
    for extent in extents(operator):
        if extent.name in _OF_A_GROUP and not OPERATORS[operator].composed:
            for size in _IN_ONE_PASS[1 if profile == "quick" else 0 :]:
                yield attrs.evolve(sized(operator, extent, size), groups=_FAR_FROM_ZERO)


#: Sizes past thresholds at which code for float32 parameters beside 16-bit data may change.
_WIDE_SIZES = (65, 257, 513, 1025, 2049, 4097)


def _with_wide_parameters(operator: str) -> Iterator[Description]:
    """16-bit data with float32 parameters, for which kernels have code of their own, in each extent."""
    if not OPERATORS[operator].composed:
        for extent in extents(operator):
            for size in _WIDE_SIZES:
                yield attrs.evolve(sized(operator, extent, size), mixed=True, requirements=frozenset(("CM-D1",)))


def size_deck(operator: str, profile: str) -> list[Description]:
    """
    The sweep of a profile, extent by extent; every tail; two extents at the size of a block, and past it.

    For batch_norm, the last cases are a batch of one sample; for groups along trailing axes, three of these.
    """
    descriptions = [
        sized(operator, extent, size, far=size - 1 in SLOW[profile])
        for extent in extents(operator)
        for size in _sizes(profile, extent)
        if size <= extent.largest
    ]
    both = {"n": 128, "groups": _GROUPS, "repeat": 64}, {"n": 130, "groups": _GROUPS, "repeat": 131}
    features = extents(operator)[0]
    plain = {"samples": None, "width": None, "rank": 2}
    descriptions += _tails(operator)
    descriptions += [attrs.evolve(sized(operator, features, 5), **plain, **one) for one in both]
    descriptions += _half_vectors(operator, profile)
    descriptions += _one_sample(operator)
    descriptions += _of_three_axes(operator)
    descriptions += _far_from_zero(operator, profile)
    if profile != "quick":
        descriptions += [*_of_models(operator), *_with_wide_parameters(operator)]
    return list(dict.fromkeys(descriptions))  # a tail may be one of the sizes
