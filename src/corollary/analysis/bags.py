"""Relations with copies: `.decl u(a: number?) bag` stands for two relations and a rule.

    .decl u.rows(a: number?, copies: number) key(a)      // each row once, and how often it occurs
    .decl u(a: number?) virtual
    u(a) := u.rows(a, _).

A fact `u(1).` is one copy, `u.rows(1, 1)`, and so are the heads `+u(x)` and `-u(x)` of triggers.
What rules, goals and events read as `u` is the set of its rows.
"""

from collections.abc import Mapping
from dataclasses import replace

from corollary.core.logic import Atom, Clause, Constant, Variable, Wildcard
from corollary.core.program import Column, Declaration, Program, TypeName
from corollary.core.types import NUMBER

ROWS_SUFFIX = ".rows"
COPIES_COLUMN = "copies"


def rows_name(bag: str) -> str:
    """Return the relation that has each row of a bag once, with its count."""
    return bag + ROWS_SUFFIX


def counts_copies(name: str) -> bool:
    """Return whether a relation that rewriting made is the aggregate of a bag's counts.

    >>> counts_copies("u.rows.aggregate1"), counts_copies("u.aggregate1")
    (True, False)
    """
    return name.rpartition(".")[0].endswith(ROWS_SUFFIX)


def bags_of(program: Program) -> dict[str, Declaration]:
    """Return the relations that are declared with copies, each by its first declaration."""
    first: dict[str, Declaration] = {}
    for each in program.declarations:
        first.setdefault(each.name, each)
    return {name: each for name, each in first.items() if each.is_bag}


def with_bags(program: Program) -> Program:
    """Return a program in which each bag has its rows and its projection."""
    bags = bags_of(program)
    if not bags:
        return program
    known = {each.name for each in program.declarations}
    declarations: list[Declaration] = []
    for each in program.declarations:
        declarations.append(each)
        if bags.get(each.name) is each and rows_name(each.name) not in known:
            declarations.append(_rows_declaration(each))
    clauses = tuple(_with_counts(each, bags) for each in program.clauses)
    projections = tuple(
        projection(each) for name, each in bags.items() if rows_name(name) not in known
    )
    return replace(program, declarations=tuple(declarations), clauses=(*projections, *clauses))


def _rows_declaration(bag: Declaration) -> Declaration:
    columns = tuple(column.name for column in bag.columns)
    copies, number = COPIES_COLUMN, 1
    while copies in columns:
        number += 1
        copies = f"{COPIES_COLUMN}{number}"
    return Declaration(
        rows_name(bag.name),
        (*bag.columns, Column(copies, TypeName(str(NUMBER)), bag.span)),
        columns,
        bag.storage,
        bag.hints,
        span=bag.span,
    )


def projection(bag: Declaration) -> Clause:
    """Return the rule of the set of a bag's rows."""
    columns = tuple(Variable(column.name, span=bag.span) for column in bag.columns)
    rows = Atom(rows_name(bag.name), (*columns, Wildcard(bag.span)), span=bag.span)
    head = Atom(bag.name, columns, span=bag.span)
    return Clause((head,), (rows,), is_null_safe=True, span=bag.span)


def _with_counts(clause: Clause, bags: Mapping[str, Declaration]) -> Clause:
    """Return a fact or a trigger whose heads say how many copies they mean."""
    heads = tuple(
        replace(
            head,
            relation=rows_name(head.relation),
            arguments=(*head.arguments, Constant(1, span=head.span)),
        )
        if (head.sign or not clause.body) and _fits(head, bags)
        else head
        for head in clause.heads
    )
    return clause if heads == clause.heads else replace(clause, heads=heads)


def _fits(head: Atom, bags: Mapping[str, Declaration]) -> bool:
    bag = bags.get(head.relation)
    return bag is not None and len(bag.columns) == len(head.arguments)
