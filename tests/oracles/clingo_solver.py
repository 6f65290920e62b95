"""A second opinion from clingo on the fragment that both languages share.

Recursion, stratified negation, comparisons and `+ - *` over numbers (32-bit) and symbols. The
oracle's own parse is translated literal by literal; whatever lies outside raises `NotShared`.

    p(x, y + 1) :- q(x, _), !r(x).     becomes     r_p(Vx,Vy+1) :- r_q(Vx,_), not r_r(Vx).

Both read `_` under negation as "no tuple whatever stands there". A stratified program has
exactly one answer set, and that is its perfect model.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import clingo

from oracles.parser import And, Atom, Cmp, Expr, Fn, Formula, Lit, Not, Or, Truth, Var, parse

Row = tuple[Any, ...]


class NotShared(Exception):  # noqa: N818 (a verdict, not a mistake)
    """The program uses something that clingo has not or reads differently."""


def solve(text: str, facts: Mapping[str, Iterable[Row]] | None = None) -> dict[str, set[Row]]:
    """All declared relations of the program, computed by clingo.

    >>> solve(".decl n(x: number) n(0). n(x + 1) :- n(x), x < 2.")["n"] == {(0,), (1,), (2,)}
    True
    """
    program = parse(text)
    if any(decl.is_eqrel for decl in program.decls.values()):
        raise NotShared("eqrel")
    lines = []
    for name, rows in (facts or {}).items():
        atoms = (Atom(name, tuple(constant(value) for value in row)) for row in rows)
        lines += [f"{atom(fact)}." for fact in atoms]
    for rule in program.rules:
        for branch in branches(rule.body):
            body = f" :- {', '.join(branch)}" if branch else ""
            lines += [f"{atom(head)}{body}." for head in rule.heads]
    control = clingo.Control(["--warn=none"])
    control.add("base", [], "\n".join(lines))
    control.ground([("base", [])])
    result: dict[str, set[Row]] = {name: set() for name in program.decls}
    models = 0
    with control.solve(yield_=True) as handle:
        for model in handle:
            models += 1
            for symbol in model.symbols(atoms=True):
                values = (
                    a.number if a.type is clingo.SymbolType.Number else a.string
                    for a in symbol.arguments
                )
                result[symbol.name.removeprefix("r_")].add(tuple(values))
    assert models == 1, "a stratified program has exactly one answer set"
    return result


def constant(value: Any) -> Lit:
    if type(value) not in (int, str):
        raise NotShared(f"value {value!r}")
    return Lit("int" if isinstance(value, int) else "symbol", value)


def branches(formula: Formula) -> list[list[str]]:
    """Bodies without disjunction, each a list of clingo literals."""
    match formula:
        case Truth(value):
            return [[]] if value else []
        case Or(parts):
            return [branch for part in parts for branch in branches(part)]
        case And(parts):
            result: list[list[str]] = [[]]
            for part in parts:
                result = [left + right for left in result for right in branches(part)]
            return result
        case Atom():
            return [[atom(formula)]]
        case Not(Atom() as inner):
            return [[f"not {atom(inner)}"]]
        case Not(Cmp() as inner):
            return [[f"not {literal}" for literal in branch] for branch in branches(inner)]
        case Cmp(op, left, right) if re.fullmatch(r"[!<>=]=?", op):
            return [[f"{term(left)} {op} {term(right)}"]]
    raise NotShared(str(formula))


def atom(node: Atom) -> str:
    args = ",".join(term(arg) for arg in node.args)
    return f"r_{node.relation}({args})" if args else f"r_{node.relation}"


def term(node: Expr) -> str:
    if isinstance(node, Var):
        return "_" if node.is_wild else f"V{node.name}"
    if isinstance(node, Lit) and node.kind in ("int", "symbol"):
        return f'"{node.value}"' if node.kind == "symbol" else str(node.value)
    if isinstance(node, Fn) and node.name in ("+", "-", "*"):
        left, right = node.args
        return f"({term(left)}{node.name}{term(right)})"
    raise NotShared(str(node))
