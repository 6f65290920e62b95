"""What has to hold of views that queries share: answers stay, by the oracle."""

from __future__ import annotations

from collections import Counter

from corollary.advisor.advise import advise
from corollary.advisor.cost.relation_sizes import RelationSizes
from corollary.advisor.model.canonical import CanonicalForms
from corollary.advisor.model.scheme import Options, WorkloadQuery
from corollary.advisor.search import view_rules
from corollary.advisor.search.shared_views import shared_views, uses_of
from corollary.core.printer import print_clause
from oracles import evaluation
from support.cases.advisor import changed_program, scheme_of
from support.generators.advisor_workloads import RandomWorkload


def judge_uses(made: RandomWorkload, counts: Counter[str]) -> None:
    """Every use of every shared view answers as the clause does."""
    scheme = scheme_of(made.text, made.queries)
    forms = CanonicalForms()
    clauses = [each for name in made.queries for each in scheme.clauses[name]]
    before = evaluation.evaluate(made.text, made.facts)
    for view in shared_views(clauses, forms, lambda _: True).values():
        columns = ", ".join(f"c{at}: number" for at in range(len(view.variables)))
        rules = view_rules.view_clauses("mv", view.variables, view, {})
        text = f".decl mv({columns})\n" + "\n".join(map(print_clause, rules)) + "\n"
        for clause in clauses:
            for use in uses_of(view, clause):
                used = set(use.bodies[0])
                nodes = (*(each for each in clause.leaves if each not in used), use)
                changed = view_rules.body_clause(clause, nodes, lambda node: ("mv", node.arguments))
                name = clause.head.relation
                whole = _without_rules_of(made.text, name) + text + print_clause(changed) + "\n"
                after = evaluation.evaluate(whole, made.facts)
                assert after[name] == before[name], f"{made.text}\n{whole}"
                counts["uses"] += 1


def _without_rules_of(text: str, name: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.startswith(f"{name}(")) + "\n"


def judge_choice(made: RandomWorkload, counts: Counter[str], commits: float = 0.0) -> None:
    """What the workload chooses answers as before; the more commits, the more is shared."""
    queries = [WorkloadQuery(name, frequency=1000.0) for name in made.queries]
    options = Options(
        selection="budget",
        partial_clusters=True,
        updates=dict.fromkeys(made.facts, commits),
        commits_per_hour=commits,
    )
    sizes = RelationSizes(
        dict.fromkeys(made.facts, 10_000),
        {name: (50,) * len(rows[0]) for name, rows in made.facts.items()},
        row_bytes=dict.fromkeys(made.facts, 1e4),
    )
    advice = advise(scheme_of(made.text, queries), options, sizes)
    changed = changed_program(made.text, advice)
    before = evaluation.evaluate(made.text, made.facts)
    after = evaluation.evaluate(changed, made.facts)
    assert all(after[name] == before[name] for name in made.queries), f"{made.text}\n{changed}"
    readers = Counter(view for each in advice.predicates.values() for view in each.views)
    counts["chosen"] += len(readers)
    counts["shared"] += sum(number > 1 for number in readers.values())
    summaries = [name for name, view in advice.views.items() if view.rows is not None]
    counts["summaries"] += len(summaries)
    counts["shared summaries"] += sum(readers[name] > 1 for name in summaries)
