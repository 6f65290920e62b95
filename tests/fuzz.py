"""`make fuzz`: many random programs against the oracle, resumable by seed.

make fuzz ARGS="--programs 2000 --goals 300 --seed 1"
"""

from __future__ import annotations

import argparse
import time
from collections import Counter

from hypothesis import HealthCheck, Phase, given, seed, settings

import oracle
from judgement import FAILED, judge, judge_goals
from programs import FEATURES, Case, programs


def main() -> None:
    """Run the comparisons and print what was covered."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=2000, help="programs to evaluate")
    parser.add_argument("--goals", type=int, default=300, help="programs to ask goals of")
    parser.add_argument("--seed", type=int, default=0, help="where the random numbers start")
    parser.add_argument(
        "--no-shrink", action="store_true", help="show the first difference as it is"
    )
    options = parser.parse_args()
    began = time.monotonic()
    seen: Counter[str] = Counter()
    counts: Counter[str] = Counter()

    @seed(options.seed)
    @settings(**_settings(options.programs, options.no_shrink))
    @given(programs())
    def evaluation(case: Case) -> None:
        result = judge(case)
        counts["programs"] += 1
        counts["errors on both sides"] += result == FAILED
        counts["with a derived tuple"] += result != FAILED and any(result.values())
        seen.update(case.features)
        if counts["programs"] % 100 == 0:
            print(f"{counts['programs']} programs, {time.monotonic() - began:.0f} s", flush=True)

    @seed(options.seed + 1)
    @settings(**_settings(options.goals, options.no_shrink))
    @given(programs())
    def goals(case: Case) -> None:
        if judge(case) != FAILED:
            counts["goals"] += judge_goals(case, oracle.evaluate(case.text, case.facts))

    evaluation()
    goals()
    for name, number in counts.items():
        print(f"{name}: {number}")
    for feature in FEATURES:
        print(f"  {feature}: {100 * seen[feature] / counts['programs']:.0f} %")
    print(f"seed {options.seed}: no difference in {time.monotonic() - began:.0f} s")


def _settings(examples: int, no_shrink: bool) -> dict[str, object]:
    return {
        "max_examples": examples,
        "database": None,
        "deadline": None,
        "suppress_health_check": list(HealthCheck),
        "phases": (Phase.generate,) if no_shrink else (Phase.generate, Phase.shrink),
    }


if __name__ == "__main__":
    main()
