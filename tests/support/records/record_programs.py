"""Random programs over records and algebraic data types, maintained and judged by the oracle.

Values are made, taken apart, compared, negated, aggregated and used as keys: lists `L`, pairs `P`,
and shapes `S` with a branch that holds other shapes. What a rule makes of its own relation is
part of what it reads, or has a smaller first number, so that all programs end.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field

from support.maintained_database import ALGORITHMS, MIXED, Judged, Row, SkipError

TYPES = """
.type L = [h: number, t: L]
.type P = [a: number, s: symbol]
.type S = Dot {} | Box {a: number, p: P} | Two {l: S, r: S}
"""
BASES = {"e": ("number", "number"), "b": ("L",), "c": ("S", "number"), "k": ("P", "L")}
KINDS = ("number", "L", "P", "S")
NUMBERS = 4
SYMBOL_PATTERNS = ("_", '"a"')

DESCENDING = "{name}([x, t]) :- {name}(t), t = [y, _], e(x, y), x < y.\n"
"""A list grows, and its numbers go down."""


@dataclass(slots=True)
class RandomRule:
    """A rule under construction: its variables by kind, and its literals."""

    source: random.Random
    bound: dict[str, list[str]] = field(default_factory=lambda: {kind: [] for kind in KINDS})
    literals: list[str] = field(default_factory=list)

    def fresh(self, kind: str) -> str:
        """Return a new variable."""
        name = f"v{sum(map(len, self.bound.values()))}"
        self.bound[kind].append(name)
        return name

    def pattern(self, kind: str, depth: int = 0) -> str:
        """Return an argument of a literal in a body: it binds what it does not know."""
        chance = self.source.random()
        if chance < 0.2:
            return "_"
        if self.bound[kind] and chance < 0.45:
            return self.source.choice(self.bound[kind])
        if kind == "number" or depth > 1 or chance < 0.7:
            return self.fresh(kind)
        return self._taken_apart(kind, depth + 1)

    def _taken_apart(self, kind: str, depth: int) -> str:
        branch = self.source.randrange(3)
        if kind == "L":
            if not branch:
                return "nil"
            return f"[{self.pattern('number', depth)}, {self.pattern('L', depth)}]"
        if kind == "P":
            return f"[{self.pattern('number', depth)}, {self.source.choice(SYMBOL_PATTERNS)}]"
        if not branch:
            return "$Dot()"
        if branch == 1:
            return f"$Box({self.pattern('number', depth)}, {self.pattern('P', depth)})"
        return f"$Two({self.pattern('S', depth)}, _)"

    def known(self, kind: str, depth: int = 0) -> str:
        """Return a term of bound variables and constants."""
        if self.bound[kind] and (depth > 1 or self.source.random() < 0.6):
            return self.source.choice(self.bound[kind])
        branch, below = 0 if depth > 1 else self.source.randrange(3), depth + 1
        if kind == "number":
            return str(self.source.randrange(NUMBERS))
        if kind == "L":
            if not branch:
                return "nil"
            return f"[{self.known('number', below)}, {self.known('L', below)}]"
        if kind == "P":
            return f'[{self.known("number", below)}, "{self.source.choice("ab")}"]'
        if not branch:
            return "$Dot()"
        if branch == 1:
            return f"$Box({self.known('number', below)}, {self.known('P', below)})"
        return f"$Two({self.known('S', below)}, {self.known('S', below)})"


def random_program(source: random.Random) -> str:
    """Return a program over the base relations."""
    lines = [TYPES]
    lines += [_declaration(name, kinds) for name, kinds in BASES.items()]
    known = dict(BASES)
    for number in range(source.randint(2, 5)):
        name = f"d{number}"
        kinds = tuple(source.choice(KINDS) for _ in range(source.randint(1, 2)))
        shape = source.random()
        if shape < 0.2:
            lines += _aggregate(name, known, source)
            known[name] = (*_keys(lines), "number")
            continue
        if shape < 0.4:
            kinds = ("L",)
        lines.append(_declaration(name, kinds))
        for _ in range(source.randint(1, 2)):
            lines.append(_rule(name, kinds, known, source))
        if shape < 0.3:
            lines.append(DESCENDING.format(name=name))
        elif source.random() < 0.4:
            lines.append(_recursive(name, kinds, known, source))
        known[name] = kinds
    return "\n".join(lines) + "\n"


def _declaration(name: str, kinds: tuple[str, ...]) -> str:
    columns = ", ".join(f"c{at}: {kind}" for at, kind in enumerate(kinds))
    return f".decl {name}({columns})"


def _keys(lines: list[str]) -> tuple[str, ...]:
    """Return the kinds of the keys of the aggregate that was declared last."""
    declared = next(line for line in reversed(lines) if line.startswith(".decl"))
    columns = declared[declared.index("(") + 1 : -1].split(", ")
    return tuple(column.split(": ")[1] for column in columns[:-1])


def _body(rule: RandomRule, known: dict[str, tuple[str, ...]], count: int) -> None:
    """Add literals, perhaps a negated one, and conditions to a rule."""
    source = rule.source
    for _ in range(count):
        name = source.choice(sorted(known))
        arguments = ", ".join(rule.pattern(kind) for kind in known[name])
        rule.literals.append(f"{name}({arguments})")
    lists, numbers = rule.bound["L"], rule.bound["number"]
    if lists and source.random() < 0.3:
        rule.literals.append(
            f"{source.choice(lists)} {source.choice(['!=', '='])} {rule.known('L')}"
        )
    if lists and source.random() < 0.3:
        taken = source.choice(lists)
        rule.literals.append(f"{taken} = [{rule.fresh('number')}, {rule.fresh('L')}]")
    if len(numbers) > 1 and source.random() < 0.3:
        rule.literals.append(f"{source.choice(numbers)} <= {source.choice(numbers)}")
    if source.random() < 0.3:
        name = source.choice(sorted(known))
        arguments = ", ".join(
            "_" if source.random() < 0.3 else rule.known(kind) for kind in known[name]
        )
        rule.literals.append(f"!{name}({arguments})")


def _rule(
    name: str, kinds: tuple[str, ...], known: dict[str, tuple[str, ...]], source: random.Random
) -> str:
    rule = RandomRule(source)
    _body(rule, known, source.randint(1, 2))
    head = ", ".join(rule.known(kind) for kind in kinds)
    return f"{name}({head}) :- {', '.join(rule.literals)}."


def _recursive(
    name: str, kinds: tuple[str, ...], known: dict[str, tuple[str, ...]], source: random.Random
) -> str:
    """Return a rule that takes tuples of its own relation apart, and makes nothing new."""
    rule = RandomRule(source)
    rule.literals.append(f"{name}({', '.join(rule.pattern(kind) for kind in kinds)})")
    _body(rule, known, 1)
    head = [source.choice(rule.bound[kind]) if rule.bound[kind] else "" for kind in kinds]
    if not all(head):
        return ""
    return f"{name}({', '.join(head)}) :- {', '.join(rule.literals)}."


def _aggregate(name: str, known: dict[str, tuple[str, ...]], source: random.Random) -> list[str]:
    """Return an aggregate whose key may be a record, and whose body takes records apart."""
    rule = RandomRule(source)
    outer = source.choice(sorted(known))
    variables = [rule.fresh(kind) for kind in known[outer]]
    place = source.randrange(len(variables))
    key, kind = variables[place], known[outer][place]
    inner = source.choice([each for each in sorted(known) if "number" in known[each]])
    arguments = []
    for at, each in enumerate(known[inner]):
        is_key = each == kind and source.random() < 0.5
        arguments.append(key if is_key else f"w{at}")
    numbers = [
        each
        for each, type_ in zip(arguments, known[inner], strict=True)
        if type_ == "number" and each.startswith("w")
    ]
    operator = source.choice(["count", "sum", "min", "max"]) if numbers else "count"
    term = "" if operator == "count" else f" {source.choice(numbers)}"
    inside = f"{inner}({', '.join(arguments)})"
    if kind == "L" and source.random() < 0.5:
        inside += f", {key} = [z, _], z >= 0"
    body = f"{outer}({', '.join(variables)}), n = {operator}{term} : {{ {inside} }}"
    return [_declaration(name, (kind, "number")), f"{name}({key}, n) :- {body}."]


def random_row(kinds: tuple[str, ...], source: random.Random) -> Row:
    """Return a tuple of a base relation; records are texts."""
    return tuple(_value(kind, source, 0) for kind in kinds)


def _value(kind: str, source: random.Random, depth: int) -> int | str:
    number, below = source.randrange(NUMBERS), depth + 1
    match kind:
        case "number":
            return number
        case "L":
            is_end = depth > 2 or source.random() < 0.3
            return "nil" if is_end else f"[{number}, {_value('L', source, below)}]"
        case "P":
            return f"[{number}, {source.choice('ab')}]"
        case _:
            chance = source.random()
            if chance < 0.3 or depth > 2:
                return "$Dot"
            if chance < 0.7:
                return f"$Box({number}, {_value('P', source, below)})"
            return f"$Two({_value('S', source, below)}, {_value('S', source, below)})"


def judge_records(number: int, count: int = 10) -> Counter[str]:
    """Maintain a random program through random changes of its base relations; judge each."""
    source = random.Random(number)
    text = random_program(source)
    algorithms = (*ALGORITHMS, MIXED)
    try:
        judged = Judged(text, algorithms[number % len(algorithms)], seed=number)
    except SkipError:
        return Counter(skipped=1)
    for _ in range(count):
        inserts: dict[str, set[Row]] = {name: set() for name in BASES}
        deletes: dict[str, set[Row]] = {name: set() for name in BASES}
        for _ in range(source.choice((1, 1, 2, 4, 8))):
            name = source.choice(sorted(BASES))
            present = sorted(judged.base[name])
            if present and source.random() < 0.4:
                deletes[name].add(source.choice(present))
            else:
                inserts[name].add(random_row(BASES[name], source))
        for name, rows in inserts.items():
            deletes[name] -= rows
            rows -= set(judged.base[name])
        judged.step((inserts, deletes))
    judged.db.close()
    return judged.counts
