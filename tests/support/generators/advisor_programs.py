"""Random programs for the advisor, with data that keeps their functional dependencies.

A program is plain data, so that the oracle of `advisor_oracle` can read it without our parser;
`text` prints it, with literals in another order and variables of other names if asked to.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

VALUES = 3
"""So many different values there are in the data."""


@dataclass(frozen=True)
class Rule:
    """A clause of the query: arguments are names of variables, or numbers."""

    head: tuple[Any, ...]
    literals: tuple[tuple[str, tuple[Any, ...]], ...]
    negated: tuple[tuple[str, tuple[Any, ...]], ...] = ()
    compared: tuple[tuple[str, str, str], ...] = ()
    recursive: tuple[tuple[str, tuple[Any, ...]], ...] = ()

    def as_clause(self) -> dict[str, Any]:
        """The clause as the oracle reads it."""
        filters = [frozenset(a for a in args if isinstance(a, str)) for _, args in self.negated]
        filters += [frozenset((left, right)) for left, _, right in self.compared]
        return {
            "head": [each for each in self.head if isinstance(each, str)],
            "literals": list(dict.fromkeys(self.literals)),
            "joined": list(dict.fromkeys(self.recursive)),
            "filters": filters,
        }


@dataclass(frozen=True)
class Program:
    """Base relations with dependencies, derived ones (fixed text), a query, facts."""

    arities: dict[str, int]
    fds: dict[str, list[tuple[tuple[int, ...], tuple[int, ...]]]]
    rules: tuple[Rule, ...]
    facts: dict[str, list[tuple[int, ...]]]
    derived: dict[str, tuple[int, str]] = field(default_factory=dict)

    def text(self, shuffled: random.Random | None = None) -> str:
        lines = [_declaration(name, arity) for name, arity in self.arities.items()]
        for name, every in self.fds.items():
            for left, right in every:
                sides = (", ".join(f"c{at}" for at in side) for side in (left, right))
                lines.append(f".fd {name}({' -> '.join(sides)})")
        for name, (arity, text) in self.derived.items():
            lines += [f"{_declaration(name, arity)} virtual", text]
        lines.append(f"{_declaration('q', len(self.rules[0].head))} virtual")
        lines += [_clause(rule, shuffled) for rule in self.rules]
        return "\n".join(lines) + "\n"


def _declaration(name: str, arity: int) -> str:
    return f".decl {name}({', '.join(f'c{at}: number' for at in range(arity))})"


def _clause(rule: Rule, shuffled: random.Random | None) -> str:
    names = sorted({a for _, args in (*rule.literals, *rule.recursive) for a in args if _is(a)})
    renamed = {name: name for name in names}
    body = [("", each) for each in (*rule.literals, *rule.recursive)]
    body += [("!", each) for each in rule.negated]
    if shuffled is not None:
        fresh = [f"V{number}" for number in range(len(names))]
        shuffled.shuffle(fresh)
        renamed = dict(zip(names, fresh, strict=True))
        shuffled.shuffle(body)

    def arguments(args: Sequence[Any]) -> str:
        return ", ".join(renamed[a] if _is(a) else str(a) for a in args)

    items = [f"{sign}{name}({arguments(args)})" for sign, (name, args) in body]
    items += [f"{renamed[left]} {op} {renamed[right]}" for left, op, right in rule.compared]
    return f"q({arguments(rule.head)}) :- {', '.join(items)}."


def _is(argument: Any) -> bool:
    return isinstance(argument, str)


# --- making them ---------------------------------------------------------------------------------


def program(seed: int) -> Program:
    """The random program of a seed."""
    dice = random.Random(seed)
    arities = {f"r{at}": dice.choice((1, 2, 2, 2, 3)) for at in range(dice.randint(2, 4))}
    fds = {name: _dependencies(dice, arity) for name, arity in arities.items()}
    derived: dict[str, tuple[int, str]] = {}
    if dice.random() < 0.3:
        derived = _derived(dice, arities)
    shapes = {**arities, **{name: arity for name, (arity, _) in derived.items()}}
    width = dice.randint(0, 3)
    is_recursive = dice.random() < 0.15
    rules: list[Rule] = []
    for _ in range(dice.choice((1, 1, 1, 2, 2, 3))):
        rules.append(_rule(dice, shapes, width, rules, is_recursive=is_recursive and bool(rules)))
    width = min(len(rule.head) for rule in rules)
    rules = [Rule(r.head[:width], r.literals, r.negated, r.compared, r.recursive) for r in rules]
    rules = [r if all(len(a) == width for _, a in r.recursive) else _plain(r) for r in rules]
    facts = {name: _facts(dice, arity, fds[name]) for name, arity in arities.items()}
    return Program(arities, fds, tuple(rules), facts, derived)


def _plain(rule: Rule) -> Rule:
    return Rule(rule.head, rule.literals, rule.negated, rule.compared)


def _dependencies(dice: random.Random, arity: int) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    found = []
    while arity > 1 and dice.random() < 0.4:
        columns = dice.sample(range(arity), arity)
        cut = dice.randint(1, arity - 1)
        found.append((tuple(sorted(columns[:cut])), tuple(sorted(columns[cut:]))))
    return found


def _derived(dice: random.Random, arities: dict[str, int]) -> dict[str, tuple[int, str]]:
    binary = [name for name, arity in arities.items() if arity == 2]
    if not binary:
        return {}
    one, other = dice.choice(binary), dice.choice(binary)
    closure = f"d(X, Y) :- {one}(X, Y). d(X, Y) :- d(X, Z), {other}(Z, Y)."
    joined = f"d(X, Y) :- {one}(X, Z), {other}(Y, Z)."
    return {"d": (2, dice.choice((closure, joined)))}


def _rule(
    dice: random.Random,
    shapes: dict[str, int],
    width: int,
    before: list[Rule],
    *,
    is_recursive: bool,
) -> Rule:
    pool = [f"X{number}" for number in range(dice.randint(2, 6))]

    def literal() -> tuple[str, tuple[Any, ...]]:
        name = dice.choice(list(shapes))
        return name, tuple(
            dice.randrange(VALUES) if dice.random() < 0.07 else dice.choice(pool)
            for _ in range(shapes[name])
        )

    literals = [literal() for _ in range(dice.randint(1, 5))]
    if before and dice.random() < 0.7:  # clauses with something in common
        shared = list(before[0].literals)
        literals = [*shared[: dice.randint(1, len(shared))], *literals[:2]]
    bound = sorted({a for _, args in literals for a in args if _is(a)})
    head: tuple[Any, ...] = tuple(dice.choice(bound) for _ in range(width)) if bound else ()
    if before and dice.random() < 0.7 and set(before[0].head) <= set(bound):
        head = before[0].head
    negated, compared, recursive = [], [], []
    if bound and dice.random() < 0.12:
        name = dice.choice(list(shapes))
        negated.append((name, tuple(dice.choice(bound) for _ in range(shapes[name]))))
    if len(bound) > 1 and dice.random() < 0.12:
        left, right = dice.sample(bound, 2)
        compared.append((left, dice.choice(("<", "!=", "<=")), right))
    if is_recursive and len(head) == width and bound:
        recursive.append(("q", tuple(dice.choice(bound) for _ in range(width))))
    return Rule(head, tuple(literals), tuple(negated), tuple(compared), tuple(recursive))


def _facts(
    dice: random.Random, arity: int, fds: list[tuple[tuple[int, ...], tuple[int, ...]]]
) -> list[tuple[int, ...]]:
    rows: list[tuple[int, ...]] = []
    for _ in range(dice.randint(0, 9)):
        row = tuple(dice.randrange(VALUES) for _ in range(arity))
        fits = all(
            any(row[at] != other[at] for at in left) or all(row[at] == other[at] for at in right)
            for left, right in fds
            for other in rows
        )
        if fits:
            rows.append(row)
    return rows
