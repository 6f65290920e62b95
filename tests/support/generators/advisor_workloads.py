"""Random workloads: several queries over the same relations, with parts in common."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

ARITIES = {"r": 2, "s": 2, "t": 3}
VALUES = 3


@dataclass(frozen=True)
class RandomWorkload:
    """A program with queries q0, q1 …, and facts."""

    text: str
    queries: tuple[str, ...]
    facts: dict[str, list[tuple[int, ...]]]


def workload(seed: int) -> RandomWorkload:
    """The random workload of a seed."""
    dice = random.Random(seed)
    lines = [
        f".decl {name}({', '.join(f'c{at}: number' for at in range(arity))})"
        for name, arity in ARITIES.items()
    ]
    common = [_literal(dice, 0.0) for _ in range(dice.randint(1, 3))]
    queries = []
    for number in range(dice.randint(2, 4)):
        body = [*common[: dice.randint(1, 3)], *(_literal(dice, 0.2) for _ in range(2))]
        body = [_changed(each, dice) for each in body[: dice.randint(1, 4)]]
        bound = sorted({term for _, terms in body for term in terms if isinstance(term, str)})
        head = [each for each in bound if dice.random() < 0.4][:3]
        name = f"q{number}"
        queries.append(name)
        columns = ", ".join(f"c{at}: number" for at in range(len(head)))
        lines.append(f".decl {name}({columns}) virtual")
        items = [f"{relation}({', '.join(map(str, terms))})" for relation, terms in body]
        if len(bound) > 1 and dice.random() < 0.2:
            items.append(" != ".join(dice.sample(bound, 2)))
        if bound and dice.random() < 0.15:
            items.append(f"!s({dice.choice(bound)}, {dice.choice(bound)})")
        lines.append(f"{name}({', '.join(head)}) :- {', '.join(items)}.")
    facts = {
        name: sorted({tuple(dice.randrange(VALUES) for _ in range(arity)) for _ in range(8)})
        for name, arity in ARITIES.items()
    }
    return RandomWorkload("\n".join(lines) + "\n", tuple(queries), facts)


AGGREGATES = ("sum {}", "count", "min {}", "max {}", "sum {} * {}")


def aggregate_workload(seed: int) -> RandomWorkload:
    """A random workload whose queries aggregate over joins with parts in common.

    Some aggregate over a body, some over the rows of a virtual relation; `t` has a key.
    """
    dice = random.Random(seed)
    lines = [
        f".decl {name}({', '.join(f'c{at}: number' for at in range(arity))})"
        + (" key(c0)" if name == "t" else "")
        for name, arity in ARITIES.items()
    ]
    common = [("t", ("K", "A", "B")), *(_literal(dice, 0.0) for _ in range(2))]
    queries = []
    for number in range(dice.randint(2, 4)):
        body = [*common[: dice.randint(1, 3)], *(_literal(dice, 0.2) for _ in range(2))]
        body = [_changed(each, dice) for each in body[: dice.randint(1, 3)]]
        bound = sorted({term for _, terms in body for term in terms if isinstance(term, str)})
        keys = [each for each in bound if dice.random() < 0.3][:2]
        items = ", ".join(f"{relation}({', '.join(map(str, terms))})" for relation, terms in body)
        if len(bound) > 1 and dice.random() < 0.2:
            items += f", {' < '.join(dice.sample(bound, 2))}"
        name, form = f"q{number}", dice.choice(AGGREGATES)
        local = [each for each in bound if each not in keys] or ["1"]
        aggregate = form.format(*(dice.choice(local) for _ in range(form.count("{}"))))
        columns = "".join(f"c{at}: number, " for at in range(len(keys)))
        lines.append(f".decl {name}({columns}v: number) virtual")
        head = "".join(f"{each}, " for each in keys)
        domain = items
        if dice.random() < 0.5:
            declared = ", ".join(f"c{at}: number" for at in range(len(bound)))
            lines.append(f".decl {name}_rows({declared}) virtual")
            lines.append(f"{name}_rows({', '.join(bound)}) :- {items}.")
            items = f"{name}_rows({', '.join(bound)})"
            domain = f"{name}_rows({', '.join(e if e in keys else '_' for e in bound)})"
        else:
            for each in bound:
                if each not in keys:
                    domain = re.sub(rf"\b{each}\b", f"{each}o", domain)
        lines.append(f"{name}({head}v) :- {domain}, v = {aggregate} : {{ {items} }}.")
        queries.append(name)
    facts = {
        name: sorted({tuple(dice.randrange(VALUES) for _ in range(arity)) for _ in range(8)})
        for name, arity in ARITIES.items()
    }
    facts["t"] = [(at, *row[1:]) for at, row in enumerate(facts["t"])]
    return RandomWorkload("\n".join(lines) + "\n", tuple(queries), facts)


def _literal(dice: random.Random, constants: float) -> tuple[str, tuple[str | int, ...]]:
    name = dice.choice(list(ARITIES))
    terms = tuple(
        dice.randrange(VALUES) if dice.random() < constants else f"X{dice.randrange(5)}"
        for _ in range(ARITIES[name])
    )
    return name, terms


def _changed(
    literal: tuple[str, tuple[str | int, ...]], dice: random.Random
) -> tuple[str, tuple[str | int, ...]]:
    """The literal, perhaps with a constant or another variable in a place."""
    name, terms = literal
    return name, tuple(
        dice.choice((dice.randrange(VALUES), f"X{dice.randrange(5)}"))
        if dice.random() < 0.12
        else term
        for term in terms
    )
