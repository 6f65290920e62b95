"""Subsumption in rounds, from its description: derive all, reject, delete.

A round derives what follows from the tuples that the last round left (with all others), less what
is there. Of these it rejects what another of them or one that is there dominates; then it deletes
what the rest dominates. Where a clause reads further relations of the stratum, the tuples that are
there dominate each other as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from oracles.parser import And, Atom, Formula, Rule, Subsumption, Var

if TYPE_CHECKING:
    from oracles.evaluation import Oracle

Rows = set[tuple[Any, ...]]


def parts_of(formula: Formula) -> tuple[Formula, ...]:
    """The conjuncts of a body."""
    if isinstance(formula, And):
        return tuple(each for part in formula.parts for each in parts_of(part))
    return (formula,)


class Rounds:
    """A stratum with what the last round left."""

    def __init__(self, oracle: Oracle, rules: list[Rule], stratum: set[str]) -> None:
        self.oracle, self.stratum = oracle, stratum
        self.rules = [each for each in rules if any(h.relation in stratum for h in each.heads)]
        self.clauses = [
            each for each in oracle.program.subsumptions if each.head.relation in stratum
        ]

    def read(self, name: str, rows: Rows) -> str:
        """Let a hidden relation have some rows; return its name."""
        oracle = self.oracle
        oracle.columns[name], oracle.relations[name] = (
            oracle.columns[name.split("%", maxsplit=1)[0]],
            rows,
        )
        return name

    def solve(self, rule: Rule) -> dict[str, Rows]:
        """What a rule derives, by relation."""
        self.oracle.indexes.clear()
        found: dict[str, Rows] = {}
        for memo in self.oracle.memos:
            memo.clear()
        for entry in self.oracle.compile_rule(rule):
            if entry[0] in self.oracle.columns:
                found.setdefault(entry[0], set()).update(self.oracle.heads(entry, is_lenient=False))
        return found

    def led(self, rule: Rule) -> Iterator[Rule]:
        """A rule with one literal of the stratum in what the last round left."""
        parts = parts_of(rule.body)
        for at, part in enumerate(parts):
            if isinstance(part, Atom) and part.relation in self.stratum:
                changed = replace(part, relation=f"{part.relation}%left")
                yield replace(rule, body=And((*parts[:at], changed, *parts[at + 1 :])))

    def dominated(self, clause: Subsumption, ones: Rows, others: Rows) -> Rows:
        """The tuples of some rows that a different tuple of others dominates."""
        name = clause.head.relation
        one, other = self.read(f"{name}%one", ones), self.read(f"{name}%other", others)
        width = len(self.oracle.columns[name])
        self.oracle.columns["%pair"] = self.oracle.columns[name] * 2
        atoms = [
            tuple(
                Var(a.name.replace("_#", "any")) if isinstance(a, Var) and "_#" in a.name else a
                for a in args
            )
            for args in (clause.head.args, clause.dominating.args)
        ]
        body = And((Atom(one, atoms[0]), Atom(other, atoms[1]), clause.body))
        rule = Rule((Atom("%pair", (*atoms[0], *atoms[1])),), body, clause.is_null_safe)
        pairs = self.solve(rule).get("%pair", set())
        return {pair[:width] for pair in pairs if pair[:width] != pair[width:]}

    def run(self, limit: int) -> bool:
        """All rounds; whether they came to an end."""
        relations = self.oracle.relations
        first = [each for each in self.rules if not any(self.led(each))]
        for rule in first:
            for name, rows in self.solve(rule).items():
                for row in rows:
                    self.oracle.insert(name, row)
        for name in sorted({each.head.relation for each in self.clauses}):
            clauses = [each for each in self.clauses if each.head.relation == name]
            there = set(relations[name])
            gone = [self.dominated(each, there, there) for each in clauses]
            relations[name] = there.difference(*gone)
        left = {name: set(relations[name]) for name in self.stratum}
        for _ in range(limit):
            for name, rows in left.items():
                self.read(f"{name}%left", rows)
            new: dict[str, Rows] = {name: set() for name in self.stratum}
            for rule in self.rules:
                for variant in self.led(rule):
                    for name, rows in self.solve(variant).items():
                        new[name] |= rows - relations[name]
            left = self.reduced(new)
            for name in self.stratum:
                relations[name] = relations[name] | left[name]
            if not any(left.values()):
                for name in [each for each in relations if "%" in each]:
                    del relations[name], self.oracle.columns[name]
                return True
        return False

    def reduced(self, new: dict[str, Rows]) -> dict[str, Rows]:
        """What is left of the new tuples; what they dominate is deleted."""
        relations, left = self.oracle.relations, dict(new)
        for name in sorted({each.head.relation for each in self.clauses}):
            clauses = [each for each in self.clauses if each.head.relation == name]
            there = set(relations[name])
            rejected = [self.dominated(each, new[name], new[name] | there) for each in clauses]
            left[name] = new[name].difference(*rejected)
            gone = [self.dominated(each, there, left[name]) for each in clauses]
            gone += [
                self.dominated(each, there, there)
                for each in clauses
                if any(
                    isinstance(part, Atom) and part.relation in self.stratum
                    for part in parts_of(each.body)
                )
            ]
            relations[name] = there.difference(*gone)
        return left
