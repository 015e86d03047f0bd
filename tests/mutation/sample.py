"""
Draw single-point mutants of the code that judges, and write them to a file that `run.py` reads.

    python tests/mutation/sample.py --count 200 --seed 0 mutants.jsonl

A place is a comparison, an operator, a number, a condition, a truth value or a loop. Places are drawn evenly, and at
each place one of the changes that cosmic-ray knows for it. Each line of the file holds the whole text of the changed
file, so that another machine needs no cosmic-ray to run it.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator

CHECKOUT = Path(__file__).parent.parent.parent

#: The code that decides a verdict: exact values and envelopes, cases, checks, and the judging.
ROOMS = (
    "reference/*.py",
    *(f"conformance/{room}/*.py" for room in ("cases", "checks", "judging", "engine", "selftest")),
    *(f"conformance/running/{name}.py" for name in ("single_process", "merging", "processes", "unit", "unit_queue")),
    "conformance/requests/limits.py",
)

#: cosmic-ray's changes that somebody could make by mistake. Changes that Python itself refuses, such as a shift of two
#: floats, are left out: any test would catch them, so they would say nothing about the tests.
CHANGES = (
    *(
        f"ReplaceBinaryOperator_{change}"
        for change in (
            "Add_Sub", "Sub_Add", "Mul_Div", "Mul_Add", "Div_Mul", "Pow_Mul", "FloorDiv_Mul", "FloorDiv_Mod",
            "Mod_FloorDiv", "BitAnd_BitOr", "BitOr_BitAnd", "BitXor_BitAnd", "LShift_RShift", "RShift_LShift",
        )
    ),
    *(
        f"ReplaceComparisonOperator_{change}"
        for change in (
            "Eq_NotEq", "NotEq_Eq", "Lt_LtE", "Lt_GtE", "LtE_Lt", "LtE_Gt", "Gt_GtE", "Gt_LtE", "GtE_Gt", "GtE_Lt",
            "Is_IsNot", "IsNot_Is",
        )
    ),
    "ReplaceUnaryOperator_Delete_USub", "ReplaceUnaryOperator_Delete_Invert", "ReplaceUnaryOperator_Delete_Not",
    "AddNot", "ReplaceTrueWithFalse", "ReplaceFalseWithTrue", "ReplaceAndWithOr", "ReplaceOrWithAnd",
    "ReplaceBreakWithContinue", "ReplaceContinueWithBreak", "NumberReplacer", "ZeroIterationForLoop",
)  # fmt: skip

Position = tuple[tuple[int, int], tuple[int, int]]


def files() -> list[Path]:
    """The files that are changed."""
    return sorted(path for room in ROOMS for path in CHECKOUT.glob(room))


#: The nodes of binary operators; a star elsewhere is one of `def f(*, x)` or `{**options}`.
EXPRESSIONS = ("arith_expr", "term", "power", "shift_expr", "and_expr", "xor_expr", "expr")


def without_effect(node: Any) -> bool:
    """Whether a node is in a type hint, in a test for a type checker, or says how attrs makes a class."""
    if node.type == "operator" and node.parent.type not in EXPRESSIONS:
        return True
    before = node
    while node.parent is not None:
        before, node = node, node.parent
        siblings = node.children
        place = siblings.index(before)
        if node.type == "annassign" and place == 1:
            return True
        if node.type in ("param", "tfpdef") and place > 0 and siblings[place - 1] == ":":
            return True
        if node.type == "funcdef" and place > 0 and siblings[place - 1] == "->":
            return True
        if node.type == "decorator" and siblings[1].get_code().startswith("attrs."):
            return True
        if node.type == "if_stmt" and "TYPE_CHECKING" in siblings[1].get_code():
            return True
    return False


def places(source: str) -> Iterator[tuple[Position, str, int]]:
    """Each change: its place, its operator, and which occurrence of it."""
    tree = get_ast(source)
    for change in CHANGES:
        operator = get_operator(f"core/{change}")()
        found = [(node, position) for node in ast_nodes(tree) for position in operator.mutation_positions(node)]
        for occurrence, (node, position) in enumerate(found):
            if not without_effect(node):
                yield position, change, occurrence


def drawn(count: int, seed: int) -> Iterator[dict[str, Any]]:
    """The mutants of a sample."""
    everywhere: dict[tuple[str, Position], list[tuple[str, int]]] = defaultdict(list)
    for path in files():
        for position, change, occurrence in places(path.read_text(encoding="utf-8")):
            everywhere[path.relative_to(CHECKOUT).as_posix(), position].append((change, occurrence))
    generator = random.Random(seed)
    print(f"{len(everywhere)} places in {len(files())} files")
    for name, position in generator.sample(sorted(everywhere), count):
        change, occurrence = generator.choice(everywhere[name, position])
        source = (CHECKOUT / name).read_text(encoding="utf-8")
        changed = mutate_code(source, get_operator(f"core/{change}")(), occurrence)
        if changed is None or changed == source:
            raise ValueError(f"{name}: {change} {occurrence} changes nothing")
        (start, column), (end, _) = position
        lines = slice(start - 1, end)
        yield {
            "path": name,
            "line": start,
            "column": column,
            "change": change,
            "was": "\n".join(source.splitlines()[lines]),
            "is": "\n".join(changed.splitlines()[lines]),
            "text": changed,
        }


def main() -> None:
    """Write a sample."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("out", type=Path)
    chosen = parser.parse_args()
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    with chosen.out.open("w", encoding="utf-8") as out:
        for number, mutant in enumerate(drawn(chosen.count, chosen.seed)):
            out.write(json.dumps({"id": f"{chosen.seed}-{number:03}", **mutant}) + "\n")


if __name__ == "__main__":
    main()
