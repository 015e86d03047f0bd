"""Print how far the reference is from arbitrary precision, regime by regime: `python -m tests.reference.figures`."""

from __future__ import annotations

from collections import defaultdict

from .compare import Comparison, Figures
from .composed_compare import Comparison as ComposedComparison
from .composed_data import LOGITS, OPERATORS, draw, highway_witness, mhc_witness
from .regimes import POINTS, REGIMES

SUBJECTS = (("layer_norm", True), ("batch_norm", True), ("batch_norm", False))
LONG = 65536


def compared(operator: str, regime: str, n: int, *, training: bool) -> Figures:
    """Compare everything but the second derivatives of long rows, which take the oracle too long."""
    comparison = Comparison(operator, regime, n, training=training, rows=1 if n == LONG else 3)
    figures = comparison.outputs() | comparison.gradients()
    if n <= 3:
        figures |= comparison.jvp() | comparison.second_order()
    return figures


def main() -> None:
    """Print, for each regime and result, the worst error in ulps and, badly conditioned, in the envelope."""
    print("worst error in ulps where well conditioned / elsewhere as a share of the envelope at u = 2^-102")
    for operator, training in SUBJECTS:
        print(f"\n{operator}" + ("" if operator == "layer_norm" else " training" if training else " inference"))
        for regime in REGIMES:
            total: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
            for n in (n for name, n in POINTS if name == regime):
                if defined(operator, regime, training=training):
                    for result, pair in compared(operator, regime, n, training=training).items():
                        total[result] = [max(old, new) for old, new in zip(total[result], pair, strict=True)]
            row = "  ".join(f"{result} {ulps:.3f} / {share:.2g}" for result, (ulps, share) in total.items())
            print(f"  {regime:18} {row}", flush=True)
    composed()


def composed() -> None:
    """Print the same for the composed operators: random calls, extreme gates and extreme logits."""
    calls = {operator: [draw(operator, seed) for seed in range(20)] for operator in OPERATORS}
    calls["highway, extreme"] = [highway_witness(*s, carry=c) for s in ((1, 1, 1), (1, 1e300, 1e-200)) for c in (0, 1)]
    calls["mhc, extreme"] = [mhc_witness(logits, equal=e) for logits in LOGITS.values() for e in (False, True)]
    print("\ncomposed operators")
    for name, group in calls.items():
        total = {"y": [0.0, 0.0], "first derivatives": [0.0, 0.0], "further": [0.0, 0.0]}
        for call in group:
            comparison = ComposedComparison(call)
            for result, pair in comparison.first().items():
                kind = "y" if result == "y" else "first derivatives"
                total[kind] = [max(old, new) for old, new in zip(total[kind], pair, strict=True)]
            for pair in comparison.further().values():
                total["further"] = [max(old, new) for old, new in zip(total["further"], pair, strict=True)]
        row = "  ".join(f"{kind} {ulps:.3f} / {share:.2g}" for kind, (ulps, share) in total.items())
        print(f"  {name:18} {row}", flush=True)


def defined(operator: str, regime: str, *, training: bool) -> bool:
    """Return whether the results are defined: not if a running variance underflows to 0 and eps is 0."""
    return training or regime != "subnormal, eps 0"


if __name__ == "__main__":
    main()
