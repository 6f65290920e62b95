"""`make fuzz`: random programs and changes against the oracle, every flip of small graphs.

make fuzz ARGS="--programs 2000 --goals 300 --steps 5000 --lasting 500 --active 2000 --nodes 4"
make fuzz ARGS="--only partitioned --partitioned 2000"
make fuzz ARGS="--only advice --only documents --advice 2000 --documents 5000"
make fuzz ARGS="--only queries --queries 5000 --depth 3"
make fuzz ARGS="--only answers --answers 10000"
make fuzz ARGS="--only requests --requests 50000"
make fuzz ARGS="--only stairs --stairs 20000"

| part | compares |
|---|---|
| programs | the evaluation of random programs with the oracle |
| goals | goals with bound arguments with the oracle |
| steps | transactions on random programs, under every algorithm, with the oracle |
| lasting | the same in a warehouse that is closed, folded, followed and looked back at |
| active | transactions on random programs with active rules: alerts, aborts, triggered updates |
| documents | views on active documents, through updates and garbage collection, with their oracle |
| partitioned | transactions as in steps and lasting, with all relations in partitions, in process |
| nodes | closures after every flip of every edge of every graph with Warshall's algorithm |
| advice | what the advisor makes of random programs with what has to hold of it |
| queries | random SQL queries as views under changes, as bags, with DuckDB and SQLite |
| requests | answers of a server to requests made from its description, with that description |
| groups | transactions on counts and sums through recursion, while cycles come and go |
| choices | transactions on relations with choice domains, with what choices have to be |
| stairs | transactions on recursion of which the best tuples count, with naive iteration; proofs |
| records | transactions on random programs over records and algebraic data types |
| answers | proofs of tuples, and attempts at absent ones, with all instances of all rules |

Random parts go on in batches, each with a seed of its own, which is printed: `--seed` begins with
another one, so that long runs add up. The walk over graphs is resumed by `--first`. A part whose
number is 0 is left out, and `--only` leaves out all but those it names.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from oracles import evaluation
from support.advice.obligations import judge as judge_advice
from support.advice.workload_obligations import judge_choice, judge_uses
from support.comparison import FAILED, judge, judge_goals
from support.document_completions import CompletionRound, ConstraintRound
from support.edge_flips import edges_on, walk
from support.generators.active_scenarios import (
    ActiveScenario,
    active_scenarios,
    judge_active,
    shares,
)
from support.generators.advisor_programs import program as advised_program
from support.generators.advisor_workloads import aggregate_workload
from support.generators.advisor_workloads import workload as random_workload
from support.generators.choices import judge_choices
from support.generators.document_collections import CollectionRound
from support.generators.document_comparisons import ComparisonRound, TimesRound
from support.generators.document_retractions import RetractionRound
from support.generators.document_rounds import Round
from support.generators.groups import judge_groups
from support.generators.programs import FEATURES, Case, programs
from support.generators.scenarios import Scenario, is_lively, scenarios
from support.generators.scenarios import judge as judge_scenario
from support.generators.sql_queries import SqlScenario, sql_scenarios
from support.generators.stairs_families import FAMILIES, run_family
from support.provenance.absences import judge_absences
from support.provenance.asking import judge_answers, scenarios_to_ask
from support.records.record_programs import judge_records
from support.serve.http_fuzz import fuzzed_server, send_requests
from support.spark.in_process_partitions import everything_partitioned
from support.sql.query_judge import judge_query
from support.warehouse_scenarios import keep

BATCH = 50
"""Examples under one seed."""

EVERY = 5_000
"""Flips between two signs of life."""

PARTS = (
    *("programs", "goals", "steps", "lasting", "partitioned", "active", "documents", "nodes"),
    *("advice", "queries", "answers", "requests", "groups", "choices", "stairs", "records"),
)

TRANSACTIONS = 40
"""On one database with subsumption, whose plans are made once."""

DOCUMENTS = 20
"""Documents that one query is asked of."""


class Fuzz:
    """The parts of a run, and what they have covered."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.began = time.monotonic()
        self.counts: Counter[str] = Counter()
        self.features: Counter[str] = Counter()
        self.steps: dict[str, Counter[str]] = {}
        self.reactions: Counter[str] = Counter()
        self.constructs: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.statuses: Counter[str] = Counter()

    def say(self, text: str) -> None:
        """Print a line with the time."""
        print(f"{time.monotonic() - self.began:6.0f} s  {text}", flush=True)

    def batches(
        self, counter: str, wanted: int, strategy: st.SearchStrategy[Any], test: Callable[..., None]
    ) -> None:
        """Run a test on batches of examples until a counter has reached a number."""
        number = self.options.seed
        phases = (Phase.generate,) if self.options.no_shrink else (Phase.generate, Phase.shrink)
        while self.counts[counter] < wanted:
            self.say(f"{self.counts[counter]} {counter}; seed {number}")
            run = settings(
                max_examples=BATCH,
                database=None,
                deadline=None,
                suppress_health_check=list(HealthCheck),
                phases=phases,
            )(given(strategy)(test))
            seed(number)(run)()
            number += 1

    def evaluation(self, case: Case) -> None:
        """Evaluate a program."""
        result = judge(case)
        self.counts["programs"] += 1
        self.counts["errors on both sides"] += result == FAILED
        self.counts["with a derived tuple"] += result != FAILED and any(result.values())
        self.features.update(case.features)

    def goals(self, case: Case) -> None:
        """Ask goals of a program."""
        self.counts["programs with goals"] += 1
        if judge(case) != FAILED:
            found = evaluation.evaluate(case.text, case.facts)
            self.counts["goals"] += judge_goals(case, found)

    def maintenance(self, scenario: Scenario) -> None:
        """Maintain a program through its transactions."""
        found = judge_scenario(scenario)
        self.counts.update({name: found[name] for name in ("steps", "changed", "refused")})
        self.steps.setdefault(scenario.label, Counter()).update(found)

    def lasting(self, example: tuple[Scenario, int]) -> None:
        """Maintain a program in a warehouse, to which things happen."""
        scenario, number = example
        with tempfile.TemporaryDirectory() as place:
            found = keep(scenario, place, number)
        self.counts["steps in a warehouse"] += found["steps"]
        self.steps.setdefault(f"{scenario.label}, lasting", Counter()).update(found)

    def partitioned(self, example: tuple[Scenario, int]) -> None:
        """Maintain a program whose relations are in partitions, in a warehouse now and then."""
        scenario, number = example
        with everything_partitioned(number), tempfile.TemporaryDirectory() as place:
            found = judge_scenario(scenario) if number % 4 else keep(scenario, place, number)
        self.counts["steps in partitions"] += found["steps"]
        self.steps.setdefault(f"{scenario.label}, partitioned", Counter()).update(found)

    def active(self, scenario: ActiveScenario) -> None:
        """Let active rules react to transactions."""
        found = judge_active(scenario)
        self.reactions.update(found)
        self.counts["active transactions"] += found["steps"]
        self.steps.setdefault(scenario.label, Counter()).update(found)

    def queries(self, scenario: SqlScenario) -> None:
        """Maintain an SQL query through changes of its tables."""
        found = judge_query(scenario)
        self.counts["queries"] += 1
        self.counts += Counter({name: found[name] for name in ("states of queries", "disputed")})
        self.constructs.update(scenario.features)

    def answers(self, scenario: Scenario) -> None:
        """Ask why tuples hold, after each transaction."""
        found = judge_answers(scenario)
        self.counts["questions asked"] += found.pop("questions", 0)
        self.answered += found

    def absences(self, case: Case) -> None:
        """Ask why tuples do not hold."""
        found = judge_absences(case)
        self.counts["absences asked"] += found.pop("absences", 0)
        self.answered += found

    def documents(self) -> None:
        """Ask random queries of shelves of random documents."""
        number = self.options.seed
        while self.counts["instances"] < self.options.documents:
            if not number % 10:
                self.say(f"{self.counts['instances']} instances of documents; seed {number}")
            self.counts += Round(number, DOCUMENTS).run()
            self.counts += ComparisonRound(number, DOCUMENTS).run()
            self.counts += RetractionRound(number, DOCUMENTS).run()
            self.counts += CompletionRound(number, DOCUMENTS).run()
            self.counts += ConstraintRound(number, DOCUMENTS).run()
            self.counts += CollectionRound(number).run(DOCUMENTS // 2)
            self.counts += TimesRound(number).run(DOCUMENTS // 2)
            number += 1

    def flips(self) -> None:
        """Flip every edge of every graph."""
        options = self.options
        edges = len(edges_on(options.nodes, options.loops))
        for algorithm in options.algorithms.split(","):
            made = options.first
            for _ in walk(options.nodes, algorithm, options.loops, options.first):
                made += 1
                if made % EVERY == 0:
                    self.say(f"{made} of {edges << edges} flips under {algorithm}")
            assert made == edges << edges
            self.counts["flips"] += made - options.first

    def advice(self) -> None:
        """Judge the advice for random programs."""
        for number in range(self.options.seed, self.options.seed + self.options.advice):
            if number % (2 * BATCH) == 0:
                self.say(f"{number - self.options.seed} programs advised on; seed {number}")
            judge_advice(advised_program(number), number, self.counts)
            judge_uses(random_workload(number), self.counts)
            judge_choice(random_workload(number), self.counts)
            judge_choice(aggregate_workload(number), self.counts, commits=60.0 * (number % 2))
            self.counts["programs advised on"] += 1

    def groups(self) -> None:
        """Maintain recursive counts and sums, while cycles come and go."""
        number = self.options.seed
        while self.counts["steps of groups"] < self.options.groups:
            if not number % 10:
                self.say(f"{self.counts['steps of groups']} steps of groups; seed {number}")
            found = judge_groups(number)
            self.counts["steps of groups"] += found["steps"] + found["refused"]
            self.steps.setdefault("groups", Counter()).update(found)
            number += 1

    def choices(self) -> None:
        """Maintain relations with choice domains."""
        number = self.options.seed
        while self.counts["steps of choices"] < self.options.choices:
            self.counts["steps of choices"] += judge_choices(number)["steps"]
            number += 1

    def stairs(self) -> None:
        """Maintain the families of programs with subsumption in recursion."""
        number = self.options.seed
        while self.counts["transactions on stairs"] < self.options.stairs:
            for family in FAMILIES:
                found = run_family(family, number, TRANSACTIONS)
                self.counts["transactions on stairs"] += found["transactions"]
                self.counts["stairs checked"] += found["stairs"]
                self.counts["proofs of best tuples"] += found["proofs"]
                self.counts["endless"] += found["endless"]
            if number % 10 == 0:
                self.say(f"{self.counts['transactions on stairs']} on stairs; seed {number}")
            number += 1

    def records(self) -> None:
        """Maintain random programs over records and algebraic data types."""
        number = self.options.seed
        while self.counts["steps on records"] < self.options.records:
            if number % 20 == 0:
                self.say(f"{self.counts['steps on records']} steps on records; seed {number}")
            found = judge_records(number)
            self.counts["steps on records"] += found["steps"] + found["refused"]
            self.steps.setdefault("records", Counter()).update(found)
            number += 1

    def requests(self) -> None:
        """Send random requests to a server."""
        number = self.options.seed
        if not self.options.requests:
            return
        with fuzzed_server() as server:
            while self.counts["requests"] < self.options.requests:
                self.say(f"{self.counts['requests']} requests; seed {number}")
                found = send_requests(server, BATCH, number)
                self.counts["requests"] += found.pop("requests")
                self.statuses += found
                number += 1

    def report(self) -> None:
        """Print what was covered."""
        for name, number in self.counts.items():
            print(f"{name}: {number}")
        for label, found in sorted(self.steps.items()):
            print(f"  {label}: {found['steps']} steps, {found['changed']} changed a view")
        if self.reactions:
            print(shares(self.reactions))
        for feature in FEATURES if self.counts["programs"] else ():
            print(f"  {feature}: {100 * self.features[feature] / self.counts['programs']:.0f} %")
        for construct, number in self.constructs.most_common():
            print(f"  {construct}: in {number} queries")
        for kind, number in self.answered.most_common():
            print(f"  {kind}: {number} in answers")
        for status, number in self.statuses.most_common():
            print(f"  status {status}: {number} answers")


def main() -> None:
    """Run the comparisons and print what was covered."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--programs", type=int, default=2000, help="programs to evaluate")
    add("--goals", type=int, default=300, help="programs to ask goals of")
    add("--steps", type=int, default=5000, help="transactions to maintain, over all algorithms")
    add("--lasting", type=int, default=500, help="transactions to maintain in a warehouse")
    add("--partitioned", type=int, default=500, help="transactions with relations in partitions")
    add("--active", type=int, default=1000, help="transactions on programs with active rules")
    add("--documents", type=int, default=5000, help="states of documents to ask views of")
    add("--nodes", type=int, default=4, help="flip every edge of every graph on so many nodes")
    add("--loops", action="store_true", help="with edges from a node to itself")
    add("--algorithms", default="ranked,dred", help="those that the flips are made under")
    add("--first", type=int, default=0, help="the flip to begin with")
    add("--advice", type=int, default=2000, help="programs to give advice on")
    add("--queries", type=int, default=1000, help="SQL queries to maintain as views")
    add("--answers", type=int, default=10_000, help="questions why a tuple holds, or does not")
    add("--requests", type=int, default=2000, help="requests to send to a server")
    add("--groups", type=int, default=1000, help="transactions on recursive counts and sums")
    add("--choices", type=int, default=500, help="transactions on choice domains")
    add("--stairs", type=int, default=2000, help="transactions on the best tuples of recursion")
    add("--records", type=int, default=1000, help="transactions on programs with records")
    add("--depth", type=int, default=2, help="how deeply SQL queries are nested")
    add("--only", action="append", choices=PARTS, help="leave out the others (may be repeated)")
    add("--seed", type=int, default=0, help="where the random numbers start")
    add("--no-shrink", action="store_true", help="show the first difference as it is")
    fuzz = Fuzz(parser.parse_args())
    options = fuzz.options
    for part in PARTS if options.only else ():
        if part not in options.only:
            setattr(options, part, 0)
    fuzz.batches("programs", options.programs, programs(), fuzz.evaluation)
    fuzz.batches("programs with goals", options.goals, programs(), fuzz.goals)
    plain, virtual = scenarios(), scenarios(with_virtual=True)
    changing = scenarios(with_rules=True), scenarios(with_virtual=True, with_rules=True)
    every = st.one_of(plain, virtual, *changing)
    fuzz.batches("steps", options.steps, every, fuzz.maintenance)
    lasting = st.tuples(every, st.integers(0, 9_999))
    fuzz.batches("steps in a warehouse", options.lasting, lasting, fuzz.lasting)
    fuzz.batches("steps in partitions", options.partitioned, lasting, fuzz.partitioned)
    active = active_scenarios()
    fuzz.batches("active transactions", options.active, active, fuzz.active)
    fuzz.documents()
    if options.nodes:
        fuzz.flips()
    fuzz.advice()
    fuzz.batches("queries", options.queries, sql_scenarios(options.depth), fuzz.queries)
    fuzz.batches("questions asked", options.answers, scenarios_to_ask(), fuzz.answers)
    fuzz.batches("absences asked", options.answers // 4, programs(simple=True), fuzz.absences)
    fuzz.requests()
    fuzz.groups()
    fuzz.choices()
    fuzz.stairs()
    fuzz.records()
    fuzz.report()
    if options.steps:
        share = fuzz.counts["changed"] / fuzz.counts["steps"]
        print(f"{100 * share:.0f} % of the steps changed a view")
        assert is_lively(fuzz.counts["changed"], fuzz.counts["steps"]), (
            "too many steps change nothing"
        )
    told = ", ".join(f"{number:,} {name}" for name, number in fuzz.counts.items())
    fuzz.say(f"seed {options.seed}: {told}: no difference")


if __name__ == "__main__":
    main()
