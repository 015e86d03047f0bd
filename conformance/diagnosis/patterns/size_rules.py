"""Rules for which sizes are wrong, in words: from one size on, within a range, or by multiples of a block."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs

#: Blocks that a wrong size may be a multiple of, besides the last right and the first wrong size.
_BLOCKS = (2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 32, 48, 64, 96, 100, 128, 192, 256, 384, 512, 768, 1000, 1024, 2048)
#: Multiples of a block that are tried above the first wrong size, with sizes between and beside them. Widths of models
#: are the first five multiples of 768 and of 1024, which code may list.
_MULTIPLES = 6


@attrs.frozen
class SizeRule:
    """A rule for which sizes are wrong, in words."""

    #: Whether a size is wrong.
    wrong: Callable[[int], bool]
    #: The words after "y is", and a shorter form that says where it begins; {0} is what is counted.
    clause: str
    short: str
    #: Sizes that distinguish it from similar rules.
    distinguishing: tuple[int, ...] = ()
    #: Whether every tried size follows it; whether every larger size is wrong.
    followed: bool = True
    goes_on: bool = False


def from_on(low: int, high: int) -> SizeRule:
    """The rule of a size from which on everything is wrong."""
    clause, short = f"right up to {low} {{0}}, wrong from {high} on", f"from {high} {{0}} on"
    return SizeRule(lambda size: size >= high, clause, short, goes_on=True)


def within(low: int, high: int, last: int) -> SizeRule:
    """The rule of a band of sizes, from ``high`` to ``last``, that are wrong; ``low``: the last right one below."""
    band = f"at {high}" if last == high else f"from {high} to {last}"
    clause = f"right up to {low} {{0}} and from {last + 1} on, wrong {band}"
    return SizeRule(lambda size: high <= size <= last, clause, f"{band} {{0}}")


def of_blocks(low: int, high: int) -> Iterator[SizeRule]:
    """The rules by which larger sizes are wrong, or right, if they are multiples of a block."""
    for block in (*_BLOCKS, low, high):
        sizes = _multiples(block, high)
        up_to = f"right up to {low} {{0}}" if low > 1 else "right"
        yield SizeRule(
            lambda size, block=block: size >= high and size % block != 0,
            f"{up_to} and at every larger multiple of {block}, wrong at every other number",
            f"from {high} {{0}} on but at multiples of {block}",
            sizes,
        )
        if high % block == 0:
            yield SizeRule(
                lambda size, block=block: size >= high and size % block == 0,
                f"right at every number of {{0}} but {high} and every larger multiple of {block}",
                f"at multiples of {block} {{0}} from {high} on",
                sizes,
            )


def _multiples(block: int, high: int) -> tuple[int, ...]:
    """Multiples of a block above a size, with sizes beside them and half-way between two."""
    first = -(-high // block)
    sizes = [block * times for times in range(first, first + _MULTIPLES + 1)]
    between = [size + more for size in sizes for more in (1, block // 2, -1)]
    return tuple(size for size in (*sizes, *between) if size > high)
