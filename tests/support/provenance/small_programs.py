"""Random small programs as plain data, evaluated by their definition.

A body has positive and negated literals and comparisons over a few numbers; strata are layers, so
that negation is stratified: relation `r2` may read `r2`, and, negated too, `r1` and base relations.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from random import Random
from typing import TypeAlias

import corollary

Row: TypeAlias = tuple[int, ...]
Fact: TypeAlias = tuple[str, Row]
Term: TypeAlias = str | int
"""A variable or a number."""

COMPARISONS = {
    "<": lambda x, y: x < y,
    "!=": lambda x, y: x != y,
    ">=": lambda x, y: x >= y,
}
BASES = {"a": 2, "b": 1, "c": 2}
VIEWS = ({"p": 2}, {"q": 1, "r": 2}, {"s": 2})
"""The derived relations of each layer, with their numbers of columns."""


@dataclass(frozen=True)
class Test:
    """A literal, negated or not, or a comparison."""

    name: str
    terms: tuple[Term, ...]
    is_negated: bool = False

    @property
    def variables(self) -> list[str]:
        """The variables in it."""
        return [each for each in self.terms if isinstance(each, str)]

    def __str__(self) -> str:
        if self.name in COMPARISONS:
            return f"{self.terms[0]} {self.name} {self.terms[1]}"
        return f"{'!' * self.is_negated}{self.name}({', '.join(map(str, self.terms))})"

    def holds(self, values: Mapping[str, int], facts: set[Fact]) -> bool:
        """Whether it holds under some values."""
        row = tuple(values[each] if isinstance(each, str) else each for each in self.terms)
        if self.name in COMPARISONS:
            return bool(COMPARISONS[self.name](*row))
        return ((self.name, row) in facts) != self.is_negated


@dataclass(frozen=True)
class SmallRule:
    """A head and a body; the tests of a normal rule are literals, then comparisons."""

    head: Test
    body: tuple[Test, ...]

    def __str__(self) -> str:
        return f"{self.head} :- {', '.join(map(str, self.body))}."

    @property
    def variables(self) -> list[str]:
        """All variables of the body, each once."""
        return list(dict.fromkeys(name for test in self.body for name in test.variables))

    def instances(self, domain: Iterable[int]) -> Iterator[dict[str, int]]:
        """Yield all values of its variables."""
        names = self.variables
        for values in product(sorted(domain), repeat=len(names)):
            yield dict(zip(names, values, strict=True))

    def derives(self, values: Mapping[str, int]) -> Fact:
        """Return its head under some values."""
        terms = self.head.terms
        return self.head.name, tuple(values[t] if isinstance(t, str) else t for t in terms)


@dataclass(frozen=True)
class SmallProgram:
    """Rules in layers."""

    layers: tuple[tuple[SmallRule, ...], ...]

    @property
    def rules(self) -> list[SmallRule]:
        """All rules, in the order of the text."""
        return [rule for layer in self.layers for rule in layer]

    @property
    def has_negation(self) -> bool:
        """Whether a literal is negated."""
        return any(test.is_negated for rule in self.rules for test in rule.body)

    def text(self, storage: str = "") -> str:
        """Return the program; `storage` is `virtual` for relations that are not stored."""
        lines = []
        for number, shapes in enumerate((BASES, *VIEWS)):
            for name, arity in shapes.items():
                columns = ", ".join(f"c{at}: number" for at in range(arity))
                lines.append(f".decl {name}({columns}){f' {storage}' if number else ''}")
        return "\n".join((*lines, *map(str, self.rules)))

    def evaluate(self, base: Iterable[Fact], domain: Iterable[int]) -> set[Fact]:
        """Return all facts, layer by layer, each to its fixpoint."""
        facts, values = set(base), list(domain)
        for layer in self.layers:
            instances = [(rule, each) for rule in layer for each in rule.instances(values)]
            is_done = False
            while not is_done:
                new = {
                    rule.derives(each)
                    for rule, each in instances
                    if all(test.holds(each, facts) for test in rule.body)
                } - facts
                facts |= new
                is_done = not new
        return facts


def random_program(random: Random, *, negation: bool = True) -> SmallProgram:
    """Return a random program; each relation has one rule or two."""
    layers = []
    readable = dict(BASES)
    for shapes in VIEWS:
        rules = [
            _random_rule(random, name, arity, readable, shapes, negation=negation)
            for name, arity in shapes.items()
            for _ in range(random.randint(1, 2))
        ]
        layers.append(tuple(rules))
        readable |= shapes
    return SmallProgram(tuple(layers))


def _random_rule(
    random: Random,
    name: str,
    arity: int,
    below: Mapping[str, int],
    own: Mapping[str, int],
    *,
    negation: bool,
) -> SmallRule:
    names = ["x", "y", "z", "u"][: random.randint(2, 4)]

    def literal(shapes: Mapping[str, int], *, is_negated: bool = False) -> Test:
        relation = random.choice(sorted(shapes))
        terms: list[Term] = [random.choice(names) for _ in range(shapes[relation])]
        if random.random() < 0.15:
            terms[0] = random.randint(1, 3)
        return Test(relation, tuple(terms), is_negated)

    body = [literal(below) for _ in range(random.randint(1, 2))]
    if random.random() < 0.5:
        body.append(literal({**below, **own}))
    bound = [each for test in body for each in test.variables] or ["x"]
    body = body if any(test.variables for test in body) else [Test("b", ("x",))]
    names = list(dict.fromkeys(bound))
    if negation and random.random() < 0.6:
        body.append(literal(below, is_negated=True))
    if random.random() < 0.4:
        sides = (random.choice(names), random.choice([*names, 2]))
        body.append(Test(random.choice(sorted(COMPARISONS)), sides))
    head = tuple(random.choice(names) for _ in range(arity))
    return SmallRule(Test(name, head), tuple(body))


def random_facts(random: Random, domain: Iterable[int]) -> set[Fact]:
    """Return random base facts."""
    values = list(domain)
    every = [(name, row) for name, n in BASES.items() for row in product(values, repeat=n)]
    return set(random.sample(every, random.randint(2, len(every) // 2)))


def known_values(program: SmallProgram, facts: Iterable[Fact], row: Row) -> set[int]:
    """Return the values of facts, of rules and of a tuple that is asked about."""
    terms = {t for rule in program.rules for test in (rule.head, *rule.body) for t in test.terms}
    constants = {term for term in terms if isinstance(term, int)}
    return {value for _, each in facts for value in each} | constants | set(row)


def open_database(
    program: SmallProgram, facts: Iterable[Fact], storage: str = ""
) -> corollary.Database:
    """Return a database in memory with a program and base facts."""
    db = corollary.open(None)
    db.load(text=program.text(storage))
    with db.transaction() as tx:
        for name in BASES:
            tx.insert(name, [row for relation, row in facts if relation == name])
    return db
