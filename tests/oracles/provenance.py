"""The judge of proofs and absences: every instance of every rule, by the definitions.

`Derivations(text, facts)` evaluates a program with the naive evaluator beside it, then lists all
instances of all rules in the result: an **instance** is a rule with values for its variables under
which the body holds. Heights come from naive rounds (what holds in round r, and not before, has
height r), sizes of canonical trees from the definition, height by height. `nearest` tries all
substitutions over the values that occur anywhere. Nothing of the package is used.

| word | meaning |
|---|---|
| fact | a relation and a tuple |
| premise | a fact that a positive literal of an instance matches |
| height | 0 for what is given, else 1 + the largest height of the premises |
| tree | 1 + the sum of the trees of the premises, in the canonical proof |
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

from oracles import evaluation
from oracles.evaluation import (
    Conjunction,
    Env,
    Failure,
    NoTuple,
    Oracle,
    dnf,
    is_wild,
    names,
    order,
    relations_in,
    walk,
)
from oracles.parser import Agg, Atom, Cmp, Lit, Not, Rule, Truth, Var, parse

Row: TypeAlias = tuple[Any, ...]
Fact: TypeAlias = tuple[str, Row]
Facts: TypeAlias = Mapping[str, Iterable[Row]]


class Anything:
    """A column of a pattern that any value fits, and a variable that is left open."""

    def __repr__(self) -> str:
        return "_"


ANYTHING = Anything()
VARIABLES_MAX = 5
"""Rules with more variables have too many substitutions to try them all."""


@dataclass(frozen=True, slots=True)
class Instance:
    """A rule with values under which its body holds.

    Attributes:
        rule: the place of the rule in the text, from 0.
        premises: what its positive literals match, in their order.
        absent: patterns of its negated literals, which nothing matches.
        optional: places in `premises` of literals that an aggregate of the rule also reads, so
            that a rewritten rule may not ask for them again.
    """

    rule: int
    premises: tuple[Fact, ...]
    absent: tuple[Fact, ...]
    optional: frozenset[int] = frozenset()


def is_fact(rule: Rule) -> bool:
    """Return whether a rule gives its heads without a condition."""
    return rule.body == Truth(True)


def fits(row: Row, pattern: Row) -> bool:
    """Return whether a tuple has the values of a pattern."""
    return all(
        wanted is ANYTHING or order(value) == order(wanted)
        for value, wanted in zip(row, pattern, strict=True)
    )


class Derivations:
    """All instances of a program on its facts."""

    def __init__(self, text: str, facts: Facts) -> None:
        given = {name: set(rows) for name, rows in facts.items()}
        self.relations = evaluation.evaluate(text, given)
        self.program = parse(text)
        self.oracle = Oracle(self.program, 10**9, 10**9)
        self.oracle.relations = self.relations
        self.base: set[Fact] = {
            (name, tuple(map(evaluation.fitted, row, self.oracle.columns[name])))
            for name, rows in given.items()
            for row in rows
        }
        self.instances: dict[Fact, list[Instance]] = defaultdict(list)
        for number, rule in enumerate(self.program.rules):
            if rule in self.oracle.rules:
                self._add(number, rule)

    def _add(self, number: int, rule: Rule) -> None:
        for relation, conjunction, runs in self.oracle.compile_rule(rule):
            for env, _ in conjunction.solve({}):
                try:
                    row = tuple(run(env) for run in runs)
                except NoTuple:
                    continue
                fact = relation, tuple(map(evaluation.fitted, row, self.oracle.columns[relation]))
                if is_fact(rule):
                    self.base.add(fact)
                else:
                    self.instances[fact].append(self._instance(number, conjunction, env))

    def _instance(self, number: int, conjunction: Conjunction, env: Env) -> Instance:
        inside = {
            relation
            for test in conjunction.tests
            for part in walk(test)
            if isinstance(part, Agg)
            for relation in relations_in(part)
        }
        return Instance(
            number,
            tuple(self._matched(conjunction, atom, env) for atom in conjunction.atoms),
            tuple(self._matched(conjunction, atom, env) for atom in conjunction.negated),
            frozenset(
                place for place, atom in enumerate(conjunction.atoms) if atom.relation in inside
            ),
        )

    def _matched(self, conjunction: Conjunction, atom: Atom, env: Env) -> Fact:
        columns = self.oracle.columns[atom.relation]
        return atom.relation, tuple(
            ANYTHING if is_wild(arg) and arg.name not in env else conjunction.typed(arg, type_)(env)
            for arg, type_ in zip(atom.args, columns, strict=True)
        )

    def holds(self, fact: Fact) -> bool:
        """Return whether a fact is in the result."""
        return fact[1] in self.relations[fact[0]]

    def matches(self, pattern: Fact) -> list[Row]:
        """Return the tuples that fit a pattern."""
        return [row for row in self.relations[pattern[0]] if fits(row, pattern[1])]

    @property
    def equivalences(self) -> set[str]:
        """The relations that are closed as equivalences, whose tuples need no rule."""
        return {name for name, each in self.program.decls.items() if each.is_eqrel}

    # --- heights and trees ---------------------------------------------------------------------

    @cached_property
    def heights(self) -> dict[Fact, int]:
        """The least height of every fact, by naive rounds.

        A tuple of an equivalence has a chain of tuples that were given to it or derived by its
        rules: it is one higher than what those are derived from.
        """
        found = {fact: 0 for fact in self.base if fact[0] not in self.equivalences}
        for number in itertools.count(1):
            proved = {
                fact
                for fact, every in self.instances.items()
                if any(all(each in found for each in one.premises) for one in every)
            }
            seeds = {fact for fact in self.base | proved if fact[0] in self.equivalences}
            proved = {fact for fact in proved if fact[0] not in self.equivalences}
            new = (proved | self._connected(seeds)) - found.keys()
            if not new:
                return found
            found |= dict.fromkeys(new, number)
        raise AssertionError

    def _connected(self, seeds: set[Fact]) -> set[Fact]:
        """Return what chains of seeds connect, by colouring."""
        found: set[Fact] = set()
        for relation in self.equivalences:
            colour: dict[Any, Any] = {}
            for name, (x, y) in seeds:
                if name == relation:
                    old, new = colour.setdefault(x, order(x)), colour.setdefault(y, order(y))
                    colour = {each: new if c == old else c for each, c in colour.items()}
            found |= {(relation, (x, y)) for x in colour for y in colour if colour[x] == colour[y]}
        return found

    def is_seed(self, fact: Fact) -> bool:
        """Return whether a tuple of an equivalence was given, or derived by a rule."""
        return fact in self.base or fact in self.instances

    @cached_property
    def doubtful(self) -> set[Fact]:
        """What depends on a literal that a rewritten rule may not ask for, or on an equivalence.

        Of these, what is lowest and smallest is not judged.
        """
        found = {
            fact
            for fact, every in self.instances.items()
            if fact[0] in self.equivalences or any(one.optional for one in every)
        }
        found |= {(name, row) for name in self.equivalences for row in self.relations[name]}
        while True:
            more = {
                fact
                for fact, every in self.instances.items()
                if any(each in found for one in every for each in one.premises)
            }
            if more <= found:
                return found
            found |= more

    def height_of(self, instance: Instance) -> int:
        """Return the height that an instance gives its head."""
        return 1 + max((self.heights[each] for each in instance.premises), default=0)

    @cached_property
    def trees(self) -> dict[Fact, int]:
        """The size of the canonical tree of every fact."""
        found: dict[Fact, int] = {}
        for fact, height in sorted(self.heights.items(), key=lambda item: item[1]):
            if fact[0] in self.equivalences:
                continue
            found[fact] = 1 + min(
                (
                    sum(found[each] for each in one.premises)
                    for one in (self.instances[fact] if height else ())
                    if self.height_of(one) == height and all(p in found for p in one.premises)
                ),
                default=0,
            )
        return found

    def canonical(self, fact: Fact) -> list[Instance]:
        """Return the instances of least height, smallest tree and first rule (none if given)."""
        height = self.heights[fact]
        if not height:
            return []
        lowest = [one for one in self.instances[fact] if self.height_of(one) == height]
        size = self.trees[fact] - 1
        smallest = [one for one in lowest if sum(self.trees[e] for e in one.premises) == size]
        first = min(one.rule for one in smallest)
        return [one for one in smallest if one.rule == first]

    # --- absences ------------------------------------------------------------------------------

    def nearest(self, goal: Fact) -> Iterator[RuleAbsence]:
        """Yield, for each branch of a rule whose head fits the goal, its nearest attempts."""
        for number, rule in enumerate(self.program.rules):
            if is_fact(rule) or rule not in self.oracle.rules:
                continue
            for head in rule.heads:
                if head.relation != goal[0]:
                    continue
                for branch in dnf(rule.body):
                    found = self._attempts(number, replace(rule, heads=(head,)), branch, goal[1])
                    if found is not None:
                        yield found

    def _attempts(
        self, number: int, rule: Rule, branch: tuple[evaluation.Literal, ...], row: Row
    ) -> RuleAbsence | None:
        head = rule.heads[0]
        asked = tuple(
            Cmp("is", argument, Var(f"%goal{place}")) for place, argument in enumerate(head.args)
        )
        types = self.oracle.columns[head.relation]
        outer = {f"%goal{place}": type_ for place, type_ in enumerate(types)}
        goal = {f"%goal{place}": value for place, value in enumerate(row)}
        body = Conjunction(self.oracle, branch, outer, rule.heads, rule.is_null_safe)
        parts = [
            Part(self, literal, body)
            for literal in (*branch, *(test for test in asked if not isinstance(test.left, Var)))
        ]
        fixed = dict(goal)
        for argument, value in zip(head.args, row, strict=True):
            match argument:
                case Var(name):
                    if order(fixed.setdefault(name, value)) != order(value):
                        return None
                case Lit():
                    type_ = types[head.args.index(argument)]
                    if order(evaluation.convert(argument, type_)[1]) != order(value):
                        return None
        open_ = sorted(set().union(*(part.names for part in parts)) - fixed.keys())
        if len(open_) > VARIABLES_MAX:
            return RuleAbsence(number, None, frozenset())
        best, found = len(parts) + 1, set()
        for values in itertools.product(*(self.domain(body.types[name].name) for name in open_)):
            env = {**fixed, **dict(zip(open_, values, strict=True))}
            failing = frozenset(place for place, part in enumerate(parts) if not part.holds(env))
            if len(failing) > best:
                continue
            kept = set().union(
                *(part.names for place, part in enumerate(parts) if place not in failing)
            )
            shown = tuple(
                (name, value if name in kept else ANYTHING)
                for name, value in zip(open_, values, strict=True)
            )
            if len(failing) < best:
                best, found = len(failing), set()
            found.add(Attempt(frozenset(parts[place].literal for place in failing), shown))
        return RuleAbsence(number, best, frozenset(found))

    def domain(self, type_: str) -> list[Any]:
        """Return every value of a type that occurs in a relation or in the program."""
        if type_ not in self._domains:
            found = {
                value
                for name, rows in self.relations.items()
                for column, each in enumerate(self.oracle.columns[name])
                if each.name == type_
                for value in (row[column] for row in rows)
            }
            kinds = {"number": "int", "unsigned": "uint"}
            for rule in self.program.rules:
                for node in (*rule.heads, rule.body):
                    for part in walk(node):
                        if isinstance(part, Lit) and part.kind == kinds.get(type_, type_):
                            found.add(part.value)
            self._domains[type_] = sorted(found, key=repr)
        return self._domains[type_]

    @cached_property
    def _domains(self) -> dict[str, list[Any]]:
        return {}


@dataclass(frozen=True, slots=True)
class Attempt:
    """What fails of a rule under some values.

    Attributes:
        failing: the literals that fail.
        values: of the variables that no head argument gives; those that only failing literals
            hold are `ANYTHING`.
    """

    failing: frozenset[evaluation.Literal]
    values: tuple[tuple[str, Any], ...]


@dataclass(frozen=True, slots=True)
class RuleAbsence:
    """The attempts of one rule that fail in the fewest literals; no distance if not tried."""

    rule: int
    distance: int | None
    attempts: frozenset[Attempt]


class Part:
    """A literal of a body, which holds or fails under values of its variables."""

    def __init__(
        self, derivations: Derivations, literal: evaluation.Literal, body: Conjunction
    ) -> None:
        self.literal = literal
        self.derivations = derivations
        self.atom = literal.inner if isinstance(literal, Not) else literal
        self.names = {name for name in names(literal) if not name.startswith("_#")}
        assert not any(isinstance(part, Agg) for part in walk(literal))
        if isinstance(self.atom, Cmp):
            self._test = body.comparison(self.atom)
        else:
            assert isinstance(self.atom, Atom)
            columns = derivations.oracle.columns[self.atom.relation]
            self._runs = [
                None if is_wild(arg) else body.typed(arg, type_)
                for arg, type_ in zip(self.atom.args, columns, strict=True)
            ]

    def holds(self, env: Env) -> bool:
        """Return whether it holds under these values."""
        if isinstance(self.atom, Cmp):
            found = self._test(env)
            return not isinstance(found, Failure) and bool(found)
        pattern = tuple(ANYTHING if run is None else run(env) for run in self._runs)
        assert isinstance(self.atom, Atom)
        found = bool(self.derivations.matches((self.atom.relation, pattern)))
        return not found if isinstance(self.literal, Not) else found
