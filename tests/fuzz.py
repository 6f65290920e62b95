"""`make fuzz`: many random programs and changes against the oracle, resumable by seed.

make fuzz ARGS="--programs 2000 --goals 300 --steps 5000 --seed 1"
"""

from __future__ import annotations

import argparse
import time
from collections import Counter

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import oracle
from flips import edges_on, walk
from judgement import FAILED, judge, judge_goals
from maintaining import ALGORITHMS, MIXED, derived_relations, judge_case
from programs import FEATURES, Case, programs, updates

STEPS_A_CASE = 20
"""A program and its updates make at least so many transactions, over all algorithms."""

LEAST_CHANGED = 0.6
"""So many of the transactions must change a view, or they say little."""


def main() -> None:
    """Run the comparisons and print what was covered."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=2000, help="programs to evaluate")
    parser.add_argument("--goals", type=int, default=300, help="programs to ask goals of")
    parser.add_argument("--steps", type=int, default=5000, help="transactions to maintain")
    parser.add_argument(
        "--nodes", type=int, default=4, help="flip every edge of every graph on so many nodes"
    )
    parser.add_argument("--loops", action="store_true", help="with edges from a node to itself")
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

    @seed(options.seed + 2)
    @settings(**_settings(options.steps // STEPS_A_CASE + 1, options.no_shrink))
    @given(st.data())
    def maintenance(data: st.DataObject) -> None:
        case = data.draw(programs())
        steps = data.draw(updates(case))
        names = [] if "eqrel" in case.text else derived_relations(case.text)
        virtual = (
            data.draw(st.lists(st.sampled_from(names), unique=True, max_size=2)) if names else []
        )
        found = judge_case(case, steps, (*ALGORITHMS, MIXED), virtual)
        counts.update({name: found[name] for name in ("steps", "changed", "refused")})
        print(f"{counts['steps']} steps, {time.monotonic() - began:.0f} s", flush=True)

    if options.programs:
        evaluation()
    if options.goals:
        goals()
    if options.steps:
        maintenance()
        share = counts["changed"] / counts["steps"]
        print(f"{100 * share:.0f} % of {counts['steps']} steps changed a view")
        assert share >= LEAST_CHANGED, "too many steps change nothing"
    for algorithm in ("ranked", "dred") if options.nodes else ():
        made = walk(options.nodes, algorithm, options.loops)
        edges = len(edges_on(options.nodes, options.loops))
        assert made == edges << edges
        print(f"{made} flips under {algorithm}, {time.monotonic() - began:.0f} s", flush=True)
    for name, number in counts.items():
        print(f"{name}: {number}")
    for feature in FEATURES if options.programs else ():
        print(f"  {feature}: {100 * seen[feature] / counts['programs']:.0f} %")
    print(f"seed {options.seed}: no difference in {time.monotonic() - began:.0f} s")


def _settings(examples: int, no_shrink: bool) -> dict[str, object]:
    return {
        "max_examples": max(1, examples),
        "database": None,
        "deadline": None,
        "suppress_health_check": list(HealthCheck),
        "phases": (Phase.generate,) if no_shrink else (Phase.generate, Phase.shrink),
    }


if __name__ == "__main__":
    main()
