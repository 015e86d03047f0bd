"""False alarms: the sound functions, or a framework's own layers, under many seeds.

    python benchmarks/false_alarms.py sound [--seeds 20] [--first 0]
    python benchmarks/false_alarms.py torch [--seeds 20] [--first 0]

Prints, for each seed, how many results there were and every MUST that was violated or not judged. A seed takes
about a minute.
"""

from __future__ import annotations

import argparse
import sys

from normspec.adapters.targets import resolve
from normspec.conformance.engine import Run
from normspec.conformance.plan import Plan
from normspec.conformance.profiles import profile_of
from normspec.conformance.sound import SOUND
from normspec.conformance.specimens import target_of
from normspec.conformance.verdicts import Verdict

DTYPES = ("float16", "bfloat16", "float32", "float64")


def targets(what: str) -> list:
    """The sound functions, or a target by name."""
    if what == "sound":
        return [target_of(variant.name, variant.operator, variant.build()) for variant in SOUND]
    return [resolve(what)]


def main() -> int:
    """Run the seeds; 1 if anything sound was accused."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=0)
    chosen = parser.parse_args()
    accused = 0
    for seed in range(chosen.first, chosen.first + chosen.seeds):
        plan = Plan(targets(chosen.what), DTYPES, "cpu", {}, profile_of("standard"), seed, explain=False)
        results = Run(plan).report().results
        wrong = [r for r in results if r.level == "MUST" and r.verdict in (Verdict.FAIL, Verdict.ERROR)]
        accused += len(wrong)
        print(f"seed {seed}: {len(results)} results, {len(wrong)} accusations", flush=True)
        for result in wrong:
            print(f"    {result.binding} {result.dtype} {result.requirement} {result.ratio}", flush=True)
    return 1 if accused else 0


if __name__ == "__main__":
    sys.exit(main())
